"""The check in agents: a middleware for `create_agent`, and a node for hand-written graphs.

Needs the extra `agents` (langchain >= 1.4).
"""

from langchain_groundedness.middleware.agent import (
    GroundednessMiddleware,
    GroundednessState,
    groundedness_node,
)
from langchain_groundedness.middleware.review_decisions import (
    aresume_reviewed,
    resume_reviewed,
    resume_value,
)

__all__ = [
    "GroundednessMiddleware",
    "GroundednessState",
    "aresume_reviewed",
    "groundedness_node",
    "resume_reviewed",
    "resume_value",
]
