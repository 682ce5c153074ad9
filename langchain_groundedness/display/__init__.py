"""Results for people: notebook, terminal, marked text, plots."""
