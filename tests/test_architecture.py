"""The shape of the package: who may import whom, what is public, what an import costs."""

import json
import re
import subprocess
import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from import_graph import (
    PACKAGE,
    circles,
    graph,
    imported_for_checkers,
    imports,
    modules,
    public_names,
    single_importers,
)

ROOT = Path(__file__).parent.parent
MODULES = modules(ROOT)
GRAPH = graph(ROOT)

LAYERS = (
    "types exceptions",
    "_runtime display evidence inputs llm text",
    "audit claims correction decision verification",
    "pipeline runnable streaming",
    "calibration callbacks evals middleware monitoring query report review serialization",
    "__main__ cli demo testing",
)
"""Values, logic, stages, assembly, what is attached to it, and programs. A module imports from its
own layer and from those before it."""

OPTIONAL = {
    "fsspec": (),
    "jinja2": ("review.app",),
    "langchain": ("middleware",),
    "langchain_classic": (),
    "langchain_community": (),
    "langchain_openai": (),
    "langgraph": ("middleware",),
    "llama_cpp": (),
    "opentelemetry": (),
    "psycopg": (),
    "pyarrow": (),
    "ray": (),
    "redis": (),
    "resvg_py": (),
    "rich": ("cli", "display.terminal"),
    "rouge_score": (),
    "sacrebleu": (),
    "scipy": (),
    "sklearn": (),
    "sqlalchemy": ("audit.sql_store",),
    "starlette": ("review.app", "review.live", "review.server"),
    "torch": (),
    "transformers": (),
    "typer": ("cli",),
    "uvicorn": (),
}
"""What only extras, tests, training or commands need, and the folders and modules that import it
when they are loaded themselves, behind a guard. All others import it in the function that needs
it."""

NEWER_CORE = {"verification.embedded.decision_model": "langchain_core.decisions"}
"""Modules, and what they need that the oldest langchain-core does not have."""


def folder(module: str) -> str:
    return module.split(".", 1)[0]


def layer(module: str) -> int:
    """The root hands out everything, so it lies above all others."""
    places = (n for n, names in enumerate(LAYERS) if folder(module) in names.split())
    return next(places) if module else len(LAYERS)


def test_every_folder_has_a_layer() -> None:
    there = {folder(module) for module in MODULES if module}
    assert sorted(there) == sorted(" ".join(LAYERS).split())


def test_a_module_imports_from_its_own_layer_and_from_those_before_it() -> None:
    upward = [(name, to) for name, seen in GRAPH.items() for to in seen if layer(to) > layer(name)]
    assert upward == []


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    assert circles(GRAPH) == []


def test_at_most_twelve_modules_stand_at_the_top() -> None:
    assert len([module for module in MODULES if "." not in module]) - folders() <= 12


def folders() -> int:
    return sum(path.name == "__init__.py" for name, path in MODULES.items() if "." not in name) - 1


def test_an_inner_module_with_one_importer_says_why_it_is_a_module() -> None:
    unexplained = {
        name: by
        for name, by in single_importers(ROOT).items()
        if "own module because" not in MODULES[name].read_text(encoding="utf-8")[:2000]
    }
    assert not unexplained, 'join them, or write "Its own module because …" at their top'


def test_optional_packages_are_imported_only_where_their_extra_is_asked_for() -> None:
    found = {
        (name, package)
        for name, path in MODULES.items()
        for package in {each.split(".", 1)[0] for each in imports(path, at_load_only=True)}
        if package in OPTIONAL
        and not any(f"{name}.".startswith(f"{where}.") for where in OPTIONAL[package])
    }
    assert not found


def kind_then_name(name: str) -> tuple[bool, bool, str]:
    """Constants first, then classes, then functions: the order that ruff keeps."""
    return not name.isupper(), not name[0].isupper(), name


@pytest.mark.parametrize("module", sorted(name for name in MODULES if "__main__" not in name))
def test_all_is_sorted_and_every_name_in_it_is_there(module: str) -> None:
    if module in NEWER_CORE:
        pytest.importorskip(NEWER_CORE[module])
    listed = public_names(MODULES[module])
    loaded = import_module(f"{PACKAGE}.{module}".rstrip("."))
    if hasattr(loaded, "_NAMES_BY_MODULE"):
        assert set(loaded.__all__) == set(listed) - absent()
        listed.sort(key=kind_then_name)
    assert listed == sorted(set(listed), key=kind_then_name)
    for name in set(listed) - absent():
        assert hasattr(loaded, name)
    assert set(listed) - absent() <= set(dir(loaded))


@pytest.mark.parametrize("package", ["", "audit", "verification"])
def test_type_checkers_see_the_names_that_are_imported_on_first_use(package: str) -> None:
    where = f"{PACKAGE}.{package}".rstrip(".")
    homes: dict[str, str] = vars(import_module(where))["_NAMES_BY_MODULE"]
    named = {(f"{where}.{home}", name, name) for home in homes for name in homes[home].split()}
    assert imported_for_checkers(MODULES[package]) == named


def absent() -> set[str]:
    missing = any(find_spec(needed) is None for needed in NEWER_CORE.values())
    return {"EmbeddedDecisionModel"} if missing else set()


def test_the_root_exports_at_most_forty_names() -> None:
    assert len(public_names(MODULES[""])) <= 40


def test_package_raises_attribute_error_for_names_it_does_not_have() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = import_module(PACKAGE).no_such_name


@cache
def seen_in_a_new_interpreter() -> dict[str, Any]:
    """What `tests/import_checks.py` finds, all in one start of Python."""
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "tests/import_checks.py"), *OPTIONAL],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_importing_the_checker_takes_little_beside_langchain_core() -> None:
    core, own = seen_in_a_new_interpreter()["seconds"]
    # Processor time: 0.3 s where langchain-core takes 0.5; where all is slower, the share counts.
    assert own <= max(0.3, 0.6 * core), (core, own)


def test_a_chat_model_as_the_judge_needs_nothing_that_computes() -> None:
    assert seen_in_a_new_interpreter()["with a chat model"] == []


def test_importing_the_package_reads_no_model_and_loads_no_optional_package() -> None:
    found = seen_in_a_new_interpreter()
    assert found["model files"] == []
    theirs = {"jinja2", "opentelemetry"}  # langchain-core loads them where they are there
    assert set(found["loaded"]) <= theirs


@pytest.mark.parametrize("checker", ["made", "unpickled"])
def test_a_first_check_imports_nothing_of_the_package(checker: str) -> None:
    assert seen_in_a_new_interpreter()[f"first check, {checker}"] == []


def test_package_works_with_every_optional_package_missing() -> None:
    found = seen_in_a_new_interpreter()["without extras"]
    assert found["verdict"] == "grounded"
    assert found["missing"]
    for message in found["missing"]:
        assert re.search(r"pip install 'langchain-(groundedness\[\w+\]|core>=1.8)'", message)


def test_no_command_needs_an_extra_to_show_its_options() -> None:
    assert set(seen_in_a_new_interpreter()["without extras"]["commands"]) == {0}


def test_what_needs_a_newer_core_says_so_when_it_is_asked_for_and_not_before() -> None:
    message = seen_in_a_new_interpreter()["with an older core"]
    assert message.startswith("MissingDependencyError EmbeddedDecisionModel needs")
    assert "pip install 'langchain-core>=1.8'" in message


@pytest.mark.parametrize("extras", ["all", "none"])
def test_a_star_import_brings_what_can_be_had(extras: str) -> None:
    for module, found in seen_in_a_new_interpreter()[f"star import, extras: {extras}"].items():
        assert found["lacks"] == []
        assert found["has middleware"] == (extras == "all" and module == PACKAGE)


@pytest.mark.parametrize("asked", ["--version", "--help"])
def test_version_and_help_take_a_small_part_of_what_a_checker_takes(asked: str) -> None:
    short = min(processor_seconds("-m", PACKAGE, asked) for _ in range(2))
    checker = f"from {PACKAGE} import GroundednessRunnable"
    whole = min(processor_seconds("-c", checker) for _ in range(2))
    assert short <= whole / 3, (short, whole)


def test_the_help_of_a_command_loads_nothing_that_the_command_needs_to_work() -> None:
    code = f"""
import sys
from typer.testing import CliRunner
from {PACKAGE}.cli import COMMANDS, app
for group in COMMANDS.values():
    for name in group:
        assert CliRunner().invoke(app, [name, "--help"]).exit_code == 0
print(sorted({{"langchain_core.runnables.base", "numpy", "onnxruntime"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def processor_seconds(*arguments: str) -> float:
    code = (
        "import os, subprocess, sys; subprocess.run([sys.executable, *sys.argv[1:]], check=True);"
        "spent = os.times(); print(spent.children_user + spent.children_system)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    return float(done.stdout.splitlines()[-1])
