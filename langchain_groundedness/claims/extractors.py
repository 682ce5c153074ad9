"""Claim extraction: finds the checkable statements of an answer."""

import logging
import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Self, TypeAlias

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.prompts.chat import BaseChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig, RunnableSerializable
from pydantic import Field, SkipValidation, model_validator
from typing_extensions import override

from langchain_groundedness._runtime.flow import Flow, FlowRunnable, ModelCall
from langchain_groundedness._runtime.options import CheckedOptions
from langchain_groundedness._runtime.timeouts import DEFAULT_TIMEOUT, Seconds
from langchain_groundedness.claims.checkable import may_be_skipped
from langchain_groundedness.claims.statements import sentence_claims
from langchain_groundedness.evidence.packing import locate_quote
from langchain_groundedness.llm.chat_models import ChatModel, memoized
from langchain_groundedness.llm.prompts import (
    EXTRACTION_PROMPT,
    ClaimLines,
    check_prompt,
    fence,
    on_one_line,
    question_part,
)
from langchain_groundedness.llm.replies import numbered_line, numbered_lines
from langchain_groundedness.llm.structured import StructuredModel
from langchain_groundedness.text.words import content_words, fold, most_similar, stem
from langchain_groundedness.types import Claim, ExtractionTask, FrozenModel

__all__ = [
    "ClaimExtractor",
    "ExtractionExample",
    "LLMClaimExtractor",
    "SentenceClaimExtractor",
    "known_stems",
    "rewritings",
]

ClaimExtractor: TypeAlias = Runnable[ExtractionTask | str, list[Claim]]
"""Anything that finds claims: an extractor of this package, your own chain, a `RunnableLambda`."""

_SKIP = re.compile(r"skip\W*", re.IGNORECASE)

_LOGGER = logging.getLogger(__name__)


class _Extractor(CheckedOptions, FlowRunnable[ExtractionTask | str, list[Claim]]):
    """Finds the claims of a task, or of an answer alone."""

    _can_be_saved = True
    _is_slow = True  # reads the answer, and on first use the model of small talk

    @override
    def _size(self, task: ExtractionTask | str, /) -> int:
        return len(task if isinstance(task, str) else task.answer)


class SentenceClaimExtractor(_Extractor):
    """Finds the claims of an answer without a model: its sentences, list items and table rows.

    Markup and citation markers are not part of a claim's text; its span covers them, but not the
    marker of a list item. A table row becomes `subject; header: cell`, with its first cell as the
    subject. Text that makes no statement is skipped: headings, code blocks, questions, lead-ins
    that end in a colon, greetings, offers and refusals ("The documents do not say"). A short answer
    is one unchanged claim.

    Example:
        >>> answer = "Sure! Rome is the **capital** of Italy [1]. Any questions?"
        >>> [claim] = SentenceClaimExtractor().invoke(answer)
        >>> claim.text, answer[claim.start : claim.end]
        ('Rome is the capital of Italy.', 'Rome is the **capital** of Italy [1].')
    """

    split_compound: bool = True
    """Whether an English sentence with two predicates for one subject becomes two claims:
    `X is a … that was …`, `X is … and was …`, `X is … with 4 million …`. The span of each claim is
    its own part of the sentence."""

    @override
    async def ainvoke(
        self, input: ExtractionTask | str, config: RunnableConfig | None = None, **_: Any
    ) -> list[Claim]:
        if type(self).invoke is not SentenceClaimExtractor.invoke:
            return await RunnableSerializable.ainvoke(self, input, config)
        return await super().ainvoke(input, config)

    @override
    def _flow(self, task: ExtractionTask | str, /, **_: Any) -> Flow[list[Claim]]:
        yield from ()  # needs no call
        answer = task if isinstance(task, str) else task.answer
        return sentence_claims(answer, split_compound=self.split_compound)


class ExtractionExample(FrozenModel):
    """One worked example for `LLMClaimExtractor(examples=…)`."""

    answer: str = Field(min_length=1)
    claims: tuple[Annotated[str, Field(min_length=1)], ...]
    """The expected claims, in order; empty if nothing can be checked."""
    question: str | None = None

    @model_validator(mode="after")
    def _has_sentences(self) -> Self:
        if not _sentences(self.answer):
            msg = "answer must contain a sentence"
            raise ValueError(msg)
        return self


class LLMClaimExtractor(_Extractor):
    """Finds the claims of an answer with a chat model, in one call.

    The model gets the numbered sentences of the answer and returns only changes: it rewrites
    sentences that depend on context or make several statements as self-contained claims, and skips
    sentences without a statement. Every sentence that it does not mention is an unchanged claim, so
    replies are short, and an incomplete reply hides no sentence.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> model = FakeListChatModel(responses=["2: Rome lies on the Tiber."])
        >>> answer = "Rome is in Italy. It lies on the Tiber."
        >>> claim = LLMClaimExtractor(model=model).invoke(answer)[1]
        >>> claim.text, answer[claim.start : claim.end]
        ('Rome lies on the Tiber.', 'It lies on the Tiber.')
    """

    model: ChatModel
    """A chat model, or its name as `provider:name`."""
    examples: tuple[ExtractionExample, ...] | None = None
    """Few-shot examples, also as mappings with `answer` and `claims`."""
    prompt: BaseChatPromptTemplate | None = None
    """Replaces `prompts.EXTRACTION_PROMPT`; it must have the same variables and request the same
    reply format."""
    fallback: SkipValidation[ClaimExtractor] | None = Field(default_factory=SentenceClaimExtractor)
    """Used when the model fails or its reply cannot be read; `None` raises the error instead."""
    timeout: Seconds = DEFAULT_TIMEOUT
    """Timeout of one model call in seconds; `None` leaves it to the model's client."""

    @model_validator(mode="after")
    def _usable_prompt(self) -> Self:
        optional = {"question", "examples"}
        check_prompt(self.prompt or EXTRACTION_PROMPT, required={"answer"}, optional=optional)
        return self

    @override
    def _flow(self, task: ExtractionTask | str, /, **_: Any) -> Flow[list[Claim]]:
        task = ExtractionTask(answer=task) if isinstance(task, str) else task
        sentences = _sentences(task.answer)
        if not sentences:
            return []
        ask = memoized(self, self._structured_model)
        examples = [message for each in self.examples or () for message in _messages(each)]
        values = _values(sentences, task.question) | {"examples": examples}
        try:
            reply = yield ModelCall(ask, values)
        except Exception as exc:
            if self.fallback is None:
                raise
            _LOGGER.warning("claim extraction fell back to sentences: %s", type(exc).__name__)
            claims: list[Claim] = yield ModelCall(self.fallback, task)
            return claims
        return _claims(sentences, reply.lines, known=known_stems(task.answer, task.question))

    def _structured_model(self) -> StructuredModel[ClaimLines]:
        return StructuredModel[ClaimLines](
            model=self.model,
            prompt=self.prompt or EXTRACTION_PROMPT,
            reply_schema=ClaimLines,
            name="extract_claims",
            from_text=lambda text: (
                None if (lines := numbered_lines(text)) is None else ClaimLines(lines=lines)
            ),
            timeout=self.timeout,
        )


def _sentences(answer: str) -> list[Claim]:
    """Return every sentence; those that are not claims give the model context."""
    return sentence_claims(answer, only_checkable=False)


def _values(sentences: Sequence[Claim], question: str | None) -> dict[str, Any]:
    """Build the variables of the prompt."""
    texts = (on_one_line(claim.text) for claim in sentences)
    numbered = "\n".join(f"{number}: {text}" for number, text in enumerate(texts, 1))
    return {"answer": fence("answer", numbered), "question": question_part(question)}


def _claims(
    sentences: Sequence[Claim], lines: Iterable[str], *, known: frozenset[str]
) -> list[Claim]:
    """Apply the lines of a reply to the sentences; `known` are the stems of answer and question."""
    skipped: set[int] = set()
    lines_of: dict[int, list[str]] = {}
    for number, text in filter(None, map(numbered_line, lines)):
        if _SKIP.fullmatch(text):
            skipped.add(number)
        else:
            lines_of.setdefault(number, []).append(text)
    claims: list[Claim] = []
    for number, sentence in enumerate(sentences, 1):
        if number in lines_of:
            claims.extend(rewritings(sentence, lines_of[number], known))
        elif number not in skipped or not may_be_skipped(sentence.text):
            claims.append(sentence)
    return [claim.model_copy(update={"id": f"c{place}"}) for place, claim in enumerate(claims, 1)]


def _messages(example: ExtractionExample) -> tuple[BaseMessage, BaseMessage]:
    """Format an example as a request and the reply to it."""
    sentences = _sentences(example.answer)
    shown = _values(sentences, example.question)
    lines: dict[int, list[str]] = {number: [] for number in range(1, len(sentences) + 1)}
    for text in example.claims:
        lines[most_similar(text, (each.text for each in sentences)) + 1].append(text)
    written = [
        f"{number}: {text}"
        for number, texts in lines.items()
        for text in texts or ["skip"]
        if texts != [sentences[number - 1].text]
    ]
    reply = "\n".join(written) or "none"
    return HumanMessage(f"{shown['question']}{shown['answer']}"), AIMessage(reply)


_COVERED = 0.5

_WORD = re.compile(r"\w+")

_NEGATION = re.compile(
    r"\b(?:no|not|cannot|never|none|nobody|nothing|nowhere|neither|nor|without|hardly|rarely|seldom"
    r"|barely|scarcely|fail(?:s|ed)?|lack(?:s|ed)?|unable|nicht|kein\w*|nie|ohne|pas|jamais|sans"
    r"|non|nunca|sin|n\u00e3o|niet|geen|\u043d\u0435|\u043d\u0435\u0442)\b"
    r"|n['\u2019]t\b|\u4e0d|\u6ca1|\u672a|\u7121|\u65e0|\u306a\u3044|\u307e\u305b\u3093",
    re.IGNORECASE,
)


def known_stems(answer: str, question: str | None) -> frozenset[str]:
    """Return the stems of answer and question, from which rewritings may take words."""
    return frozenset(map(stem, content_words(f"{answer} {question or ''}")))


def rewritings(sentence: Claim, texts: Iterable[str], known: frozenset[str]) -> list[Claim]:
    """Build claims from the model's rewritings of a sentence.

    Rewritings without a shared word are dropped. The original sentence is kept too if they may
    omit or negate part of it, so that no rewriting hides a statement.
    """
    words = content_words(sentence.text)
    kept = [t for t in dict.fromkeys(texts) if not words or words & content_words(t)]
    claims = [_located(sentence, text) for text in kept]
    if _loses_words(sentence.text, kept, known) or _negations_differ(sentence.text, kept):
        claims.append(sentence)
    return claims


def _loses_words(sentence: str, texts: Sequence[str], known: frozenset[str]) -> bool:
    """Return whether rewritings lose a number, a name or most words, or exchange a word."""
    words = frozenset(map(stem, content_words(sentence)))
    written = frozenset(stem(word) for text in texts for word in content_words(text))
    lost = words - written
    names = {stem(fold(word)) for word in _WORD.findall(sentence)[1:] if word[:1].isupper()}
    numbers = {word for word in words if any(map(str.isdigit, word))}
    if lost & (numbers | names) or len(lost) > (1 - _COVERED) * len(words):
        return True
    return bool(lost) and bool(written - known)


def _negations_differ(sentence: str, texts: Sequence[str]) -> bool:
    """Return whether rewritings drop a negation or add the first one."""
    before = len(_NEGATION.findall(sentence))
    after = sum(len(_NEGATION.findall(text)) for text in texts)
    return after < before or (after > 0 and before == 0)


def _located(sentence: Claim, text: str) -> Claim:
    start, end = sentence.start, sentence.end
    as_written = start is not None and end == start + len(sentence.text)  # no markup between
    found = locate_quote(text, sentence.text) if as_written else None
    if found is not None and start is not None:
        start, end = start + found[0], start + found[1]
    return Claim(id=sentence.id, text=text, start=start, end=end)
