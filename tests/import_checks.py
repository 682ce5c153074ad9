"""What imports of the package do in a new interpreter; `test_architecture.py` reads the output.

    python tests/import_checks.py OPTIONAL_PACKAGE...

Between two checks the modules of the package are forgotten, so that one start of Python does.
"""

import compileall
import json
import pickle
import sys
from importlib import import_module
from importlib.abc import MetaPathFinder
from pathlib import Path
from time import process_time
from typing import Any

PACKAGE = "langchain_groundedness"
ROOT = Path(__file__).parent.parent / PACKAGE
sys.path.insert(0, str(ROOT.parent))
COMPUTING = {"numpy", "onnxruntime", "tokenizers", f"{PACKAGE}.verification.embedded.verifier"}
INPUT = {"answer": "Rome is in Italy.", "documents": ["Rome is in Italy."]}


class Hidden(MetaPathFinder):
    """Hides packages as if they were not installed."""

    def __init__(self, names: set[str]) -> None:
        self.names = names

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.split(".", 1)[0] in self.names:
            msg = f"hidden: {name}"
            raise ModuleNotFoundError(msg, name=name)


def forget(*packages: str) -> None:
    for name in list(sys.modules):
        if name.split(".", 1)[0] in packages:
            del sys.modules[name]


def seconds() -> tuple[float, float]:
    """Processor time that langchain-core takes to import, and the checker on top of it."""
    compileall.compile_dir(ROOT, quiet=2)
    start = process_time()
    for name, attribute in (  # by name: langchain-core loads its parts lazily
        ("documents", "Document"),
        ("language_models", "BaseChatModel"),
        ("messages", "AIMessage"),
        ("prompts", "ChatPromptTemplate"),
        ("runnables", "RunnableLambda"),
        ("runnables.graph", "Graph"),
    ):
        getattr(import_module(f"langchain_core.{name}"), attribute)
    between = process_time()
    _ = import_module(PACKAGE).GroundednessRunnable
    return between - start, process_time() - between


def with_a_chat_model() -> list[str]:
    """What computes and is loaded though a chat model judges."""
    model = import_module(f"{PACKAGE}.testing").ScriptedChatModel(replies=lambda _: "none")
    import_module(PACKAGE).GroundednessRunnable(model=model).invoke(INPUT)
    return sorted(COMPUTING & set(sys.modules))


def all_names(optional: set[str]) -> dict[str, list[str]]:
    """Model files that are read, and optional packages that are loaded, for all names."""
    forget(PACKAGE)
    opened: list[str] = []

    def note(event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            opened.append(str(args[0]))

    sys.addaudithook(note)
    package = import_module(PACKAGE)
    for name in package.__all__:
        if name not in {"GroundednessMiddleware", "groundedness_node"}:  # the extra `agents`
            getattr(package, name)
    tops = {name.split(".", 1)[0] for name in sys.modules}
    return {
        "model files": [path for path in opened if str(ROOT / "model") in path],
        "loaded": sorted(tops & (optional | {"onnxruntime", "tokenizers"})),
    }


def first_check(pickled: bytes | None) -> list[str]:
    """Modules of the package that a first check imports."""
    forget(PACKAGE)
    if pickled is None:
        checker = import_module(PACKAGE).GroundednessRunnable()
    else:
        checker = pickle.loads(pickled)  # noqa: S301  (made below)
    before = set(sys.modules)
    checker.invoke(INPUT)
    return sorted(name for name in set(sys.modules) - before if name.startswith(PACKAGE))


def star_import() -> dict[str, dict[str, Any]]:
    """Names that a star import of the root, and of the verifiers, lacks."""
    result = {}
    for module in (PACKAGE, f"{PACKAGE}.verification"):
        found: dict[str, Any] = {}
        exec(f"from {module} import *", found)  # noqa: S102  (what is tried)
        result[module] = {
            "lacks": sorted(set(import_module(module).__all__) - set(found)),
            "has middleware": "GroundednessMiddleware" in found,
        }
    return result


def with_an_older_core() -> str:
    forget(PACKAGE)
    sys.modules["langchain_core.decisions"] = None  # type: ignore[assignment]
    verification = import_module(f"{PACKAGE}.verification")
    try:
        _ = verification.EmbeddedDecisionModel
    except ImportError as error:
        return f"{type(error).__name__} {error}"
    finally:
        del sys.modules["langchain_core.decisions"]
    return ""


def without_extras(optional: set[str]) -> dict[str, Any]:
    """What works, and what names of the root say, where nothing optional is installed."""
    forget(PACKAGE, *optional)
    hidden = Hidden(optional - {"typer", "rich"})
    sys.meta_path.insert(0, hidden)
    commands = import_module(f"{PACKAGE}.cli").app
    runner = import_module("typer.testing").CliRunner()
    names = [name for group in import_module(f"{PACKAGE}.cli").COMMANDS.values() for name in group]
    helped = [runner.invoke(commands, [name, "--help"]).exit_code for name in names]
    forget(PACKAGE, *optional)
    hidden.names = optional
    package = import_module(PACKAGE)
    missing = []
    for name in dir(package):
        try:
            getattr(package, name)
        except package.MissingDependencyError as error:
            missing.append(str(error))
    verdict = package.GroundednessRunnable().invoke(INPUT).verdict
    return {"commands": helped, "missing": missing, "verdict": verdict}


def main(optional: set[str]) -> None:
    found: dict[str, Any] = {"seconds": seconds(), "with a chat model": with_a_chat_model()}
    found |= all_names(optional)
    found["first check, made"] = first_check(None)
    pickled = pickle.dumps(import_module(PACKAGE).GroundednessRunnable())
    found["first check, unpickled"] = first_check(pickled)
    found["with an older core"] = with_an_older_core()
    forget(PACKAGE)
    found["star import, extras: all"] = star_import()
    found["without extras"] = without_extras(optional)
    found["star import, extras: none"] = star_import()
    print(json.dumps(found))  # noqa: T201  (what the tests read)


if __name__ == "__main__":
    main(set(sys.argv[1:]))
