"""Reads question, answer and documents from the output of any chain or agent."""

from langchain_groundedness.inputs.formats import NO_DOCUMENTS, CheckInput, no_documents, read_input

__all__ = ["NO_DOCUMENTS", "CheckInput", "no_documents", "read_input"]
