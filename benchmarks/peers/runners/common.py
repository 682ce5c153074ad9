"""Shared by the runners: arguments, samples, timing and the one JSON line each prints last."""

import argparse
import json
import os
import sys
import time
from pathlib import Path

ap = argparse.ArgumentParser()
ap.add_argument("--base-url", required=True)
ap.add_argument("--samples", required=True)
ap.add_argument("--mode", required=True)
args = ap.parse_args()
os.environ.update(
    OPENAI_API_KEY="stub",
    OPENAI_BASE_URL=args.base_url,
    OPENAI_API_BASE=args.base_url,
    HAYSTACK_TELEMETRY_ENABLED="False",
    RAGAS_DO_NOT_TRACK="true",
    DEEPEVAL_TELEMETRY_OPT_OUT="1",
    DEEPEVAL_NO_INSPECT_PROMPT="1",
    DEEPEVAL_DISABLE_DOTENV="1",
    TRULENS_OTEL_TRACING="0",
    LANGSMITH_TRACING="false",
    HF_HUB_OFFLINE="1",
    TOKENIZERS_PARALLELISM="false",
    NEMO_GUARDRAILS_TELEMETRY_ENABLED="false",
    DO_NOT_TRACK="1",
)
SAMPLES = json.loads(Path(args.samples).read_text(encoding="utf-8"))
MODEL = "gpt-4o-mini"


def supported_share(s):
    return sum(c["label"] == "supported" for c in s["claims"]) / len(s["claims"])


def fully_grounded(s):
    return float(all(c["label"] == "supported" for c in s["claims"]))


class Clock:
    def __enter__(self):
        self.t0 = time.perf_counter()
        return self

    def __exit__(self, *exc):
        self.wall = time.perf_counter() - self.t0


def finish(wall, scores, expected, note="", unchecked=0):
    """Print the one line that bench.py reads.

    `expected` maps a sample to the score this peer's own definition gives the gold labels;
    `unchecked` is the number of samples of which the peer itself says that they are not checked.
    """
    want = [expected(s) for s in SAMPLES]
    bad = [
        i
        for i, (a, b) in enumerate(zip(scores, want, strict=False))
        if a is None or not abs(a - b) < 1e-6
    ]
    sys.stdout.flush()
    print(
        json.dumps(
            {
                "wall_s": round(wall, 3),
                "n": len(scores),
                "mean": sum(s or 0 for s in scores) / len(scores),
                "unchecked": unchecked,
                "score_mismatches": len(bad) + abs(len(scores) - len(want)),
                "note": note,
            }
        )
    )
