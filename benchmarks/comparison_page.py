"""Write the tables and the chart of docs/comparison.md from the results of `benchmarks/peers`.

`benchmarks/peers/run.sh` measures; this only shows what was measured.
"""

import json
from html import escape
from pathlib import Path
from typing import Any

from pages import put

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "peers" / "results" / "results.json"
PAGE = ROOT / "docs" / "comparison.md"
CHART = ROOT / "docs" / "assets" / "comparison.svg"
LIBRARIES = {
    "langchain-groundedness": ("ours", "loop", "abatch"),
    "langchain-groundedness, `single_pass`": ("ours", "single-loop", "single-abatch"),
    "haystack `FaithfulnessEvaluator`": ("haystack", "run", None),
    "ragas `Faithfulness`": ("ragas", "collections-loop", "collections"),
    "deepeval `FaithfulnessMetric`": ("deepeval", "measure-loop", "evaluate"),
    "trulens, rate limit raised": ("trulens", "rpm-raised", None),
    "openevals `RAG_GROUNDEDNESS`": ("openevals", "loop", "gather"),
    "nemo self check facts": ("nemo", "loop", "gather"),
    "`groundedness.check`": ("groundedness", "loop", None),
    "lettucedetect `LLMDetector`": ("lettucedetect", "loop", None),
}
"""By the name that is shown: the folder, the mode one at a time, the concurrent mode."""
OURS, THEIRS = "#0e7c66", "#8a94a6"
ROW, BAR, LEFT, WIDTH = 30, 18, 260, 720


def main() -> None:
    """Write both."""
    rows = {
        (each["profile"], each["peer"], each["mode"]): each
        for each in json.loads(RESULTS.read_text(encoding="utf-8"))
    }
    put(PAGE, "benchmarks/comparison_page.py", f"{cost(rows)}\n\n{faults(rows)}")
    CHART.write_text(chart(rows), encoding="utf-8")


def cost(rows: dict[tuple[str, str, str], Any]) -> str:
    """Make the table of calls, tokens and seconds."""
    heads = ("library", "calls", "prompt tokens", "output tokens", "one at a time", "concurrent")
    lines = [f"| {' | '.join(heads)} |", "|---|" + "---:|" * 5]
    for name, (peer, single, many) in LIBRARIES.items():
        one = rows["flat", peer, single]
        used, n = one["stub"], one["n"]
        both = rows.get(("flat", peer, many)) if many else None
        cells = [
            f"{used['calls'] / n:.1f}",
            f"{used['prompt_tokens'] / n:,.0f}",
            f"{used['output_tokens'] / n:,.0f}",
            f"{one['wall_s']:.1f} s",
            f"{both['wall_s']:.2f} s" if both else "",
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(["## Cost", "", *lines])


def faults(rows: dict[tuple[str, str, str], Any]) -> str:
    """Make the table of what faulty judges do."""
    lines = ["| library | every 7th reply broken | every 7th call fails |", "|---|---|---|"]
    for name, (peer, *modes) in LIBRARIES.items():
        cells = []
        for profile in ("garble", "http500"):
            found = [rows[key] for mode in modes if mode and (key := (profile, peer, mode)) in rows]
            cells.append(outcome(found[0]) if found else "not measured")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(["## Faulty judges", "", *lines])


def outcome(row: dict[str, Any]) -> str:
    """Say in words how twenty answers ended."""
    if "raised" in row:
        return f"raised `{row['raised'].split(':')[0].rsplit('.', 1)[-1]}`, no scores"
    unchecked = row.get("unchecked", 0)
    wrong = row["score_mismatches"] - unchecked
    said = f"{wrong} of {row['n']} scores wrong" if wrong else "all scores right"
    return f"{said}, {unchecked} unchecked" if unchecked else said


def chart(rows: dict[tuple[str, str, str], Any]) -> str:
    """Draw bars: seconds for twenty answers, one at a time, with latency per token."""
    found = [
        (name.replace("`", ""), rows["real", peer, single]["wall_s"], peer == "ours")
        for name, (peer, single, _) in LIBRARIES.items()
    ]
    most = max(seconds for _, seconds, _ in found)
    height = ROW * len(found) + 10
    head = f'viewBox="0 0 {WIDTH} {height}" role="img" font-family="sans-serif" font-size="13"'
    title = "<title>Seconds for twenty answers, one at a time</title>"
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {head}>', title]
    for place, (name, seconds, is_ours) in enumerate(found):
        top = ROW * place + 5
        length = (WIDTH - LEFT - 60) * seconds / most
        fill = OURS if is_ours else THEIRS
        text = f'y="{top + BAR / 2 + 5}" fill="{THEIRS}"'
        bar = f'y="{top}" width="{length:.1f}" height="{BAR}" rx="3" fill="{fill}"'
        parts += [
            f'<text x="{LEFT - 10}" text-anchor="end" {text}>{escape(name)}</text>',
            f'<rect x="{LEFT}" {bar}/>',
            f'<text x="{LEFT + length + 8:.1f}" {text}>{seconds:.1f} s</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    main()
