"""What stands beside the package: how to cite it, how to report something, what is built."""

import re
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
import yaml
from conftest import MARKERS
from snippets import ROOT

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def script(name: str) -> Any:
    """Load a script of the folder `.ci`, which is no package."""
    spec = spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_citation_names_the_version_that_is_built_and_nobody_who_is_made_up() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == PROJECT["project"]["version"]
    assert cited["title"] == PROJECT["project"]["name"]
    assert set(cited["license"]) == set(PROJECT["project"]["license"].split(" AND "))
    assert cited["authors"] == [{"name": "The langchain-groundedness developers"}]


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_a_form_asks_for_what_is_needed_to_see_it_again(path: Any) -> None:
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    if path.stem == "config":
        return
    assert form["name"]
    assert form["description"]
    asked = [part for part in form["body"] if part["type"] != "markdown"]
    assert len({part["id"] for part in asked}) == len(asked)
    assert any(part.get("validations", {}).get("required") for part in asked)


def test_the_table_of_extras_names_all_of_them() -> None:
    table = (ROOT / "docs" / "index.md").read_text(encoding="utf-8").split("| extra | for |")[1]
    named = {
        name
        for row in table.split("\n\n")[0].splitlines()
        for name in re.findall(r"`([a-z0-9]+)`", row.replace("create_agent", ""))
    }
    assert named == {*PROJECT["project"]["optional-dependencies"], "report", "validate", "stats"}


def test_the_page_on_pypi_has_no_link_that_leads_nowhere() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for each in PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(each["pattern"], each["replacement"], text)
    assert re.findall(r"\]\((?!https://|#)[^)]*\)", text) == []
    assert "*The live page. A question about revenue" in text


@pytest.mark.parametrize("target", ["docs", "dist-test", "test-all"])
def test_ci_runs_what_the_makefile_offers_for_the_repository(target: str) -> None:
    text = (ROOT / ".ci" / "run").read_text()
    targets = " ".join(re.findall(r"^step (.*)$", text, re.MULTILINE))
    assert target in targets.split()
    assert re.search(rf"^{target}:.* ## ", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_each_test_that_is_left_out_by_default_is_there() -> None:
    for place in (place for marked in MARKERS.values() for place in marked):
        file, _, name = place.partition("::")
        text = (ROOT / "tests" / file).read_text(encoding="utf-8")
        assert f"def {name}(" in text or not name, place


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ('<a href="other.html">', []),
        ('<a href="other.html#here">', []),
        ('<a href="https://example.org/">', []),
        ('<img src="data:image/png;base64,AA==">', []),
        ('<a href="gone.html">', ["page.html: gone.html is not there"]),
        ('<img src="gone.png">', ["page.html: gone.png is not there"]),
        ('<a href="other.html#gone">', ["page.html: other.html#gone has no such anchor"]),
        (
            '<script src="https://example.org/x.js"></script>',
            ["page.html: loads https://example.org/x.js"],
        ),
        (
            '<link rel="stylesheet" href="//example.org/x.css">',
            ["page.html: loads //example.org/x.css"],
        ),
    ],
)
def test_a_site_is_not_whole_with_a_dead_link_or_with_what_comes_from_a_host(
    part: str, expected: list[str], tmp_path: Path
) -> None:
    (tmp_path / "page.html").write_text(f"<html>{part}</html>")
    (tmp_path / "other.html").write_text('<h1 id="here">Here</h1>')
    assert list(script("site_is_whole").problems_of(tmp_path)) == expected


def test_a_style_sheet_that_loads_from_a_host_is_found(tmp_path: Path) -> None:
    (tmp_path / "look.css").write_text("p { background: url('https://example.org/x.png') }")
    [problem] = script("site_is_whole").problems_of(tmp_path)
    assert problem == "look.css: loads from a host"


def test_a_wheel_with_junk_or_without_the_model_is_not_let_through(tmp_path: Path) -> None:
    path = tmp_path / "langchain_groundedness-1-py3-none-any.whl"
    with ZipFile(path, "w") as wheel:
        for name in ("langchain_groundedness/__pycache__/a.pyc", "tests/test_a.py"):
            wheel.writestr(name, "")
    found = set(script("dist_test").problems_in(path))
    assert f"{path.name} has tests/test_a.py" in found
    assert f"{path.name} has langchain_groundedness/__pycache__/a.pyc" in found
    assert f"{path.name} lacks langchain_groundedness/model/encoder.onnx" in found


TEXTS = [*sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("*.md"))]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_names_only_targets_and_files_that_there_are(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    said = re.findall(r"(?:^|`)make ([a-z][a-z-]*)", text, re.MULTILINE)
    files = r"\b(?:benchmarks|training|tests|docs)/[\w/-]+\.(?:py|md|sh|jsonl)\b"
    named = set(
        re.findall(files, re.sub(r"```diff.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))
    )
    assert set(said) - targets == set()
    assert {name for name in named if not (ROOT / name).exists()} == set()
