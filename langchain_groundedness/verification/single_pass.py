"""Extraction and verification in one call of a chat model."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Self

from langchain_core.prompts.chat import BaseChatPromptTemplate
from pydantic import Field, model_validator
from typing_extensions import override

from langchain_groundedness._runtime.executors import size_of
from langchain_groundedness._runtime.flow import Flow, FlowRunnable, ModelCall
from langchain_groundedness._runtime.options import CheckedOptions
from langchain_groundedness._runtime.telemetry import caught
from langchain_groundedness._runtime.timeouts import DEFAULT_TIMEOUT, Seconds
from langchain_groundedness.claims.checkable import may_be_skipped
from langchain_groundedness.claims.extractors import LLMClaimExtractor, known_stems, rewritings
from langchain_groundedness.claims.statements import sentence_claims
from langchain_groundedness.evidence.packing import EvidencePacker
from langchain_groundedness.exceptions import OutputParsingError
from langchain_groundedness.inputs.formats import has_text
from langchain_groundedness.llm.chat_models import ChatModel, memoized
from langchain_groundedness.llm.prompts import (
    SINGLE_PASS_PROMPT,
    VerdictLines,
    check_prompt,
    fence,
    fold_space,
    question_part,
    reply_tag,
    with_tag,
)
from langchain_groundedness.llm.structured import ModelRefusedError, StructuredModel
from langchain_groundedness.types import Claim, ClaimVerdict, ExtractionTask, VerificationTask
from langchain_groundedness.verification import LLMVerifier
from langchain_groundedness.verification.batched import NumberedEvidence, why_unchecked
from langchain_groundedness.verification.scoring import reconcile
from langchain_groundedness.verification.verdict_replies import (
    ReplyReader,
    ReplyVerdicts,
    VerdictLine,
)

__all__ = ["SinglePassJudge"]


class Judged(NamedTuple):
    """What a reply says about one sentence, before it is checked against the evidence."""

    whole: VerdictLine | None = None
    """Its verdict, if it was judged as a whole."""
    parts: tuple[tuple[str, VerdictLine | None], ...] = ()
    """The statements it was split into, each with its verdict; `None` for one that was not
    decided: it got two different ones, or one that cannot be read."""
    undecided: bool = False
    """Whether the sentence, as it stands, got two different verdicts."""

    def about(self, sentence: str) -> "Judged":
        """Treat a statement that repeats the sentence as the sentence."""
        parts = dict(self.parts)
        if sentence not in parts:
            return self
        again = parts.pop(sentence)
        if self.whole is None and not self.undecided:
            return Judged(again, tuple(parts.items()), again is None)
        agreed = self.whole if self.whole and again and self.whole.label == again.label else None
        return Judged(agreed, tuple(parts.items()), agreed is None)


class SinglePassJudge(CheckedOptions, FlowRunnable[VerificationTask, list[ClaimVerdict]]):
    """Finds the claims of an answer and judges them, in one call of a chat model.

    The model sees the evidence and the answer, both in numbered sentences, and writes one line per
    sentence of the answer: what decides it and how, or one line for each statement in it. Every
    sentence that states something gets a verdict: one without a line, or whose statements leave
    something out, is asked about again, and is `unchecked` if that fails too.

    The input is a task with `answer`, `documents` and `question`; its claims are not looked at. The
    claims that are found are called `c1`, `c2`, … in the order of the answer.

    What is too much for one call (evidence over the packer's budget, an answer of more than
    `max_sentences`) takes the two steps: claims first, then verdicts on all evidence batches.

    Example:
        >>> from langchain_core.documents import Document
        >>> from langchain_groundedness.testing import ScriptedChatModel
        >>> judge = SinglePassJudge(model=ScriptedChatModel(replies=["{tag} S1 1 supported"]))
        >>> task = VerificationTask(
        ...     claims=(),
        ...     documents=(Document("Rome is the capital of Italy."),),
        ...     answer="Rome is in Italy.",
        ... )
        >>> [(v.claim.text, v.verdict) for v in judge.invoke(task)]
        [('Rome is in Italy.', 'supported')]
    """

    _can_be_saved = True

    model: ChatModel
    """A chat model, or its name as `provider:name`."""
    prompt: BaseChatPromptTemplate | None = None
    """Instead of `prompts.SINGLE_PASS_PROMPT`; it must have the same variables and ask for the
    same form of reply."""
    reply_form: Literal["schema", "lines"] = "schema"
    """How the lines are asked for: inside a schema, where the model can keep to one, or plainly.
    Plain lines cost fewer tokens; a schema shows that a reply was cut off."""
    packer: EvidencePacker = EvidencePacker(max_tokens=100_000)
    """How much evidence one call may hold, and how more than that is cut up for the two steps."""
    max_sentences: int = Field(default=24, ge=1)
    """Most sentences of an answer that is judged in one call: models lose track in long lists."""
    timeout: Seconds = DEFAULT_TIMEOUT
    """Seconds to wait for one reply of the model, as for `LLMVerifier`."""
    retry_budget: int | None = Field(default=None, ge=0)
    """As for `LLMVerifier`, which is asked about what the first call left open."""

    @model_validator(mode="after")
    def _usable_prompt(self) -> Self:
        prompt = self.prompt or SINGLE_PASS_PROMPT
        check_prompt(prompt, required={"evidence", "answer"}, optional={"question"})
        return self

    @property
    def verifier(self) -> LLMVerifier:
        """Judges claims that are known already, with the same model.

        What a single pass left open, answers that take two steps, and the sentences of an answer
        that is still being written.
        """
        return memoized(self, self._stages).verifier

    def _layout(self, task: VerificationTask) -> "_Layout":
        sentences = tuple(sentence_claims(task.answer or "", only_checkable=False))
        evidence = None
        tokens = sum(self.packer.count_tokens(d.page_content) for d in task.documents)
        if sentences and tokens <= self.packer.max_tokens:
            batches = self.packer.pack(task.documents)
            evidence = NumberedEvidence.of(batches[0]) if len(batches) == 1 else None
        return _Layout(task, sentences, evidence)

    _is_slow = True

    @override
    def _size(self, task: VerificationTask, /) -> int:
        return size_of(task.documents) + len(task.answer or "")

    @override
    def _flow(self, task: VerificationTask, /, **_: Any) -> Flow[list[ClaimVerdict]]:
        layout = self._layout(task)
        sentences, evidence = layout.sentences, layout.evidence
        if not has_text(task.documents):
            claims = _numbered(layout.statements)
            return (yield ModelCall(self.verifier, task.only(claims))) if claims else []
        if evidence is None or len(sentences) > self.max_sentences:
            return (yield from self._two_steps(task)) if sentences else []
        name = self.get_name()
        values, read = layout.request(evidence)
        try:
            reply = yield ModelCall(
                memoized(self, self._stages).ask, values, options={"read": read}
            )
        except OutputParsingError as exc:
            if isinstance(exc, ModelRefusedError):
                return layout.unchecked(exc, name)
            judged: Mapping[int, Judged] = {}
        except Exception as exc:  # noqa: BLE001  (a provider may fail in any way)
            return layout.unchecked(exc, name)
        else:
            judged = read_judged(reply)
        return (yield from self._verdicts_of(layout, evidence, judged))

    def _two_steps(self, task: VerificationTask) -> Flow[list[ClaimVerdict]]:
        request = ExtractionTask(answer=task.answer or "", question=task.question)
        claims = yield ModelCall(memoized(self, self._stages).extractor, request)
        return (yield ModelCall(self.verifier, task.only(claims))) if claims else []

    def _verdicts_of(
        self, layout: "_Layout", evidence: NumberedEvidence, judged: Mapping[int, Judged]
    ) -> Flow[list[ClaimVerdict]]:
        """Keep what the evidence backs, and ask again about what is missing."""
        found = list(layout.found(judged))
        claims = _numbered(claim for claim, _ in found)
        task, name = layout.task.only(claims), self.get_name()
        verdicts = [
            evidence.verdict(claim, line, task.documents, name)
            for claim, (_, line) in zip(claims, found, strict=True)
            if line is not None
        ]
        missing = [c for c, (_, line) in zip(claims, found, strict=True) if line is None]
        if missing:
            verdicts += yield ModelCall(self.verifier, task.only(missing))
        return reconcile(task, verdicts, verifier=name)

    def _stages(self) -> "_Stages":
        ask = StructuredModel[VerdictLines](
            model=self.model,
            prompt=self.prompt or SINGLE_PASS_PROMPT,
            reply_schema=VerdictLines,
            name="judge_answer",
            has_lines=True,
            plain=self.reply_form == "lines",
            timeout=self.timeout,
        )
        return _Stages(
            ask,
            LLMClaimExtractor(model=self.model, timeout=self.timeout),
            LLMVerifier(
                model=self.model,
                packer=self.packer,
                timeout=self.timeout,
                retry_budget=self.retry_budget,
            ),
        )


class _Stages(NamedTuple):
    """What asks the model."""

    ask: StructuredModel[VerdictLines]
    extractor: LLMClaimExtractor
    verifier: LLMVerifier


class _Layout(NamedTuple):
    """An answer and its evidence, as the model is to see them."""

    task: VerificationTask
    sentences: tuple[Claim, ...]
    """All of the answer, also those that state nothing: they are context."""
    evidence: NumberedEvidence | None
    """`None` if it does not fit one call, or there is none."""

    @property
    def statements(self) -> list[Claim]:
        """The sentences that may not go unchecked."""
        return [s for s in self.sentences if not may_be_skipped(s.text)]

    def request(self, evidence: NumberedEvidence) -> tuple[dict[str, Any], ReplyReader]:
        """Fill the variables of the prompt, and make what reads the reply."""
        texts = (fold_space(sentence.text) for sentence in self.sentences)
        numbered = "\n".join(f"S{number}: {text}" for number, text in enumerate(texts, 1))
        question, answer = question_part(self.task.question), fence("answer", numbered)
        tag = reply_tag(evidence.shown, question, answer)
        values = {"evidence": evidence.shown, "question": question, "answer": with_tag(answer, tag)}
        reader = ReplyReader(tag, len(self.sentences), len(evidence.sentences), has_statements=True)
        return values, reader

    def unchecked(self, exc: Exception, verifier: str) -> list[ClaimVerdict]:
        """Leave all statements unchecked after an error."""
        reason = why_unchecked(caught(exc))
        return [
            ClaimVerdict.unchecked(claim, reason, verifier=verifier)
            for claim in _numbered(self.statements)
        ]

    def found(self, judged: Mapping[int, Judged]) -> Iterator[tuple[Claim, VerdictLine | None]]:
        """Give the claims of the answer, each with its line, or `None` where it has none."""
        known = known_stems(self.task.answer or "", self.task.question)
        for number, sentence in enumerate(self.sentences, 1):
            said = judged.get(number, Judged()).about(fold_space(sentence.text))
            parts, whole = dict(said.parts), said.whole
            if parts:
                claims = rewritings(sentence, parts, known)
                denied = whole is not None and whole.label != "supported"
                backed = any(part and part.label != "supported" for part in parts.values())
                if said.undecided or (denied and not backed):  # in two minds about the sentence
                    parts = dict.fromkeys(parts)
                if (denied or said.undecided) and sentence not in claims:
                    claims.append(sentence)
                for claim in claims:
                    yield claim, parts.get(claim.text, whole)
            elif whole is not None or not may_be_skipped(sentence.text):
                yield sentence, whole


def _numbered(claims: Sequence[Claim] | Iterator[Claim]) -> tuple[Claim, ...]:
    return tuple(
        claim.model_copy(update={"id": f"c{place}"}) for place, claim in enumerate(claims, 1)
    )


def read_judged(reply: ReplyVerdicts) -> dict[int, Judged]:
    """Put together what a reply says about each sentence."""
    parts: dict[int, dict[str, list[VerdictLine | None]]] = {}
    for number, text, verdict in reply.statements:
        parts.setdefault(number, {}).setdefault(fold_space(text), []).append(verdict)
    return {
        number: Judged(
            reply.decided.get(number),
            tuple((text, _agreed(said)) for text, said in parts.get(number, {}).items()),
            number in reply.undecided,
        )
        for number in sorted({*reply.decided, *reply.undecided, *parts, *reply.skipped})
    }


def _agreed(verdicts: Sequence[VerdictLine | None]) -> VerdictLine | None:
    labels = {verdict and verdict.label for verdict in verdicts}
    return verdicts[0] if len(labels) == 1 else None
