"""The type of `model=` options: a chat model, a function, or a name such as `provider:name`."""

from typing import Annotated, Any

from langchain_core.runnables import Runnable
from langchain_core.runnables.base import coerce_to_runnable
from pydantic import BeforeValidator

from langchain_groundedness.exceptions import require

__all__ = ["MODEL_NAMES", "ChatModel", "model_name"]

MODEL_NAMES = ("model_name", "model", "model_id", "deployment_name", "repo_id")
"""Where chat models keep the name of the model that they call."""


def _chat_model(value: object) -> object:
    if isinstance(value, str):
        return require("langchain.chat_models", extra="agents").init_chat_model(value)
    return coerce_to_runnable(value) if callable(value) else value


ChatModel = Annotated[Runnable[Any, Any], BeforeValidator(_chat_model)]
"""An option that takes a chat model, a function that becomes a runnable, or `provider:name` for
LangChain's `init_chat_model` (extra `agents`)."""


def model_name(model: object) -> str | None:
    """Give the name of the model that a chat model calls, if it says it."""
    found = (getattr(model, name, None) for name in MODEL_NAMES)
    return next((name for name in found if isinstance(name, str) and name), None)
