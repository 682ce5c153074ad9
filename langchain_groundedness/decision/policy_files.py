"""Files with a policy: read with errors that say where, and written."""

import json
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import yaml
from typing_extensions import override

from langchain_groundedness._runtime.files import LARGEST_SETTINGS, read_up_to
from langchain_groundedness.exceptions import ConfigurationError, Fault

__all__ = [
    "located_json",
    "located_yaml",
    "parsed",
    "read_file",
    "text_of",
    "write_file",
    "yaml_of",
]

Form: TypeAlias = Literal["yaml", "json"]

_FORMS: dict[str, Form] = {".yaml": "yaml", ".yml": "yaml", ".json": "json"}

KeyPath: TypeAlias = tuple[str | int, ...]

Place: TypeAlias = tuple[int, int]


@dataclass(frozen=True)
class Located:
    """A mapping, and where in the text each of its values is."""

    data: dict[str, Any]
    places: dict[KeyPath, Place]
    """By path: of a key the place of the key, of an item of a list that of the item."""

    def place(self, path: KeyPath) -> Place:
        """Give line and column of a path, or of what is next around it."""
        ends = (path[:length] for length in range(len(path), -1, -1))
        return next((self.places[end] for end in ends if end in self.places), (1, 1))

    def value(self, path: KeyPath) -> Any:
        """Give what is at a path; `None` if there is nothing."""
        value: Any = self.data
        for step in path:
            try:
                value = value[step]
            except (IndexError, KeyError, TypeError):
                return None
        return value

    def written(self, path: KeyPath) -> KeyPath:
        """Give the part of a path that is in the text: one value may be read as a list of one."""
        value: Any = self.data
        for length in range(len(path)):
            if not isinstance(value, dict | list):
                return path[:length]
            value = self.value(path[: length + 1])
        return path

    def empty(self) -> Iterator[KeyPath]:
        """Give the paths of keys without a value."""
        for path in self.places:
            if isinstance(path[-1], str) and self.value(path) is None:
                yield path


def located_json(text: str) -> Located:
    """Read JSON."""
    try:
        data = json.loads(text)
        places = dict(_JsonPlaces(text).walk(()))
    except json.JSONDecodeError as exc:
        msg = f"no JSON ({exc.msg})"
        raise LocatedError(msg, (exc.lineno, exc.colno)) from None
    except RecursionError:
        raise LocatedError(_TOO_DEEP) from None
    except LocatedError:
        raise
    except ValueError:
        msg = "a number has too many digits"
        raise LocatedError(msg, (1, 1)) from None
    return Located(_mapping(data), places)


def located_yaml(text: str) -> Located:
    """Read YAML."""
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        places: dict[KeyPath, Place] = {}
        data = None if node is None else loader.read(node, (), places)
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        place = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise LocatedError(", ".join(filter(None, (exc.context, exc.problem))), place) from None
    except yaml.reader.ReaderError as exc:
        place = _place_of(text, exc.position)
        msg = "a character that no text file should hold"
        raise LocatedError(msg, place) from None
    except RecursionError:
        raise LocatedError(_TOO_DEEP) from None
    return Located(_mapping(data), places)


_READERS: dict[Form, Callable[[str], Located]] = {"yaml": located_yaml, "json": located_json}

_UNKNOWN = "there is no such key; accepted"

_MOST_FAULTS = 5

_LONGEST_SHOWN = 40

_T = TypeVar("_T")


def read_file(path: Path) -> tuple[str, Form]:
    """Read the text of a file."""
    form = _form_of(path)
    return text_of(path), form


def text_of(path: Path) -> str:
    """Read the text of a file with settings."""
    try:
        return read_up_to(path, LARGEST_SETTINGS).decode("utf-8-sig")
    except OSError as exc:
        raise _of_system(path, exc) from exc
    except UnicodeDecodeError as exc:
        msg = f"{path}: not UTF-8 text (byte {exc.start}); convert it first"
        raise ConfigurationError(msg) from None


def write_file(path: Path, writers: Mapping[Form, Callable[[], str]]) -> None:
    """Write a text into a file."""
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
    """Make something of the mapping that a text holds."""
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


_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}:,]|[^\s\[\]{}:,"]+', re.DOTALL)

_TAGS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")

_TOO_DEEP = "line 1, column 1: too many mappings and lists inside each other"


class LocatedError(ValueError):
    """A text cannot be read; the message begins with the place."""

    def __init__(self, problem: str, place: Place | None = None) -> None:
        """Say where."""
        super().__init__(problem if place is None else f"{at(place)}: {problem}")


class _Loader(yaml.SafeLoader):
    """Reads what JSON can hold, and where."""

    @override
    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]  # theirs
            msg = "an alias is not accepted: write out what it stands for"
            raise yaml.composer.ComposerError(None, None, msg, mark)
        return super().compose_node(parent, index)

    def read(self, node: Any, path: KeyPath, places: dict[KeyPath, Place]) -> Any:
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        if node.tag not in _TAGS:
            msg = "a tag is not accepted"
            raise LocatedError(msg, _start(node))
        if isinstance(node, yaml.SequenceNode):
            for place, item in enumerate(node.value):
                places[(*path, place)] = _start(item)
            return [self.read(item, (*path, n), places) for n, item in enumerate(node.value)]
        data = {}
        for key_node, value_node in node.value:
            key = self._scalar(key_node) if isinstance(key_node, yaml.ScalarNode) else None
            if not isinstance(key, str):
                msg = "a key must be a text"
                raise LocatedError(msg, _start(key_node))
            if key in data:
                msg = f"{key[:40]!r} stands here twice"
                raise LocatedError(msg, _start(key_node))
            places[(*path, key)] = _start(key_node)
            data[key] = self.read(value_node, (*path, key), places)
        return data

    def _scalar(self, node: yaml.ScalarNode) -> Hashable:
        try:
            value: Hashable = self.construct_object(node)
        except (ValueError, TypeError):
            msg = "this looks like a date or a number and is none"
            raise LocatedError(msg, _start(node)) from None
        return value


class _JsonPlaces:
    """Walks a text that is known to be JSON."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _JSON_TOKEN.finditer(text)

    def walk(self, path: KeyPath) -> Iterator[tuple[KeyPath, Place]]:
        """Go through one value, and give the places of what is in it."""
        token = next(self._tokens)
        yield from self._inside(token, path)

    def _inside(self, token: re.Match[str], path: KeyPath) -> Iterator[tuple[KeyPath, Place]]:
        if token[0] == "{":
            yield from self._object(path)
        elif token[0] == "[":
            yield from self._array(path)

    def _object(self, path: KeyPath) -> Iterator[tuple[KeyPath, Place]]:
        known: set[str] = set()
        for token in self._tokens:
            if token[0] == "}":
                return
            if token[0] == ",":
                continue
            key, place = json.loads(token[0]), _place_of(self._text, token.start())
            if key in known:
                msg = f"{key[:40]!r} stands here twice"
                raise LocatedError(msg, place)
            known.add(key)
            yield (*path, key), place
            next(self._tokens)  # the colon
            yield from self.walk((*path, key))

    def _array(self, path: KeyPath) -> Iterator[tuple[KeyPath, Place]]:
        number = 0
        for token in self._tokens:
            if token[0] == "]":
                return
            if token[0] == ",":
                number += 1
                continue
            yield (*path, number), _place_of(self._text, token.start())
            yield from self._inside(token, (*path, number))


def _mapping(data: object) -> dict[str, Any]:
    if isinstance(data, dict):
        return data
    came = {type(None): "nothing", list: "a list"}.get(type(data), "a single value")
    msg = f"a mapping of options is needed, got {came}; {{}} stands for all defaults"
    raise LocatedError(msg, (1, 1))


def _start(node: Any) -> Place:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _place_of(text: str, offset: int) -> Place:
    line_start = text.rfind("\n", 0, offset) + 1
    return text.count("\n", 0, offset) + 1, offset - line_start + 1


def at(place: Place) -> str:
    """Say where, such as `line 3, column 5`."""
    return f"line {place[0]}, column {place[1]}"
