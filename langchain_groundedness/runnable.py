"""The whole check as one runnable, for use after any RAG chain."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from inspect import signature
from typing import Any, Self, TypeAlias, TypedDict, TypeVar, Unpack

from langchain_core.runnables import Runnable, RunnableConfig, RunnableSerializable
from langchain_core.runnables.graph import Graph
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, model_validator
from typing_extensions import override

from langchain_groundedness._runtime.executors import wait_for_admission
from langchain_groundedness._runtime.flow import JointBatch
from langchain_groundedness._runtime.options import AnyRunnable, EqualByOptions, expand_options
from langchain_groundedness._runtime.streams import ClosingStream, StreamingTransform
from langchain_groundedness._runtime.timeouts import DEFAULT_TIMEOUT, Seconds
from langchain_groundedness.audit import AuditLog
from langchain_groundedness.claims.extractors import (
    ClaimExtractor,
    LLMClaimExtractor,
    SentenceClaimExtractor,
)
from langchain_groundedness.correction.corrector import Corrector
from langchain_groundedness.decision import DecisionPolicy
from langchain_groundedness.decision.modes import MODES, ClaimProblem
from langchain_groundedness.display.notebook import result_html
from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.inputs.formats import (
    Evidence,
    GroundednessInput,
    InputParts,
    InputReader,
    ReadingOptions,
)
from langchain_groundedness.llm.chat_models import ChatModel, GivenModel
from langchain_groundedness.pipeline.check import Check
from langchain_groundedness.pipeline.live import LiveCheck
from langchain_groundedness.pipeline.recording import Recorder
from langchain_groundedness.pipeline.runs import BatchRun, arun_pieces, run_pieces
from langchain_groundedness.text.sentences import load
from langchain_groundedness.types import (
    HTML_FORMATTERS,
    GroundednessResult,
    GroundednessResultChunk,
    OnContradicted,
    OnUnverifiable,
)
from langchain_groundedness.verification import CachedVerifier, LLMVerifier, Verifier
from langchain_groundedness.verification.by_name import AnyVerifier, named_verifier
from langchain_groundedness.verification.cached import VerdictCache, require_store
from langchain_groundedness.verification.single_pass import SinglePassJudge

__all__ = [
    "CheckerOptions",
    "GroundednessRunnable",
    "RunnableOptions",
    "acheck",
    "check",
    "checker_from",
    "show_checker_options",
]

_Runnable: TypeAlias = Runnable[Any, Any] | Callable[..., Any]
_FunctionT = TypeVar("_FunctionT", bound=Callable[..., Any])


class _StageOptions(TypedDict, total=False):
    model: GivenModel | None
    model_timeout: float | None
    extractor: _Runnable | None
    verifier: _Runnable | str | None
    corrector: _Runnable | None
    max_claims: int | None
    on_contradicted: OnContradicted
    on_unverifiable: OnUnverifiable | None
    trust_threshold: float
    policy: DecisionPolicy
    raise_on_failure: bool
    examples: Sequence[Any] | None
    single_pass: bool | SinglePassJudge
    verdict_cache: VerdictCache | None
    metadata_keys: Sequence[str]


class CheckerOptions(_StageOptions, ReadingOptions, total=False):
    """Options of `GroundednessRunnable` that guard, handlers and middleware also accept."""


class RunnableOptions(CheckerOptions, total=False):
    """All options of `GroundednessRunnable`."""

    context_extractor: Callable[[Any], Any] | None
    audit_log: AuditLog | None
    name: str | None


class GroundednessRunnable(
    EqualByOptions,
    JointBatch[Any, GroundednessResult],
    StreamingTransform[GroundednessResultChunk],
    RunnableSerializable[Any, GroundednessResult],
):
    """Checks an answer claim by claim against the documents it was made from.

    Add it to a chain with `chain.pipe(GroundednessRunnable())`. It accepts the output of retrieval
    chains and agents, or `{"answer": ..., "documents": ..., "question": ...}`. Without a model it
    works offline, with the embedded verifier.

    Example:
        >>> checker = GroundednessRunnable(on_contradicted="correct")
        >>> result = checker.invoke(
        ...     {
        ...         "question": "What was Q3 revenue?",
        ...         "answer": "Revenue was $2.4B in Q3.",
        ...         "documents": ["Revenue was $2.1B in Q3, up 12% from last year."],
        ...     }
        ... )
        >>> result.answer
        'Revenue was [CORRECTED: $2.1B] in Q3.'
        >>> result.verdict, result.is_trusted
        ('has_contradictions', False)

    A claim that could not be checked is never shown as supported: it is `unchecked`, with the
    reason, and the answer is not trusted.

    `stream` and `transform` yield verdicts as soon as they are final, in chunks that add up with
    `+` to the result of `invoke`. `transform` takes an answer while it is written: it checks a
    sentence once its end is certain and documents are known. The usage then differs, because
    judging sentence by sentence takes more model calls. This needs a `SentenceClaimExtractor`, the
    default without a model; any other extractor waits for the whole answer.

    LangChain's `dumpd` saves it, without keys, and `load(saved, **load_arguments())` loads it;
    `load` alone refuses every class from outside LangChain.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)
    _can_be_saved = True

    model: ChatModel | None = None
    model_timeout: Seconds = DEFAULT_TIMEOUT
    extractor: AnyRunnable | None = None
    verifier: AnyVerifier | None = None
    corrector: AnyRunnable | None = None
    max_claims: int | None = Field(default=None, ge=1)
    on_contradicted: OnContradicted = "annotate"
    on_unverifiable: OnUnverifiable | None = None
    trust_threshold: float = Field(default=1.0, ge=0.0, le=1.0)
    policy: DecisionPolicy = DecisionPolicy()
    raise_on_failure: bool = False
    context_extractor: Callable[[Any], Any] | None = None
    examples: Sequence[Any] | None = None
    single_pass: bool | SinglePassJudge = False
    audit_log: AuditLog | None = Field(default=None, exclude=True)
    verdict_cache: VerdictCache | None = Field(default=None, exclude=True)
    evidence: Evidence = "thread"
    trust_generated: bool = False
    metadata_keys: tuple[str, ...] = ("title",)
    answer_key: str | None = None
    documents_key: str | None = None
    question_key: str | None = None

    _check: Check | None = PrivateAttr(default=None)

    def __init__(self, **options: Unpack[RunnableOptions]) -> None:
        """Configure the check; every option has a default.

        Args:
            model: A chat model, or its name as `provider:name` (for LangChain's `init_chat_model`,
                extra `agents`), or a function; it extracts and judges the claims. `None` uses the
                embedded verifier, which works offline.
            model_timeout: Timeout of one model call in seconds; a claim whose call times out is
                `unchecked`. `None` leaves it to the model's client. Custom stages have their own
                timeouts.
            extractor: Finds the claims; by default the model, or sentences without a model.
            verifier: Judges the claims; by default the model, or the embedded verifier. It can be a
                name: `embedded`, or one of the public models of `CrossEncoderVerifier`, such as
                `hhem` (extra `transformers`).
            corrector: Edits the answer; by default a `Corrector`, with the model if given.
            max_claims: Maximum number of claims to verify; further claims are `unchecked`.
            on_contradicted: What to do with the text of contradicted claims: `annotate` keeps it,
                `correct` replaces the wrong part, `strip` removes it, `block` makes the decision
                `block`, and a guard then withholds the rest. Corrections are verified; if one
                fails, the evidence sentence replaces the claim.
            on_unverifiable: What to do with the text of unverifiable claims: `keep` or `strip`. By
                default, `correct` removes them and unchecked ones; every other mode keeps them.
            trust_threshold: Minimum share of supported claims for a trusted answer, 0 to 1.
            policy: Turns verdicts and labels of the question into a decision.
            raise_on_failure: Whether to raise `VerificationError` when a failure leaves claims
                unchecked.
            examples: Few-shot examples for claim extraction by the model.
            single_pass: Whether the model finds and judges the claims in one call instead of two;
                or a `SinglePassJudge`. `stream` and `transform` then wait for the whole answer; a
                guard calls the model once per sentence.
            verdict_cache: Caches verdicts, like `CachedVerifier`. It is not saved with the checker.
            evidence: Which tool results of a conversation are evidence: those of the whole
                `thread`, or only those since the last question (`turn`). Documents of earlier turns
                have the number of their turn in the metadata, as `turn`.
            trust_generated: Whether text that a model wrote inside a tool, such as the reply of a
                sub-agent, is evidence.
            metadata_keys: Metadata of the documents that is evidence too: it is read before the
                text, and citations of it name its key as `field`.
            answer_key: Key of the answer in the input or the agent's state, or field of a
                structured answer, if it is not one of the usual keys.
            documents_key: Key of the documents in the input, if it is not one of the usual keys.
            question_key: Key of the question in the input, if it is not one of the usual keys.
            context_extractor: Converts an input of any shape to an accepted one.
            audit_log: Receives a record of each decision. It is not saved with the checker.
            name: Name of the runnable in traces.

        Raises:
            ConfigurationError: An option has an invalid value, or two options exclude each other.
            MissingDependencyError: `model` is a name, and the extra `agents` is not installed; or
                `verifier` names a public model without the extra `transformers`.
        """
        super().__init__(**options)

    @model_validator(mode="after")
    def _options_go_together(self) -> Self:
        for problem in _conflicts(self):
            raise ValueError(problem)
        self._import_verifier()
        return self

    @override
    def __setstate__(self, state: dict[Any, Any]) -> None:
        super().__setstate__(state)
        self._import_verifier()

    @override
    async def ainvoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> GroundednessResult:
        await wait_for_admission()
        return await super().ainvoke(input, config, **kwargs)

    def warm_up(self) -> None:
        """Load models and data now instead of on first use; further calls do nothing."""
        load()
        warm_up = getattr(self.check.verifier, "warm_up", None)
        if callable(warm_up):
            warm_up()

    @override
    def get_input_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        return GroundednessInput

    @override
    def get_graph(self, config: RunnableConfig | None = None) -> Graph:
        """Return the graph of the check.

        Args:
            config: Not used.

        Returns:
            The graph of the pipeline, from input to result.
        """
        return self.check.pipeline(self._reader()).get_graph(config)

    @property
    def check(self) -> Check:
        """The steps and options, with defaults filled in."""
        if self._check is None:
            judge = self._judge()
            model = self.model or (judge.model if judge else None)
            self._check = Check(
                extractor=self._extractor(judge),
                verifier=self._verifier(judge),
                corrector=self.corrector or Corrector(model=model, timeout=self.model_timeout),
                max_claims=self.max_claims,
                on_contradicted=self.on_contradicted,
                on_unverifiable=self.on_unverifiable or self._by_mode("unverifiable"),
                on_unchecked="keep" if self.on_unverifiable else self._by_mode("unchecked"),
                trust_threshold=self.trust_threshold,
                policy=self._policy(),
                raise_on_failure=self.raise_on_failure,
                metadata_keys=self.metadata_keys,
                single_pass=judge,
            )
        return self._check

    def _by_mode(self, problem: ClaimProblem) -> OnUnverifiable:
        effects = MODES.get(self.on_contradicted)
        return "strip" if effects and effects[problem] == "remove" else "keep"

    def _judge(self) -> SinglePassJudge | None:
        if isinstance(self.single_pass, SinglePassJudge):
            return self.single_pass
        if not self.single_pass or self.model is None:
            return None
        return SinglePassJudge(model=self.model, timeout=self.model_timeout)

    def _extractor(self, judge: SinglePassJudge | None) -> ClaimExtractor:
        if self.extractor is not None:
            return self.extractor
        if self.model is None or judge is not None:
            return SentenceClaimExtractor()
        return LLMClaimExtractor(
            model=self.model, examples=self.examples, timeout=self.model_timeout
        )

    def _verifier(self, judge: SinglePassJudge | None) -> Verifier:
        if self.verifier is not None:
            verifier = self.verifier
        elif judge is not None:
            verifier = judge.verifier
        elif self.model is None:
            verifier = named_verifier("embedded")
        else:
            verifier = LLMVerifier(model=self.model, timeout=self.model_timeout)
        store = self.verdict_cache
        return verifier if store is None else CachedVerifier(verifier=verifier, store=store)

    def _policy(self) -> DecisionPolicy:
        blocks = self.on_contradicted == "block"
        return self.policy.model_copy(update={"contradicted": "block"}) if blocks else self.policy

    def _import_verifier(self) -> None:
        """Import the embedded verifier now, so that no event loop waits for it later."""
        if self.verifier is None and self.model is None and not self.single_pass:
            named_verifier("embedded")

    def live(
        self, *, removes: bool = False, whole: bool = False, **given: Unpack[InputParts]
    ) -> LiveCheck:
        """Start a check of an answer that is still being written.

        Args:
            removes: Whether sentences may be removed regardless of the options.
            whole: Whether `single_pass` waits for the whole answer.
            documents: Documents, for inputs without them.
            question: The question, for inputs without it.
            query_class: The class of the question.
            risk_tier: The risk tier.
            retrieval_score: How close the best document is to the question.

        Returns:
            The check, to which a driver passes the answer.
        """
        return LiveCheck(self.check, self._reader(**given), removes=removes, whole=whole)

    @property
    def reader(self) -> InputReader:
        """The reader of its inputs."""
        names = ("context_extractor", *ReadingOptions.__annotations__)
        return InputReader(**{name: getattr(self, name) for name in names})

    def _reader(self, **given: Any) -> InputReader:
        return self.reader.with_parts(type(self).__name__, given)

    @property
    def _recorder(self) -> Recorder:
        return Recorder(self.audit_log, "runnable", self)

    def _run(
        self, values: list[Any], run_manager: list[Any], config: list[RunnableConfig], **given: Any
    ) -> list[Exception | GroundednessResult]:
        return BatchRun(self.check, self._reader(**given), self._recorder).run(
            values, config, run_manager
        )

    async def _arun(
        self, values: list[Any], run_manager: list[Any], config: list[RunnableConfig], **given: Any
    ) -> list[Exception | GroundednessResult]:
        return await BatchRun(self.check, self._reader(**given), self._recorder).arun(
            values, config, run_manager
        )

    def _stream(
        self, pieces: Iterator[Any], run_manager: Any, config: RunnableConfig, **given: Any
    ) -> Iterator[GroundednessResultChunk]:
        pending = self._recorder.begin(run_manager, config)
        yield from run_pieces(self.live(whole=True, **given), pieces, config, pending)

    async def _astream(
        self, pieces: AsyncIterator[Any], run_manager: Any, config: RunnableConfig, **given: Any
    ) -> AsyncGenerator[GroundednessResultChunk]:
        pending, live = self._recorder.begin(run_manager, config), self.live(whole=True, **given)
        async with ClosingStream(arun_pieces(live, pieces, config, pending)) as chunks:
            async for chunk in chunks:
                yield chunk


expand_options(GroundednessRunnable.__init__, GroundednessRunnable)
expand_options(GroundednessRunnable.live)
HTML_FORMATTERS[GroundednessResult] = result_html


def _conflicts(options: GroundednessRunnable) -> Iterator[str]:
    """Yield why options exclude each other."""
    single = options.single_pass is not False
    theirs = (options.extractor, options.verifier, options.examples)
    if single and any(each is not None for each in theirs):
        yield (
            "single_pass excludes extractor=, verifier= and examples=, because it finds and judges "
            "the claims itself: pass one or the other"
        )
    if options.single_pass is True and options.model is None:
        yield "single_pass=True needs a model: pass model=, or single_pass=SinglePassJudge(...)"
    if options.examples is not None and (options.model is None or options.extractor is not None):
        yield (
            "examples= requires model= and cannot be combined with extractor=: pass the examples "
            "to your own extractor instead"
        )
    if options.verdict_cache is not None:
        if single:
            yield (
                "verdict_cache excludes single_pass, which judges whole answers instead of single "
                "claims: pass one of them"
            )
        require_store(options.verdict_cache, "verdict_cache")
        options._verifier(None)  # noqa: SLF001  (raises if verdicts cannot be cached)
    at_most = options.policy.at_most
    if options.on_contradicted == "block" and at_most != "block":
        yield f"on_contradicted='block' excludes a policy with at_most={at_most!r}: change one"


def show_checker_options(function: _FunctionT) -> _FunctionT:
    """Show `**options: Unpack[CheckerOptions]` by name in the signature of a function."""
    return expand_options(function, GroundednessRunnable)


def checker_from(
    checker: Runnable[Any, GroundednessResult] | None,
    options: CheckerOptions,
    taker: str,
    shown: Callable[..., Any],
) -> Runnable[Any, GroundednessResult]:
    """Return the given checker, or build one from options.

    Args:
        checker: The checker, if one was given.
        options: The options that `taker` has not taken as its own.
        taker: What was called with them, for error texts.
        shown: The function whose signature shows all options of `taker`.

    Raises:
        ConfigurationError: Both were given, or one of them is invalid or unknown.
    """
    accepted = [name for name in signature(shown).parameters if name != "self"]
    for name in options:
        if name not in accepted:
            ours = " (GroundednessRunnable has it)" * (name in GroundednessRunnable.model_fields)
            msg = f"{taker}: {name}: no such option{ours}; options are: {', '.join(accepted)}"
            raise ConfigurationError(msg)
    if checker is None:
        return GroundednessRunnable(**options)
    if options:
        msg = (
            f"got both checker= and options of a checker ({', '.join(options)}): pass the options "
            "to the checker, or omit checker="
        )
        raise ConfigurationError(msg)
    if not isinstance(checker, Runnable):
        msg = (
            "checker must be a GroundednessRunnable, or a runnable that returns a "
            f"GroundednessResult, got a value of type {type(checker).__name__}"
        )
        raise ConfigurationError(msg)
    return checker


@show_checker_options
def check(
    answer: Any,
    documents: Any,
    question: str | None = None,
    **options: Unpack[CheckerOptions],
) -> GroundednessResult:
    """Check one answer against its documents.

    Args:
        answer: The answer: a text or a message.
        documents: The evidence: texts or `Document` objects.
        question: The question, if known.
        **options: As for `GroundednessRunnable`, such as `model="openai:gpt-4o-mini"`.

    Returns:
        The verdicts on its claims, and the decision.

    Raises:
        ConfigurationError: An option has an invalid value.
        InputFormatError: The answer or the documents cannot be read.

    Example:
        >>> result = check("Revenue was $2.4B in Q3.", ["Revenue was $2.1B in Q3."])
        >>> result.verdict
        'has_contradictions'
    """
    given = {"answer": answer, "documents": documents, "question": question}
    return checker_from(None, options, "check", check).invoke(given)


@show_checker_options
async def acheck(
    answer: Any,
    documents: Any,
    question: str | None = None,
    **options: Unpack[CheckerOptions],
) -> GroundednessResult:
    """Check one answer like `check`, without blocking the event loop.

    Args:
        answer: As for `check`.
        documents: As for `check`.
        question: As for `check`.
        **options: As for `check`.

    Returns:
        As `check`.
    """
    given = {"answer": answer, "documents": documents, "question": question}
    return await checker_from(None, options, "acheck", acheck).ainvoke(given)
