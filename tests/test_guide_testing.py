"""The contract classes that docs/guide/testing.md shows pass, run as its readers run them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "guide" / "testing.md"


@pytest.mark.enable_socket
def test_the_classes_of_the_page_keep_their_contracts(tmp_path: Path) -> None:
    blocks = re.findall(
        r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    (tmp_path / "test_page.py").write_text("\n".join(blocks), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs", "test_page.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    reasons = set(re.findall(r"^SKIPPED .*?: (.*)$", done.stdout, re.MULTILINE))
    assert reasons == {
        "broken() gives none",
        "can_be_pickled() says no",
        "it does not say that it can be saved",
    }
