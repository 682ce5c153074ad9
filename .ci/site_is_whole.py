"""Fail unless the built site is whole: `python .ci/site_is_whole.py` after `make docs`.

Every link, picture, script and style sheet leads to a file in site/, every anchor to a heading, and
no page loads anything from a host. Where Chromium is installed, each page is also opened in it, in
bright and dark and on a phone: it must ask only this machine, report no error and not scroll
sideways.
"""

import os
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

__all__ = ["problems_of", "problems_seen"]

_LOADS = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}
_LOADING_LINKS = {"stylesheet", "icon", "preload", "preconnect", "prefetch", "manifest"}
_VIEWS = {
    "bright": {"viewport": {"width": 1280, "height": 860}},
    "dark": {"viewport": {"width": 1280, "height": 860}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 360, "height": 740}, "is_mobile": True},
}
_WIDTH = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


class Link(NamedTuple):
    """An address in a page, and whether the page loads what is there by itself."""

    address: str
    is_loaded: bool


class _Reader(HTMLParser):
    """Gathers the addresses and ids of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[Link] = []
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        if identity := known.get("id") or known.get("name"):
            self.ids.add(identity)
        for name in ("src", "href"):
            if address := known.get(name):
                loads = (tag, name) in _LOADS
                if tag == "link":
                    loads = bool(_LOADING_LINKS & set((known.get("rel") or "").split()))
                self.links.append(Link(address, loads))


def problems_of(site: Path) -> Iterator[str]:
    """Look for what is missing, or comes from elsewhere.

    Args:
        site: The folder of the built site.

    Yields:
        One line per problem.
    """
    pages = {path: _read(path) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        if path.name == "404.html":  # its addresses depend on where the site will be
            continue
        for link in page.links:
            if found := _problem(link, path, pages):
                yield f"{path.relative_to(site)}: {found}"
    for path in [*site.rglob("*.css")]:
        if "url(http" in path.read_text(encoding="utf-8").replace('"', "").replace("'", ""):
            yield f"{path.relative_to(site)}: loads from a host"


def _read(path: Path) -> _Reader:
    reader = _Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    return reader


def _problem(link: Link, page: Path, pages: dict[Path, _Reader]) -> str | None:
    parts = urlsplit(link.address)
    if parts.scheme or parts.netloc:
        return f"loads {link.address}" if link.is_loaded and parts.scheme != "data" else None
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    target = target / "index.html" if target.is_dir() else target
    if not target.is_file():
        return f"{link.address} is not there"
    anchors = pages.get(target)
    if parts.fragment and anchors and unquote(parts.fragment) not in {*anchors.ids, "__top"}:
        return f"{link.address} has no such anchor"
    return None


def problems_seen(site: Path, screenshots: Path | None = None) -> Iterator[str]:
    """Open each page in Chromium.

    Args:
        site: The folder of the built site.
        screenshots: Where pictures of the pages go, if anywhere.

    Yields:
        One line per problem.
    """
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  (only where there is Chromium)

    flags = ["--disable-gpu", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with _served(site) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        for view, options in _VIEWS.items():
            page = browser.new_page(**options)
            asked: list[str] = []
            page.on("request", lambda request, asked=asked: asked.append(request.url))
            page.on("pageerror", lambda error, asked=asked: asked.append(f"error: {error}"))
            for path in sorted(site.rglob("*.html")):
                name = str(path.relative_to(site))
                page.goto(f"{address}/{name}")
                if page.evaluate(_WIDTH) > 0:
                    yield f"{name}, {view}: scrolls sideways"
                if screenshots:
                    page.screenshot(path=screenshots / f"{name.replace('/', '-')}-{view}.png")
            elsewhere = {each for each in asked if not each.startswith((address, "data:", "blob:"))}
            yield from (f"{view}: {each}" for each in sorted(elsewhere))
            page.close()
        browser.close()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def _served(site: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


if __name__ == "__main__":
    built = Path("site").resolve()
    pictures = os.environ.get("SITE_SCREENSHOTS")
    found = [*problems_of(built)]
    if shutil.which("chromium"):
        found += problems_seen(built, Path(pictures) if pictures else None)
    elif "GROUNDEDNESS_NEEDS_CHROMIUM" in os.environ:
        found.append("Chromium is not here, and CI must not skip it")
    sys.exit("\n".join(found) or 0)
