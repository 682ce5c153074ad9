"""The command line, run in this process with real arguments, files and standard input."""

import io
import json
import re
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from commands import Outcome, Run, ran, without_settings
from hypothesis import given
from hypothesis import strategies as st
from typer.main import get_command

from langchain_groundedness import GroundednessRunnable, cli
from langchain_groundedness.__main__ import main
from langchain_groundedness.cli import repeat_option
from langchain_groundedness.testing import ScriptedResponse, ScriptedServer
from langchain_groundedness.types import GroundednessResult

REPORT = "Revenue was $2.1B in Q3, up 12% from last year. The margin rose to 18%."
TRUE, FALSE = "Revenue was $2.1B in Q3.", "Revenue was $2.4B in Q3."


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "report.md").write_text(REPORT, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def check(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    del folder
    without_settings(monkeypatch)

    def run(*arguments: str, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        return ran(capsys, "check", *arguments)

    return run


def failure(outcome: Outcome) -> str:
    """Assert that a check could not run, and said so in one line on standard error."""
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.count("\n") == 1
    return outcome.err


def test_trusted_answer_exits_with_zero(check: Run) -> None:
    outcome = check("--answer", TRUE, "--documents", "report.md")
    assert outcome.code == 0
    assert "✓ supported" in outcome.out
    assert "report.md:0-" in outcome.out
    assert outcome.err == ""


def test_contradicted_answer_exits_with_one_and_shows_the_correction(check: Run) -> None:
    outcome = check(
        "--answer", FALSE, "--documents", "report.md", "--on-contradicted", "correct",
        "--question", "What was revenue?",
    )  # fmt: skip
    assert outcome.code == 1
    assert "✗ contradicted" in outcome.out
    assert "→ $2.1B" in outcome.out
    assert "Revenue was [CORRECTED: $2.1B] in Q3." in outcome.out
    assert "What was revenue?" in outcome.out


def test_claim_that_was_not_checked_exits_with_two_and_says_why(check: Run) -> None:
    answer = f"{TRUE} The margin rose to 18%."
    outcome = check("--answer", answer, "--documents", "report.md", "--max-claims", "1")
    assert outcome.code == 2
    assert "! unchecked" in outcome.out
    assert outcome.err == "could not be checked: over max_claims=1\n"


def test_lower_trust_threshold_lets_an_unverifiable_claim_pass(check: Run) -> None:
    answer = f"{TRUE} The chairman collects stamps."
    options = ("--answer", answer, "--documents", "report.md")
    assert check(*options).code == 1
    assert check(*options, "--trust-threshold", "0.5").code == 0


POLICY = """\
rules:
  - when: {risk_tier: high}
    action: review
    reason: a person has a look
  - when: {query_class: harmful}
    action: block
"""


@pytest.mark.parametrize(
    ("question", "code", "action"),
    [
        ((), 0, "pass"),
        (("--risk-tier", "high"), 1, "review"),
        (("--query-class", "harmful", "--risk-tier", "high"), 1, "block"),
    ],
)
def test_a_policy_file_decides(
    check: Run, folder: Path, question: tuple[str, ...], code: int, action: str
) -> None:
    (folder / "policy.yaml").write_text(POLICY, encoding="utf-8")
    options = ("--documents", "report.md", "--policy", "policy.yaml", "--json")
    outcome = check("--answer", TRUE, *options, *question)
    assert outcome.code == code
    decision = json.loads(outcome.out)["decision"]
    assert decision["action"] == action
    assert ("a person has a look" in decision["reasons"]) == ("high" in question)


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        (
            "policy.yaml",
            "rules:\n  - when: {}\n",
            "policy.yaml: rules[0].action:",
        ),
        (
            "policy.json",
            '{\n "blocks": 1}',
            "policy.json: blocks: there is no such",
        ),
        ("policy.yaml", None, "policy.yaml: No such file or directory"),
        ("policy", "{}", "policy: the name of a policy file must end in .yaml, .yml, .json"),
    ],
)
def test_a_policy_file_that_is_none_is_one_line_and_no_traceback(
    check: Run, folder: Path, name: str, text: str | None, error: str
) -> None:
    if text is not None:
        (folder / name).write_text(text, encoding="utf-8")
    assert error in failure(check("--answer", TRUE, "--documents", "report.md", "--policy", name))


def test_json_is_the_whole_result_in_ascii(check: Run, folder: Path) -> None:
    (folder / "notes.txt").write_text("Umsatz: 2,1 Mrd. € \x9b31m", encoding="utf-8")
    outcome = check("--answer", FALSE, "--documents", "report.md", "notes.txt", "--json")
    assert outcome.code == 1
    assert outcome.out.isascii()
    result = GroundednessResult.model_validate(json.loads(outcome.out))
    assert result.verdict == "has_contradictions"
    assert result.documents[1].page_content == "Umsatz: 2,1 Mrd. € \x9b31m"
    assert result.claims[0].citations[0].holds_in(result.documents)


def test_documents_takes_several_paths_and_may_be_repeated_in_order(
    check: Run, folder: Path
) -> None:
    for name in "abc":
        (folder / f"{name}.txt").write_text(f"Text {name}.", encoding="utf-8")
    outcome = check(
        "--documents", "b.txt", "-", "--json", "--documents=report.md", "a.txt", "--answer", TRUE,
        "--documents", "c.txt", stdin=b"Piped text.",
    )  # fmt: skip
    sources = [found["metadata"]["source"] for found in json.loads(outcome.out)["documents"]]
    assert sources == ["b.txt", "stdin", "report.md", "a.txt", "c.txt"]


@pytest.mark.parametrize(
    ("given_arguments", "expected"),
    [
        ("--o a b", "--o=a --o=b"),
        ("--o a -", "--o=a --o=-"),
        ("--o=a b --x c d", "--o=a --o=b --x c d"),
        ("x --o a --y --o b", "x --o=a --y --o=b"),
        ("--o", "--o="),
        ("--o --x", "--o= --x"),
    ],
)
def test_an_option_is_repeated_before_each_value(given_arguments: str, expected: str) -> None:
    assert list(repeat_option(given_arguments.split(), "--o")) == expected.split()


@given(st.lists(st.text()))
def test_other_arguments_are_left_alone(arguments: Sequence[str]) -> None:
    others = [argument for argument in arguments if not argument.startswith("--o")]
    assert list(repeat_option(others, "--o")) == others


def test_answer_can_come_from_a_file_or_from_standard_input(check: Run, folder: Path) -> None:
    (folder / "answer.txt").write_bytes("\ufeff".encode() + FALSE.encode())
    assert check("--answer", "@answer.txt", "--documents", "report.md").code == 1
    assert check("--answer", "-", "--documents", "report.md", stdin=TRUE.encode()).code == 0


def test_standard_input_cannot_be_answer_and_document_at_once(check: Run) -> None:
    assert "once" in failure(check("--answer", "-", "--documents", "-", stdin=b"Text."))
    assert "once" in failure(check("--answer", TRUE, "--documents", "-", "-", stdin=b"Text."))


@pytest.mark.parametrize("empty", [b"", b" \n\t"])
def test_empty_standard_input_is_said(check: Run, empty: bytes) -> None:
    outcome = check("--answer", TRUE, "--documents", "report.md", "-", stdin=empty)
    assert failure(outcome) == "cannot check: standard input is empty\n"


@pytest.mark.parametrize("empty", ["", " ", "@blank.txt", "-"])
def test_empty_answer_is_said(check: Run, folder: Path, empty: str) -> None:
    (folder / "blank.txt").write_text("\n", encoding="utf-8")
    outcome = check("--answer", empty, "--documents", "report.md")
    assert failure(outcome) == "cannot check: the answer is empty\n"


def test_missing_file_is_named(check: Run) -> None:
    outcome = check("--answer", TRUE, "--documents", "report.md", "nowhere.md")
    assert failure(outcome) == "cannot check: nowhere.md: No such file or directory\n"
    assert "gone.txt" in failure(check("--answer", "@gone.txt", "--documents", "report.md"))


def test_directory_is_no_document(check: Run, folder: Path) -> None:
    (folder / "papers").mkdir()
    outcome = check("--answer", TRUE, "--documents", "papers")
    assert failure(outcome) == "cannot check: papers: Is a directory\n"


def test_file_that_is_not_utf_8_is_named_with_the_place(check: Run, folder: Path) -> None:
    (folder / "old.txt").write_bytes(b"Gr" + "öße".encode("latin-1"))
    outcome = check("--answer", TRUE, "--documents", "old.txt")
    assert failure(outcome) == "cannot check: old.txt: not UTF-8 text (byte 2); convert it first\n"


def test_documents_without_any_text_are_named(check: Run, folder: Path) -> None:
    (folder / "void.txt").touch()
    outcome = check("--answer", TRUE, "--documents", "void.txt")
    assert "void.txt has no text" in failure(outcome)


def test_option_without_a_value_is_said(check: Run) -> None:
    assert "empty path" in failure(check("--answer", TRUE, "--documents", "--json"))


def test_option_out_of_range_is_said(check: Run) -> None:
    options = ("--answer", TRUE, "--documents", "report.md")
    for option, value in (("--trust-threshold", "7"), ("--max-claims", "0")):
        found = check(*options, option, value)
        assert found.code == 2
        assert f"Invalid value for '{option}'" in found.err
    assert check(*options, "--on-contradicted", "shout").code == 2


def test_missing_key_is_said(check: Run) -> None:
    options = ("--answer", TRUE, "--documents", "report.md", "--model", "openai:gpt-4o-mini")
    assert "OPENAI_API_KEY" in failure(check(*options))


@pytest.mark.parametrize("name", ["nobody:some-model", "some-model-of-nobody"])
def test_unknown_provider_is_said(check: Run, name: str) -> None:
    outcome = check("--answer", TRUE, "--documents", "report.md", "--model", name)
    assert f"cannot check: model {name}:" in failure(outcome)


def test_model_without_langchain_works_for_openai_alone(
    check: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "langchain", None)
    options = ("--answer", TRUE, "--documents", "report.md", "--model")
    assert "OPENAI_API_KEY" in failure(check(*options, "openai:gpt-4o-mini"))
    assert "langchain-groundedness[agents]" in failure(check(*options, "anthropic:any"))


def test_model_without_its_package_names_the_extra(
    check: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "langchain_openai", None)
    options = ("--model", "any", "--base-url", "http://127.0.0.1:9/v1")
    outcome = check("--answer", TRUE, "--documents", "report.md", *options)
    assert "pip install 'langchain-groundedness[openai]'" in failure(outcome)


def test_base_url_without_a_model_is_said(check: Run) -> None:
    outcome = check("--answer", TRUE, "--documents", "report.md", "--base-url", "http://x/v1")
    assert "--model" in failure(outcome)


def test_a_verifier_is_chosen_by_name(check: Run) -> None:
    arguments = ("--answer", TRUE, "--documents", "report.md", "--verifier")
    assert check(*arguments, "embedded").code == 0
    said = failure(check(*arguments, "gpt"))
    assert "'gpt'; accepted: embedded, hhem (110 million parameters, Apache-2.0), mini" in said


@pytest.mark.enable_socket
def test_unreachable_server_exits_with_two_and_says_so_in_one_line(check: Run) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # taken, and nobody listens
        options = ("--model", "any", "--base-url", f"http://127.0.0.1:{closed.getsockname()[1]}/v1")
        outcome = check("--answer", TRUE, "--documents", "report.md", *options)
    assert outcome.code == 2
    assert outcome.err.startswith("could not be checked: ")
    assert outcome.err.count("\n") == 1
    assert "ConnectionError" in outcome.err


def test_fault_in_a_models_options_does_not_repeat_a_key(
    check: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    monkeypatch.setenv("OPENAI_API_BASE", "not a url")
    options = ("--answer", TRUE, "--documents", "report.md", "--model", "openai:gpt-4o-mini")
    assert "secret" not in "".join(map(str, check(*options)))


def test_interrupt_exits_with_130(check: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(GroundednessRunnable, "__init__", interrupt)
    outcome = check("--answer", TRUE, "--documents", "report.md")
    assert outcome.code == 130
    assert "Traceback" not in outcome.err


def test_crash_never_reads_as_a_verdict(check: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object, **__: object) -> None:
        msg = "first line\nsecond line"
        raise RuntimeError(msg)

    monkeypatch.setattr(GroundednessRunnable, "__init__", crash)
    outcome = check("--answer", TRUE, "--documents", "report.md")
    assert failure(outcome) == "cannot check: RuntimeError: first line\n"


def test_markup_and_control_characters_of_documents_are_shown_not_obeyed(
    check: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    (folder / "evil.txt").write_text(
        "Revenue was [bold]$2.1B[/bold] in Q3 \x1b]0;owned\x07 \u202egro.", encoding="utf-8"
    )
    outcome = check("--answer", TRUE, "--documents", "evil.txt")
    assert "[bold]$2.1B[/bold]" in outcome.out
    assert "\ufffd]0;owned\ufffd" in outcome.out
    assert not {"\x1b", "\x07", "\u202e"} & set(outcome.out)


def test_colours_are_for_terminals_and_no_color_is_respected(
    check: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("--answer", FALSE, "--documents", "report.md")
    assert "\x1b[" not in check(*options).out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[31m" in check(*options).out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[31m" not in check(*options).out


def test_help_shows_examples(check: Run) -> None:
    outcome = check("--help")
    assert outcome.code == 0
    assert "check answer.txt report.md notes.txt" in outcome.out
    assert "Exit code: 0 trusted, 1 not trusted, 2 could not be checked." in outcome.out


def test_program_reads_the_arguments_of_the_process(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del folder
    monkeypatch.setattr("os._exit", sys.exit)  # if a call of another test still goes on
    arguments = ["langchain-groundedness", "check", "--answer", TRUE, "--documents", "report.md"]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 0


def test_module_runs_as_a_program(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "langchain_groundedness", "check",
         "--answer", "-", "--documents", "report.md"],
        input=FALSE, capture_output=True, text=True, check=False, cwd=folder,
        env={"PYTHONPATH": str(Path(cli.__file__).parents[2]), "PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "contradicted" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--model", ""], "--model is empty"),
        (["--model", "openai:"], "--model openai: names no model"),
        (["--model", "nosuch:any"], "write PROVIDER:NAME, as in openai:gpt-4o-mini"),
        (["--model", "any", "--base-url", "notaurl"], "--base-url must begin with http://"),
    ],
)
def test_a_model_that_cannot_be_meant_is_said(
    check: Run, options: Sequence[str], said: str
) -> None:
    assert said in failure(check("--answer", TRUE, "--documents", "report.md", *options))


def test_binary_data_is_no_document(check: Run, folder: Path) -> None:
    (folder / "zeros.bin").write_bytes(bytes(8))
    assert "zeros.bin: binary data" in failure(check("--answer", TRUE, "--documents", "zeros.bin"))


def test_an_answer_may_begin_with_an_at_sign(check: Run) -> None:
    outcome = check("--answer", f"@@bob {TRUE}", "--documents", "report.md", "--json")
    assert json.loads(outcome.out)["original_answer"] == f"@bob {TRUE}"


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.run(["--version"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out.startswith("langchain-groundedness ")


@pytest.mark.enable_socket
@pytest.mark.parametrize(
    ("status", "hint"), [(401, "check the API key"), (404, "check the name of the model")]
)
def test_what_a_server_refuses_is_said_with_its_status_and_a_hint(
    check: Run, status: int, hint: str
) -> None:
    with ScriptedServer(lambda _: ScriptedResponse("secret words", status=status)) as server:
        options = ("--model", "any", "--base-url", server.base_url)
        outcome = check("--answer", TRUE, "--documents", "report.md", *options)
    assert outcome.code == 2
    assert f"HTTP {status}" in outcome.err
    assert hint in outcome.err
    assert "secret" not in outcome.err


@pytest.mark.parametrize("module", ["cli", "cli.check", "runnable"])
def test_interrupting_the_start_shows_no_traceback(module: str) -> None:
    code = f"""
import sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "langchain_groundedness.{module}":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
sys.argv[1:] = ["check", "--answer", "Rome is old.", {__file__!r}]
from langchain_groundedness.__main__ import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "")


def test_two_files_are_the_answer_and_its_document(check: Run, folder: Path) -> None:
    (folder / "answer.txt").write_text(FALSE, encoding="utf-8")
    assert check("answer.txt", "report.md").code == 1
    assert check("--answer", TRUE, "report.md").code == 0
    assert check("-", "report.md", stdin=TRUE.encode()).code == 0
    found = json.loads(check("answer.txt", "-", "report.md", "--json", stdin=b"Piped.").out)
    assert [each["metadata"]["source"] for each in found["documents"]] == ["stdin", "report.md"]


@pytest.mark.parametrize("arguments", [(), ("answer.txt",), ("--answer", TRUE)])
def test_without_a_document_the_usage_is_said(check: Run, arguments: Sequence[str]) -> None:
    assert "check ANSWER DOCUMENT..." in failure(check(*arguments))


def test_what_to_do_next_is_said_where_there_is_something_to_do(check: Run) -> None:
    contradicted = check("--answer", FALSE, "report.md")
    assert "Next: run it again with --on-contradicted correct" in contradicted.out
    assert "Next" not in check("--answer", TRUE, "report.md").out
    assert "Next" not in check("--answer", FALSE, "report.md", "--json").out
    corrected = check("--answer", FALSE, "report.md", "--on-contradicted", "correct")
    assert "Next" not in corrected.out


def test_help_lists_all_commands_in_groups_with_whole_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = ran(capsys, "--help").out
    places = [shown.index(f"{title}:") for title in cli.COMMANDS]
    assert places == sorted(places)
    for group in cli.COMMANDS.values():
        for name, line in group.items():
            assert re.search(rf"^  {name} +{re.escape(line)}$", shown, re.MULTILINE)
            said = ran(capsys, name, "--help").out
            assert line in " ".join(said.split())
            assert f"  langchain-groundedness {name} " in said
            assert not re.search(r"--\S+ <[^|>]+>", said), "values have names, not types"


@pytest.mark.parametrize("name", [name for group in cli.COMMANDS.values() for name in group])
def test_every_option_has_a_description(name: str) -> None:
    commands: Any = get_command(cli.app)
    assert [
        option.name for option in commands.get_command(None, name).params if not option.help
    ] == []


def test_a_command_that_is_mistyped_is_suggested(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = ran(capsys, "chekc")
    assert outcome.code == 2
    assert "Did you mean 'check'?" in outcome.err


@pytest.mark.parametrize(
    ("words", "completed"),
    [("ev", {"evaluate"}), ("evaluate --verif", {"--verifier"})],
)
def test_a_shell_completes_commands_and_options(words: str, completed: set[str]) -> None:
    asked = {
        "_LANGCHAIN_GROUNDEDNESS_COMPLETE": "complete_bash",
        "COMP_WORDS": f"langchain-groundedness {words}",
        "COMP_CWORD": str(len(words.split())),
        "PYTHONPATH": str(Path(cli.__file__).parents[2]),
    }
    done = subprocess.run(
        [sys.executable, "-m", "langchain_groundedness"],
        capture_output=True, text=True, check=False, env=asked,
    )  # fmt: skip
    assert set(done.stdout.split()) == completed, done.stderr
