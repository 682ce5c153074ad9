"""Monitoring figures from an audit log: support rates, decisions, reviews, latency."""

from langchain_groundedness.monitoring.summary import AuditSummary, GroupFigures, summarize

__all__ = ["AuditSummary", "GroupFigures", "summarize"]
