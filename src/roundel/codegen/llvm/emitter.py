# SPDX-License-Identifier: Apache-2.0
"""The state of writing one LLVM function as text: blocks, scopes, value numbering.

Expressions are interned, so a dictionary from expression to register is value numbering. Pure integer expressions
(indices, conditions) are written once, at the top of the innermost scope that binds one of their variables: index
arithmetic comes out hoisted from loops. Everything else is written where it stands and shared within straight code,
until a store makes it stale (see ``values``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from typing import Any

from ...ir import escape, tir
from ...ir.dataclass import dataclass
from ...ir.dtype import DType
from ...ir.errors import BuildError
from ...ir.visit import free_vars
from ..nonneg import nonneg
from .types import float_text, int_text, llvm_type, suffix
from .values import Values, memory_of

EXPR: dict[type, Callable[[Emitter, Any], str]] = {}  # expression type -> writes it, returns the operand
STMT: dict[type, Callable[[Emitter, Any], None]] = {}
CALLS: dict[str, Callable[[Emitter, tir.Call], str]] = {}  # intrinsic -> writes a call of it

FIELDS = ("arena", "constants", "status")
CONTEXT = "{ ptr, ptr, i32 }"
"""The context as generated code sees it, ``RdContext`` of ``csrc/roundel.h``."""

_PURE = {
    *tir.BINARY,
    tir.Not,
    tir.Select,
    tir.Ramp,
    tir.Broadcast,
    tir.Cast,
    tir.IfThenElse,
}


def hoistable(e: tir.Expr) -> bool:
    """Pure integer or bool arithmetic over variables: may be computed anywhere its variables are known."""
    kind = type(e)
    if kind is tir.Var or kind is tir.IntImm:
        return e.dtype.is_int or e.dtype.is_bool
    if e._facts is None:
        e._facts = {}
    known = e._facts.get("hoistable")
    if known is None:
        known = e._facts["hoistable"] = (
            kind in _PURE and (e.dtype.is_int or e.dtype.is_bool) and all(hoistable(getattr(e, f)) for f in e._children)
        )
    return known


@dataclass
class Walk:
    """A loop from 0 on whose pointers go along with its variable, which grows by ``step``: of each one its register, where it begins, and how many bytes
    it goes on by from one iteration to the next. Engines of WebAssembly make neither of sums of a pointer and a multiple of the variable."""

    var: tir.Var
    step: int
    pointers: list[tuple[str, str, int]] = field(default_factory=list)


@dataclass
class Scope:
    """Where a variable is bound: ``prelude`` is the place right behind, ``cache`` what was written there, ``walk`` says whether it is of a loop whose
    pointers go along."""

    prelude: list
    cache: dict[Any, str] = field(default_factory=dict)
    walk: Walk | None = None


@dataclass(frozen=True)
class Platform:
    """What of the target shapes the text: the architecture's family and features, and whether it adds vectors elsewhere than it multiplies and adds them."""

    arch: str = "x86_64"
    features: frozenset[str] = frozenset()
    adds_apart: bool = False

    @property
    def is_x86(self) -> bool:
        """Whether the machine is an x86, of 32 or 64 bits."""
        return self.arch in ("x86_64", "i386", "i686", "amd64")

    @property
    def is_wasm(self) -> bool:
        """Whether it is WebAssembly, which engines compile further."""
        return self.arch.startswith("wasm")

    @property
    def converts_float16(self) -> bool:
        """Whether the machine has instructions from float16 to float32 and back; LLVM calls functions of a compiler's runtime library
        where it has none, and what Roundel makes is not linked with one."""
        if self.is_x86:
            return not self.features.isdisjoint(("f16c", "avx512f"))
        if self.arch.startswith("riscv"):
            return not self.features.isdisjoint(("zfhmin", "zfh"))
        return self.arch in ("aarch64", "arm64")

    @property
    def lacks_multiply_add(self) -> bool:
        """Whether vectors of float32 are multiplied and added with two roundings, for want of an instruction that surely rounds once."""
        if self.is_x86:
            return self.features.isdisjoint(("fma", "fma4"))
        return self.is_wasm or (self.arch.startswith("armv") and "vfp4" not in self.features)


class Emitter:
    """Writes one function. ``symbol`` maps a function's name in the module to its symbol."""

    def __init__(self, platform: Platform, symbol: Callable[[str], str], *, contract: bool = True) -> None:
        self.platform, self.symbol, self.contract = platform, symbol, contract
        self.out: list = []
        self.entry: list = []  # allocas, ahead of everything
        self.block = "start"
        self.counter = 0
        self.scopes: list[Scope] = []
        self.depth: dict[tir.Var, int] = {}  # variable -> index of the scope that binds it
        self.env: dict[tir.Var, str] = {}
        self.nonneg_vars: set[tir.Var] = set()
        self.values = Values()
        self.distinct: set[tir.Var] = set()  # data pointers that do not overlap one another
        self.declares: dict[str, str] = {}
        self.globals: dict[str, str] = {}
        self.readonly: frozenset[tir.Var] = frozenset()  # data pointers whose memory nobody writes during the call
        self.slots: dict[int, str] = {}  # variables that keep heap memory across branches and iterations
        self.align: dict[tir.Var, int] = {}  # data pointer -> known alignment in bytes
        self.linear_memo: dict[tir.Expr, Any] = {}
        self.strides: dict[tir.Buffer, Any] = {}
        self.accesses: dict[Any, Any] = {}
        self.fail: Callable[[str], None] = lambda code: None  # writes the return after a failure
        self.scratch: list[tuple[str, tir.Expr]] = []  # parts of the thread's workspace: register, bytes
        self.calls_out = False  # something called from here may use the workspace too
        self.tasks: set[str] = set()
        self.constants: Mapping[str, int] = {}  # key of a constant -> its index in the context's table
        self.stack_bytes = 0
        self.work: str | None = None  # the variable that counts what may be done before the runtime is asked whether to go on
        self.is_host = False
        self.kernels = 0  # calls of kernels written
        self.inner: int | None = None  # the scope of the loop of vectors without loops inside that is being written
        self.streaming = 0  # loops around whose stores go past the caches
        self.streamed = False  # whether there were such stores
        self.added = self.multiplied = 0  # vectors of floats that the block being written adds, and that it multiplies
        self.ones: dict[DType, str] = {}  # vectors of ones that LLVM does not know to be ones
        self.rounds_once = False  # whether what is being written becomes a whole number, which is to be the same on all machines
        self.function: tir.PrimFunc | None = None
        self.scopes.append(Scope([]))  # its prelude is in the entry block

    # ---- text ----------------------------------------------------------------------------------------------

    def name(self, hint: str = "v") -> str:
        """A fresh register or label name, without its ``%``."""
        self.counter += 1
        return f"{hint}{self.counter}"

    def op(self, text: str) -> str:
        """Writes an instruction that yields a value; returns its register."""
        self.counter += 1
        reg = f"%v{self.counter}"
        self.out.append(f"  {reg} = {text}")
        return reg

    def line(self, text: str) -> None:
        """Writes an instruction without a value."""
        self.out.append("  " + text)

    def start(self, label: str) -> None:
        """Begins the block ``label``."""
        self.out.append(label + ":")
        self.block = label
        self.added = self.multiplied = 0

    def jump(self, label: str) -> None:
        """End the block by going to a label."""
        self.out.append(f"  br label %{label}")

    def branch(self, condition: str, yes: str, no: str, metadata: str = "") -> None:
        """End the block by going to one of two labels."""
        self.out.append(f"  br i1 {condition}, label %{yes}, label %{no}{metadata}")

    def finish_entry(self, scratch: list) -> None:
        """Put the entry block together: allocas, what depends on the parameters alone, the workspace."""
        self.entry = ["entry:", self.entry, self.scopes[0].prelude, scratch, "  br label %start", "start:"]

    def text(self) -> str:
        """The body, entry block first."""
        lines: list[str] = []
        _flatten(self.entry, lines)
        _flatten(self.out, lines)
        return "\n".join(lines)

    def declare(self, name: str, result: str, *params: str, attrs: str = "") -> str:
        """The symbol of an external function, declared once."""
        self.declares.setdefault(name, f"declare {result} @{name}({', '.join(params)}){' ' + attrs if attrs else ''}")
        return "@" + name

    def context(self, field: str) -> str:
        """The address of a field of the context, wherever the machine's pointers put it."""
        return self.op(f"getelementptr {CONTEXT}, ptr %ctx, i32 0, i32 {FIELDS.index(field)}")

    def intrinsic(self, name: str, dtype: DType, *args: str) -> str:
        """Calls an LLVM intrinsic overloaded on one type, all operands of that type."""
        t, full = llvm_type(dtype), f"llvm.{name}.{suffix(dtype)}"
        if full not in self.declares:
            self.declares[full] = f"declare {t} @{full}({', '.join([t] * len(args))})"
        return self.op(f"call {t} @{full}({', '.join(f'{t} {a}' for a in args)})")

    def string(self, text: str) -> str:
        """The address of a zero-terminated constant."""
        name = f"@.str{len(self.globals)}"
        raw = escape.encoded(text) + b"\0"
        return self.globals.setdefault(f'private unnamed_addr constant [{len(raw)} x i8] c"{escape.llvm_string(raw)}"', name)

    def alloca(self, text: str) -> str:
        """An ``alloca`` in the entry block."""
        reg = "%" + self.name("a")
        self.entry.append(f"  {reg} = alloca {text}")
        return reg

    # ---- scopes --------------------------------------------------------------------------------------------

    def open_scope(self) -> Scope:
        """A scope that begins here."""
        scope = Scope([])
        self.out.append(scope.prelude)
        self.scopes.append(scope)
        return scope

    def bind(self, var: tir.Var, operand: str, depth: int | None = None) -> None:
        """From here on ``var`` is ``operand``."""
        self.env[var] = operand
        self.depth[var] = len(self.scopes) - 1 if depth is None else depth

    def close_scope(self) -> None:
        """Forget what the innermost scope defined."""
        self.scopes.pop()

    @contextmanager
    def branch_values(self) -> Iterator[None]:
        """What is written inside does not dominate what comes after."""
        saved = self.values
        self.values = saved.copy()
        yield
        self.values = saved

    def home(self, e: tir.Expr) -> int:
        """The innermost scope that binds a variable of ``e``."""
        depth = 0
        table = self.depth
        for v in free_vars(e):
            d = table.get(v)
            if d is None:
                raise self.undefined(v)
            depth = max(depth, d)
        return depth

    def undefined(self, v: tir.Var) -> BuildError:
        """The BuildError for a variable that nothing defines."""
        name = self.function.attrs.get("global_symbol") if self.function else None
        return BuildError(
            f"variable {v.name} is used but not defined",
            where=name,
            hint="shape variables must come with a buffer parameter or be scalar parameters",
        )

    # ---- values --------------------------------------------------------------------------------------------

    def value(self, e: tir.Expr) -> str:
        """Writes what ``e`` needs and returns the operand (a register or constant), without its type."""
        kind = type(e)
        if kind is tir.IntImm:
            return int_text(e.value, e.dtype)
        if kind is tir.FloatImm:
            return float_text(e.value, e.dtype)
        if kind is tir.Var:
            found = self.env.get(e)
            if found is None:
                raise self.undefined(e)
            return found
        if hoistable(e) and (depth := self.home(e)) < len(self.scopes):
            scope = self.scopes[depth]
            hit = scope.cache.get(e)
            if hit is None:
                saved, self.out = self.out, scope.prelude
                hit = scope.cache[e] = EXPR[kind](self, e)
                self.out = saved
            return hit
        known = self.values.group(memory_of(e))
        hit = known.get(e)
        if hit is None:
            handler = EXPR.get(kind)
            if handler is None:
                raise BuildError(f"{kind.__name__} cannot be compiled", why=f"in {e!r}"[:400])
            hit = known[e] = handler(self, e)
        return hit

    def before_rounding(self, e: tir.Expr) -> str:
        """`value` of what becomes a whole number next."""
        outside, self.rounds_once = self.rounds_once, True
        found = self.value(e)
        self.rounds_once = outside
        return found

    def typed(self, e: tir.Expr) -> str:
        """``value`` with its type in front."""
        return f"{llvm_type(e.dtype)} {self.value(e)}"

    def statement(self, s: tir.Stmt) -> None:
        """Writes a statement."""
        handler = STMT.get(type(s))
        if handler is None:
            raise BuildError(
                f"a {type(s).__name__} statement cannot be compiled: the program is not lowered",
                hint="run roundel.lower.PIPELINE first",
            )
        handler(self, s)

    def nonneg(self, e: tir.Expr) -> bool:
        """Whether an exact integer expression is known to be >= 0."""
        return nonneg(e, self.nonneg_vars)


def _flatten(items: list, lines: list[str]) -> None:
    for item in items:
        if type(item) is str:
            lines.append(item)
        else:
            _flatten(item, lines)
