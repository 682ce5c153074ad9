"""The check from end to end: its steps, batch and live runs, and the release of text."""
