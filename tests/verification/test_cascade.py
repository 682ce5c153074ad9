import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.load import dumpd, load
from langchain_core.runnables import RunnableConfig, RunnableLambda, RunnablePassthrough
from langchain_core.tracers.context import collect_runs

from langchain_groundedness import CascadeVerifier, Stage
from langchain_groundedness.exceptions import ConfigurationError, MissingDependencyError
from langchain_groundedness.types import Citation, Claim, ClaimVerdict, VerificationTask

DOCUMENTS = (Document(page_content="Rome is the capital of Italy.", id="rome"),)
QUOTE = Citation.from_document(DOCUMENTS, 0, 0, 29)


def task(*ids: str) -> VerificationTask:
    claims = tuple(Claim(id=name, text=f"Claim {name}.") for name in ids or ("a", "b", "c"))
    return VerificationTask(claims=claims, documents=DOCUMENTS)


class Judge:
    """Gives the verdicts it was made with, and keeps the ids of the claims it was asked about."""

    def __init__(
        self,
        default: str = "unverifiable",
        p: float | None = None,
        **by_id: tuple[str, float | None],
    ) -> None:
        self.default = (default, p)
        self.by_id = by_id
        self.asked: list[str] = []

    def __call__(self, task: VerificationTask) -> list[ClaimVerdict]:
        self.asked.append("".join(claim.id for claim in task.claims))
        return [self.judge(claim) for claim in task.claims]

    def judge(self, claim: Claim) -> ClaimVerdict:
        label, p = self.by_id.get(claim.id, self.default)
        if label == "unchecked":
            return ClaimVerdict.unchecked(claim, "too busy")
        backed = (QUOTE,) if label in ("supported", "contradicted") else ()
        return ClaimVerdict(
            claim=claim,
            verdict=label,
            support_probability=p,
            citations=backed,
        )


def failing(error: BaseException) -> RunnableLambda[VerificationTask, list[ClaimVerdict]]:
    def judge(_: VerificationTask) -> list[ClaimVerdict]:
        raise error

    return RunnableLambda(judge, name="flaky")


def labels(verdicts: list[ClaimVerdict]) -> list[str]:
    return [verdict.verdict for verdict in verdicts]


def test_each_stage_judges_only_the_claims_that_are_still_open() -> None:
    first = Judge(a=("supported", 0.95), b=("supported", 0.6), c=("unverifiable", 0.02))
    second = Judge(b=("contradicted", 0.01))
    verdicts = CascadeVerifier([first, second]).invoke(task())
    assert labels(verdicts) == ["supported", "contradicted", "unverifiable"]
    assert (first.asked, second.asked) == (["abc"], ["b"])


def test_later_stages_are_not_asked_when_nothing_is_open() -> None:
    second = Judge()
    CascadeVerifier([Judge("supported", 1.0), second]).invoke(task())
    assert second.asked == []


@pytest.mark.parametrize(
    ("label", "p", "final"),
    [
        ("supported", 0.9, True),
        ("supported", 0.89, False),
        ("supported", 0.05, False),
        ("supported", None, True),
        ("contradicted", 0.1, True),
        ("contradicted", 0.11, False),
        ("contradicted", 0.95, False),
        ("contradicted", None, True),
        ("unverifiable", 0.1, True),
        ("unverifiable", 0.5, False),
        ("unverifiable", None, True),
        ("unchecked", None, False),
    ],
)
def test_a_verdict_is_final_outside_the_uncertain_band(
    label: str,
    p: float | None,
    final: bool,  # noqa: FBT001  (pytest passes it by name)
) -> None:
    stage = Stage(verifier=RunnableLambda(Judge()))
    assert stage.is_final(Judge(label, p).judge(Claim(id="a", text="x"))) is final


def test_the_band_is_the_stages_own() -> None:
    second = Judge()
    lax = Stage(verifier=RunnableLambda(Judge("supported", 0.7)), settle_supported=0.6)
    CascadeVerifier([lax, second]).invoke(task())
    assert second.asked == []


def test_a_function_may_decide_what_is_final_but_not_about_unchecked_claims() -> None:
    first = Judge(a=("supported", 0.99), b=("unchecked", None), c=("unverifiable", 0.5))
    second = Judge()
    stage = Stage(verifier=RunnableLambda(first), settles=lambda v: v.verdict != "supported")
    CascadeVerifier([stage, second]).invoke(task())
    assert second.asked == ["ab"]


def test_the_last_stage_has_the_last_word_whatever_its_band() -> None:
    cascade = CascadeVerifier([Judge("unchecked"), Judge("supported", 0.55)])
    assert labels(cascade.invoke(task())) == ["supported"] * 3


def test_a_claim_that_the_last_stage_cannot_check_is_unchecked_whatever_was_leaned_to() -> None:
    cascade = CascadeVerifier([Judge("supported", 0.8), failing(TimeoutError("…"))])
    verdict = cascade.invoke(task("a"))[0]
    assert (verdict.verdict, verdict.reason) == ("unchecked", "flaky failed with TimeoutError")
    assert "leaned to supported (support probability 0.80)" in verdict.explanation
    assert verdict.support_probability is None


@pytest.mark.parametrize(
    ("judge", "why"),
    [
        (lambda _: [], "no verdict"),
        (lambda _: 1 / 0, "ZeroDivisionError"),
        (lambda task: [ClaimVerdict.unchecked(task.claims[0], "it is ill")], "it is ill"),
        (
            lambda task: [ClaimVerdict.model_construct(claim=task.claims[0], verdict="supported")],
            "without evidence",
        ),
    ],
)
def test_what_a_required_stage_cannot_judge_is_unchecked(judge: Any, why: str) -> None:
    second = Judge("supported")
    verdict = CascadeVerifier([Stage(verifier=judge, required=True), second]).invoke(task("a"))[0]
    assert verdict.verdict == "unchecked"
    assert why in str(verdict.reason)
    assert second.asked == []


def test_what_a_required_stage_is_unsure_of_goes_on() -> None:
    cascade = CascadeVerifier([Stage(verifier=Judge("supported", 0.6), required=True), Judge()])
    assert labels(cascade.invoke(task("a"))) == ["unverifiable"]


def test_a_failing_stage_leaves_its_claims_to_the_next_one() -> None:
    verdicts = CascadeVerifier([failing(ValueError("secret")), Judge("supported")]).invoke(task())
    assert labels(verdicts) == ["supported"] * 3
    assert "secret" not in repr(CascadeVerifier([failing(ValueError("secret"))]).invoke(task()))


def test_a_claim_that_every_stage_drops_is_unchecked() -> None:
    def mute(_: VerificationTask) -> list[ClaimVerdict]:
        return []

    assert labels(CascadeVerifier([mute, mute]).invoke(task())) == ["unchecked"] * 3


@pytest.mark.parametrize("reply", [None, "supported", ["supported"], {"a": "supported"}])
def test_a_reply_that_is_no_list_of_verdicts_is_a_failure(reply: object) -> None:
    verdicts = CascadeVerifier([lambda _: reply]).invoke(task("a"))
    assert labels(verdicts) == ["unchecked"]
    assert "must return a list of ClaimVerdict" in str(verdicts[0].reason)


def test_a_verdict_without_its_quote_is_left_to_the_next_stage() -> None:
    def unbacked(task: VerificationTask) -> list[ClaimVerdict]:
        return [ClaimVerdict(claim=claim, verdict="supported") for claim in task.claims]

    second = Judge("contradicted")
    assert labels(CascadeVerifier([unbacked, second]).invoke(task("a"))) == ["contradicted"]
    assert labels(CascadeVerifier([unbacked]).invoke(task("a"))) == ["unverifiable"]


@pytest.mark.parametrize(
    "error",
    [ConfigurationError("bad"), MissingDependencyError("no"), asyncio.CancelledError()],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("return_exceptions", [True, False])
def test_errors_that_asking_on_cannot_mend_are_raised(
    error: BaseException,
    return_exceptions: bool,  # noqa: FBT001  (pytest passes it by name)
) -> None:
    cascade = CascadeVerifier([failing(error), Judge("supported")])
    with pytest.raises(type(error)):
        cascade.invoke(task())
    if isinstance(error, Exception) and return_exceptions:
        outputs: list[Any] = list(cascade.batch([task()], return_exceptions=True))
        assert [type(output) for output in outputs] == [type(error)]
        return
    with pytest.raises(type(error)):
        cascade.batch([task()], return_exceptions=return_exceptions)


@pytest.mark.parametrize("way", ["ainvoke", "abatch", "astream"])
async def test_cancellation_reaches_a_running_stage_and_comes_back(way: str) -> None:
    started, ended = asyncio.Event(), []

    async def slow(_: VerificationTask) -> list[ClaimVerdict]:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        return []

    cascade = CascadeVerifier([slow, Judge("supported")])

    async def run() -> object:
        if way == "ainvoke":
            return await cascade.ainvoke(task())
        if way == "abatch":
            return await cascade.abatch([task()], return_exceptions=True)
        return [verdicts async for verdicts in cascade.astream(task())]

    running = asyncio.create_task(run())
    await started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ended == ["cancelled"]


async def every_way(make: Callable[[], CascadeVerifier]) -> list[list[ClaimVerdict]]:
    def in_order(chunks: list[list[ClaimVerdict]]) -> list[ClaimVerdict]:
        return sorted((v for chunk in chunks for v in chunk), key=lambda v: v.claim.id)

    return [
        make().invoke(task()),
        await make().ainvoke(task()),
        make().batch([task()])[0],
        (await make().abatch([task()]))[0],
        in_order(list(make().stream(task()))),
        in_order([chunk async for chunk in make().astream(task())]),
    ]


async def test_every_way_to_call_it_gives_the_same() -> None:
    def make() -> CascadeVerifier:
        first = Judge(a=("supported", 0.95), b=("supported", 0.6), c=("unchecked", None))
        return CascadeVerifier([first, Judge(b=("contradicted", 0.01))])

    results = await every_way(make)
    assert labels(results[0]) == ["supported", "contradicted", "unverifiable"]
    assert all(result == results[0] for result in results)


def test_a_stream_gives_verdicts_as_they_are_settled() -> None:
    first = Judge(b=("supported", 0.95), c=("unchecked", None), a=("supported", 0.5))
    second = Judge("contradicted")
    stream = CascadeVerifier([first, second]).stream(task())
    assert [v.claim.id for v in next(stream)] == ["b"]
    assert second.asked == []
    assert [[v.claim.id for v in chunk] for chunk in stream] == [["a", "c"]]


def test_a_batch_passes_each_stage_together() -> None:
    class Counting(RunnableLambda[VerificationTask, list[ClaimVerdict]]):
        sizes: list[int]

        def batch(self, inputs: list[Any], *args: Any, **kwargs: Any) -> list[Any]:
            self.sizes.append(len(inputs))
            return super().batch(inputs, *args, **kwargs)

    stages = [Counting(Judge(a=("supported", 1.0), b=("supported", 0.5))), Counting(Judge())]
    for stage in stages:
        stage.sizes = []
    verdicts = CascadeVerifier(stages).batch([task("a"), task("a", "b"), task("b")])
    assert [stage.sizes for stage in stages] == [[3], [2]]
    assert [labels(v) for v in verdicts] == [
        ["supported"],
        ["supported", "unverifiable"],
        ["unverifiable"],
    ]


def test_a_task_of_a_batch_that_fails_does_not_touch_the_others() -> None:
    def picky(task: VerificationTask) -> list[ClaimVerdict]:
        if task.claims[0].id == "x":
            raise ValueError
        return Judge("supported")(task)

    verdicts = CascadeVerifier([picky]).batch([task("a"), task("x"), task("b")])
    assert [labels(v) for v in verdicts] == [["supported"], ["unchecked"], ["supported"]]


def test_no_claims_and_no_tasks_ask_nobody() -> None:
    judge = Judge()
    empty = VerificationTask(claims=(), documents=DOCUMENTS)
    assert CascadeVerifier([judge]).invoke(empty) == []
    assert CascadeVerifier([judge]).batch([]) == []
    assert list(CascadeVerifier([judge]).stream(empty)) == []
    assert judge.asked == []


def test_stages_are_named_child_runs_that_carry_the_callers_config() -> None:
    seen: list[RunnableConfig] = []

    def judge(task: VerificationTask, config: RunnableConfig) -> list[ClaimVerdict]:
        seen.append(config)
        return Judge("unchecked")(task)

    gate = Stage(verifier=RunnableLambda(judge), name="gate")
    cascade = CascadeVerifier([gate, RunnableLambda(Judge("supported"), name="judge")])
    with collect_runs() as runs:
        cascade.invoke(task(), {"metadata": {"who": "me"}, "max_concurrency": 3, "tags": ["mine"]})
    (root,) = runs.traced_runs
    assert root.name == "CascadeVerifier"
    assert [(child.name, "mine" in (child.tags or [])) for child in root.child_runs] == [
        ("gate", True),
        ("judge", True),
    ]
    assert "stage:2" in (root.child_runs[1].tags or [])
    assert seen[0]["max_concurrency"] == 3
    assert seen[0]["metadata"]["who"] == "me"


def test_cascades_nest() -> None:
    inner = CascadeVerifier([Judge("unchecked"), Judge(a=("supported", 1.0), b=("supported", 0.5))])
    outer = CascadeVerifier([inner, Judge("contradicted")])
    assert labels(outer.invoke(task("a", "b"))) == ["supported", "contradicted"]


@pytest.mark.parametrize("band", [(0.9, 0.95), (1.2, 0.1), (0.9, -0.1), (float("nan"), 0.1)])
def test_a_band_that_is_none_is_refused(band: tuple[float, float]) -> None:
    with pytest.raises(ConfigurationError, match="settle_unsupported <= settle_supported"):
        Stage(
            verifier=RunnableLambda(Judge()), settle_supported=band[0], settle_unsupported=band[1]
        )


def test_a_cascade_without_stages_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="at least one stage"):
        CascadeVerifier([])


@pytest.mark.filterwarnings("ignore:The function `load` is in beta")
def test_it_survives_serialisation_where_its_verifiers_do() -> None:
    passing: Any = RunnablePassthrough()
    cascade = CascadeVerifier([Stage(verifier=passing, settle_supported=0.8, name="gate")])
    loaded = load(
        dumpd(CascadeVerifier([cascade])),
        allowed_objects=[CascadeVerifier, Stage, RunnablePassthrough],
        valid_namespaces=["langchain_groundedness"],
    )
    stage = loaded.stages[0].verifier.stages[0]
    assert isinstance(stage.verifier, RunnablePassthrough)
    assert (stage.settle_supported, stage.settle_unsupported, stage.title) == (0.8, 0.1, "gate")


@pytest.mark.parametrize(
    ("stages", "came"),
    [(Stage(verifier=Judge()), "Stage"), (Judge(), "Judge"), ("embedded", "str"), (None, "None")],
)
def test_stages_that_are_no_list_are_refused(stages: Any, came: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"stages must be a list.*got .*{came}"):
        CascadeVerifier(stages)
