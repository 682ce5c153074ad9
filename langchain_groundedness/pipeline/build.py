"""From the options of a checker to the check that they describe, with the defaults filled in."""

from typing import TYPE_CHECKING

from langchain_groundedness.claims.extractors import (
    ClaimExtractor,
    LLMClaimExtractor,
    SentenceClaimExtractor,
)
from langchain_groundedness.correction.corrector import Corrector
from langchain_groundedness.decision import DecisionPolicy
from langchain_groundedness.pipeline.steps import Check
from langchain_groundedness.verification import (
    CachedVerifier,
    LLMVerifier,
    Verifier,
)
from langchain_groundedness.verification.cached import require_store
from langchain_groundedness.verification.single_pass import SinglePassJudge

if TYPE_CHECKING:
    from langchain_groundedness.runnable import GroundednessRunnable

__all__ = ["assembled", "import_verifier", "refuse_clashes"]


def refuse_clashes(options: "GroundednessRunnable") -> None:
    """Refuse options that are each fine and cannot be had together."""
    single = options.single_pass is not False
    theirs = options.extractor is not None or options.verifier is not None
    if single and (theirs or options.examples is not None):
        msg = (
            "single_pass finds and judges the claims itself: give no extractor=, no verifier= and "
            "no examples= beside it"
        )
        raise ValueError(msg)
    if options.single_pass is True and options.model is None:
        msg = "single_pass=True asks a model: give model=, or single_pass=SinglePassJudge(...)"
        raise ValueError(msg)
    if options.examples is not None and (options.model is None or options.extractor is not None):
        msg = (
            "examples are for the extraction by the model: give model=, and no extractor= "
            "(an extractor of your own takes its examples itself)"
        )
        raise ValueError(msg)
    if options.verdict_cache is not None:
        if single:
            msg = (
                "verdict_cache keeps verdicts of single claims, and single_pass judges whole "
                "answers: give one of them"
            )
            raise ValueError(msg)
        require_store(options.verdict_cache, "verdict_cache")
        _verifier(options, None)  # which refuses what cannot be kept
    at_most = options.policy.at_most
    if options.on_contradicted == "block" and at_most != "block":
        msg = f"on_contradicted='block' and a policy with at_most={at_most!r} clash"
        raise ValueError(msg)


def import_verifier(options: "GroundednessRunnable") -> None:
    """Import what the check needs now, and not at the first check, on an event loop perhaps."""
    if options.verifier is None and options.model is None and not options.single_pass:
        _embedded()


def assembled(options: "GroundednessRunnable") -> Check:
    """Make the check that a checker carries out."""
    judge = _judge(options)
    model = options.model or (judge.model if judge else None)
    return Check(
        extractor=_extractor(options, judge),
        verifier=_verifier(options, judge),
        corrector=options.corrector or Corrector(model=model, timeout=options.model_timeout),
        max_claims=options.max_claims,
        on_contradicted=options.on_contradicted,
        on_unverifiable=options.on_unverifiable,
        trust_threshold=options.trust_threshold,
        policy=_policy(options),
        raise_on_failure=options.raise_on_failure,
        single_pass=judge,
    )


def _judge(options: "GroundednessRunnable") -> SinglePassJudge | None:
    given, model = options.single_pass, options.model
    if isinstance(given, SinglePassJudge):
        return given
    if not given or model is None:
        return None
    return SinglePassJudge(model=model, timeout=options.model_timeout)


def _extractor(options: "GroundednessRunnable", judge: SinglePassJudge | None) -> ClaimExtractor:
    if options.extractor is not None:
        return options.extractor
    if options.model is None or judge is not None:
        return SentenceClaimExtractor()
    return LLMClaimExtractor(
        model=options.model, examples=options.examples, timeout=options.model_timeout
    )


def _verifier(options: "GroundednessRunnable", judge: SinglePassJudge | None) -> Verifier:
    verifier, store = _uncached(options, judge), options.verdict_cache
    return verifier if store is None else CachedVerifier(verifier=verifier, store=store)


def _uncached(options: "GroundednessRunnable", judge: SinglePassJudge | None) -> Verifier:
    if options.verifier is not None:
        return options.verifier
    if judge is not None:
        return judge.verifier
    if options.model is None:
        return _embedded()
    return LLMVerifier(model=options.model, timeout=options.model_timeout)


def _embedded() -> Verifier:
    from langchain_groundedness.verification import EmbeddedVerifier  # noqa: PLC0415  (is slow)

    return EmbeddedVerifier()


def _policy(options: "GroundednessRunnable") -> DecisionPolicy:
    blocks = options.on_contradicted == "block"
    return options.policy.model_copy(update={"contradicted": "block"}) if blocks else options.policy
