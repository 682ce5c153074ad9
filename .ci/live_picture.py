"""Draw docs/assets/live.png, the picture of the live page: `python .ci/live_picture.py`.

It is in README, and shows what `langchain-groundedness serve` shows of an answer. Needs the
dependency group `test` and Debian's Chromium.
"""

import os
import re
import shutil
import struct
import subprocess
import sys
import zlib
from base64 import b64decode, b64encode
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Page, sync_playwright

__all__ = ["PICTURE"]

PICTURE = Path(__file__).parent.parent / "docs" / "assets" / "live.png"
_QUESTION = "What was revenue in Q3, and how long is the warranty?"
_SERVE = (sys.executable, "-m", "langchain_groundedness", "serve", "--port", "0")
_VIEW = {"width": 1280, "height": 200}
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


def _ask(page: Page, address: str) -> None:
    page.goto(address)
    page.fill("#question", _QUESTION)
    page.click("#send")
    page.wait_for_selector("#decision .tag")
    page.wait_for_selector("#stop", state="hidden")


def _picture(address: str) -> bytes:
    flags = [*_FLAGS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        page = browser.new_page(viewport=_VIEW, color_scheme="light")
        _ask(page, address)
        # The page itself loads no picture from a text.
        return _png(_pixels(page.screenshot(full_page=True), browser.new_page()))


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


if __name__ == "__main__":
    server = subprocess.Popen(_SERVE, stdout=subprocess.PIPE, text=True)
    try:
        PICTURE.write_bytes(_picture(re.search(r"http://\S+", server.stdout.readline())[0]))
    finally:
        server.terminate()
