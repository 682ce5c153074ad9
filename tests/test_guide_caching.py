"""The guide to caching runs as it stands."""

import re
from pathlib import Path
from typing import Any

import pytest

GUIDE = (Path(__file__).parent.parent / "docs/guide/caching.md").read_text(encoding="utf-8")


@pytest.mark.filterwarnings("ignore:`langchain-community` is being sunset")
def test_the_guide_runs_from_its_first_block_to_its_last() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
    assert len(blocks) > 3
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "caching.md", "exec"), names)  # noqa: S102  (our own text)
    assert names["checker"].check.verifier is names["judge"]
