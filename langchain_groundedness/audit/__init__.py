"""Audit logs: one record per decision, in a file or a database, with its review."""

from typing import TYPE_CHECKING

from langchain_groundedness._runtime.lazy import lazy_names

if TYPE_CHECKING:  # what `_NAMES_BY_MODULE` says; a test compares them
    from langchain_groundedness.audit.jsonl import JsonlAuditLog as JsonlAuditLog
    from langchain_groundedness.audit.log import AuditLog as AuditLog
    from langchain_groundedness.audit.record import AuditedDocument as AuditedDocument
    from langchain_groundedness.audit.record import AuditEntry as AuditEntry
    from langchain_groundedness.audit.record import AuditRecord as AuditRecord
    from langchain_groundedness.audit.record import Review as Review
    from langchain_groundedness.audit.record import Versions as Versions
    from langchain_groundedness.audit.sql import AuditPage as AuditPage
    from langchain_groundedness.audit.sql import SQLAuditLog as SQLAuditLog

_NAMES_BY_MODULE = {
    "jsonl": "JsonlAuditLog",
    "log": "AuditLog",
    "record": "AuditEntry AuditRecord AuditedDocument Review Versions",
    "sql": "AuditPage SQLAuditLog",
}
"""The public names, by the module that each is imported from on first use."""

if not TYPE_CHECKING:
    __all__, __getattr__, __dir__ = lazy_names(__name__, _NAMES_BY_MODULE)
