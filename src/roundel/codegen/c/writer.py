# SPDX-License-Identifier: Apache-2.0
"""The state of writing one function in C: names, lines, values that are used more than once.

A value of several lanes is what it is in *one* lane, ``l``: a statement of vectors becomes a loop over its lanes, which C compilers make vectors of.
What mixes lanes (shuffles, reductions) is put into an array first. Values of one lane that stand in such a loop are computed ahead of it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ...ir import escape, tir
from ...ir.dtype import DType
from ...ir.errors import BuildError
from ...ir.visit import children
from ..nonneg import nonneg
from .types import c_type, constant_text

if TYPE_CHECKING:
    from collections.abc import Iterator

EXPR: dict[type, Callable[[Writer, Any], str]] = {}  # expression type -> its text, in parentheses where it is not one word or call
STMT: dict[type, Callable[[Writer, Any], None]] = {}
CALLS: dict[str, Callable[[Writer, tir.Call], str]] = {}  # intrinsic -> its text; "" of what has no value

_LEAVES = (tir.Var, tir.IntImm, tir.FloatImm, tir.StringImm)
_RESERVED = frozenset("""auto break case char const continue default do double else enum extern float for goto if inline int long register restrict
 return short signed sizeof static struct switch typedef union unsigned void volatile while ctx args begin end l main NAN INFINITY errno
 asm bool true false near far y0 y1 yn j0 j1 jn gamma signgam index div abs complex imaginary unix linux i386 assert printf""".split())
_MATH = """acos asin atan atan2 cos sin tan acosh asinh atanh cosh sinh tanh exp exp2 expm1 frexp ilogb ldexp log log10 log1p log2 logb modf scalbn scalbln cbrt
 fabs hypot pow sqrt erf erfc lgamma tgamma ceil floor nearbyint rint lrint llrint round lround llround trunc
 fmod remainder remquo copysign nan nextafter nexttoward
 fdim fmax fmin fma fpclassify signbit""".split()
_LIBRARY = re.compile(rf"(?:{'|'.join(_MATH)})[fl]?|(?:is|to|str|mem|wcs)[a-z]+|\w+_t|[A-Z][A-Z0-9_]+|k?DL\w*|Rd\w*|r[dk]_\w*|roundel\w*")
"""What headers may define, or the runtime in the file does: functions, types and macros."""


def identifiers(text: str) -> list[str]:
    """Names in C source, keywords among them, outside of its strings."""
    return re.findall(r"[A-Za-z_]\w*", re.sub(r'"(?:[^"\\]|\\.)*"', '""', text))


class Helpers:
    """Functions that the functions of a unit call, each once, callees first."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def use(self, made: tuple[str, str]) -> str:
        """The name of a helper function, which the text has from here on."""
        name, text = made
        self.texts.setdefault(name, text)
        return name


class Writer:
    """Writes one function. ``symbol`` maps a function's name in the module to its name in C."""

    def __init__(self, helpers: Helpers, symbol: Callable[[str], str], *, contract: bool = True) -> None:
        self.helpers, self.symbol, self.contract = helpers, symbol, contract
        self.lines: list[str] = []
        self.depth = 1
        self.names: Counter[str] = Counter()
        self.declared: list[str] = []
        self.env: dict[tir.Var, str] = {}
        self.typed: dict[tir.Var, str] = {}  # data pointer -> the type of elements that its name points to
        self.distinct: set[tir.Var] = set()  # data pointers that do not overlap one another
        self.nonneg_vars: set[tir.Var] = set()
        self.memo: dict[tir.Expr, str] = {}  # of this statement
        self.shared: set[tir.Expr] = set()
        self.arrays: dict[tir.Expr | tuple[tir.Expr, ...], str] = {}  # of expressions, and of several side by side
        self.inner: list[str] | None = None  # lines of the loop over lanes that is being written
        self.inner_memo: dict[tir.Expr, str] = {}
        self.declares: dict[str, str] = {}
        self.constants: dict[str, int] = {}
        self.slots: dict[int, str] = {}
        self.scratch: dict[tir.Var, str] = {}  # allocations in the thread's workspace, and where they begin
        self.stack_bytes = self.stack_limit = self.stack_total = 0  # of allocations: those made, and the most of one and of all
        self.counts_work = False
        self.for_board = False  # whether the processor may have no instructions for floats
        # What writes a store of vectors, or a value into an array, without a loop over lanes; False where it has no form for it and writes nothing.
        self.store_vectors: Callable[[Writer, tir.BufferStore, bool], bool] | None = None
        self.assign_vector: Callable[[Writer, str, tir.Expr], bool] | None = None
        self.kind = "kernel"
        self.leave: Callable[[str], str] = lambda status: "return;"
        self.function: tir.PrimFunc | None = None

    # ---- text ----------------------------------------------------------------------------------------------

    def name(self, hint: str) -> str:
        """A fresh name of the function."""
        plain = escape.c_identifier(hint)[:40] or "v"
        plain = f"{plain}_" if plain in _RESERVED or _LIBRARY.fullmatch(plain) else plain
        self.names[plain] += 1
        count = self.names[plain]
        found = plain if count == 1 else f"{plain}_{count - 1}"
        if count > 1 and found in self.names:
            return self.name(found)
        self.names[found] = max(self.names[found], 1)
        self.declared.append(found)
        return found

    def line(self, text: str) -> None:
        """A line ahead of what is written next."""
        self.lines.append("  " * self.depth + text)

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Iterator[None]:
        """Lines within braces."""
        self.line(head)
        self.depth += 1
        yield
        self.depth -= 1
        self.line(tail)

    def fail(self, what: str, e: Any, hint: str | None = None) -> BuildError:
        """The BuildError for what C has no words for."""
        name = self.function.attrs.get("global_symbol") if self.function else None
        return BuildError(what, where=name, why=f"in {e.script()}"[:400], hint=hint)

    # ---- statements ----------------------------------------------------------------------------------------

    def statement(self, s: tir.Stmt) -> None:
        """Writes a statement."""
        handler = STMT.get(type(s))
        if handler is None:
            raise self.fail(f"a {type(s).__name__} statement cannot be compiled: the program is not lowered", s, "run roundel.lower.PIPELINE first")
        handler(self, s)

    def begin(self, *exprs: tir.Expr | None) -> None:
        """A statement with these operands begins: what they have more than once gets a name."""
        self.memo, self.arrays = {}, {}
        seen: set[tir.Expr] = set()
        self.shared = set()
        todo = [e for e in exprs if e is not None]
        while todo:
            e = todo.pop()
            if type(e) in _LEAVES:
                continue
            if e in seen:
                self.shared.add(e)
                continue
            seen.add(e)
            todo += [c for c in children(e) if isinstance(c, tir.Expr)]

    # ---- values --------------------------------------------------------------------------------------------

    def value(self, e: tir.Expr) -> str:
        """The text of a value, in the lane ``l`` where it has several."""
        kind = type(e)
        if kind is tir.IntImm or kind is tir.FloatImm:
            return constant_text(e)  # type: ignore[arg-type]
        if kind is tir.StringImm:
            return f'"{escape.c_string(e.value)}"'  # type: ignore[attr-defined]
        in_lane = e.dtype.lanes > 1
        if kind is tir.Var:
            if e not in self.env:
                raise BuildError(f"variable {e.name} is used but not defined", where=self.function.attrs.get("global_symbol") if self.function else None,
                                 hint="shape variables must come with a buffer parameter or be scalar parameters")
            return f"{self.env[e]}[l]" if in_lane else self.env[e]
        memo = self.inner_memo if in_lane else self.memo
        hit = memo.get(e)
        if hit is not None:
            return hit
        handler = EXPR.get(kind)
        if handler is None:
            raise self.fail(f"{kind.__name__} cannot be compiled", e)
        text = handler(self, e)
        if text and e in self.shared and (not e.dtype.is_handle or kind is not tir.Broadcast):
            text = self.temporary(e.dtype, text, in_lane)
        memo[e] = text
        return text

    def temporary(self, dtype: DType, text: str, in_lane: bool = False, hint: str = "t") -> str:
        """The text under a name."""
        name = self.name(hint)
        line = f"{c_type(dtype)} const {name} = {text};" if dtype.is_handle else f"const {c_type(dtype)} {name} = {text};"
        if in_lane and self.inner is not None:
            self.inner.append("  " * (self.depth + 1) + line)
        else:
            self.line(line)
        return name

    def nonneg(self, e: tir.Expr) -> bool:
        """Whether an integer is known to be >= 0."""
        return nonneg(e, self.nonneg_vars)

    def lazily(self, e: tir.Expr) -> tuple[list[str], str]:
        """A value that is computed in a branch: the lines ahead of it, and its text."""
        saved, self.lines = self.lines, []
        memo, arrays = dict(self.memo), dict(self.arrays)
        self.depth += 1
        text = self.value(e)
        self.depth -= 1
        lines, self.lines = self.lines, saved
        self.memo, self.arrays = memo, arrays
        return lines, text

    def choose(self, dtype: DType, condition: str, yes: tir.Expr, no: tir.Expr) -> str:
        """One of two values of one lane, of which only that one is computed."""
        (yes_lines, a), (no_lines, b) = self.lazily(yes), self.lazily(no)
        if not yes_lines and not no_lines:
            return f"({condition} ? {a} : {b})"
        name = self.name("t")
        self.line(f"{c_type(dtype)} {name};")
        self.line(f"if ({condition}) {{")
        self.lines += yes_lines
        self.line(f"  {name} = {a};")
        self.line("} else {")
        self.lines += no_lines
        self.line(f"  {name} = {b};")
        self.line("}")
        return name

    # ---- lanes ---------------------------------------------------------------------------------------------

    def for_lanes(self, lanes: int, body: Callable[[], Iterable[str]]) -> None:
        """A loop over lanes around the lines that ``body`` gives, and those that it has written for each lane."""
        saved = self.inner, self.inner_memo
        self.inner, self.inner_memo = [], {}
        last = list(body())
        inner = self.inner
        self.inner, self.inner_memo = saved
        self.line(f"for (int l = 0; l < {lanes}; l++) {{")
        self.lines += inner
        self.lines += ["  " * (self.depth + 1) + text for text in last]
        self.line("}")

    def array(self, e: tir.Expr) -> str:
        """All lanes of a vector, in an array."""
        if type(e) is tir.Var:
            return self.env[e]
        hit = self.arrays.get(e)
        if hit is None:
            hit = self.arrays[e] = self.name("v")
            self.line(f"{c_type(e.dtype)} {hit}[{e.dtype.lanes}];")
            self.assign(hit, e)
        return hit

    def assign(self, array: str, e: tir.Expr) -> None:
        """Writes all lanes of a vector into an array."""
        if self.assign_vector is None or not self.assign_vector(self, array, e):
            self.for_lanes(e.dtype.lanes, lambda: [f"{array}[l] = {self.value(e)};"])

    def unused(self, text: str) -> str:
        """The function's text, in which names that are declared and not used are said to be so, which silences compilers."""
        count = Counter(identifiers(text))
        lonely = {n for n in self.declared if count[n] == 1}
        if not lonely:
            return text
        out = []
        for line in text.split("\n"):
            found = [n for n in identifiers(line) if n in lonely]
            out.append(line + "".join(f" (void){n};" for n in found if line.rstrip().endswith(";")))
        return "\n".join(out)
