"""The documentation: its Python runs and prints what it says, and nothing public is missing."""

import re
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import click
import pytest
from snippets import (
    PAGES,
    ROOT,
    StandIn,
    command_lines,
    openai_reply,
    promised,
    put_in_place,
    snippets_of,
)
from typer.main import get_command

import langchain_groundedness
from langchain_groundedness import GroundednessRunnable
from langchain_groundedness.cli import app, repeat_option
from langchain_groundedness.testing import ScriptedServer

DOCS = ROOT / "docs"
OTHERS = [ROOT / name for name in ("README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md")]
WITH_PYTHON = [path for path in PAGES if "```python" in path.read_text()]
COMMANDS: Any = get_command(app)


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def pages_of(entries: Any) -> Iterator[str]:
    if isinstance(entries, str):
        yield entries
    for entry in entries if isinstance(entries, list) else ():
        for inner in entry.values() if isinstance(entry, dict) else [entry]:
            yield from pages_of(inner)


@pytest.mark.filterwarnings("ignore:.langchain-community. is being sunset:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:The function .load. is in beta")
@pytest.mark.enable_socket
@pytest.mark.parametrize("path", WITH_PYTHON, ids=named)
def test_the_python_of_a_page_runs_from_top_to_bottom_and_prints_what_it_says(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    put_in_place(monkeypatch)
    names: dict[str, Any] = {"model": StandIn(), "GroundednessRunnable": GroundednessRunnable}
    with ScriptedServer(openai_reply) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.setenv("OPENAI_API_BASE", server.base_url)
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        for number, snippet in enumerate(snippets_of(path.read_text(encoding="utf-8")), 1):
            exec(compile(snippet.code, f"{named(path)}, block {number}", "exec"), names)  # noqa: S102  (the pages are ours)
            shown = capsys.readouterr().out
            said = promised(snippet.code)
            assert [line for line in shown.splitlines() if line in said] == said
            if snippet.output is not None:
                assert shown == snippet.output
    for value in names.values():
        if isinstance(value, langchain_groundedness.SQLAuditLog):
            value.close()


@pytest.mark.parametrize("path", [*PAGES, *OTHERS], ids=named)
def test_the_command_lines_of_a_page_have_only_commands_and_options_that_there_are(
    path: Path,
) -> None:
    for words in command_lines(path.read_text(encoding="utf-8")):
        if words[0].startswith("-"):
            continue
        command = COMMANDS.get_command(None, words[0])
        arguments = list(repeat_option(words[1:], "--documents"))
        context = click.Context(command, info_name=words[0])
        values, rest, _ = command.make_parser(context).parse_args(arguments)
        assert rest == []
        missing = [p.name for p in command.params if p.required and values.get(p.name) is None]
        assert missing == []


@pytest.mark.parametrize("path", [*PAGES, *OTHERS], ids=named)
def test_the_shell_leaves_the_command_lines_of_a_page_as_they_are(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for block in re.findall(r"^```(?:console|sh|bash)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        unquoted = re.sub(r"'[^']*'", "", block)
        assert re.findall(r"\$\d", unquoted) == [], "the shell replaces $2: use single quotes"


def test_every_page_stands_in_the_navigation_and_the_other_way_round() -> None:
    navigation = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"]
    there = {str(path.relative_to(DOCS)) for path in PAGES}
    assert set(pages_of(navigation)) == there, "put a new page into nav of zensical.toml"


REFERENCE = sorted((DOCS / "reference").rglob("*.md"))
ENTRY = re.compile(r"^::: (langchain_groundedness\.\S+)$", re.MULTILINE)
WITH_ENTRIES = [path for path in REFERENCE if ENTRY.search(path.read_text(encoding="utf-8"))]
PUBLIC = [
    "langchain_groundedness",
    *(f"langchain_groundedness.{name}" for name in ("exceptions", "evals.statistics", "types")),
    *(
        module.name
        for module in walk_packages(langchain_groundedness.__path__, "langchain_groundedness.")
        if module.ispkg and "._" not in module.name and not module.name.endswith(".cli")
    ),
]
INTERNAL = {
    "AcceptedTypes",
    "FrozenModel",
    "HTML_FORMATTERS",
    "NO_DOCUMENTS",
    "PlainSignature",
    "SentenceIndex",
    "cause",
    "details",
    "locate_quote",
    "no_documents",
    "passage_sentences",
    "require",
    "shares_content_word",
}
"""Names that modules of the package export to each other."""


def listed_names() -> Iterator[tuple[str, str]]:
    for module in PUBLIC:
        for name in getattr(import_module(module), "__all__", ()):
            if name not in INTERNAL:
                yield module, name


def test_the_reference_has_every_public_name_on_exactly_one_page() -> None:
    shown = [each for path in REFERENCE for each in ENTRY.findall(path.read_text(encoding="utf-8"))]
    places = [each.rsplit(".", 1) for each in shown]
    values = [(name, getattr(import_module(module), name)) for module, name in places]
    for module, name in listed_names():
        value = getattr(import_module(module), name)
        assert sum(each == name and at is value for each, at in values) == 1, (module, name)
    assert {tuple(each) for each in places} <= {*listed_names()}, "no longer public"


def test_a_page_of_the_reference_has_the_name_of_its_class() -> None:
    for path in WITH_ENTRIES:
        text = path.read_text(encoding="utf-8")
        module, name = ENTRY.findall(text)[0].rsplit(".", 1)
        is_alone = isinstance(getattr(import_module(module), name), type)
        if is_alone and path.stem != "errors":
            assert text.startswith(f"# {name}\n"), path


@pytest.mark.parametrize("path", WITH_ENTRIES, ids=named)
def test_a_page_of_the_reference_begins_with_its_use_and_a_link_to_the_guide(path: Path) -> None:
    first = path.read_text(encoding="utf-8").split("\n\n")[1]
    assert re.search(r"\.\sGuide:\s\[[^]]+\]\((?:\.\./)+guide/\w+\.md\)\.$", first)


def words_of(text: str) -> str:
    return " ".join(text.replace("\b", " ").split())


@pytest.mark.parametrize("name", sorted(COMMANDS.commands))
def test_the_reference_of_a_command_says_of_each_option_what_its_help_says(name: str) -> None:
    text = (DOCS / "reference" / "command_line.md").read_text(encoding="utf-8")
    said = words_of(re.split(rf"^## {name}$", text, flags=re.MULTILINE)[1].split("\n## ")[0])
    command = COMMANDS.get_command(None, name)
    known = {flag for p in command.params for flag in [*p.opts, *p.secondary_opts]} | {"--help"}
    for part in [words_of(command.help), *[words_of(p.help or "") for p in command.params]]:
        assert part in said, "run `python .ci/command_help.py`"
    options = re.split(r"Options:", said)[1]
    assert {flag for flag in known if flag.startswith("-")} <= set(re.findall(r"-[\w-]+", options))
    assert set(re.findall(r"(?<!\S)--[a-z][\w-]+", options)) <= known


def test_the_reference_has_a_part_for_each_command() -> None:
    text = (DOCS / "reference" / "command_line.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^## (\S+)$", text, re.MULTILINE)) == {
        "langchain-groundedness",
        *COMMANDS.commands,
    }
