"""How evaluators travel to other processes: as LangChain writes them, without their keys."""

from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from io import BytesIO
from typing import Any, NamedTuple

from langchain_core.load import dumpd, load
from langchain_core.load.load import ALL_SERIALIZABLE_MAPPINGS
from pydantic import SecretBytes, SecretStr

from langchain_groundedness._causes import cause
from langchain_groundedness.evals.evaluator import Evaluator
from langchain_groundedness.exceptions import ConfigurationError, require

__all__ = ["Parcel", "pack"]

_ENTRY = "__main__"


class Parcel(NamedTuple):
    """An evaluator on its way."""

    plain: Any
    """What `dumpd` gives, with the names of keys instead of keys; `None` if it cannot."""
    whole: Evaluator | None
    """The evaluator itself, if there is no other way: whoever carries it pickles it."""
    fingerprint: dict[str, Any]

    def unpack(self) -> Evaluator:
        """Make the evaluator again; keys are taken from the environment of this process.

        Returns:
            The evaluator.

        Raises:
            ConfigurationError: It cannot be made here, or would give other scores: another
                version is installed here.
        """
        try:
            evaluator = self.whole or _loaded(self.plain)
        except Exception as exc:  # noqa: BLE001  (packages, keys, options: all may be wrong there)
            msg = (
                "an evaluator cannot be made on a worker; are its packages installed there, and "
                f"its keys in the environment? ({_told(exc)})"
            )
            raise ConfigurationError(msg) from None  # the cause may quote options
        if evaluator.fingerprint() != self.fingerprint:
            msg = (
                f"{evaluator.key}: the evaluator is another one on a worker than here; is the "
                "same version of each package installed there?"
            )
            raise ConfigurationError(msg)
        return evaluator


def pack(evaluators: Iterable[Evaluator]) -> list[Parcel]:
    """Prepare evaluators for other processes.

    Args:
        evaluators: The evaluators.

    Returns:
        One parcel for each; what its evaluator has of keys is not in it.

    Raises:
        ConfigurationError: An evaluator cannot travel; the message says why.
    """
    return [_packed(each) for each in evaluators]


def _packed(evaluator: Evaluator) -> Parcel:
    fingerprint = evaluator.fingerprint()
    plain = dumpd(evaluator)
    try:
        if _loaded(plain).fingerprint() == fingerprint:
            return Parcel(plain, None, fingerprint)
    except Exception:  # noqa: BLE001, S110  (not all can be written so; there is another way)
        pass
    _refuse_what_cannot_be_pickled(evaluator)
    return Parcel(None, evaluator, fingerprint)


def _loaded(plain: Any) -> Evaluator:
    classes = [_class(path) for path in sorted(set(_paths(plain)))]
    found = load(
        plain,
        allowed_objects=classes,
        valid_namespaces=sorted({each.__module__.partition(".")[0] for each in classes}),
        secrets_from_env=True,
    )
    if not isinstance(found, Evaluator):
        msg = f"an Evaluator is needed, got {type(found).__name__}"
        raise TypeError(msg)
    return found


def _paths(plain: Any) -> Iterator[tuple[str, ...]]:
    """Give the classes that were written; what is written here comes from nobody else."""
    if isinstance(plain, dict):
        if plain.get("lc") == 1 and plain.get("type") == "not_implemented":
            msg = "not all of it can be written"
            raise ValueError(msg)
        if plain.get("lc") == 1 and plain.get("type") == "constructor":
            yield tuple(plain["id"])
        for inner in plain.values():
            yield from _paths(inner)
    elif isinstance(plain, list):
        for inner in plain:
            yield from _paths(inner)


def _class(path: Sequence[str]) -> Any:
    *module, name = ALL_SERIALIZABLE_MAPPINGS.get(tuple(path), path)
    if module == [_ENTRY]:
        msg = "classes of a script are not known elsewhere"
        raise ValueError(msg)
    return getattr(import_module(".".join(module)), name)


def _told(error: Exception) -> str:
    missing = error.name if isinstance(error, ImportError) else None
    return cause(error) if missing is None else f"{cause(error)}: {missing}"


def _refuse_what_cannot_be_pickled(evaluator: Evaluator) -> None:
    pickles: Any = require("ray.cloudpickle", extra="ray")

    class Watching(pickles.Pickler):  # type: ignore[misc]  # Ray is optional
        def reducer_override(self, value: Any) -> Any:
            if isinstance(value, SecretStr | SecretBytes):
                raise _KeyInsideError
            return super().reducer_override(value)

    why = "it holds a key"
    try:
        Watching(BytesIO()).dump(evaluator)
    except _KeyInsideError:
        pass
    except Exception as exc:  # noqa: BLE001  (whatever cannot be pickled says so in its own way)
        why = cause(exc)
    else:
        return
    msg = (
        f"{evaluator.key}: the evaluator cannot be sent to workers: {why}. Make it of parts that "
        "LangChain's dumpd can write, with keys in the environment of each machine"
    )
    raise ConfigurationError(msg) from None


class _KeyInsideError(Exception):
    pass
