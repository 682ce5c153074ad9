"""Runs every peer's runner against the stub and updates results/results.json.

Called by run.sh. Profiles:
  flat     5 documents of 120 words, every call takes 200 ms: calls, tokens, wall time, concurrency
  real     the same, plus 8 ms per output token and 0.02 ms per prompt token: time per answer
  long     40 documents of 250 words, 200 ms a call: what is truncated, repeated or refused
  garble   every 7th call returns half of its JSON: who repairs, retries, raises, passes it as clean
  http500  every 7th call answers HTTP 500
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).resolve().parent
# peer, runner mode, what it is, profiles it runs in
PLAN = [
    ("ours", "loop", "langchain-groundedness, one at a time", "flat real long garble http500"),
    (
        "ours",
        "abatch",
        "langchain-groundedness abatch, 16 at a time",
        "flat real long garble http500",
    ),
    (
        "ours",
        "single-loop",
        "langchain-groundedness single_pass, one at a time",
        "flat real long garble http500",
    ),
    (
        "ours",
        "single-abatch",
        "langchain-groundedness single_pass abatch, 16 at a time",
        "flat real long garble http500",
    ),
    (
        "ours",
        "lines-abatch",
        "langchain-groundedness single_pass, plain lines, abatch, 16 at a time",
        "flat real long garble http500",
    ),
    (
        "ours",
        "sentences-abatch",
        "langchain-groundedness, sentences as claims, abatch, 16 at a time",
        "flat real long garble http500",
    ),
    ("ours", "embedded", "langchain-groundedness, embedded verifier", "flat long"),
    ("haystack", "run", "haystack FaithfulnessEvaluator.run", "flat real long garble http500"),
    ("haystack", "run_async", "haystack FaithfulnessEvaluator.run_async", "flat"),
    (
        "ragas",
        "evaluate",
        "ragas evaluate(Faithfulness), LangChain model",
        "flat long garble http500",
    ),
    (
        "ragas",
        "collections",
        "ragas collections.Faithfulness.abatch_score",
        "flat long garble http500",
    ),
    ("ragas", "collections-loop", "ragas collections.Faithfulness, one at a time", "flat real"),
    ("deepeval", "evaluate", "deepeval evaluate(FaithfulnessMetric)", "flat long garble http500"),
    ("deepeval", "measure-loop", "deepeval FaithfulnessMetric.measure, one at a time", "flat real"),
    ("trulens", "default-60rpm", "trulens groundedness_measure (default 60 rpm)", "flat"),
    (
        "trulens",
        "rpm-raised",
        "trulens groundedness_measure, rpm=100000",
        "flat real long garble http500",
    ),
    (
        "openevals",
        "loop",
        "openevals RAG_GROUNDEDNESS judge, one at a time",
        "flat real garble http500",
    ),
    ("openevals", "gather", "openevals RAG_GROUNDEDNESS judge, asyncio.gather", "flat long"),
    ("nemo", "loop", "nemo self check facts, one at a time", "flat real long http500"),
    ("nemo", "gather", "nemo self check facts, asyncio.gather", "flat"),
    ("groundedness", "loop", "groundedness.check, one at a time", "flat real long garble http500"),
    (
        "lettucedetect",
        "loop",
        "lettucedetect LLMDetector, one at a time",
        "flat real long garble http500",
    ),
]
PROFILES = {
    "flat": {},
    "real": {"output_token_ms": 8, "prompt_token_ms": 0.02},
    "long": {},
    "garble": {"garble_every": 7},
    "http500": {"fail_every": 7},
}
BASE = {
    "call_ms": 200,
    "output_token_ms": 0,
    "prompt_token_ms": 0,
    "fail_every": 0,
    "garble_every": 0,
}


def call(port, path, body=None):
    data = json.dumps(body).encode() if body is not None else None
    req = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=data)
    with urllib.request.urlopen(req, timeout=30) as r:  # noqa: S310  (loopback)
        return json.load(r)


TIMEOUT = 400


def run_one(port, venvs, peer, mode, samples):
    call(port, "/__reset", {})
    cmd = [
        str(venvs / peer / "bin" / "python"),
        str(HERE / "runners" / f"run_{peer}.py"),
        "--base-url",
        f"http://127.0.0.1:{port}/v1",
        "--samples",
        samples,
        "--mode",
        mode,
    ]
    env = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    try:
        p = subprocess.run(
            cmd, capture_output=True, text=True, timeout=TIMEOUT, check=False, env=env
        )
        lines = [x for x in (p.stdout + p.stderr).splitlines() if x.strip()]
        out = next(
            (json.loads(x) for x in reversed(p.stdout.splitlines()) if x.startswith('{"wall_s"')),
            None,
        )
        if out is None:
            errs = [
                x
                for x in lines
                if x[:1].isalpha()
                and ("Error" in x.split(":")[0] or "Exception" in x.split(":")[0])
            ]
            out = {"raised": (errs or lines or ["no output"])[-1][:160]}
    except subprocess.TimeoutExpired:
        out = {"raised": f"no end after {TIMEOUT} s"}
    return {**out, "stub": call(port, "/__stats")}


def row(name, r, n=20):
    s = r["stub"]
    if "raised" in r:
        return [
            name,
            f"{s['calls']} calls",
            "-",
            "-",
            "-",
            "-",
            "-",
            f"raised {r['raised'].split(':')[0]}",
            r.get("date", ""),
        ]
    unchecked = r.get("unchecked", 0)
    bad = r["score_mismatches"] - unchecked  # a sample that is said to be unchecked is not wrong
    scores = f"{bad} of {n} wrong" if bad or unchecked else "as gold"
    if unchecked:
        scores += f", {unchecked} said to be unchecked"
    return [
        name,
        f"{s['calls'] / n:.2f}",
        f"{s['prompt_tokens'] / n:,.0f}",
        f"{s['output_tokens'] / n:,.0f}",
        f"{r['wall_s']:.2f}",
        f"{r['wall_s'] / n:.2f}",
        str(s["peak_concurrency"]),
        scores,
        r.get("date", ""),
    ]


def table(results):
    out = []
    heads = [
        "what",
        "calls/sample",
        "prompt tokens/sample",
        "output tokens/sample",
        "wall s (20)",
        "s/sample",
        "peak",
        "scores",
        "run on",
    ]
    for prof in PROFILES:
        rows = [row(x["name"], x) for x in results if x["profile"] == prof]
        if not rows:
            continue
        out += [f"### {prof}", "", "| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
        out += ["| " + " | ".join(x) + " |" for x in rows] + [""]
    return "\n".join(out)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--table", action="store_true", help="print the kept results, run nothing")
    ap.add_argument("--venvs", type=Path)
    ap.add_argument("peers", nargs="*")
    a = ap.parse_args()
    if a.table:
        print(table(json.loads((HERE / "results" / "results.json").read_text())).strip())
        return
    if not a.venvs or not a.peers:
        ap.error("say which libraries to run, and --venvs")
    profiles = os.environ.get("PEERS_PROFILES", " ".join(PROFILES)).split()
    with tempfile.TemporaryDirectory() as tmp:
        files = {p: make_samples(Path(tmp), p) for p in ("short", "long")}
        with running_stub(files["short"], Path(tmp) / "port") as port:
            new = list(run_all(a.peers, profiles, port=port, venvs=a.venvs, files=files))
    update_results(new)
    print(table(new))


def make_samples(folder, profile):
    path = folder / f"{profile}.json"
    maker = [sys.executable, str(HERE / "make_samples.py"), str(path), "--profile", profile]
    subprocess.run(maker, check=True)
    return str(path)


@contextmanager
def running_stub(samples, port_file):
    command = [sys.executable, str(HERE / "stub.py"), "--samples", samples]
    stub = subprocess.Popen([*command, "--port-file", str(port_file)], stdout=subprocess.DEVNULL)
    try:
        for _ in range(100):
            if port_file.exists() and port_file.stat().st_size:
                break
            time.sleep(0.1)
        yield int(port_file.read_text())
    finally:
        stub.terminate()
        stub.wait()


def run_all(peers, profiles, *, port, venvs, files):
    for prof in profiles:
        samples = files["long" if prof == "long" else "short"]
        call(port, "/__config", {**BASE, **PROFILES[prof], "samples": samples})
        for peer, mode, name, where in PLAN:
            if peer not in peers or prof not in where.split():
                continue
            date = datetime.now(tz=UTC).date().isoformat()
            r = {"date": date, **run_one(port, venvs, peer, mode, samples)}
            r["stub"].pop("config", None)
            if n := r["stub"]["unmatched"]:
                r["raised"] = f"StubMismatch: {n} requests the stub did not know"
            print(f"{prof:8} {' | '.join(row(name, r))}", file=sys.stderr, flush=True)
            yield {
                "profile": prof,
                "peer": peer,
                "mode": mode,
                "name": name,
                **r,
            }


def update_results(new):
    """Put new rows in the place of the old ones with the same name and profile; keep the rest."""
    path = HERE / "results" / "results.json"
    rows = {(x["profile"], x["name"]): x for x in json.loads(path.read_text())}
    rows |= {(x["profile"], x["name"]): x for x in new}
    order = {(prof, x[2]): (i, j) for i, prof in enumerate(PROFILES) for j, x in enumerate(PLAN)}
    kept = [rows[key] for key in sorted(order.keys() & rows.keys(), key=order.__getitem__)]
    path.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
