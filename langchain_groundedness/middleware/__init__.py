"""The check in agents: a middleware for `create_agent`, and a node for hand-written graphs.

Needs the extra `agents` (langchain >= 1.4).
"""

from langchain_groundedness.exceptions import require

require("langchain.agents", extra="agents")

from langchain_groundedness.middleware.agent import (  # noqa: E402  (`require` names the extra)
    GroundednessMiddleware,
    GroundednessState,
    groundedness_node,
)
from langchain_groundedness.middleware.review_decisions import (  # noqa: E402  (same)
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
