"""The shape of the package: who may import whom, what is public, what an import costs."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = "langchain_groundedness"
ROOT = Path(__file__).parent.parent / PACKAGE

LAYERS = (
    ("types", "exceptions"),
    ("words", "sentences", "evidence", "scoring", "policy", "prompts", "structured", "inputs"),
    ("claims", "verifiers", "correction", "query", "single_pass"),
    (
        "runnable",
        "serialization",
        "streaming",
        "callbacks",
        "middleware",
        "audit",
        "resume",
        "calibration",
        "feedback",
        "monitoring",
        "report",
        "evals",
    ),
    ("review", "testing", "terminal", "demo", "cli", "__main__"),
)
"""A module may import from its own layer and from those above it in this list. A private module
belongs to whoever imports it first in this order, so it has no entry."""

OPTIONAL = (
    "fsspec",
    "jinja2",
    "langchain",
    "langchain_classic",
    "langchain_community",
    "langchain_openai",
    "langgraph",
    "llama_cpp",
    "opentelemetry",
    "psycopg",
    "pyarrow",
    "resvg_py",
    "ray",
    "redis",
    "rich",
    "rouge_score",
    "sacrebleu",
    "sklearn",
    "sqlalchemy",
    "starlette",
    "torch",
    "transformers",
    "typer",
    "uvicorn",
)
"""What only extras, tests or training bring."""

AGENTS = {"langchain", "langgraph"}
EDGE_FILES = {
    "cli": {"typer"},
    "cli._calibrate": {"typer", "rich"},
    "cli._calibration_table": {"rich"},
    "cli._check": {"typer", "rich"},
    "cli._errors": {"typer"},
    "cli._evaluate": {"typer", "rich"},
    "cli._evaluation_table": {"rich"},
    "cli._export_reviews": {"typer"},
    "cli._options": {"typer"},
    "cli._records": {"typer"},
    "cli._stats": {"typer", "rich"},
    "cli._validate": {"typer", "rich"},
    "cli._validation_table": {"rich"},
    "cli._warnings": {"typer"},
    "terminal": {"rich"},
    "middleware": AGENTS,
    "middleware.agent": AGENTS,
    "middleware._doors": AGENTS,
    "middleware._gate": AGENTS,
    "middleware._stream": AGENTS,
    "audit._sql_schema": {"sqlalchemy"},
    "audit._sql_place": {"sqlalchemy"},
    "audit._sql_store": {"sqlalchemy"},
    "cli._report": {"typer"},
    "cli._review": {"typer"},
    "review._app": {"starlette"},
    "review._pages": {"starlette"},
    "review._server": {"uvicorn"},
    "review._visit": {"jinja2", "starlette"},
}
"""Modules that belong to one extra as a whole, and are loaded behind a guard."""

WITH_NEWER_CORE = {"verifiers.decisions": "langchain_core.decisions"}
"""Modules, and what they need that the oldest langchain-core does not have."""


class Import(NamedTuple):
    """One import statement, seen from the file it stands in."""

    module: str
    when: str


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imports(path: Path) -> Iterator[Import]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    at_load = set(_at_load(tree.body))
    for node in ast.walk(tree):
        when = "load" if node in at_load else "call"
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, when) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: relative import"
            assert node.module is not None
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield Import(name if _is_module(name) else node.module, when)


def _at_load(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run when the module is imported, in branches too, not for type checkers."""
    for node in body:
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            continue
        yield node
        for name in ("body", "orelse", "finalbody"):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from _at_load(getattr(node, name, []))


def _is_module(name: str) -> bool:
    inner = name.removeprefix(f"{PACKAGE}.").split(".")
    path = ROOT.joinpath(*inner)
    return name.startswith(PACKAGE) and (path.is_dir() or path.with_suffix(".py").is_file())


def layer(module: str) -> int | None:
    top = module.split(".", maxsplit=1)[0]
    return next((place for place, names in enumerate(LAYERS) if top in names), None)


MODULES = dict(modules())
INSIDE = {
    name: {
        found.module.removeprefix(PACKAGE).removeprefix(".")
        for found in imports(path)
        if found.module.split(".")[0] == PACKAGE
    }
    for name, path in MODULES.items()
}


def placed(module: str, *, seen: frozenset[str] = frozenset()) -> int:
    """Layer of a module; a private one sits in the lowest layer that its own imports allow."""
    own = layer(module)
    if own is not None:
        return own
    below = INSIDE[module] - seen - {module, ""}
    return max((placed(name, seen=seen | {module}) for name in below), default=0)


@pytest.mark.parametrize("module", sorted(set(MODULES) - {""}))
def test_every_public_module_has_a_layer(module: str) -> None:
    assert layer(module) is not None or module.startswith("_"), f"give {module} a layer"


@pytest.mark.parametrize("module", sorted(set(MODULES) - {""}))
def test_a_module_imports_only_from_its_own_layer_and_below(module: str) -> None:
    upward = {name for name in INSIDE[module] if name and placed(name) > placed(module)}
    assert not upward, f"{module} imports {sorted(upward)}, which lie above it"
    package_itself = "" in INSIDE[module]
    assert not package_itself or placed(module) == len(LAYERS) - 1


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    order = TopologicalSorter(
        {
            name: {
                found.module.removeprefix(f"{PACKAGE}.")
                for found in imports(path)
                if found.module.startswith(f"{PACKAGE}.") and found.when == "load"
            }
            - {name}
            for name, path in MODULES.items()
            if name
        }
    )
    order.prepare()  # raises CycleError, which names the circle


@pytest.mark.parametrize("module", sorted(MODULES))
def test_optional_packages_are_imported_only_where_their_extra_is_asked_for(module: str) -> None:
    allowed = EDGE_FILES.get(module, set())
    found = {name.module.split(".")[0] for name in imports(MODULES[module]) if name.when == "load"}
    assert found & set(OPTIONAL) <= allowed


@pytest.mark.parametrize("module", sorted(MODULES))
def test_a_file_is_short_enough_to_read(module: str) -> None:
    lines = MODULES[module].read_text(encoding="utf-8").count("\n")
    assert lines <= 400, f"{module} has {lines} lines; give each of its reasons to change a file"


def kind_then_name(name: str) -> tuple[bool, bool, str]:
    """Constants first, then classes, then functions: the order that ruff keeps."""
    return not name.isupper(), not name[0].isupper(), name


@pytest.mark.parametrize("module", sorted(set(MODULES) - {"__main__", "demo.__main__"}))
def test_all_is_sorted_and_every_name_in_it_is_there(module: str) -> None:
    if module in WITH_NEWER_CORE:
        pytest.importorskip(WITH_NEWER_CORE[module])
    loaded = import_module(f"{PACKAGE}.{module}".rstrip("."))
    assert list(loaded.__all__) == sorted(loaded.__all__, key=kind_then_name)
    assert len(set(loaded.__all__)) == len(loaded.__all__)
    assert set(loaded.__all__) <= set(dir(loaded))
    absent = getattr(loaded, "_WITH_NEWER_CORE", ()) if lacks_newer_core() else ()
    for name in set(loaded.__all__) - set(absent):
        assert getattr(loaded, name) is not None


def lacks_newer_core() -> bool:
    return any(find_spec(needed) is None for needed in WITH_NEWER_CORE.values())


def test_values_and_stages_are_all_exported_by_the_package() -> None:
    package = import_module(PACKAGE)
    missing = {
        f"{module}.{name}"
        for module in MODULES
        if module.isidentifier() and not module.startswith("_") and layer(module) in (0, 2, 3)
        for name in import_module(f"{PACKAGE}.{module}").__all__
        if name not in package.__all__ and name != "require"
    }
    assert not missing


def test_package_raises_attribute_error_for_names_it_does_not_have() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = import_module(PACKAGE).no_such_name


def run_python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT.parent,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


BLOCK = f"""
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {OPTIONAL!r}:
            raise ModuleNotFoundError(f"blocked: {{name}}", name=name)
sys.meta_path.insert(0, Blocked())
"""


def test_package_works_with_every_optional_package_missing() -> None:
    out = run_python(
        BLOCK
        + f"""
import {PACKAGE} as package
from langchain_core.documents import Document
for name in package.__all__:
    try:
        getattr(package, name)
    except package.MissingDependencyError as error:
        print("needs an extra:", name, error)
result = package.GroundednessRunnable().invoke(
    {{"answer": "Rome is in Italy.", "documents": [Document("Rome is in Italy.")]}}
)
print(result.verdict)
"""
    )
    assert out.splitlines()[-1] == "grounded"
    for line in out.splitlines()[:-1]:
        assert re.search(r"pip install 'langchain-(groundedness\[\w+\]|core>=1.8)'", line)


def test_what_needs_a_newer_core_says_so_when_it_is_asked_for_and_not_before() -> None:
    out = run_python(
        f"""
import sys
from importlib import import_module
sys.modules["langchain_core.decisions"] = None  # as if it was not there
for name in ("{PACKAGE}", "{PACKAGE}.verifiers"):
    try:
        import_module(name).EmbeddedDecisionModel
    except ImportError as error:
        print(type(error).__name__, error)
"""
    )
    assert len(out.splitlines()) == 2
    for line in out.splitlines():
        assert line.startswith("MissingDependencyError EmbeddedDecisionModel needs")
        assert "pip install 'langchain-core>=1.8'" in line


@pytest.mark.parametrize("hidden", ["", BLOCK, 'import sys\nsys.modules["langchain"] = None\n'])
def test_a_star_import_brings_what_can_be_had(hidden: str) -> None:
    out = run_python(
        hidden
        + f"""
from importlib import import_module
for module in ("{PACKAGE}", "{PACKAGE}.verifiers"):
    found = {{}}
    exec(f"from {{module}} import *", found)
    names = import_module(module).__all__
    print(set(names) <= set(found), "GroundednessMiddleware" in found)
"""
    )
    assert out.splitlines() == [f"True {not hidden}", "True False"]


def test_importing_the_package_reads_no_model_and_loads_no_optional_package() -> None:
    out = run_python(
        f"""
import sys, json
opened = []
sys.addaudithook(lambda event, args: event == "open" and opened.append(str(args[0])))
import {PACKAGE}
for name in {PACKAGE}.__all__:
    if name not in {PACKAGE}._WITH_EXTRA_AGENTS + {PACKAGE}._WITH_NEWER_CORE:
        getattr({PACKAGE}, name)
print(json.dumps([opened, sorted(sys.modules)]))
"""
    )
    opened, loaded = json.loads(out)
    assert not [path for path in opened if str(ROOT / "model") in path]
    heavy = {"onnxruntime", "tokenizers"}
    theirs = {"jinja2", "opentelemetry"}  # langchain-core loads them where they are there
    assert not {name.split(".")[0] for name in loaded} & (heavy | set(OPTIONAL) - theirs)


def test_importing_the_package_adds_less_than_half_a_second_to_langchain_core() -> None:
    # Processor time, so that waiting for others does not count. Half a second on a machine where
    # langchain-core takes about one; where all is slower, the share counts.
    costs: list[tuple[float, float]] = []
    while len(costs) < 5 and not any(own < max(0.5, 0.5 * core) for core, own in costs):
        costs.append(seconds_to_import())  # the first may have to compile
    assert any(own < max(0.5, 0.5 * core) for core, own in costs), costs


def seconds_to_import() -> tuple[float, float]:
    """Processor time that langchain-core takes to import, and the package on top of it."""
    out = run_python(
        f"""
from time import process_time
marks = [process_time()]
from langchain_core.documents import Document  # by name: langchain-core loads its parts lazily
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.graph import Graph
marks.append(process_time())
import {PACKAGE}
marks.append(process_time())
print(*marks)
"""
    )
    core, own = (after - before for before, after in pairwise(map(float, out.split())))
    return core, own


def test_a_chat_model_as_the_judge_needs_nothing_that_computes() -> None:
    out = run_python(
        f"""
import sys
from {PACKAGE} import GroundednessRunnable
from {PACKAGE}.testing import ScriptedChatModel
checker = GroundednessRunnable(model=ScriptedChatModel(replies=lambda _: "none"))
checker.invoke({{"answer": "It rains.", "documents": ["It rained."]}})
print("numpy" in sys.modules, "{PACKAGE}.verifiers.embedded" in sys.modules)
"""
    )
    assert out.split() == ["False", "False"]


def test_a_first_check_imports_nothing_of_the_package() -> None:
    check = f"""
before = set(sys.modules)
checker.invoke({{"answer": "It rains.", "documents": ["It rained."]}})
print([name for name in set(sys.modules) - before if name.startswith("{PACKAGE}")])
print(pickle.dumps(checker).hex())
"""
    made = run_python(
        f"import pickle, sys\nfrom {PACKAGE} import GroundednessRunnable\n"
        f"checker = GroundednessRunnable(){check}"
    )
    imported, pickled = made.splitlines()
    loaded = run_python(
        f"import pickle, sys\nchecker = pickle.loads(bytes.fromhex({pickled!r})){check}"
    )
    assert [imported, loaded.splitlines()[0]] == ["[]", "[]"]
