"""What an audit log says about a system over time: how much is supported, decided, overruled."""

from langchain_groundedness.monitoring.summary import AuditSummary, GroupFigures, summarize

__all__ = ["AuditSummary", "GroupFigures", "summarize"]
