"""Extraction and verification in one call of a chat model."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, Self

from langchain_core.prompts.chat import BaseChatPromptTemplate
from pydantic import Field, model_validator
from typing_extensions import override

from langchain_groundedness._runtime.executors import total_characters
from langchain_groundedness._runtime.flow import Flow, FlowRunnable, ModelCall
from langchain_groundedness._runtime.options import CheckedOptions
from langchain_groundedness._runtime.telemetry import record_error
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
    on_one_line,
    question_part,
    reply_tag,
    with_tag,
)
from langchain_groundedness.llm.structured import ModelRefusedError, StructuredModel
from langchain_groundedness.types import Claim, ClaimVerdict, ExtractionTask, VerificationTask
from langchain_groundedness.verification import LLMVerifier
from langchain_groundedness.verification.judge_calls import NumberedEvidence, why_unchecked
from langchain_groundedness.verification.scoring import reconcile
from langchain_groundedness.verification.verdict_replies import (
    ReplyReader,
    ReplyVerdicts,
    VerdictLine,
)

__all__ = ["SinglePassJudge"]


class SinglePassJudge(CheckedOptions, FlowRunnable[VerificationTask, list[ClaimVerdict]]):
    """Finds the claims of an answer and judges them, in one call of a chat model.

    The model sees the evidence and the answer, both in numbered sentences, and writes one line per
    sentence of the answer: what decides it and how, or one line for each statement in it. Every
    sentence that states something gets a verdict: one without a line, or whose statements leave
    something out, is asked about again, and is `unchecked` if that fails too.

    The input is a task with `answer`, `documents` and `question`; its claims are ignored. The
    claims that are found are called `c1`, `c2`, … in the order of the answer.

    An input that is too large for one call (evidence over the packer's budget, an answer of more
    than `max_sentences`) takes two steps: claims first, then verdicts on all evidence batches.

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
    """Replaces `prompts.SINGLE_PASS_PROMPT`; it must have the same variables and ask for the same
    form of reply."""
    reply_form: Literal["schema", "lines"] = "schema"
    """How the lines are asked for: inside a schema, where the model can keep to one, or plainly.
    Plain lines cost fewer tokens; a schema shows that a reply was cut off."""
    packer: EvidencePacker = EvidencePacker(max_tokens=100_000)
    """How much evidence one call may hold, and how more than that is cut up for the two steps."""
    max_sentences: int = Field(default=24, ge=1)
    """Maximum number of sentences of an answer that is judged in one call: models lose track in
    long lists."""
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

        These are claims that a single pass left open, claims of answers that take two steps, and
        the sentences of an answer that is still being written.
        """
        return memoized(self, self._stages).verifier

    _is_slow = True

    @override
    def _size(self, task: VerificationTask, /) -> int:
        return total_characters(task.documents) + len(task.answer or "")

    @override
    def _flow(self, task: VerificationTask, /, **_: Any) -> Flow[list[ClaimVerdict]]:
        stages, name = memoized(self, self._stages), self.get_name()
        sentences = sentence_claims(task.answer or "", only_checkable=False)
        statements = _numbered(s for s in sentences if not may_be_skipped(s.text))
        if not sentences:
            return []
        if not has_text(task.documents):
            verify = ModelCall(stages.verifier, task.only(statements))
            return (yield verify) if statements else []
        evidence = self._evidence(task)
        if evidence is None or len(sentences) > self.max_sentences:
            request = ExtractionTask(answer=task.answer or "", question=task.question)
            claims = yield ModelCall(stages.extractor, request)
            return (yield ModelCall(stages.verifier, task.only(claims))) if claims else []
        values, read = _request(task, sentences, evidence)
        reply = ReplyVerdicts({}, {})
        try:
            reply = yield ModelCall(stages.ask, values, options={"read": read})
        except Exception as exc:  # noqa: BLE001  (a provider may fail in any way)
            if isinstance(exc, ModelRefusedError) or not isinstance(exc, OutputParsingError):
                reason = why_unchecked(record_error(exc))
                return [ClaimVerdict.unchecked(c, reason, verifier=name) for c in statements]
        # What the evidence backs is kept, and what is missing asked about again.
        found = list(_found_claims(task, sentences, reply))
        claims = _numbered(claim for claim, _ in found)
        task = task.only(claims)
        lines = [line for _, line in found]
        verdicts = [
            evidence.verdict(claim, line, task.documents, name)
            for claim, line in zip(claims, lines, strict=True)
            if line is not None
        ]
        missing = [claim for claim, line in zip(claims, lines, strict=True) if line is None]
        if missing:
            verdicts += yield ModelCall(stages.verifier, task.only(missing))
        return reconcile(task, verdicts, verifier=name)

    def _evidence(self, task: VerificationTask) -> NumberedEvidence | None:
        """Number the evidence; `None` if it does not fit one call."""
        if sum(self.packer.count_tokens(d.page_content) for d in task.documents) > (
            self.packer.max_tokens
        ):
            return None
        batches = self.packer.pack(task.documents)
        return NumberedEvidence.of(batches[0]) if len(batches) == 1 else None

    def _stages(self) -> "_Stages":
        ask = StructuredModel[VerdictLines](
            model=self.model,
            prompt=self.prompt or SINGLE_PASS_PROMPT,
            reply_schema=VerdictLines,
            name="judge_answer",
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


def _request(
    task: VerificationTask, sentences: Sequence[Claim], evidence: NumberedEvidence
) -> tuple[dict[str, str], ReplyReader]:
    """Fill in the variables of the prompt, and build the reader of the reply."""
    # The model also sees the sentences without a statement, as context.
    texts = (on_one_line(sentence.text) for sentence in sentences)
    numbered = "\n".join(f"S{number}: {text}" for number, text in enumerate(texts, 1))
    question, answer = question_part(task.question), fence("answer", numbered)
    tag = reply_tag(evidence.shown, question, answer)
    values = {"evidence": evidence.shown, "question": question, "answer": with_tag(answer, tag)}
    return values, ReplyReader(tag, len(sentences), len(evidence.sentences), has_statements=True)


def _found_claims(
    task: VerificationTask, sentences: Sequence[Claim], reply: ReplyVerdicts
) -> Iterator[tuple[Claim, VerdictLine | None]]:
    """Yield the claims of the answer, each with its line, or `None` where it has none."""
    known = known_stems(task.answer or "", task.question)
    for number, sentence in enumerate(sentences, 1):
        has_line = number in reply.decided or number in reply.undecided
        lines = [reply.decided.get(number)] if has_line else []
        statements: dict[str, list[VerdictLine | None]] = {}
        for place, text, verdict in reply.statements:
            if place == number:
                statements.setdefault(on_one_line(text), []).append(verdict)
        lines += statements.pop(on_one_line(sentence.text), [])
        whole = _agreed(lines)
        if statements:
            parts = {text: _agreed(verdicts) for text, verdicts in statements.items()}
            claims = rewritings(sentence, parts, known)
            undecided = bool(lines) and whole is None
            denied = whole is not None and whole.label != "supported"
            backed = any(part and part.label != "supported" for part in parts.values())
            if undecided or (denied and not backed):  # in two minds about the sentence
                parts = dict.fromkeys(parts)
            if (denied or undecided) and sentence not in claims:
                claims.append(sentence)
            for claim in claims:
                yield claim, parts.get(claim.text, whole)
        elif whole is not None or not may_be_skipped(sentence.text):
            yield sentence, whole


def _agreed(lines: Sequence[VerdictLine | None]) -> VerdictLine | None:
    """Return the first of lines that have one label."""
    labels = {line and line.label for line in lines}
    return lines[0] if len(labels) == 1 else None


def _numbered(claims: Iterable[Claim]) -> tuple[Claim, ...]:
    return tuple(
        claim.model_copy(update={"id": f"c{place}"}) for place, claim in enumerate(claims, 1)
    )
