"""Scripted parts for tests: of this package, and of whatever you build on it.

Nothing here asks a model. `ScriptedChatModel` and `ScriptedServer` replace the model,
`ScriptedClaimExtractor` and `ScriptedVerifier` the stages that would ask one.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, get_args

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import PrivateAttr, field_validator
from typing_extensions import override

from langchain_groundedness.evidence.packing import locate_quote
from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.testing.server import tag_in
from langchain_groundedness.types import (
    Citation,
    Claim,
    ClaimVerdict,
    ExtractionTask,
    VerdictLabel,
    VerificationTask,
)
from langchain_groundedness.verification.scoring import reconcile

__all__ = ["ScriptedChatModel", "ScriptedClaimExtractor", "ScriptedVerifier"]


Scripted = VerdictLabel | ClaimVerdict | Exception | None


class ScriptedChatModel(BaseChatModel):
    """A chat model that answers from a script, without JSON mode or structured output.

    As the model of an agent, it ignores the tools that it is given; replies may call them.

    Example:
        >>> model = ScriptedChatModel(replies=["yes", TimeoutError()])
        >>> model.invoke("Is it?").text
        'yes'
        >>> model.invoke("Really?")
        Traceback (most recent call last):
        TimeoutError
        >>> [messages[0].text for messages in model.requests]
        ['Is it?', 'Really?']
    """

    replies: Any
    """Replies in order (texts, messages, or exceptions to raise), or a function from the
    messages to a reply. A call after the last reply raises `IndexError`. Not a single text. Where a
    text has `{tag}`, the tag that verdicts must repeat is put in: `"{tag} C1 [1] supported"`."""

    def __init__(self, **options: Any) -> None:
        """Take the script, and any option of a LangChain chat model."""
        super().__init__(**options)

    @field_validator("replies")
    @classmethod
    def _in_order(cls, replies: Any) -> Any:
        if isinstance(replies, str | BaseMessage):
            msg = f"replies must be a list of replies, or a function; [{replies!r}], perhaps"
            raise ConfigurationError(msg)
        return replies

    _requests: list[list[BaseMessage]] = PrivateAttr(default_factory=list)
    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    @property
    def requests(self) -> list[list[BaseMessage]]:
        """The messages of every call, in order."""
        return self._requests

    @property
    @override
    def _llm_type(self) -> str:
        return "scripted"

    @override
    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        """Ignore the tools: the script decides which are called."""
        return self

    @override
    def with_structured_output(self, schema: Any, **kwargs: Any) -> Runnable[Any, Any]:
        """Refuse, as models without it do."""
        msg = "ScriptedChatModel has no structured output: script the text or the tool calls"
        raise NotImplementedError(msg)

    @override
    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        with self._lock:
            place = len(self._requests)
            self._requests.append(messages)
        reply = self.replies(messages) if callable(self.replies) else self._next(place)
        if isinstance(reply, BaseException):
            raise reply
        if isinstance(reply, str):
            tag = tag_in("\n".join(str(message.text) for message in messages))
            reply = AIMessage(reply.replace("{tag}", tag))
        return ChatResult(generations=[ChatGeneration(message=reply)])

    def _next(self, place: int) -> Any:
        if place < len(self.replies):
            return self.replies[place]
        msg = f"the script is over: it has {len(self.replies)} replies, this is call {place + 1}"
        raise IndexError(msg)


class ScriptedClaimExtractor(Runnable[ExtractionTask | str, list[Claim]]):
    """Gives the claims of a script.

    Example:
        >>> extractor = ScriptedClaimExtractor(["Rome is in Italy."])
        >>> extractor.invoke("Sure. Rome is in Italy.")[0].start
        6
    """

    def __init__(self, claims: Iterable[str] | Callable[[ExtractionTask], Iterable[str]]) -> None:
        """Take the script."""
        self._claims = claims if callable(claims) else list(claims)
        self.tasks: list[ExtractionTask] = []
        """Every task seen, in order."""

    @override
    def invoke(
        self, input: ExtractionTask | str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Claim]:
        return self._call_with_config(self._extract, input, config)

    def _extract(self, task: ExtractionTask | str) -> list[Claim]:
        task = ExtractionTask(answer=task) if isinstance(task, str) else task
        self.tasks.append(task)
        texts = self._claims(task) if callable(self._claims) else self._claims
        spans = ((text, locate_quote(text, task.answer) or (None, None)) for text in texts)
        return [
            Claim(id=f"c{n}", text=text, start=start, end=end)
            for n, (text, (start, end)) in enumerate(spans, 1)
        ]


class ScriptedVerifier(Runnable[VerificationTask, list[ClaimVerdict]]):
    """Gives the verdicts of a script, with a citation where the verdict needs one.

    Example:
        >>> from langchain_core.documents import Document
        >>> judge = ScriptedVerifier({"Rome is in Italy.": "supported"})
        >>> claims = (Claim(id="c1", text="Rome is in Italy."), Claim(id="c2", text="It rains."))
        >>> task = VerificationTask(claims=claims, documents=(Document("Italy: Rome, Bari."),))
        >>> [verdict.verdict for verdict in judge.invoke(task)]
        ['supported', 'unchecked']
    """

    def __init__(self, verdicts: Mapping[str, Scripted] | Callable[[Claim], Scripted]) -> None:
        """Take the script."""
        for said in () if callable(verdicts) else verdicts.values():
            _refuse_unknown(said)
        self._verdicts = verdicts
        self.tasks: list[VerificationTask] = []
        """Every task seen, in order."""

    @override
    def invoke(
        self, input: VerificationTask, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[ClaimVerdict]:
        return self._call_with_config(self._verify, input, config)

    def _verify(self, task: VerificationTask) -> list[ClaimVerdict]:
        self.tasks.append(task)
        verdicts = [v for claim in task.claims if (v := self._verdict(claim, task)) is not None]
        return reconcile(task, verdicts, verifier="scripted")

    def _verdict(self, claim: Claim, task: VerificationTask) -> ClaimVerdict | None:
        script = self._verdicts
        said = script(claim) if callable(script) else script.get(claim.text)
        if isinstance(said, Exception):
            raise said
        if said is None or isinstance(said, ClaimVerdict):
            return said
        if said == "unchecked":
            return ClaimVerdict.unchecked(claim, "the script says so", verifier="scripted")
        cited = () if said == "unverifiable" else _first_document(task)
        return ClaimVerdict(claim=claim, verdict=said, citations=cited, verifier="scripted")


def _refuse_unknown(said: object) -> None:
    labels = get_args(VerdictLabel)
    if not (said is None or said in labels or isinstance(said, ClaimVerdict | Exception)):
        msg = (
            f"a script of verdicts says {said!r}; it may say {', '.join(labels)}, or give a "
            "ClaimVerdict, an exception or None"
        )
        raise ConfigurationError(msg)


def _first_document(task: VerificationTask) -> tuple[Citation, ...]:
    lengths = [len(document.page_content) for document in task.documents[:1]]
    return tuple(Citation.from_document(task.documents, 0, 0, length) for length in lengths)
