"""A checker, its options given directly, and a model given by its name."""

import inspect
import pickle
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from threading import Event
from types import NoneType
from typing import Annotated, Any, NotRequired, get_args, get_origin, get_type_hints

import pytest
from langchain.agents import AgentState, create_agent
from langchain.agents.structured_output import ToolStrategy
from langchain_core.language_models import FakeListChatModel
from langchain_core.load import dumpd, load
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import InjectedToolCallId
from langchain_openai import ChatOpenAI
from langgraph.types import Command
from middleware.agent_scripts import Writer
from pydantic import BaseModel

from langchain_groundedness import (
    AsyncGroundednessCallbackHandler,
    Corrector,
    DecisionPolicy,
    GroundednessCallbackHandler,
    GroundednessGuard,
    GroundednessMiddleware,
    GroundednessRunnable,
    JsonlAuditLog,
    LLMClaimExtractor,
    LLMVerifier,
    SinglePassJudge,
    acheck,
    check,
    collect_groundedness,
    groundedness_node,
    load_arguments,
)
from langchain_groundedness.evals import FaithfulnessEvaluator, RubricEvaluator
from langchain_groundedness.exceptions import (
    ConfigurationError,
    InputFormatError,
    MissingDependencyError,
)
from langchain_groundedness.query import LLMQueryClassifier
from langchain_groundedness.runnable import CheckerOptions
from langchain_groundedness.testing import ScriptedVerifier
from langchain_groundedness.types import Claim

ANSWER = "Revenue was $2.4B in Q3."
DOCUMENTS = ["Revenue was $2.1B in Q3."]
NAME = "openai:gpt-4o-mini"

TAKERS: dict[str, Callable[..., Any]] = {
    "sync handler": GroundednessCallbackHandler,
    "async handler": AsyncGroundednessCallbackHandler,
    "collect": collect_groundedness,
    "guard": GroundednessGuard,
    "middleware": GroundednessMiddleware,
    "node": groundedness_node,
}

PUBLIC = (
    "",
    "audit",
    "calibration",
    "claims",
    "decision",
    "evals",
    "evals.validation",
    "evidence",
    "middleware",
    "monitoring",
    "query",
    "report",
    "review",
    "types",
    "verification",
)


@contextmanager
def entered(taken: Any) -> Iterator[Any]:
    """Enter what is a context manager, whose options count only then."""
    if hasattr(taken, "__enter__"):
        with taken as inner:
            yield inner
    else:
        yield taken


@pytest.mark.parametrize("taker", TAKERS.values(), ids=TAKERS)
def test_a_checker_and_options_of_one_exclude_each_other(taker: Callable[..., Any]) -> None:
    with (
        pytest.raises(ConfigurationError, match=r"checker=.*max_claims"),
        entered(taker(GroundednessRunnable(), max_claims=3)),
    ):
        pass


@pytest.mark.parametrize("taker", TAKERS.values(), ids=TAKERS)
def test_options_of_the_checker_are_checked_wherever_they_are_given(
    taker: Callable[..., Any],
) -> None:
    with (
        pytest.raises(ConfigurationError, match=r"trust_threshold.*got 7"),
        entered(taker(trust_threshold=7)),
    ):
        pass


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"on_contradicted": "corect"}, r"'correct'.*, got 'corect'$"),
        ({"on_contradicted": "c" * 90}, r", got a text of 90 characters$"),
        ({"on_contradicted": ["strip"]}, r", got a value of type list$"),
        ({"on_contradicted": 3}, r", got 3$"),
        (
            {"policy": DecisionPolicy},
            r"DecisionPolicy, got the class DecisionPolicy; create an object of it",
        ),
        ({"audit_log": JsonlAuditLog}, r"AuditLog, got the class JsonlAuditLog; create an object"),
        ({"trust_threshold": "sk-123"}, r"trust_threshold: .* as a number$"),
    ],
)
def test_a_wrong_option_says_what_came(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        GroundednessRunnable(**options)


@pytest.mark.parametrize(
    ("taker", "meant"),
    [
        ("sync handler", "on_verdict"),
        ("async handler", "on_verdict"),
        ("collect", "on_verdict"),
        ("guard", "release"),
        ("middleware", "on_ungrounded"),
        ("node", "on_ungrounded"),
    ],
)
def test_a_misspelled_option_is_named_with_what_was_called_and_all_of_its_options(
    taker: str, meant: str
) -> None:
    make = TAKERS[taker]
    named = "GroundednessCallbackHandler" if taker == "collect" else make.__name__
    listed = f"{named}: {meant}s: no such option; options are: checker, (?=.*model, ).*{meant}, "
    for given in ({}, {"checker": GroundednessRunnable()}):
        with (
            pytest.raises(ConfigurationError, match=f"^{listed}"),
            entered(make(**given, **{f"{meant}s": 1})),
        ):
            pass


@pytest.mark.parametrize("name", ["context_extractor", "audit_log", "name"])
async def test_one_call_refuses_the_options_that_only_a_runnable_has(name: str) -> None:
    options: Any = {name: None}
    words = rf"check: {name}: no such option \(GroundednessRunnable has it\); options are: answer"
    with pytest.raises(ConfigurationError, match=f"^{words}"):
        check(ANSWER, DOCUMENTS, **options)
    with pytest.raises(ConfigurationError, match=f"^a{words}"):
        await acheck(ANSWER, DOCUMENTS, **options)


@pytest.mark.parametrize(
    "shown",
    [GroundednessRunnable, check, acheck, *TAKERS.values()],
    ids=lambda shown: shown.__name__,
)
def test_help_shows_every_option_of_the_checker_with_a_plain_type(shown: Any) -> None:
    signature = inspect.signature(shown)
    fields = GroundednessRunnable.model_fields
    for name in get_type_hints(CheckerOptions):
        parameter = signature.parameters[name]
        assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
        assert parameter.default == fields[name].get_default()
    assert "Annotated" not in str(signature)
    assert "<function" not in str(signature)
    assert not any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())


def test_the_checker_shows_all_of_its_options_and_what_each_means() -> None:
    shown = inspect.signature(GroundednessRunnable).parameters
    assert set(shown) == set(GroundednessRunnable.model_fields)
    described = inspect.getdoc(GroundednessRunnable.__init__) or ""
    assert [name for name in shown if f"    {name}: " not in described] == []


def test_other_classes_show_their_options_with_plain_types_too() -> None:
    signature = inspect.signature(LLMVerifier)
    assert signature.parameters["timeout"].annotation == float | None
    assert signature.parameters["model"].default is inspect.Parameter.empty
    assert str in get_args(signature.parameters["model"].annotation)
    assert {str, NoneType} < {
        *get_args(inspect.signature(Corrector).parameters["model"].annotation)
    }
    assert inspect.signature(Claim).parameters["start"].annotation == int | None


@pytest.mark.parametrize("folder", PUBLIC)
def test_no_signature_shows_a_validator_or_an_address_or_contradicts_itself(folder: str) -> None:
    module = import_module(f"langchain_groundedness.{folder}".rstrip("."))
    for name in module.__all__:
        shown = getattr(module, name)
        if get_origin(shown) or (isinstance(shown, type) and issubclass(shown, Exception | dict)):
            continue
        signature = inspect.signature(shown) if callable(shown) else inspect.Signature()
        assert not re.search("Annotated|FieldInfo|<function| at 0x", str(signature)), name
        for each in signature.parameters.values():
            if name != "app":  # of the command line, made by typer
                assert each.kind is not each.VAR_KEYWORD, name
                assert each.name not in {"args", "nameless"}, name
            if each.default is None and each.annotation not in {Any, each.empty}:
                assert NoneType in get_args(each.annotation), (name, each)


def test_a_guard_takes_the_options_of_a_checker_beside_its_own() -> None:
    guard = GroundednessGuard(on_contradicted="correct", blocked_message="-").bind(
        documents=DOCUMENTS
    )
    assert guard.invoke(ANSWER) == "Revenue was [CORRECTED: $2.1B] in Q3."


def test_a_handler_takes_the_options_of_a_checker() -> None:
    verifier = ScriptedVerifier({ANSWER: "unverifiable"})
    chain: RunnableLambda[str, dict[str, object]] = RunnableLambda(
        lambda _: {"answer": ANSWER, "documents": DOCUMENTS}
    )
    with collect_groundedness(verifier=verifier) as collected:
        chain.invoke("What was revenue?")
    (result,) = collected.results.values()
    assert result.claims[0].verdict == "unverifiable"


def test_a_middleware_and_a_node_take_the_options_of_a_checker() -> None:
    node = groundedness_node(verifier=ScriptedVerifier({ANSWER: "unverifiable"}))
    update = node.invoke({"answer": ANSWER, "documents": DOCUMENTS})
    assert update["groundedness"]["claims"][0]["verdict"] == "unverifiable"


def test_one_call_checks_one_answer() -> None:
    result = check(ANSWER, DOCUMENTS, "What was revenue?", on_contradicted="correct")
    assert result.answer == "Revenue was [CORRECTED: $2.1B] in Q3."


async def test_one_awaited_call_checks_one_answer() -> None:
    result = await acheck(ANSWER, DOCUMENTS, "What was revenue?", on_contradicted="correct")
    assert result.answer == "Revenue was [CORRECTED: $2.1B] in Q3."


STAGES: dict[str, Callable[..., Any]] = {
    "checker": GroundednessRunnable,
    "verifier": LLMVerifier,
    "judge": SinglePassJudge,
    "extractor": LLMClaimExtractor,
    "corrector": Corrector,
    "evaluator": FaithfulnessEvaluator,
    "rubric": lambda model: RubricEvaluator(model=model, rubric={0: "rude", 1: "kind"}),
    "query classifier": lambda model: LLMQueryClassifier(
        model=model, classes={"fees": "about fees", "other": "all else"}
    ),
}


@pytest.mark.parametrize("stage", STAGES.values(), ids=STAGES)
def test_a_model_can_be_given_by_its_name(
    stage: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "no key")
    model = stage(model=NAME).model
    assert isinstance(model, ChatOpenAI)
    assert model.model_name == "gpt-4o-mini"


@pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning")
def test_a_checker_with_a_named_model_can_be_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "no key")
    saved = dumpd(GroundednessRunnable(model=NAME))
    assert "no key" not in str(saved)
    assert load(saved, **load_arguments(ChatOpenAI)).model.model_name == "gpt-4o-mini"


def test_a_checker_with_a_named_model_can_be_pickled(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeListChatModel(responses=["S1: 1 supported"])
    monkeypatch.setattr("langchain.chat_models.init_chat_model", {"fake:model": fake}.__getitem__)
    made = GroundednessRunnable(model="fake:model")
    assert pickle.loads(pickle.dumps(made)).model == fake  # noqa: S301


def test_a_name_that_no_provider_has_is_an_error_that_says_so() -> None:
    with pytest.raises(ConfigurationError, match=r"model: .*[Pp]rovider"):
        GroundednessRunnable(model="nobody:nothing")


def test_a_named_model_without_a_key_is_an_error_that_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigurationError, match=r"model: .*'openai:gpt-4o-mini'.*OPENAI_API_KEY"):
        check("Rome is old.", ["Rome is old."], model="openai:gpt-4o-mini")


def test_a_named_model_without_its_package_is_an_error_that_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def lacking(_: str) -> None:
        msg = "Please install it with `pip install -U langchain-tin`"
        raise ImportError(msg)

    monkeypatch.setattr("langchain.chat_models.init_chat_model", lacking)
    with pytest.raises(MissingDependencyError, match=r"'tin:can'.*pip install -U langchain-tin"):
        check("Rome is old.", ["Rome is old."], model="tin:can")


def test_an_unknown_option_of_a_runnable_is_named_with_those_there_are() -> None:
    with pytest.raises(ConfigurationError, match=r"on_contradict: no such option; options are: .*"):
        GroundednessRunnable(on_contradict="correct")  # type: ignore[call-arg]


def test_a_named_model_without_the_extra_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "langchain.chat_models", None)
    with pytest.raises(MissingDependencyError, match=r"langchain-groundedness\[agents\]"):
        GroundednessRunnable(model=NAME)


def test_the_type_of_a_model_is_said_where_it_is_none() -> None:
    model: Any = 3
    with pytest.raises(ConfigurationError, match=r"model: .*Runnable"):
        LLMVerifier(model=model)


OWN_KEYS: Any = {"answer_key": "said", "documents_key": "hits", "question_key": "asked"}
OWN_OUTPUT = {"said": ANSWER, "hits": DOCUMENTS, "asked": "Which?", "context": ["Rome."]}


def own_chain() -> RunnableLambda[Any, Any]:
    return RunnableLambda(lambda _: OWN_OUTPUT)


def test_keys_of_ones_own_are_named_at_the_runnable_the_guard_and_the_node() -> None:
    result = (own_chain() | GroundednessRunnable(**OWN_KEYS)).invoke("?")
    assert (result.question, result.original_answer) == ("Which?", ANSWER)
    assert result.verdict == "has_contradictions"
    guard = GroundednessGuard(on_contradicted="correct", **OWN_KEYS)
    assert (own_chain() | guard).invoke("?") == "Revenue was [CORRECTED: $2.1B] in Q3."
    update = groundedness_node(on_ungrounded="correct", **OWN_KEYS).invoke(OWN_OUTPUT)
    assert update["said"] == "Revenue was [CORRECTED: $2.1B] in Q3."
    assert update["groundedness"]["evidence_source"] == "returned"


def test_an_answer_under_a_key_of_ones_own_is_checked_while_it_streams() -> None:
    judged = Event()

    def judge(claim: Claim) -> Any:
        judged.set()
        return "supported" if claim.text else "contradicted"

    def pieces() -> Iterator[Any]:
        yield {"hits": DOCUMENTS}
        for word in ("Revenue was ", "$2.1B in Q3. ", "It ", "rose."):
            yield {"said": word}
        assert judged.wait(timeout=300)
        yield {"said": " Bye!"}

    guard = GroundednessGuard(verifier=ScriptedVerifier(judge), **OWN_KEYS)
    assert "".join(guard.transform(pieces())) == "Revenue was $2.1B in Q3. It rose. Bye!"


@pytest.mark.parametrize("made", [GroundednessRunnable, GroundednessGuard])
def test_a_key_of_documents_that_the_input_lacks_is_named_with_the_keys_that_it_has(
    made: Any,
) -> None:
    checks = made(documents_key="hit")
    value = {"answer": ANSWER, "hits": DOCUMENTS}
    pieces = [{"hits": DOCUMENTS}, *({"answer": word} for word in ANSWER.split(" "))]
    words = "no documents under documents_key='hit'; the keys seen are: "
    with pytest.raises(InputFormatError, match=f"{words}'answer', 'hits'"):
        checks.invoke(value)
    with pytest.raises(InputFormatError, match=f"{words}'hits', 'answer'"):
        list(checks.transform(iter(pieces)))
    node = groundedness_node(documents_key="hit").invoke(value)
    assert words in node["groundedness"]["claims"][0]["reason"]


def test_a_key_of_documents_may_come_late_in_a_stream_or_be_replaced_by_documents_given() -> None:
    checker = GroundednessRunnable(documents_key="hits")
    pieces = [*({"answer": f"{word} "} for word in ANSWER.split()), {"hits": DOCUMENTS}]
    chunks = list(checker.transform(iter(pieces)))
    assert [v.verdict for chunk in chunks for v in chunk.claims] == ["contradicted"]
    result = checker.bind(documents=DOCUMENTS).invoke({"answer": ANSWER})
    assert result.verdict == "has_contradictions"


@pytest.mark.parametrize("taker", ["sync handler", "async handler"])
def test_a_handler_takes_documents_of_a_chain_whose_output_lacks_the_key_that_is_named(
    taker: str,
) -> None:
    handler = TAKERS[taker](documents_key="hits")
    chain: Any = RunnableLambda(lambda given: {"answer": ANSWER} if given else None)
    chain.invoke({"question": "Which?", "hits": DOCUMENTS}, {"callbacks": [handler]})
    [result] = handler.results.values()
    assert (result.question, result.verdict) == ("Which?", "has_contradictions")


@pytest.mark.parametrize("taker", ["sync handler", "async handler", "collect"])
def test_keys_of_ones_own_are_named_at_handlers(taker: str) -> None:
    with entered(TAKERS[taker](**OWN_KEYS)) as handler:
        own_chain().invoke("?", {"callbacks": [] if taker == "collect" else [handler]})
        [result] = handler.results.values()
    assert (result.question, result.original_answer) == ("Which?", ANSWER)
    assert result.verdict == "has_contradictions"


def test_the_middleware_reads_documents_under_a_key_that_is_named() -> None:
    middleware = GroundednessMiddleware(documents_key="hits")
    state = {"messages": [AIMessage(ANSWER)], "hits": DOCUMENTS}
    update = middleware.after_agent(state, None)  # type: ignore[arg-type]
    assert update
    assert update["groundedness"]["verdict"] == "has_contradictions"


class Report(BaseModel):
    """A structured answer."""

    said: str
    pages: int


class Noting(AgentState[Any]):
    said: NotRequired[str]


def note(said: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
    """Note the answer in the state."""
    return Command(
        update={"said": said, "messages": [ToolMessage("ok", tool_call_id=tool_call_id)]}
    )


def search(query: str) -> str:
    """Search."""
    return DOCUMENTS[0] if query else ""


def calling(name: str, **arguments: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"call-{name}"}])


def test_the_middleware_reads_an_answer_under_a_key_that_is_named() -> None:
    replies = [calling("search", query="Q3"), calling("note", said=ANSWER), "It is noted."]
    agent: Any = create_agent(
        Writer(replies=replies),
        tools=[search, note],
        state_schema=Noting,
        middleware=[GroundednessMiddleware(on_ungrounded="correct", answer_key="said")],
    )
    state = agent.invoke({"messages": [("user", "Which?")]})
    assert state["said"] == "Revenue was [CORRECTED: $2.1B] in Q3."
    assert state["messages"][-1].text == "It is noted."
    assert state["groundedness"]["outcome"] == "corrected"


def test_the_middleware_reads_one_field_of_a_structured_answer() -> None:
    replies = [calling("search", query="Q3"), calling("Report", said=ANSWER, pages=80)]
    agent: Any = create_agent(
        Writer(replies=replies),
        tools=[search],
        response_format=ToolStrategy(Report),
        middleware=[GroundednessMiddleware(on_ungrounded="correct", answer_key="said")],
    )
    state = agent.invoke({"messages": [("user", "Which?")]})
    assert state["structured_response"] == Report(said="Revenue was $2.1B in Q3.", pages=80)
    assert [claim["claim"]["text"] for claim in state["groundedness"]["claims"]] == [ANSWER]


@pytest.mark.parametrize("taker", ["sync handler", "async handler"])
def test_a_handler_that_cannot_read_an_output_names_options_that_it_has(taker: str) -> None:
    handler = TAKERS[taker]()
    chain: Any = RunnableLambda(lambda _: {"said": ANSWER})
    chain.invoke("?", {"callbacks": [handler]})
    [result] = handler.results.values()
    named = set(re.findall(r"(\w+)=", "; ".join(result.decision.reasons)))
    assert {"answer_key", "documents_key"} <= named
    assert named - {"context_extractor"} <= set(inspect.signature(TAKERS[taker]).parameters)
