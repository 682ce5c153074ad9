"""Reads and writes policy files; errors name the path of the invalid value."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import yaml
from typing_extensions import override

from langchain_groundedness._runtime.files import (
    LARGEST_SETTINGS,
    raising_configuration_error,
    read_up_to,
)
from langchain_groundedness.exceptions import ConfigurationError, OptionFault

__all__ = ["load_from_file", "load_from_text", "policy_format", "write_text"]

Format: TypeAlias = Literal["yaml", "json"]

_FORMATS: dict[str, Format] = {".yaml": "yaml", ".yml": "yaml", ".json": "json"}
_UNKNOWN_KEY = "there is no such key; accepted"
_NO_VALUE = "has no value; leave the key out, or give one"
_MOST_FAULTS = 5
_LONGEST_SHOWN = 40

_MadeT = TypeVar("_MadeT")
_Path: TypeAlias = tuple[str | int, ...]


def policy_format(path: Path) -> Format:
    """Return the format of a file, by its suffix."""
    form = _FORMATS.get(path.suffix.lower())
    if form is None:
        msg = f"{path}: the name of a policy file must end in {', '.join(_FORMATS)}"
        raise ConfigurationError(msg)
    return form


def write_text(path: Path, text: str) -> None:
    """Write a text into a file."""
    with raising_configuration_error(path):
        path.write_text(text.removesuffix("\n") + "\n", encoding="utf-8")


def load_from_file(make: Callable[..., _MadeT], path: Path, *, form: Format) -> _MadeT:
    """Build a value from the mapping that a file holds."""
    with raising_configuration_error(path):
        content = read_up_to(path, LARGEST_SETTINGS)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        msg = f"{path}: not UTF-8 text (byte {exc.start}); convert it first"
        raise ConfigurationError(msg) from None
    return load_from_text(make, text, form=form, name=str(path))


def load_from_text(make: Callable[..., _MadeT], text: str, *, form: Format, name: str) -> _MadeT:
    """Build a value from the mapping that a text holds."""
    data = _parsed(text, form, name)
    faults = [OptionFault(path, _NO_VALUE) for path in _empty_keys(data, ())]
    if not faults:
        try:
            return make(**data)
        except ConfigurationError as exc:
            faults = list(_innermost_faults(exc.faults))
    shown = [_describe_fault(data, fault) for fault in faults[:_MOST_FAULTS]]
    more = len(faults) - len(shown)
    msg = f"{name}: {'; '.join(shown)}{f'; and {more} more' if more else ''}"
    raise ConfigurationError(msg)


def _parsed(text: str, form: Format, name: str) -> dict[str, Any]:
    try:
        if form == "json":
            data = json.loads(text, object_pairs_hook=_unique_keys)
        else:
            data = yaml.load(text, Loader=_Loader)  # noqa: S506  (a safe loader)
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        problem = place + ", ".join(filter(None, (exc.context, exc.problem)))
    except yaml.YAMLError:
        problem = "a character that a text file must not contain"
    except RecursionError:
        problem = "too many nested mappings and lists"
    except ValueError as exc:  # a date or a number that is none, or no JSON
        problem = f"not {form.upper()} ({exc})"
    else:
        if isinstance(data, dict):
            return data
        came = {type(None): "nothing", list: "a list"}.get(type(data), "a single value")
        problem = f"expected a mapping of options, got {came}; write {{}} for all defaults"
    msg = f"{name}: {problem}"
    raise ConfigurationError(msg)


class _Loader(yaml.SafeLoader):
    """Accepts only values that JSON has."""

    @override
    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):  # nested aliases could expand to a huge document
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]  # theirs
            msg = "an alias is not accepted: write out what it stands for"
            raise yaml.composer.ComposerError(None, None, msg, mark)
        return super().compose_node(parent, index)

    @override
    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        pairs = [(self.construct_object(key), None) for key, _ in node.value]
        try:
            _unique_keys(pairs)
        except (TypeError, ValueError) as exc:
            mark = node.start_mark
            raise yaml.constructor.ConstructorError(None, None, str(exc), mark) from None
        return super().construct_mapping(node, deep)


def _unique_keys(pairs: Sequence[tuple[Any, Any]]) -> dict[str, Any]:
    """Refuse non-text and duplicate keys; the last duplicate would win silently."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if not isinstance(key, str):
            msg = "a key must be a text"
            raise ValueError(msg)  # noqa: TRY004  (reported as the other)
        if key in found:
            msg = f"the key {key[:_LONGEST_SHOWN]!r} is given twice"
            raise ValueError(msg)
        found[key] = value
    return found


def _empty_keys(value: Any, path: _Path) -> Iterator[_Path]:
    """Yield the paths of keys without a value: a condition that is left empty would always hold."""
    if isinstance(value, dict):
        yield from ((*path, key) for key, inner in value.items() if inner is None)
    if isinstance(value, dict | list):
        for step, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _empty_keys(inner, (*path, step))


def _innermost_faults(faults: Sequence[OptionFault]) -> Iterator[OptionFault]:
    """Drop errors of a list that only repeat an error of its items."""
    for fault in faults:
        inside = (f.path for f in faults if len(f.path) > len(fault.path))
        if all(path[: len(fault.path)] != fault.path for path in inside):
            yield fault


def _describe_fault(data: dict[str, Any], fault: OptionFault) -> str:
    path, came = _part_at(data, fault.path)
    name = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    problem = re.sub(r"valid dictionary.*", "mapping", fault.problem)
    problem = problem.replace("valid tuple", "list")
    if fault.unknown:
        problem = problem.replace("no such option; options are", _UNKNOWN_KEY)
    told = fault.unknown or ", got " in problem
    if isinstance(came, str) and len(came) <= _LONGEST_SHOWN and not told:
        problem = f"{problem}, got {came!r}"
    return f"{name.removeprefix('.')}: {problem}"


def _part_at(data: Any, path: _Path) -> tuple[_Path, Any]:
    """Return the part of a path that exists in the data; a single value may be read as a list."""
    value = data
    for length, step in enumerate(path):
        if not isinstance(value, dict | list):
            return path[:length], value
        try:
            value = value[step]  # type: ignore[index]  # a key or an index
        except (IndexError, KeyError, TypeError):
            value = None
    return path, value
