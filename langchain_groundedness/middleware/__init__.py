"""The check inside agents: a middleware for `create_agent`, and a node for hand-written graphs.

Needs the extra `agents` (langchain >= 1.4).
"""

from langchain_groundedness.middleware.agent import (
    GroundednessMiddleware,
    GroundednessState,
    groundedness_node,
)

__all__ = ["GroundednessMiddleware", "GroundednessState", "groundedness_node"]
