"""Renders results: notebook, terminal, marked text, plots."""
