"""Files with a policy: read with errors that say where, and written."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import yaml

from langchain_groundedness._bounded import LARGEST_SETTINGS, read_up_to
from langchain_groundedness.exceptions import ConfigurationError, Fault
from langchain_groundedness.policy._located import (
    Located,
    LocatedError,
    at,
    located_json,
    located_yaml,
)

__all__ = ["Form", "parsed", "read_file", "text_of", "write_file", "yaml_of"]

Form: TypeAlias = Literal["yaml", "json"]
_FORMS: dict[str, Form] = {".yaml": "yaml", ".yml": "yaml", ".json": "json"}
_READERS: dict[Form, Callable[[str], Located]] = {"yaml": located_yaml, "json": located_json}
_UNKNOWN = "there is no such key; accepted"
_MOST_FAULTS = 5
_LONGEST_SHOWN = 40

_T = TypeVar("_T")


def read_file(path: Path) -> tuple[str, Form]:
    """Read the text of a file.

    Args:
        path: A file whose suffix says what is in it.

    Returns:
        The text, and what it is.

    Raises:
        ConfigurationError: There is no such file, or it is no text.
    """
    form = _form_of(path)
    return text_of(path), form


def text_of(path: Path) -> str:
    """Read the text of a file with settings.

    Args:
        path: The file.

    Returns:
        The text.

    Raises:
        ConfigurationError: There is no such file, it is no text, or too large.
    """
    try:
        return read_up_to(path, LARGEST_SETTINGS).decode("utf-8-sig")
    except OSError as exc:
        raise _of_system(path, exc) from exc
    except UnicodeDecodeError as exc:
        msg = f"{path}: not UTF-8 text (byte {exc.start}); convert it first"
        raise ConfigurationError(msg) from None


def write_file(path: Path, writers: Mapping[Form, Callable[[], str]]) -> None:
    """Write a text into a file.

    Args:
        path: A file whose suffix says what shall be in it.
        writers: What makes the text.

    Raises:
        ConfigurationError: It cannot be written.
    """
    text = writers[_form_of(path)]()
    try:
        path.write_text(text.removesuffix("\n") + "\n", encoding="utf-8")
    except OSError as exc:
        raise _of_system(path, exc) from exc


def _form_of(path: Path) -> Form:
    form = _FORMS.get(path.suffix.lower())
    if form is None:
        msg = f"{path}: a policy is in a file whose name ends in {', '.join(_FORMS)}"
        raise ConfigurationError(msg)
    return form


def _of_system(path: Path, error: OSError) -> ConfigurationError:
    return ConfigurationError(f"{path}: {error.strerror or type(error).__name__}")


def yaml_of(data: Mapping[str, Any]) -> str:
    """Write plain data as YAML, in the order in which it is."""
    text: str = yaml.safe_dump(dict(data), sort_keys=False, allow_unicode=True)
    return text


def parsed(make: Callable[..., _T], text: str, *, form: Form, name: str) -> _T:
    """Make something of the mapping that a text holds.

    Args:
        make: Called with what is in the mapping, by name; raises `ConfigurationError`.
        text: The text.
        form: What it is.
        name: What to call it in an error.

    Returns:
        What was made.

    Raises:
        ConfigurationError: That cannot be done; the message names line and column.
    """
    try:
        found = _READERS[form](text)
    except LocatedError as exc:
        msg = f"{name}, {exc}"
        raise ConfigurationError(msg) from None
    faults = [Fault(path, "has no value; leave the key out, or give one") for path in found.empty()]
    try:
        return _made(make, found, faults)
    except ConfigurationError as exc:
        faults = list(exc.faults)
    faults = sorted(_innermost(faults), key=lambda fault: found.place(fault.path))
    told = [_told(found, fault) for fault in faults[:_MOST_FAULTS]]
    more = len(faults) - len(told)
    rest = f"; and {more} more" if more else ""
    msg = f"{name}, {'; '.join(told)}{rest}"
    raise ConfigurationError(msg)


def _made(make: Callable[..., _T], found: Located, faults: Sequence[Fault]) -> _T:
    if faults:
        msg = "a key has no value"
        raise ConfigurationError(msg, faults=faults)
    return make(**found.data)


def _innermost(faults: Sequence[Fault]) -> Iterator[Fault]:
    """Leave out what is wrong with a list only because something is with an item of it."""
    for fault in faults:
        inside = (f.path for f in faults if len(f.path) > len(fault.path))
        if all(path[: len(fault.path)] != fault.path for path in inside):
            yield fault


def _told(found: Located, fault: Fault) -> str:
    fault = fault._replace(path=found.written(fault.path))
    name = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in fault.path)
    problem = re.sub(r"valid (?:dictionary.*|tuple)", _in_files, fault.problem)
    problem = problem.replace("Extra inputs are not permitted; options are", _UNKNOWN)
    came = found.value(fault.path)
    if isinstance(came, str) and len(came) <= _LONGEST_SHOWN and not fault.unknown:
        problem = f"{problem}, got {came!r}"
    return f"{at(found.place(fault.path))}: {name.removeprefix('.')}: {problem}"


def _in_files(kind: re.Match[str]) -> str:
    return "list" if kind[0].endswith("tuple") else "mapping"
