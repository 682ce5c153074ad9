"""Audit logs: one record per decision, in a file or a database, with its review."""

from langchain_groundedness.audit.jsonl import JsonlAuditLog
from langchain_groundedness.audit.log import AuditLog
from langchain_groundedness.audit.record import (
    AuditedDocument,
    AuditEntry,
    AuditRecord,
    Review,
    Versions,
)
from langchain_groundedness.audit.sql import AuditPage, SQLAuditLog

__all__ = [
    "AuditEntry",
    "AuditLog",
    "AuditPage",
    "AuditRecord",
    "AuditedDocument",
    "JsonlAuditLog",
    "Review",
    "SQLAuditLog",
    "Versions",
]
