"""Draw docs/assets/answer.png, the picture of a checked answer: `python .ci/answer_picture.py`.

It is in README, and is what a notebook shows of the result of `make demo`, with the errors
corrected. Needs the dependency group `test` and Debian's Chromium.
"""

import os
import shutil
import struct
import zlib
from base64 import b64decode, b64encode
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Page, sync_playwright

from langchain_groundedness import GroundednessRunnable
from langchain_groundedness.demo import QUESTION, build_chain

__all__ = ["PICTURE"]

PICTURE = Path(__file__).parent.parent / "docs" / "assets" / "answer.png"
_VIEW = {"width": 880, "height": 200}
_FLAGS = ("--disable-gpu", "--disable-lcd-text")
_PAGE = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; padding: 20px 24px; background: #fff; color: #1c2024; width: 832px;
  font: 15px/1.5 "DejaVu Sans", sans-serif; box-sizing: border-box }}
.langchain-groundedness {{ max-width: none !important }}
p {{ margin: 0 0 12px }} table {{ font-size: 12.5px !important }} summary {{ display: none }}
td:nth-child(3) {{ min-width: 285px }}
</style>{shown}"""
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


def _shown() -> str:
    result = build_chain().pipe(GroundednessRunnable(on_contradicted="correct")).invoke(QUESTION)
    return _PAGE.format(shown=result._repr_html_())


def _pixels(page: Page) -> Pixels:
    picture = b64encode(page.screenshot(full_page=True)).decode()
    found = page.evaluate(_PIXELS, picture)
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


if __name__ == "__main__":
    flags = [*_FLAGS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        page = browser.new_page(viewport=_VIEW, device_scale_factor=1.5)
        page.set_content(_shown())
        PICTURE.write_bytes(_png(_pixels(page)))
        browser.close()
