# SPDX-License-Identifier: Apache-2.0
"""Pictures of tensor programs: loops as boxes within boxes, blocks in them, coloured by how they run. Notebooks show them.

    picture(before, sch.mod, titles=("before", "after"))
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from roundel.ir import IRModule, tir
from roundel.ir.dataclass import dataclass
from roundel.ir.errors import ScheduleError

_COLOURS = {"serial": "#eef1f5", "parallel": "#ffe3c2", "vectorized": "#d6ecd2", "unrolled": "#e4dcf5", "thread": "#f8d7da", "block": "#ffffff",
            "condition": "#f5f5dc"}
_LINE, _PAD, _WIDTH = 17, 6, 7.8  # pixels: height of a line, space around it, width of a letter
_LONGEST = 60  # letters of a statement


@dataclass(frozen=True)
class _Box:
    """Text on a colour, and the boxes inside."""

    lines: tuple[str, ...]
    colour: str
    inside: tuple[_Box, ...] = ()

    @property
    def width(self) -> float:
        return 2 * _PAD + max([len(t) * _WIDTH for t in self.lines] + [b.width for b in self.inside])

    @property
    def height(self) -> float:
        return _PAD + _LINE * len(self.lines) + sum(b.height + _PAD for b in self.inside) + (0 if self.inside else _PAD / 2)

    def draw(self, x: float, y: float, width: float) -> list[str]:
        """SVG of the box with its upper left corner at (x, y)."""
        out = [f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{self.height:.0f}" rx="4" fill="{self.colour}" stroke="#8a93a0"/>']
        for k, text in enumerate(self.lines):
            out.append(f'<text x="{x + _PAD:.0f}" y="{y + _LINE * (k + 1) - 3:.0f}">{escape(text)}</text>')
        at = y + _PAD + _LINE * len(self.lines)
        for box in self.inside:
            out += box.draw(x + _PAD, at, width - 2 * _PAD)
            at += box.height + _PAD
        return out


@dataclass(frozen=True)
class Picture:
    """An SVG, which notebooks show and ``save`` writes. ``text`` describes it for those who do not see it."""

    svg: str
    text: str

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return self.text

    def save(self, path: str | Path) -> Path:
        """Write the SVG."""
        Path(path).write_text(self.svg)
        return Path(path)


def picture(*programs: Any, titles: Sequence[str] = ()) -> Picture:
    """Tensor programs, or modules of them, beside each other, each under its title. Raises ScheduleError for what has no loops."""
    columns: list[tuple[str, list[_Box]]] = []
    for k, program in enumerate(programs):
        functions = [f for _, f in program.items()] if isinstance(program, IRModule) else [program]
        boxes = [box for f in functions if isinstance(f, tir.PrimFunc) for box in _boxes(f.body)]
        if not boxes:
            raise ScheduleError("there is no tensor program to draw", hint="a picture is made of functions under @T.prim_func, or of a module with some")
        columns.append((titles[k] if k < len(titles) else "", boxes))
    parts, x, bottom = [], float(_PAD), 0.0
    for title, boxes in columns:
        y, width = float(_PAD), max([b.width for b in boxes] + [len(title) * _WIDTH])
        if title:
            parts.append(f'<text x="{x:.0f}" y="{y + _LINE - 3:.0f}" font-weight="bold">{escape(title)}</text>')
            y += _LINE + _PAD
        for box in boxes:
            parts += box.draw(x, y, width)
            y += box.height + _PAD
        x, bottom = x + width + 4 * _PAD, max(bottom, y)
    text = "\n".join(line for title, boxes in columns for line in ([f"{title}:"] if title else []) + [t for b in boxes for t in _lines(b, 0)])
    size = f'width="{x:.0f}" height="{bottom:.0f}" viewBox="0 0 {x:.0f} {bottom:.0f}"'
    label = escape(text.replace("\n", "; "), quote=True)
    style = "<style>text { font: 12px monospace; fill: #20262e; }</style>"
    return Picture(f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{label}">{style}{"".join(parts)}</svg>', text)


def _lines(box: _Box, depth: int) -> list[str]:
    return ["  " * depth + t for t in box.lines] + [t for b in box.inside for t in _lines(b, depth + 1)]


def _boxes(s: tir.Stmt) -> list[_Box]:
    """The boxes of a statement: loops, conditions and blocks; other statements are in the block that holds them."""
    if isinstance(s, tir.Seq):
        return [b for part in s.stmts for b in _boxes(part)]
    if isinstance(s, tir.For):
        return [_loop(s)]
    if isinstance(s, tir.If):
        cases = tuple(b for part in (s.then_case, s.else_case) if part is not None for b in _boxes(part))
        return [_Box((f"if {_short(s.condition)}",), _COLOURS["condition"], cases)]
    if isinstance(s, tir.BlockRealize):
        if s.block.name == "root" and not s.block.iter_vars:
            return _boxes(s.block.body)
        return [_block(s)]
    body = getattr(s, "body", None)
    return _boxes(body) if body is not None else [_Box((_short(s),), _COLOURS["block"])]


def _loop(s: tir.For) -> _Box:
    kind = "thread" if s.thread else s.kind.value
    how = f" ({s.thread or kind})" if kind != "serial" else ""
    low = "" if isinstance(s.min, tir.IntImm) and not s.min.value else f"{_short(s.min)} .. "
    return _Box((f"for {s.loop_var.name} in {low}{_short(s.extent)}{how}",), _COLOURS[kind], tuple(_boxes(s.body)))


def _block(s: tir.BlockRealize) -> _Box:
    axes = ", ".join(f"{v.var.name}{' (reduce)' if v.kind == tir.IterKind.REDUCE else ''}" for v in s.block.iter_vars)
    lines = [f"{s.block.name}: {axes}" if axes else s.block.name]
    if not (isinstance(s.predicate, tir.IntImm) and s.predicate.value):
        lines.append(f"where {_short(s.predicate)}")
    inside = tuple(_boxes(s.block.body)) if any(isinstance(n, tir.For | tir.BlockRealize) for n in _direct(s.block.body)) else ()
    if not inside:
        lines += [_short(part) for part in (s.block.init, s.block.body) if part is not None]
    return _Box(tuple(lines), _COLOURS["block"], inside)


def _direct(s: tir.Stmt) -> list[tir.Stmt]:
    return [n for part in s.stmts for n in _direct(part)] if isinstance(s, tir.Seq) else [s, *(_direct(s.body) if hasattr(s, "body") else [])]


def _short(node: Any) -> str:
    text = " ".join(str(node).split("\n")[-1].split())
    return text if len(text) <= _LONGEST else text[:_LONGEST - 3] + "..."
