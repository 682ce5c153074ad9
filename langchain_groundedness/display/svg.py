"""Plots as SVG strings.

Colours are CSS classes, which `STYLE` defines for light and dark themes. All text is escaped.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape

__all__ = ["STYLE", "Plot", "document"]

STYLE = """
.plot { color: #1f2328; background: #fff; font: 12px system-ui, sans-serif; }
.plot text { fill: currentColor; }
.plot .frame { fill: none; stroke: currentColor; stroke-opacity: .35; }
.plot .grid { stroke: currentColor; stroke-opacity: .12; }
.plot .ideal { stroke: currentColor; stroke-opacity: .5; stroke-dasharray: 4 4; fill: none; }
.plot .a { fill: #2da44e; stroke: #2da44e; } .plot .b { fill: #bf8700; stroke: #bf8700; }
.plot .c { fill: #8250df; stroke: #8250df; } .plot .d { fill: #cf222e; stroke: #cf222e; }
.plot .e { fill: #0969da; stroke: #0969da; }
.plot polyline.open { fill: none; stroke-width: 2; } .plot .whisker { stroke-width: 1.5; }
.plot .page { fill: #fff; } .plot .mark { stroke-dasharray: 2 3; stroke-width: 1.5; }
@media (prefers-color-scheme: dark) {
.plot { color: #e6edf3; background: #0d1117; } .plot .page { fill: #0d1117; }
.plot .a { fill: #3fb950; stroke: #3fb950; } .plot .b { fill: #d29922; stroke: #d29922; }
.plot .c { fill: #a371f7; stroke: #a371f7; } .plot .d { fill: #f85149; stroke: #f85149; }
.plot .e { fill: #58a6ff; stroke: #58a6ff; } }
"""
"""CSS for the head of a page, or for a stand-alone SVG."""

_LEFT, _TOP, _RIGHT = 52, 30, 12
_LETTER = 7


@dataclass(kw_only=True)
class Plot:
    """A plot; x ranges from 0 to 1, and y from 0 to `highest`."""

    title: str
    highest: float = 1.0
    x_label: str = ""
    y_label: str = ""
    width: int = 460
    height: int = 300
    _body: list[str] = field(default_factory=list)

    def bar(self, x: float, wide: float, low: float, high: float, kind: str, tooltip: str) -> None:  # noqa: PLR0913, PLR0917  (a box has four sides)
        """Draw a bar."""
        left, right, top, bottom = self._x(x), self._x(x + wide), self._y(high), self._y(low)
        self._body.append(
            f'<rect class="{kind}" x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" '
            f'height="{max(bottom - top, 0):.1f}"><title>{escape(tooltip)}</title></rect>'
        )

    def line(self, points: Sequence[tuple[float, float]], kind: str) -> None:
        """Draw a line through points."""
        path = " ".join(f"{self._x(x):.1f},{self._y(y):.1f}" for x, y in points)
        self._body.append(f'<polyline class="{kind} open" points="{path}"/>')

    def dot(self, x: float, y: float, kind: str, tooltip: str) -> None:
        """Draw a dot."""
        self._body.append(
            f'<circle class="{kind}" cx="{self._x(x):.1f}" cy="{self._y(y):.1f}" r="3.5">'
            f"<title>{escape(tooltip)}</title></circle>"
        )

    def whisker(self, x: float, low: float, high: float, kind: str) -> None:
        """Draw an interval."""
        self._segment(x, low, x, high, f"{kind} whisker")

    def mark(self, x: float, kind: str) -> None:
        """Draw a vertical line."""
        self._segment(x, 0, x, self.highest, f"{kind} mark")

    def ideal(self) -> None:
        """Draw the diagonal."""
        self._segment(0, 0, 1, self.highest, "ideal")

    def ticks(self, along: Iterable[tuple[float, str]], up: Iterable[tuple[float, str]]) -> None:
        """Label the axes."""
        for x, word in along:
            self._write(self._x(x), _TOP + self._high + 16, word, "middle")
        for y, word in up:
            self._segment(0, y, 1, y, "grid")
            self._write(_LEFT - 6, self._y(y) + 4, word, "end")

    def legend(self, words: Sequence[tuple[str, str]]) -> None:
        """Draw the legend above the frame."""
        x = float(_LEFT)
        for kind, word in words:
            self._body.append(
                f'<rect class="{kind}" x="{x:.0f}" y="{_TOP - 20}" width="10" height="10"/>'
            )
            self._write(x + 14, _TOP - 11, word, "start")
            x += 24 + _LETTER * len(word)

    def drawn(self) -> str:
        """Return the SVG."""
        wide, high = self.width - _LEFT - _RIGHT, self._high
        frame = f'<rect class="frame" x="{_LEFT}" y="{_TOP}" width="{wide}" height="{high}"'
        self._write(_LEFT + wide / 2, self.height - 8, self.x_label, "middle")
        middle = _TOP + high / 2
        turned = f'<text transform="rotate(-90 12 {middle:.0f})" x="12" y="{middle:.0f}"'
        return (
            f'<svg class="plot" role="img" aria-label="{escape(self.title)}" '
            f'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
            f'width="{self.width}" height="{self.height}">'
            f"{frame}/>"
            f'{turned} text-anchor="middle">{escape(self.y_label)}</text>'
            f"{''.join(self._body)}</svg>"
        )

    @property
    def _high(self) -> int:
        return self.height - _TOP - (44 if self.x_label else 34)

    def _x(self, x: float) -> float:
        return _LEFT + x * (self.width - _LEFT - _RIGHT)

    def _y(self, y: float) -> float:
        return _TOP + self._high * (1 - y / (self.highest or 1.0))

    def _segment(self, x: float, y: float, to_x: float, to_y: float, kind: str) -> None:
        ends = (self._x(x), self._y(y), self._x(to_x), self._y(to_y))
        x1, y1, x2, y2 = (f"{end:.1f}" for end in ends)
        self._body.append(f'<line class="{kind}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>')

    def _write(self, x: float, y: float, words: str, anchor: str) -> None:
        self._body.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'
        )


def document(plots: Sequence[Plot]) -> str:
    """Stack plots into one stand-alone SVG."""
    width = max(plot.width for plot in plots)
    height = sum(plot.height for plot in plots)
    parts, top = [], 0
    for plot in plots:
        parts.append(plot.drawn().replace("<svg ", f'<svg y="{top}" ', 1))
        top += plot.height
    return (
        f'<svg class="plot" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}"><style>{STYLE}</style>'
        f'<rect class="page" width="{width}" height="{height}"/>'
        f"{''.join(parts)}</svg>\n"
    )
