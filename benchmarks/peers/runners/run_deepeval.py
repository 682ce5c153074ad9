import os
import tempfile

from common import MODEL, SAMPLES, Clock, args, finish

os.chdir(tempfile.mkdtemp())  # deepeval leaves .deepeval and result stores in the working directory
from deepeval import evaluate
from deepeval.evaluate.configs import AsyncConfig, CacheConfig, DisplayConfig
from deepeval.metrics import FaithfulnessMetric
from deepeval.models.llms.openai_model import OpenAIModel
from deepeval.test_case import LLMTestCase

model = OpenAIModel(model=MODEL, api_key="stub", base_url=args.base_url)
cases = [
    LLMTestCase(
        input=s["question"],
        actual_output=s["answer"],
        retrieval_context=s["contexts"],
        name=s["id"],
    )
    for s in SAMPLES
]


def not_contradicted(s):
    """The default metric lets a claim that the context does not back pass (borderline)."""
    return sum(c["label"] != "contradicted" for c in s["claims"]) / len(s["claims"])


if args.mode == "evaluate":
    with Clock() as c:
        res = evaluate(
            cases,
            [FaithfulnessMetric(model=model)],
            async_config=AsyncConfig(),
            cache_config=CacheConfig(write_cache=False, use_cache=False),
            display_config=DisplayConfig(
                show_indicator=False, print_results=False, inspect_after_run=False
            ),
        )
    by = {t.name: t.metrics_data[0].score for t in res.test_results}
    scores = [by[s["id"]] for s in SAMPLES]
else:
    scores = []
    with Clock() as c:
        for case in cases:
            m = FaithfulnessMetric(model=model)
            m.measure(case, _show_indicator=False)
            scores.append(m.score)
finish(c.wall, scores, not_contradicted, "score counts unsupported claims as faithful")
