"""A real browser, and what can be checked of accessibility by a program."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

__all__ = ["PROBLEMS", "VIEWS", "connected", "running_chromium"]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--headless",
    "--remote-debugging-port=0",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    *(("--no-sandbox",) if os.geteuid() == 0 else ()),
)


@contextmanager
def running_chromium() -> Iterator[str]:
    """Start Chromium, and give the address at which Playwright finds it."""
    if CHROMIUM is None:
        assert "GROUNDEDNESS_NEEDS_CHROMIUM" not in os.environ, "CI must not skip these tests"
        pytest.skip("Chromium is not here (Debian: apt install chromium)")
    with TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as folder:
        command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder}", "about:blank"]
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            try:
                yield f"http://127.0.0.1:{_port(process, Path(folder, 'DevToolsActivePort'))}"
            finally:
                process.terminate()


def _port(process: "subprocess.Popen[bytes]", file: Path) -> int:
    """Wait until Chromium has written down the port that it chose."""
    ends = time.monotonic() + 300
    while not (lines := file.read_text().splitlines() if file.exists() else []):
        assert process.poll() is None, "Chromium did not start"
        assert time.monotonic() < ends, "Chromium does not come up"
        time.sleep(0.01)
    return int(lines[0])


@contextmanager
def connected(address: str) -> Iterator[Browser]:
    """Connect to a Chromium; until the end of this, the thread has an event loop."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.connect_over_cdp(address)
        yield browser
        browser.close()


PROBLEMS = r"""() => {
  const found = [];
  const all = (s) => [...document.querySelectorAll(s)];
  const shown = (e) => e.getClientRects().length > 0 && getComputedStyle(e).visibility !== 'hidden';
  const name = (e) => (e.getAttribute('aria-label') || (e.labels && [...e.labels].map(
    l => l.textContent).join(' ')) || e.textContent || '').trim();
  for (const e of all('a, button, input:not([type=hidden]), select, textarea, summary'))
    if (!name(e)) found.push('no name: ' + e.outerHTML.slice(0, 80));
  for (const e of all('[aria-labelledby], [aria-describedby]'))
    for (const a of ['aria-labelledby', 'aria-describedby'])
      for (const id of (e.getAttribute(a) || '').split(' ').filter(Boolean))
        if (!document.getElementById(id)) found.push(a + ' leads nowhere: ' + id);
  const ids = all('[id]').map(e => e.id);
  if (new Set(ids).size !== ids.length) found.push('an id is there twice');
  for (const s of ['html[lang]', 'head > title', 'main', 'h1', 'header', '[role=status]'])
    if (all(s).filter(e => !e.closest('[hidden]')).length !== 1)
      found.push(all(s).length + ' of ' + s);
  let level = 0;
  for (const h of all('h1, h2, h3, h4')) {
    const now = +h.tagName[1];
    if (now > level + 1) found.push('heading jumps: ' + h.textContent);
    level = now;
  }
  if (document.documentElement.scrollWidth > document.documentElement.clientWidth)
    found.push('the page scrolls sideways');
  const rgb = (c) => c.match(/[\d.]+/g).map(Number);
  const lum = ([r, g, b]) => [r, g, b].map(v => (v /= 255) <= .04045 ? v / 12.92
    : ((v + .055) / 1.055) ** 2.4).reduce((s, v, i) => s + v * [.2126, .7152, .0722][i], 0);
  const ground = (e) => { for (; e; e = e.parentElement) {
    const c = rgb(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] === 1) return c; } return [255, 255, 255]; };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !shown(e) || e.closest('.hidden, .skip')) continue;
    const [a, b] = [lum(rgb(getComputedStyle(e).color)), lum(ground(e))].sort((x, y) => y - x);
    if ((a + .05) / (b + .05) < 4.5) found.push('contrast: ' + e.outerHTML.slice(0, 80));
  }
  for (const e of all('a, button, input:not([type=hidden]), select, textarea, summary')) {
    const box = e.getBoundingClientRect();
    const inline = e.tagName === 'A' && getComputedStyle(e).display === 'inline';
    if (shown(e) && !inline && !e.closest('.skip') && (box.width < 24 || box.height < 24))
      if (e.type !== 'checkbox') found.push('small target: ' + e.outerHTML.slice(0, 80));
  }
  return found;
}"""

VIEWS: dict[str, Any] = {
    "desktop": {"viewport": {"width": 1280, "height": 860}},
    "dark": {"viewport": {"width": 1280, "height": 860}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True},
    "zoomed": {"viewport": {"width": 320, "height": 256}},
}
