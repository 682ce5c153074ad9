"""Runs to report on."""

import random
from datetime import UTC, datetime
from typing import Any

from langchain_core.documents import Document
from review.records import HOSTILE, result

from langchain_groundedness import Citation, Claim, ClaimVerdict, Decision, GroundednessResult
from langchain_groundedness.evals import (
    BadRow,
    EvaluatedRow,
    EvaluationRow,
    EvaluationRun,
    RowScore,
    RunHeader,
)
from langchain_groundedness.types import Usage

MADE = datetime(2026, 3, 1, 12, tzinfo=UTC)
METRICS = ("faithfulness", "context_relevance")


def scored(key: str, value: float | None, **fields: Any) -> RowScore:
    if value is not None:
        return RowScore(key=key, score=value, status="scored", **fields)
    return RowScore(key=key, **{"status": "failed", "reason": "the judge gave no answer", **fields})


def row(name: str, *scores: RowScore, seconds: float | None = None, **fields: Any) -> EvaluatedRow:
    return EvaluatedRow(row=EvaluationRow(id=name, **fields), scores=scores, seconds=seconds)


def run(
    *rows: EvaluatedRow, name: str = "after", keys: Any = METRICS, **fields: Any
) -> EvaluationRun:
    header = RunHeader(
        name=name,
        made=MADE,
        dataset="questions.jsonl",
        digest="d1",
        evaluators={key: {"class": "FaithfulnessEvaluator", "model": "scripted"} for key in keys},
        version="0.1.0",
    )
    return EvaluationRun(header=header, rows=rows, **{"seconds": 12.5, **fields})


def small() -> EvaluationRun:
    """Five rows: scored with verdicts, scored, failed, skipped, and one that cites nothing."""
    checked = result()
    return run(
        row(
            "r-1",
            scored(
                "faithfulness",
                0.5,
                result=checked,
                comment="2 of 4 claims are supported",
                details={"statements": 4},
            ),
            scored("context_relevance", 1.0),
            question=checked.question,
            answer=checked.answer,
            documents=checked.documents,
            reference="Revenue was $2.1B.",
            label=False,
            metadata={"topic": "money"},
            seconds=0.21,
        ),
        row(
            "r-2",
            scored("faithfulness", 1.0),
            scored("context_relevance", 0.25),
            question="Who leads it?",
            answer="Nobody does.",
            metadata={"topic": "people"},
        ),
        row(
            "r-10",
            scored("faithfulness", None, reason="the judge timed out"),
            scored("context_relevance", 0.5),
            question="Where is it?",
            answer="In Rome.",
            metadata={"topic": "people"},
        ),
        row(
            "r-20",
            scored("faithfulness", None, status="skipped", reason="needs documents"),
            scored("context_relevance", None, status="skipped", reason="needs documents"),
            question="When was it?",
            answer="Long ago.",
            metadata={"topic": "money"},
        ),
        bad_rows=(BadRow(line=7, reason="no JSON"), BadRow(line=9, id="x", reason="no question")),
        usage=Usage(model_calls=9, input_tokens=12_000, output_tokens=800),
    )


def hostile() -> EvaluationRun:
    """A run in which every text tries to be markup."""
    text = f"{HOSTILE} \u2028 \u202e \x00 \ud83d \U0001f600 | *x* [a](javascript:x)"
    document = Document(text, id=text, metadata={"title": text, text: text})
    whole = (0, len(text))
    claim = ClaimVerdict(
        claim=Claim(id="a", text=text, start=whole[0], end=whole[1]),
        verdict="supported",
        explanation=text,
        citations=(Citation.from_document([document], 0, *whole),),
    )
    checked = GroundednessResult(
        question=text,
        answer=text,
        original_answer=text,
        documents=(document,),
        claims=(claim,),
        trust_score=1.0,
        verdict="grounded",
        is_trusted=True,
        decision=Decision(action="pass"),
    )
    rows = [
        row(
            f"{text}{n}",
            scored(text, 0.5, result=checked, comment=text, details={text: [text]}),
            scored("other", None, reason=text),
            question=text,
            answer=text,
            documents=(document,),
            reference=text,
            label=text,
            metadata={text: n % 2, "column": text[:60] if n % 2 else "b"},
        )
        for n in range(4)
    ]
    bad = (BadRow(line=3, id=text, reason=text),)
    made = run(*rows, name=text, keys=(text, "other"), bad_rows=bad)
    header = made.header.model_copy(update={"dataset": text})
    return made.model_copy(update={"header": header})


def large(
    rows: int, *, seed: int = 1, better: float = 0.0, name: str = "after", documents: int = 2
) -> EvaluationRun:
    """A run of many rows, with verdicts, slices, labels, and all that can go wrong."""
    chance = random.Random(seed)  # noqa: S311  (a seeded run)
    return run(
        *(_large_row(n, chance, better, documents) for n in range(rows)),
        name=name,
        keys=("faithfulness", "context_relevance", "answer_quality"),
        bad_rows=(BadRow(line=rows + 3, reason="no question"),),
        usage=Usage(model_calls=rows, input_tokens=rows * 900, output_tokens=rows * 60),
        seconds=rows * 0.05,
    )


_FILLER = (
    "The office opens at nine. Visitors sign in at the desk. Parking is behind the house. " * 6
)


def _large_row(n: int, chance: random.Random, better: float, documents: int) -> EvaluatedRow:
    names = ("Rome", "Oslo", "Lima", "Cairo")
    texts = [
        Document(
            f"{_FILLER}{name} has {n % 997} towers. {_FILLER}",
            metadata={"source": f"{name}-{n}.md", "page": n % 40},
        )
        for name in names[:documents]
    ]
    quote = f"Rome has {n % 997} towers."
    sentences = [quote, f"Oslo has {n % 89} towers.", "It is a fine town."]
    verdicts = [
        "supported",
        "contradicted" if chance.random() < 0.3 - better else "supported",
        chance.choice(("unverifiable", "supported", "supported")),
    ]
    answer = " ".join(sentences)
    claims = []
    for k, (sentence, verdict) in enumerate(zip(sentences, verdicts, strict=True)):
        place = answer.index(sentence)
        start = texts[0].page_content.index(quote)
        is_good = verdict == "supported"
        claims.append(
            ClaimVerdict(
                claim=Claim(id=f"c{k}", text=sentence, start=place, end=place + len(sentence)),
                verdict=verdict,
                support_probability=round(
                    chance.uniform(0.5, 1) if is_good else chance.uniform(0, 0.6), 3
                ),
                citations=(Citation.from_document(texts, 0, start, start + len(quote)),)
                if verdict != "unverifiable"
                else (),
                verifier="embedded",
            )
        )
    share = verdicts.count("supported") / len(verdicts)
    checked = GroundednessResult(
        question=f"How many towers has Rome in year {n}?",
        answer=answer,
        original_answer=answer,
        documents=tuple(texts),
        claims=tuple(claims),
        trust_score=share,
        verdict="grounded"
        if share == 1
        else "has_contradictions"
        if "contradicted" in verdicts
        else "partially_grounded",
        is_trusted=share == 1,
        decision=Decision(action="pass" if share == 1 else "flag"),
    )
    quality = min(1.0, max(0.0, chance.gauss(0.7 + better, 0.15)))
    return row(
        f"q-{n}",
        scored(
            "faithfulness",
            share,
            result=checked,
            comment=f"{verdicts.count('supported')} of 3 claims are supported",
        ),
        scored("context_relevance", round(chance.betavariate(5, 2), 3)),
        scored("answer_quality", round(quality, 3))
        if chance.random() > 0.04
        else scored(
            "answer_quality",
            None,
            reason=chance.choice(("the judge timed out", "the reply could not be read")),
        ),
        question=checked.question,
        answer=answer,
        documents=tuple(texts),
        reference=quote,
        label=chance.random() < (0.9 if share == 1 else 0.35),
        metadata={
            "topic": chance.choice(("towers", "towns", "people")),
            "language": chance.choice(("en", "de")),
        },
        seconds=round(chance.uniform(0.05, 0.4), 3),
    )
