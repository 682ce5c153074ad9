"""Verifiers by name, for `verifier=` options and the command line."""

from collections.abc import Callable
from typing import Annotated, Any

from langchain_core.runnables import Runnable
from pydantic import BeforeValidator

from langchain_groundedness._runtime.options import as_runnable
from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.types import AcceptedTypes
from langchain_groundedness.verification.public_models import PUBLIC_MODELS, known_models

__all__ = ["AnyVerifier", "named_verifier"]


def named_verifier(name: str) -> Runnable[Any, Any]:
    """Make the verifier `embedded`, or that of a public model, with its default options."""
    if name == "embedded":
        from langchain_groundedness.verification.embedded.verifier import (  # noqa: PLC0415  (slow import)
            EmbeddedVerifier,
        )

        return EmbeddedVerifier()
    if name not in PUBLIC_MODELS:
        msg = f"there is no verifier {name!r:.60}; accepted: embedded, {known_models()}"
        raise ConfigurationError(msg)
    from langchain_groundedness.verification.cross_encoder import (  # noqa: PLC0415  (slow import)
        CrossEncoderVerifier,
    )

    return CrossEncoderVerifier(cross_encoder=name)


def _verifier(value: object) -> object:
    if isinstance(value, str):
        return named_verifier(value)
    return as_runnable(value)


AnyVerifier = Annotated[
    Runnable[Any, Any],
    BeforeValidator(_verifier),
    AcceptedTypes(Runnable[Any, Any] | Callable[..., Any] | str),
]
"""An option that takes a verifier, a function that becomes one, or a name that
`named_verifier` takes."""
