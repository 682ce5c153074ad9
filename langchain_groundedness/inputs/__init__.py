"""Reads question, answer and documents out of whatever a chain or an agent returned."""

from langchain_groundedness.inputs.formats import NO_DOCUMENTS, CheckInput, no_documents, read_input

__all__ = ["NO_DOCUMENTS", "CheckInput", "no_documents", "read_input"]
