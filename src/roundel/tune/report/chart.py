# SPDX-License-Identifier: Apache-2.0
"""Charts as SVG: points and steps over two axes, each linear or logarithmic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from html import escape

from ...ir.dataclass import dataclass

WIDTH, HEIGHT = 420, 260
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 26, 40  # margins, in pixels
COLOURS = tuple(f"var(--c{k})" for k in range(8))  # which the page defines, for light and dark
TICKS = 5


@dataclass(frozen=True)
class Axis:
    """The range of an axis. A logarithmic one has only positive values."""

    label: str
    low: float
    high: float
    is_log: bool = False

    @staticmethod
    def of(label: str, values: Sequence[float], is_log: bool = False) -> Axis:
        """One on which all of the values have room."""
        low, high = min(values), max(values)
        if is_log:
            return Axis(label, low / 1.1, high * 1.1, True)
        room = (high - low) * 0.06 or abs(high) * 0.1 or 1.0
        return Axis(label, low - room, high + room)

    def share(self, value: float) -> float:
        """Where a value stands, from 0 to 1."""
        if self.is_log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """Round values in the range."""
        if self.is_log and self.high / self.low > 5:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            found = [m * 10.0**e for e in range(first, last + 1) for m in ((1, 2, 5) if last - first <= 2 else (1,))]
        else:
            step = _round((self.high - self.low) / TICKS)
            found = [k * step for k in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]
        return [v for v in found if self.low <= v <= self.high]


@dataclass
class Chart:
    """Two axes and what is drawn over them."""

    title: str
    x: Axis
    y: Axis
    drawn: list[str] = field(default_factory=list)

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Pixels."""
        return LEFT + self.x.share(x) * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - self.y.share(y) * (HEIGHT - TOP - BOTTOM)

    def point(self, x: float, y: float, colour: str, words: str, is_best: bool = False) -> None:
        """One with a text that the mouse brings up."""
        px, py = self.at(x, y)
        edge = ' stroke="var(--text)" stroke-width="1.5"' if is_best else ""
        self.drawn.append(f'<circle cx="{px:.1f}" cy="{py:.1f}" r="{5 if is_best else 2.6}" fill="{colour}" fill-opacity="0.75"{edge}>'
                          f"<title>{escape(words)}</title></circle>")

    def steps(self, points: Sequence[tuple[float, float]], colour: str) -> None:
        """A line that keeps its height until the next point."""
        pixels = [self.at(*p) for p in points]
        path = f"M{pixels[0][0]:.1f},{pixels[0][1]:.1f}" + "".join(f"H{x:.1f}V{y:.1f}" for x, y in pixels[1:])
        self.drawn.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.8"/>')

    def level(self, y: float, words: str) -> None:
        """A dashed line across."""
        (x0, py), (x1, _) = self.at(self.x.low, y), self.at(self.x.high, y)
        self.drawn.append(f'<path d="M{x0:.1f},{py:.1f}H{x1:.1f}" class="tick" stroke-dasharray="4 3"/>'
                          f'<text x="{x1 - 3:.1f}" y="{py - 4:.1f}" text-anchor="end" class="mute">{escape(words)}</text>')

    def svg(self) -> str:
        """The chart."""
        bottom, left = HEIGHT - BOTTOM, LEFT
        lines = [f'<rect x="{left}" y="{TOP}" width="{WIDTH - LEFT - RIGHT}" height="{bottom - TOP}" class="frame"/>']
        for v in self.x.ticks():
            px, _ = self.at(v, self.y.low)
            lines.append(f'<path d="M{px:.1f},{bottom}v4" class="tick"/><text x="{px:.1f}" y="{bottom + 15}" text-anchor="middle">{v:.4g}</text>')
        for v in self.y.ticks():
            _, py = self.at(self.x.low, v)
            lines.append(f'<path d="M{left},{py:.1f}h-4" class="tick"/><text x="{left - 6}" y="{py + 3.5:.1f}" text-anchor="end">{v:.4g}</text>')
        names = (f'<text x="{left}" y="16" class="name">{escape(self.title)}</text>'
                 f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 6}" text-anchor="end">{escape(self.x.label)}</text>'
                 f'<text transform="translate(12,{TOP}) rotate(-90)" text-anchor="end">{escape(self.y.label)}</text>')
        size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
        label = escape(f"{self.title}: {self.y.label} over {self.x.label}")
        return f'<svg {size} role="img" aria-label="{label}">{"".join(lines)}{names}{"".join(self.drawn)}</svg>'


def _round(step: float) -> float:
    """The next of 1, 2 and 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= step * 0.999)
