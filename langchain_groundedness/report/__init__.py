"""What an evaluation says, for people and for CI: a page, Markdown, JUnit's XML."""

from langchain_groundedness.report.writing import to_html, to_junit, to_markdown, write_report

__all__ = ["to_html", "to_junit", "to_markdown", "write_report"]
