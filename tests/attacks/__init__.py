"""Hostile texts, and what they must not achieve."""
