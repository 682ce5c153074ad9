"""Runs the demonstration: `python -m langchain_groundedness.demo`."""

from langchain_groundedness.demo.watching import watch

if __name__ == "__main__":
    watch()
