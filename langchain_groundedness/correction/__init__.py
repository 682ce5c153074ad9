"""Correction: edits an answer where claims were contradicted, and nowhere else."""

from langchain_groundedness.correction.corrector import Corrector

__all__ = ["Corrector"]
