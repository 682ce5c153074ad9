"""Draw the pictures of the pages in docs/assets: `python .ci/page_pictures.py`.

The pages show what `serve`, `review`, `report`, `validate` and `stats` make of the demonstration
and of the shop of the cookbook, whose answers are dated back over some days. `--look FOLDER` draws
each page there instead, wide and narrow, light and dark. Needs the dependency group `test` and
Debian's Chromium.
"""

import argparse
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import zlib
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from playwright.sync_api import Browser, Page, sync_playwright

from langchain_groundedness import DecisionPolicy, GroundednessRunnable, SQLAuditLog

__all__ = ["ASSETS"]

ROOT = Path(__file__).parent.parent
ASSETS = ROOT / "docs" / "assets"
_QUESTION = "What was revenue in Q3, and how long is the warranty?"
_TOOL = (sys.executable, "-m", "langchain_groundedness")
_DATABASE = ("--db", "sqlite:///audit.db")
_ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
_HEIGHT = 860
_WHOLE = ("live", "stats", "validate")
"""Pages that are short enough to be shown whole."""
_FLAGS = ("--disable-gpu", "--disable-lcd-text")
_PIXELS = """async (picture) => {
  const image = new Image(); image.src = 'data:image/png;base64,' + picture; await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height), pen = canvas.getContext('2d');
  pen.drawImage(image, 0, 0);
  const seen = pen.getImageData(0, 0, image.width, image.height).data; let text = '';
  for (let i = 0; i < seen.length; i += 4)
    text += String.fromCharCode(seen[i] >> 4, seen[i + 1] >> 4, seen[i + 2] >> 4);
  return {width: image.width, height: image.height, colours: btoa(text)};
}"""
_MOST = 256


class Pixels(NamedTuple):
    """Four bits of red, green and blue for each pixel: few colours make a small file."""

    width: int
    height: int
    colours: list[bytes]


def _run(folder: Path, *arguments: str) -> None:
    """Run a command; 1 says that some rows are bad, which is fine."""
    where = {"cwd": folder, "env": _ENVIRONMENT}
    done = subprocess.run([*_TOOL, *arguments], **where, stdout=subprocess.DEVNULL, check=False)
    if done.returncode > 1:
        sys.exit(done.returncode)


@contextmanager
def _served(folder: Path, *arguments: str) -> Iterator[str]:
    command, where = [*_TOOL, *arguments, "--port", "0"], {"cwd": folder, "env": _ENVIRONMENT}
    server = subprocess.Popen(command, **where, stdout=subprocess.PIPE, text=True)
    try:
        yield re.search(r"http://\S+", server.stdout.readline())[0]
    finally:
        server.terminate()


def _answers(folder: Path) -> None:
    """Answer the questions of the shop from one passage, then from four."""
    sys.path.insert(0, str(ROOT / "cookbook"))
    from samples import passage_reader, read_lines, shop_pipeline, with_labels  # noqa: PLC0415

    for name, passages in (("before", 1), ("now", 4)):
        pipeline = shop_pipeline(passages, model=passage_reader())
        rows = with_labels(pipeline.batch(read_lines("shop/questions.jsonl")))
        lines = (
            json.dumps({**row, "contexts": [each.page_content for each in row["contexts"]]})
            for row in rows
        )
        (folder / f"{name}.rows.jsonl").write_text("\n".join(lines))
        with SQLAuditLog(f"sqlite:///{folder}/audit.db") as log:
            policy = DecisionPolicy(contradicted="review", untrusted="review")
            checker = GroundednessRunnable(policy=policy, audit_log=log)
            checker.warm_up()
            for row in rows:
                checker.invoke({**row, "documents": row["contexts"]})
    _spread_over_days(folder)


def _spread_over_days(folder: Path) -> None:
    """Date the records back, as if the answers had been given on nine days."""
    with SQLAuditLog(f"sqlite:///{folder}/audit.db") as log:
        for number, record in enumerate(list(log.records())):
            time = record.time - timedelta(days=8 - number // 8)
            log.record(record.model_copy(update={"time": time, "revision": record.revision + 1}))


def _made(folder: Path) -> dict[str, str]:
    """Make the pages that are files; return their addresses."""
    _answers(folder)
    metrics = ("--metric", "faithfulness", "--metric", "factual_correctness")
    for name in ("before", "now"):
        out = ("-o", f"{name}.jsonl", "--name", name)
        _run(folder, "evaluate", f"{name}.rows.jsonl", *metrics, *out)
    _run(folder, "report", "now.jsonl", "-o", "report.html")
    _run(folder, "report", "now.jsonl", "--compare", "before.jsonl", "-o", "comparison.html")
    files = ("--passed", "passed.jsonl", "--rejected", "rejected.jsonl", "--sweep")
    _run(folder, "validate", "now.rows.jsonl", *files, "--html", "validate.html")
    _run(folder, "stats", *_DATABASE, "--html", "stats.html")
    return {page.stem: page.as_uri() for page in folder.glob("*.html")}


def _ask(page: Page) -> None:
    page.fill("#question", _QUESTION)
    page.click("#send")
    page.wait_for_selector("#decision .tag")
    page.wait_for_selector("#stop", state="hidden")


def _sign_in(page: Page) -> None:
    page.fill("input[name=name]", "Ada")
    page.press("input[name=name]", "Enter")
    page.wait_for_selector("a[data-record]")


def _opened(page: Page, name: str, address: str) -> Page:
    page.goto(address)
    if name == "live":
        _ask(page)
    if name in ("queue", "review"):
        _sign_in(page)
    if name == "review":
        page.goto(f"{address}?verdict=has_contradictions")
        page.click("a[data-record]")
        page.wait_for_selector("#decide")
    return page


def _drawn(browser: Browser, addresses: dict[str, str]) -> None:
    # The pages themselves load no picture from a text.
    blank = browser.new_page()
    for name, address in addresses.items():
        height = 200 if name in _WHOLE else _HEIGHT
        view = {"viewport": {"width": 1280, "height": height}, "color_scheme": "light"}
        page = _opened(browser.new_page(**view), name, address)
        picture = page.screenshot(full_page=name in _WHOLE)
        (ASSETS / f"{name}.png").write_bytes(_png(_pixels(picture, blank)))


def _looked_at(browser: Browser, addresses: dict[str, str], folder: Path) -> None:
    for name, address in addresses.items():
        for width in (1280, 400):
            for scheme in ("light", "dark"):
                view = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
                page = _opened(browser.new_page(**view), name, address)
                page.screenshot(path=folder / f"{name}-{width}-{scheme}.png", full_page=True)


def _pixels(shot: bytes, blank: Page) -> Pixels:
    found = blank.evaluate(_PIXELS, b64encode(shot).decode())
    flat = b64decode(found["colours"])
    colours = [flat[place : place + 3] for place in range(0, len(flat), 3)]
    return Pixels(found["width"], found["height"], colours)


def _png(pixels: Pixels) -> bytes:
    palette = [colour for colour, _ in Counter(pixels.colours).most_common(_MOST)]
    number = {colour: place for place, colour in enumerate(palette)}
    dots = bytes(number.get(colour, 0) for colour in pixels.colours)
    starts = range(0, len(dots), pixels.width)
    rows = b"".join(b"\0" + dots[start : start + pixels.width] for start in starts)
    head = struct.pack(">IIBBBBB", pixels.width, pixels.height, 8, 3, 0, 0, 0)
    named = bytes(part * 17 for colour in palette for part in colour)
    parts = ((b"IHDR", head), (b"PLTE", named), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*part) for part in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--look", type=Path, metavar="FOLDER")
    look = parser.parse_args().look
    flags = [*_FLAGS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        addresses = _made(folder)
        addresses["live"] = stack.enter_context(_served(folder, "serve"))
        review = stack.enter_context(_served(folder, "review", *_DATABASE, "--no-login"))
        addresses |= {"queue": review, "review": review}
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        if look:
            _looked_at(browser, addresses, look)
        else:
            _drawn(browser, addresses)


if __name__ == "__main__":
    _main()
