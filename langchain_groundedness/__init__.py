"""Tells, while a RAG chain runs, which claims of an answer the retrieved documents support."""

__all__: list[str] = []
