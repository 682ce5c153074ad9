"""Makes the chat model that a command line names."""

import os
import re
from importlib.util import find_spec
from typing import Any

from langchain_core.language_models import BaseChatModel

from langchain_groundedness.cli._errors import CannotCheckError, one_line
from langchain_groundedness.exceptions import GroundednessError, require

__all__ = ["load_model"]

_URL = re.compile(r"https?://[^\s/]", re.IGNORECASE)


def load_model(name: str | None, base_url: str | None) -> BaseChatModel | None:
    """Make a chat model.

    Args:
        name: Provider and name, or a name alone; `None` for no model.
        base_url: Server that speaks OpenAI's protocol, if it is on one.

    Returns:
        The model, if one is named.

    Raises:
        CannotCheckError: There is no such model, or the options do not go together.
        GroundednessError: An extra is missing.
    """
    if name is None:
        if base_url is not None:
            msg = "--base-url needs --model, the name of the model on that server"
            raise CannotCheckError(msg)
        return None
    if not name.strip() or name.strip().endswith(":"):
        given = f"{name.strip()} names no model" if name.strip() else "is empty"
        msg = f"--model {given}; give the name of a model, such as openai:gpt-4o-mini"
        raise CannotCheckError(msg)
    if base_url is not None and not _URL.match(base_url):
        msg = "--base-url must begin with http:// or https://, as in http://localhost:11434/v1"
        raise CannotCheckError(msg)
    try:
        return _chat_model(name, base_url)
    except GroundednessError:
        raise
    except Exception as error:
        why = one_line(error)
        if "model_provider" in why:  # an argument of LangChain's, which has no option here
            why = (
                "its provider is not known; write PROVIDER:NAME, as in openai:gpt-4o-mini or "
                "ollama:qwen2.5:7b, or give --base-url for a server that speaks OpenAI's protocol"
            )
        msg = f"model {name}: {why}"
        raise CannotCheckError(msg) from error


def _chat_model(name: str, base_url: str | None) -> BaseChatModel:
    if base_url is None and find_spec("langchain"):
        model: BaseChatModel = require("langchain.chat_models", extra="agents").init_chat_model(
            name
        )
        return model
    if base_url is None and ":" in name and not name.startswith("openai:"):
        require("langchain", extra="agents")
    chat_openai = require("langchain_openai", extra="openai").ChatOpenAI
    options: dict[str, Any] = {"model": name.removeprefix("openai:")}
    if base_url is not None:
        # Servers of this kind speak the older of the two protocols, and most ask for no key.
        options |= {
            "base_url": base_url,
            "use_responses_api": False,
            "api_key": os.environ.get("OPENAI_API_KEY") or "none",
        }
    openai: BaseChatModel = chat_openai(**options)
    return openai
