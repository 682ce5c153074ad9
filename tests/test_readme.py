"""The README: its commands come first, its Python runs and prints what it says."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import langchain.agents.factory
import langchain.chat_models
import pytest
from langchain_core.messages import AIMessage, BaseMessage

from langchain_groundedness import GroundednessResult, GroundednessRunnable, SQLAuditLog
from langchain_groundedness.testing import ScriptedChatModel, ScriptedRequest, ScriptedServer

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def snippet_below(heading: str) -> str:
    section = README.split(f"## {heading}\n")[1]
    return str(re.findall(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL)[0])


OFFLINE, OPENAI = snippet_below("Offline"), snippet_below("OpenAI")
ANY_MODEL = snippet_below("Any other chat model")
STREAMING = snippet_below("While the answer is written")
UNCHANGED = snippet_below("On a chain that nobody changed")
AGENT = snippet_below("In an agent")
BEFORE = snippet_below("Before the answer")
AUDIT = snippet_below("Audit log")
REVIEW = snippet_below("Human review")
FEEDBACK = snippet_below("Feedback and monitoring")
LEARNING = snippet_below("Data to learn from")
EVALUATION = snippet_below("Evaluation")
PARTS = snippet_below("Where LangChain expects a model")
DECIDED = snippet_below("What is decided")

SNIPPET_MODEL = "anthropic:claude-haiku-4-5"

JUDGED = {
    "Revenue": ("Revenue was $2.1B", "contradicted | $2.1B | another figure"),
    "18 months": ("It runs for 18 months", "supported"),
    "warranty": ("three-year warranty", "contradicted | three-year | another term"),
    "Matter": ("added support for Matter", "supported"),
}
"""What a judge who reads well says of the claims of the demonstration: on what, and what."""


def reply_lines(prompt: str) -> Iterable[str]:
    """Answer our two prompts as a model would that judges as above."""
    if "prepare an answer for fact checking" in prompt:
        return
    evidence = re.findall(r"^(\d+) (.*)$", prompt, re.MULTILINE)
    claims = prompt.split("\n<claims ")[1]
    for number, claim in re.findall(r"^(C\d+): (.*)$", claims, re.MULTILINE):
        sign = next((sign for sign in JUDGED if sign in claim), None)
        if sign is None:
            yield f"{number}: unverifiable | not mentioned"
        else:
            key, verdict = JUDGED[sign]
            place = next(place for place, sentence in evidence if key in sentence)
            yield f"{number}: [{place}] {verdict}"


def openai_reply(request: ScriptedRequest) -> str:
    lines = list(reply_lines(request.text))
    return json.dumps({"lines": lines}) if request.form != "text" else "\n".join(lines) or "none"


def chat_reply(messages: list[BaseMessage]) -> str:
    return "\n".join(reply_lines("\n".join(message.text for message in messages))) or "none"


def run(snippet: str) -> dict[str, object]:
    names: dict[str, object] = {}
    exec(compile(snippet, "README.md", "exec"), names)  # noqa: S102  (the README is ours)
    return names


def promised(snippet: str) -> list[str]:
    """Give what a snippet says in comments that it prints."""
    return re.findall(r"^print\(.*\)  # (.+)$", snippet, re.MULTILINE)


def test_readme_opens_with_the_two_commands() -> None:
    commands = re.findall(r"^make (\S+)", README, re.MULTILINE)
    assert commands == ["demo", "test"]
    assert README.index("make demo") < 200


@pytest.mark.parametrize("snippet", [each for each in SNIPPETS if each != DECIDED])
def test_each_way_to_begin_takes_about_ten_lines(snippet: str) -> None:
    assert len([line for line in snippet.splitlines() if line.strip()]) <= 14


@pytest.mark.parametrize("snippet", [OFFLINE, STREAMING, BEFORE, EVALUATION, PARTS])
def test_snippet_without_a_model_prints_what_it_says(
    snippet: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run(snippet)
    assert capsys.readouterr().out.splitlines() == promised(snippet) != []


def test_audit_snippet_prints_what_it_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    log = run(AUDIT)["log"]
    assert isinstance(log, SQLAuditLog)
    log.close()
    assert capsys.readouterr().out.splitlines() == promised(AUDIT) != []


def test_calibration_snippet_prints_what_it_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run(FEEDBACK)
    assert capsys.readouterr().out.splitlines() == promised(FEEDBACK) != []


def test_validation_snippet_prints_what_it_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run(LEARNING)
    assert capsys.readouterr().out.splitlines() == promised(LEARNING) != []


@pytest.mark.enable_socket
def test_openai_snippet_prints_what_it_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with ScriptedServer(openai_reply) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.setenv("OPENAI_API_BASE", server.base_url)
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        names = run(OPENAI)
    assert capsys.readouterr().out.splitlines() == promised(OPENAI) != []
    assert server.calls == 2
    result = names["result"]
    assert isinstance(result, GroundednessResult)
    assert result.usage.model_calls == 2


def test_snippet_for_any_model_works_with_one_that_has_neither_tools_nor_json_mode(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    def init_chat_model(name: str) -> ScriptedChatModel:
        asked.append(name)
        return ScriptedChatModel(replies=chat_reply)

    monkeypatch.setattr(langchain.chat_models, "init_chat_model", init_chat_model)
    run(ANY_MODEL)
    assert asked == ["anthropic:claude-haiku-4-5"]
    shown = capsys.readouterr().out.splitlines()
    assert sorted(line.split()[0] for line in shown) == [
        "contradicted",
        "contradicted",
        "supported",
        "supported",
        "unverifiable",
    ]


def test_snippet_for_a_chain_that_nobody_changed_tells_verdicts_while_it_streams(
    capsys: pytest.CaptureFixture[str],
) -> None:
    result = run(UNCHANGED)["result"]
    assert isinstance(result, GroundednessResult)
    shown = capsys.readouterr().out.splitlines()
    assert sorted(shown) == sorted(f"{v.verdict} | {v.claim.text}" for v in result.claims)
    assert result.verdict == "has_contradictions"


def test_agent_snippet_prints_what_it_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Model(ScriptedChatModel):
        def bind_tools(self, tools: object, **kwargs: object) -> "Model":
            return self

    search: Any = {"name": "search", "args": {"query": "Q3 revenue"}, "id": "1"}
    model = Model(replies=[AIMessage("", tool_calls=[search]), "Revenue was $2.4B in Q3."])
    monkeypatch.setattr(langchain.agents.factory, "init_chat_model", {SNIPPET_MODEL: model}.get)
    run(AGENT)
    assert capsys.readouterr().out.splitlines() == promised(AGENT) != []


def test_review_snippet_leaves_an_answer_that_waits(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    model = ScriptedChatModel(replies=["Revenue was $2.4B in Q3."])
    monkeypatch.setattr(langchain.agents.factory, "init_chat_model", {SNIPPET_MODEL: model}.get)
    monkeypatch.chdir(tmp_path)
    log = run(REVIEW)["log"]
    assert isinstance(log, SQLAuditLog)
    log.flush()
    assert [record.thread_id for record in log.waiting().records] == ["1"]
    log.close()


def test_policy_snippet_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    run(DECIDED)
    assert capsys.readouterr().out.splitlines() == promised(DECIDED) != []


def table(heading: str) -> list[str]:
    section = README.split(f"## {heading}\n")[1].split("\n## ")[0]
    first_cells = re.findall(r"^\| (`[^|]*) \|", section, re.MULTILINE)
    return re.findall(r"`(\w+)`", " ".join(first_cells))


def test_table_of_results_names_every_field() -> None:
    assert set(table("What comes out")) | {"question", "documents"} == set(
        GroundednessResult.model_fields
    )


def test_table_of_options_names_every_option() -> None:
    own = set(GroundednessRunnable.model_fields) - {"name"}
    assert set(table("Options")) == own
