"""Options that are checked when an object is made, with an error of this package."""

from typing import Any

from pydantic import BaseModel, ValidationError

from langchain_groundedness.exceptions import ConfigurationError

__all__ = ["CheckedOptions"]


class CheckedOptions(BaseModel):
    """Base of everything with options: a bad one raises `ConfigurationError`.

    The message names the option and what is accepted; it does not repeat values that came, since
    one of them may be a key or a document.
    """

    def __init__(self, **options: Any) -> None:
        """Check the options.

        Args:
            **options: The fields of the class.

        Raises:
            ConfigurationError: One of them is unknown or has a value that cannot work.
        """
        try:
            super().__init__(**options)
        except ValidationError as exc:
            accepted = ", ".join(type(self).model_fields)
            msg = f"{type(self).__name__}: {_problems(exc)}; options are: {accepted}"
            raise ConfigurationError(msg) from None


def _problems(error: ValidationError) -> str:
    details = error.errors(include_input=False, include_url=False, include_context=False)
    return "; ".join(
        f"{'.'.join(map(str, d['loc'])) or 'options'}: {d['msg'].removeprefix('Value error, ')}"
        for d in details
    )
