"""Verification by a chat model."""

import math
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, Literal, NamedTuple, Self

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.prompts.chat import BaseChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig, patch_config
from pydantic import Field, model_validator
from typing_extensions import override

from langchain_groundedness._runtime.executors import run_in_worker, total_characters
from langchain_groundedness._runtime.flow import Flow, FlowRunnable, ModelCall
from langchain_groundedness._runtime.telemetry import record_error
from langchain_groundedness._runtime.timeouts import DEFAULT_TIMEOUT, RetryBudget, Seconds
from langchain_groundedness.evidence.packing import EvidencePacker, SentenceIndex
from langchain_groundedness.llm.chat_models import ChatModel, cache_value, cached_value, memoized
from langchain_groundedness.llm.prompts import (
    LABEL_PROMPT,
    VERIFICATION_PROMPT,
    VerdictLines,
    check_prompt,
    fence,
    on_one_line,
    question_part,
    sanitized,
)
from langchain_groundedness.llm.replies import (
    answer_start,
    cut_at_limit,
    is_refusal,
    reply_text,
    whole_text,
)
from langchain_groundedness.llm.structured import StructuredModel, may_be_unsupported
from langchain_groundedness.types import (
    Citation,
    Claim,
    ClaimVerdict,
    EvidenceBatch,
    VerificationTask,
)
from langchain_groundedness.verification.base import StreamingVerifier
from langchain_groundedness.verification.embedded.language import reads_as_english
from langchain_groundedness.verification.embedded.polarity import says_no
from langchain_groundedness.verification.embedded.statement import is_short_answer
from langchain_groundedness.verification.judge_calls import (
    JudgeCall,
    NumberedEvidence,
    judge_together,
    why_unchecked,
)
from langchain_groundedness.verification.scoring import halfway, reconcile
from langchain_groundedness.verification.verdict_replies import Label, VerdictLine, may_retract

__all__ = ["LLMVerifier", "label_probabilities"]


class LLMVerifier(StreamingVerifier):
    """Judges claims with a chat model: any LangChain model, remote or local.

    The evidence comes first and is the same in all calls about an answer, so prompt caches pay for
    it once. A verdict counts only with evidence that the judge was shown: it names sentences by
    number, and the numbers become verbatim quotes here. What cannot be checked is `unchecked`.

    A reply counts only in the form that was asked for, and says which call it belongs to: the last
    message ends in `TAG: ` and three letters. Each claim needs one line, in plain text with the tag
    in front, or in the object `{"tag": "XKQ", "lines": [...]}`:

        XKQ C1 [4] [5] supported
        XKQ C2 [9] contradicted | 1987 | founded in 1987, not 1990
        XKQ C3 unverifiable | no price is given

    A verdict is missing if its line has another form, names no evidence or evidence that was not
    shown, or if another line says otherwise. A reply without the tag, with a second object, with
    reasoning that does not end, or with text around its lines that may take them back has no
    verdicts. What is missing is asked for again, with what was wrong, then one by one. A model that
    gave no line in this form is then asked two plain questions about each claim: yes, no or
    unknown, and the number of the sentence that decides it. With `per_claim`, the reply is one word
    and nothing else. Verdicts on swapped claims look right: only a second verifier sees them. Where
    a false `supported` is costly, let the embedded verifier confirm each `supported`, in a
    `CascadeVerifier` as in "A cross-checked judge" of the page on security.

    Example:
        >>> from langchain_core.documents import Document
        >>> from langchain_groundedness.testing import ScriptedChatModel
        >>> from langchain_groundedness.types import Claim
        >>> judge = LLMVerifier(model=ScriptedChatModel(replies=["{tag} C1 [1] supported"]))
        >>> task = VerificationTask(
        ...     claims=(Claim(id="c1", text="Rome is in Italy."),),
        ...     documents=(Document("Rome is the capital of Italy."),),
        ... )
        >>> [(v.verdict, v.citations[0].quote) for v in judge.invoke(task)]
        [('supported', 'Rome is the capital of Italy.')]
    """

    model: ChatModel
    """The judge: a chat model, or its name as `provider:name`."""
    strategy: Literal["batched", "per_claim"] = "batched"
    """`batched`: many claims per call, with explanations and corrections. `per_claim`: one call
    per claim, answered by one word; `support_probability` where the model gives log-probabilities.
    For small and local models."""
    prompt: BaseChatPromptTemplate | None = None
    """Replaces `prompts.VERIFICATION_PROMPT` (`batched`) or `prompts.LABEL_PROMPT` (`per_claim`);
    it must have the same variables and ask for the same form of reply. The tag comes with `claims`.
    With a prompt of your own, no plain questions are asked."""
    packer: EvidencePacker | None = None
    """How documents are split into calls; by default 100,000 tokens a call for `batched` and
    3,000 for `per_claim`."""
    claims_per_call: int = Field(default=12, ge=1)
    """Maximum number of claims in one call of `batched`."""
    support_threshold: float = Field(default=0.5, gt=0.0, lt=1.0)
    """Minimum probability of support for `supported`, in replies of one word that come with
    log-probabilities. Small models are cautious: one of 1.5 billion parameters separated claims
    best at 0.2 to 0.3."""
    max_concurrency: int = Field(default=16, ge=1)
    """Maximum number of calls at a time, if the config of the run does not say."""
    timeout: Seconds = DEFAULT_TIMEOUT
    """Seconds to wait for one reply of the model; a claim whose call times out is `unchecked`.
    `None` leaves it to the model's client."""
    retry_budget: int | None = Field(default=None, ge=0)
    """Maximum number of calls beyond those that a check takes if every reply is right: to find the
    form that the model knows, to repair replies, to ask for verdicts that are missing. By default
    one for each claim and evidence batch, plus four; for `batched`, two for each claim and evidence
    batch, plus four for each call."""

    @property
    def strict_threshold(self) -> float:
        """Minimum probability of support for what a correction says."""
        return halfway(self.support_threshold)

    @model_validator(mode="after")
    def _usable_prompt(self) -> Self:
        claims = "claims" if self.strategy == "batched" else "claim"
        check_prompt(self._prompt, required={"evidence", claims}, optional={"question"})
        return self

    @override
    def _judge(self, task: VerificationTask, config: RunnableConfig) -> list[ClaimVerdict]:
        plan = self._plan(task)
        return plan.merged(plan.judge.batch(plan.calls, self._limited(config)))

    @override
    async def _ajudge(self, task: VerificationTask, config: RunnableConfig) -> list[ClaimVerdict]:
        plan = await run_in_worker(total_characters(task.documents), self._plan, task)
        return plan.merged(await plan.judge.abatch(plan.calls, self._limited(config)))

    @override
    def _stream(
        self, tasks: Iterator[VerificationTask], config: RunnableConfig
    ) -> Iterator[list[ClaimVerdict]]:
        for task in tasks:
            plan = self._plan(task)
            if task.claims and not plan.calls:
                yield plan.merged([])
            for place, output in plan.judge.batch_as_completed(plan.calls, self._limited(config)):
                if verdicts := plan.final_verdicts(place, output):
                    yield verdicts

    @override
    async def _astream(
        self, tasks: AsyncIterator[VerificationTask], config: RunnableConfig
    ) -> AsyncIterator[list[ClaimVerdict]]:
        async for task in tasks:
            plan = await run_in_worker(total_characters(task.documents), self._plan, task)
            if task.claims and not plan.calls:
                yield plan.merged([])
            outputs = plan.judge.abatch_as_completed(plan.calls, self._limited(config))
            async for place, output in outputs:
                if verdicts := plan.final_verdicts(place, output):
                    yield verdicts

    def _limited(self, config: RunnableConfig) -> RunnableConfig:
        limit = config.get("max_concurrency") or self.max_concurrency
        return patch_config(config, max_concurrency=limit)

    @property
    def _prompt(self) -> BaseChatPromptTemplate:
        default = VERIFICATION_PROMPT if self.strategy == "batched" else LABEL_PROMPT
        return self.prompt or default

    def _plan(self, task: VerificationTask) -> "_Plan":
        is_batched, name = self.strategy == "batched", self.get_name()
        size = self.claims_per_call if is_batched else 1
        groups = [
            task.only(task.claims[first : first + size])
            for first in range(0, len(task.claims), size)
        ]
        packer = self.packer or EvidencePacker(max_tokens=100_000 if is_batched else 3_000)
        read: Callable[[EvidenceBatch], Any] = (
            NumberedEvidence.of if is_batched else PlainEvidence.of
        )
        evidence = [read(batch) for batch in packer.pack(task.documents)]
        budget = self.retry_budget
        if budget is None:
            budget = len(task.claims) * len(evidence) * (2 if is_batched else 1)
            budget += _CALLS_TO_FIND_THE_FORM * (len(evidence) * len(groups) if is_batched else 1)
        left = RetryBudget(budget)
        # Batch by batch, so that calls that share their evidence follow one another.
        calls = [JudgeCall(group, batch, name, left) for batch in evidence for group in groups]
        return _Plan(task, groups, calls, _Judge(flow=self._flow), name)

    def _flow(self, call: JudgeCall) -> Flow[list[ClaimVerdict]]:
        if self.strategy == "per_claim":
            return judge_alone(call, self._label_model(self._prompt))
        # A prompt of the user's own may ask something else than the plain questions.
        plain = (
            None if self.prompt else partial(judge_by_questions, self._label_model(LABEL_PROMPT))
        )
        return judge_together(call, memoized(self, self._batched_judge), plain)

    def _label_model(self, prompt: BaseChatPromptTemplate) -> "LabelModel":
        return LabelModel(self.model, prompt, self.support_threshold, self.timeout)

    def _batched_judge(self) -> StructuredModel[VerdictLines]:
        return StructuredModel[VerdictLines](
            model=self.model,
            prompt=self._prompt,
            reply_schema=VerdictLines,
            name="verify_claims",
            timeout=self.timeout,
        )


_CALLS_TO_FIND_THE_FORM = 4


@dataclass
class _Plan:
    """The calls that a task needs, and what has come back so far."""

    task: VerificationTask
    groups: Sequence[VerificationTask]
    calls: list[JudgeCall]
    """Batch of evidence by batch, each with all groups of claims."""
    judge: "_Judge"
    verifier: str
    outputs: dict[int, list[ClaimVerdict]] = field(default_factory=dict)

    def merged(self, outputs: Iterable[list[ClaimVerdict]]) -> list[ClaimVerdict]:
        """Return one verdict per claim of the task."""
        verdicts = chain.from_iterable(outputs)
        if self.calls:
            return reconcile(self.task, verdicts, verifier=self.verifier)
        reason = "there is no text in the documents to check against"
        return [ClaimVerdict.unchecked(c, reason, verifier=self.verifier) for c in self.task.claims]

    def final_verdicts(self, place: int, output: list[ClaimVerdict]) -> list[ClaimVerdict]:
        """Return the verdicts that are final now that the call at a place has come back."""
        self.outputs[place] = output
        group = place % len(self.groups)
        places = range(group, len(self.calls), len(self.groups))
        if not self.outputs.keys() >= set(places):
            return []
        verdicts = chain.from_iterable(self.outputs[place] for place in places)
        return reconcile(self.groups[group], verdicts, verifier=self.verifier)


class _Judge(FlowRunnable[JudgeCall, list[ClaimVerdict]]):
    """Carries out one call with all that it takes: repair, asking again."""

    name: str | None = "judge_claims"
    flow: Callable[[JudgeCall], Flow[list[ClaimVerdict]]]

    @override
    def _flow(self, call: JudgeCall, /, **_: Any) -> Flow[list[ClaimVerdict]]:
        return self.flow(call)


_LABELS: dict[str, Label] = {
    "yes": "supported",
    "no": "contradicted",
    "unknown": "unverifiable",
    "supported": "supported",
    "contradicted": "contradicted",
    "unverifiable": "unverifiable",
    "unsupported": "unverifiable",
}

_AROUND = re.compile(r"^[\W_]+|[\W_]+$")

_ALONE = re.compile(
    r"(?:```(?:text|txt|plaintext)?\n)?(?:-\s)?[\s\"'`*_\u2018\u201c\u00ab]*([a-z]+)[\s\"'`*_.!\u2019\u201d\u00bb]*",
    re.IGNORECASE | re.ASCII,
)
"""A word, in quotes, emphasis or a code fence, with its full stop."""

_PLAIN = re.compile(r"(?:[^\W\d_]|[\s,.'\u2019\"])+")

_HARDLY = re.compile(r"\b(?:hardly|barely|scarcely|part(?:ly|ial\w*))\b", re.IGNORECASE)


_TOP_LOGPROBS = 10

_ANSWER_TOKENS = 16

_LONGEST_SENTENCE = 300
"""Characters of a reply that is a sentence about one claim."""

_WHICH = "Which sentence of the evidence decides that? Reply with its number only."

_ONE_WORD = "Is the statement supported? Only one word: yes, no or unknown."

_SHORTEST_PIECE = 2

_LEAST_LABEL_MASS = 0.01
"""Minimum probability of all labels together: below it, the model was about to say something
else."""

_SUBJECT = "log-probabilities"


class LabelModel(NamedTuple):
    """A model, and how it is asked for a label."""

    model: Runnable[Any, Any]
    prompt: BaseChatPromptTemplate
    """With the variables of `LABEL_PROMPT`."""
    threshold: float
    """Minimum probability of support for the label `supported`."""
    timeout: float | None = None
    """Seconds to wait for a reply."""

    def messages(self, claim: Claim, call: JudgeCall) -> list[BaseMessage]:
        """Ask about a claim."""
        # Small models judge whether a statement answers the question, if they see one.
        question = call.task.question if is_short_answer(claim.text) else None
        return self.prompt.format_messages(
            evidence=call.evidence.shown,
            question=question_part(question),
            claim=fence("statement", on_one_line(claim.text)),
        )

    def ask(
        self, messages: list[BaseMessage], budget: RetryBudget, *, only_labels: bool = False
    ) -> "Flow[_Answer]":
        """Ask for a label, and once more if the reply is none."""
        raw = yield from self._call(messages, budget)
        answer = self._read(raw)
        if answer.label is None and not answer.refused and budget.take():
            said = AIMessage(sanitized(reply_text(raw)) or "…")
            raw = yield from self._call([*messages, said, HumanMessage(_ONE_WORD)], budget)
            answer = self._read(raw)
            if answer.label is None and not (answer.refused or only_labels):
                answer = self._implied(raw)
        return answer

    def _call(self, messages: list[BaseMessage], budget: RetryBudget) -> Flow[Any]:
        """Call the model, asking for log-probabilities unless it is known to refuse the option."""
        if cached_value(self.model, _SUBJECT) != 0:
            asking = self.model.bind(
                logprobs=True, top_logprobs=_TOP_LOGPROBS, max_tokens=_ANSWER_TOKENS, stop=["\n"]
            )
            try:
                raw = yield ModelCall(asking, messages, self.timeout)
            except Exception as exc:
                if (
                    cached_value(self.model, _SUBJECT) == 1
                    or not may_be_unsupported(exc)
                    or not budget.take()
                ):
                    raise
            else:
                cache_value(self.model, _SUBJECT, 1)
                return raw
        raw = yield ModelCall(self.model, messages, self.timeout)
        cache_value(self.model, _SUBJECT, 0)
        return raw

    def _read(self, raw: Any) -> "_Answer":
        label = _label(_plain_text(raw))
        answer = self._likeliest(label_probabilities(raw)) if label else _Answer()
        return answer if answer.label else _Answer(label, refused=is_refusal(raw))

    def _likeliest(self, probabilities: dict[Label, float]) -> "_Answer":
        if not probabilities:
            return _Answer()
        support = probabilities.get("supported", 0.0)
        if support >= self.threshold:
            return _Answer("supported", support)
        against = probabilities.get("contradicted", 0.0) > probabilities.get("unverifiable", 0.0)
        return _Answer("contradicted" if against else "unverifiable", support)

    def _implied(self, raw: Any) -> "_Answer":
        """Return the label with which a model that wrote a sentence would have begun."""
        # The text overrides the probabilities. A sentence gives no label if it may retract a
        # verdict, continues after a label, or may contain a denial that goes unrecognised.
        text = reply_text(raw)
        begun = re.match(r"[\W_]*([^\W_]+)", text)
        is_none = (
            _calls_a_tool(raw)
            or len(text) > _LONGEST_SENTENCE
            or (begun and begun[1].lower() in _LABELS)
            or says_no(text)
            or may_retract(text)
            or _HARDLY.search(text)
            or not _PLAIN.fullmatch(text)
            or not reads_as_english(text)
        )
        return _Answer() if is_none else self._likeliest(label_probabilities(raw, forced=True))


class _Answer(NamedTuple):
    label: Label | None = None
    support: float | None = None
    """Probability of `supported` among the labels, if the model gave any probabilities."""
    refused: bool = False


def judge_alone(call: JudgeCall, ask: LabelModel) -> Flow[list[ClaimVerdict]]:
    """Judge the one claim of a call by a label."""
    (claim,) = call.task.claims
    try:
        answer = yield from ask.ask(ask.messages(claim, call), call.budget)
    except Exception as exc:  # noqa: BLE001  (a provider may fail in any way)
        return [call.unchecked(claim, why_unchecked(record_error(exc)))]
    if answer.label is None:
        reason = "the model refused to answer" if answer.refused else "the reply is not a label"
        return [call.unchecked(claim, reason)]
    best = call.evidence.sentences.best(claim.text) if answer.label != "unverifiable" else None
    quoted = best and Citation.from_document(
        call.task.documents, best.document, best.start, best.end
    )
    return [
        ClaimVerdict(
            claim=claim,
            verdict=answer.label,
            support_probability=answer.support,
            citations=(quoted,) if quoted else (),
            verifier=call.verifier,
        )
    ]


def judge_by_questions(
    ask: LabelModel, call: JudgeCall, claim: Claim, last_reply: str
) -> Flow[ClaimVerdict | None]:
    """Ask about a claim: for a label, then for the sentence that decides it.

    Small models that cannot keep to the form of `batched` can answer such questions. The result is
    `None` if a reply is more than an answer, or repeats the last one.
    """
    messages = ask.messages(claim, call)
    label, support, _ = yield from ask.ask(messages, call.budget, only_labels=True)
    if label is None:
        return None
    numbers: tuple[int, ...] = ()
    if label != "unverifiable":
        if not call.budget.take():
            return None
        said = AIMessage("yes" if label == "supported" else "no")
        raw = yield ModelCall(ask.model, [*messages, said, HumanMessage(_WHICH)], ask.timeout)
        numbers = call.evidence.named(_plain_text(raw))
        if not numbers:
            return None
    verdict = call.verdict(claim, VerdictLine(1, label, numbers))
    if verdict.verdict == _label(last_reply):
        return None
    return verdict.model_copy(update={"support_probability": support})


class PlainEvidence(NamedTuple):
    """An evidence batch as the judge sees it, and what finds quotes in it."""

    shown: str
    sentences: SentenceIndex

    @classmethod
    def of(cls, batch: EvidenceBatch) -> "PlainEvidence":
        """Read a batch."""
        text = "\n\n".join(
            f"# {passage.heading}\n{passage.text}" if passage.heading else passage.text
            for passage in batch.passages
        )
        return cls(fence("evidence", text), SentenceIndex(batch.passages))


def _plain_text(raw: Any) -> str:
    """Return the text of a reply; nothing if it was cut off or is not text."""
    return "" if is_refusal(raw) or cut_at_limit(raw) or _calls_a_tool(raw) else reply_text(raw)


def _calls_a_tool(raw: Any) -> bool:
    """Return whether a reply calls a tool, although none was given."""
    return bool(getattr(raw, "tool_calls", None) or getattr(raw, "invalid_tool_calls", None))


def _label(text: str) -> Label | None:
    """Read a reply that is a label and nothing else: text around a label may deny it."""
    alone = _ALONE.fullmatch(text)
    return _LABELS.get(alone[1].lower()) if alone else None


def label_probabilities(raw: Any, *, forced: bool = False) -> dict[Label, float]:
    """Read the probabilities of the labels from the log-probabilities of a reply.

    Invalid log-probabilities count as missing.
    """
    logprobs = getattr(raw, "response_metadata", {}).get("logprobs")
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    first = _first_of_answer(content, whole_text(raw)) if isinstance(content, list) else None
    if first is None or (_label_begun(first["token"]) is None and not forced):
        return {}
    seen: dict[Label, float] = {}
    for option in first.get("top_logprobs") or [first]:
        label = _label_begun(option["token"]) if _is_token(option) else None
        if label is not None:
            if not _is_logprob(option.get("logprob")):
                return {}
            seen[label] = seen.get(label, 0.0) + math.exp(option["logprob"])
    total = sum(seen.values())
    if total < _LEAST_LABEL_MASS:
        return {}
    return {label: share / total for label, share in seen.items()}


def _is_token(position: Any) -> bool:
    return isinstance(position, dict) and isinstance(position.get("token"), str)


def _is_logprob(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value <= 0


def _first_of_answer(content: Sequence[Any], said: str) -> dict[str, Any] | None:
    if not all(map(_is_token, content)):
        return None
    text = "".join(position["token"] for position in content)
    answer = answer_start(text)
    if answer is None or not (said.startswith(text) or text.strip().endswith(said.strip())):
        return None
    at = 0
    for position in content:
        if at >= answer and _AROUND.sub("", position["token"]):
            return position  # type: ignore[no-any-return]  # untyped
        at += len(position["token"])
    return None


def _label_begun(token: str) -> Label | None:
    piece = _AROUND.sub("", token).lower()
    if len(piece) < _SHORTEST_PIECE:
        return None
    return next((label for word, label in _LABELS.items() if word.startswith(piece)), None)
