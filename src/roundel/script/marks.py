# SPDX-License-Identifier: Apache-2.0
"""What the functions of ``T`` return where they stand for more than an expression: loops, block heads, declarations.

The functions of the script namespaces are pure; the parser builds the statement by the type of what they return.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

from ..ir.dataclass import dataclass
from ..ir.dtype import DType
from ..ir.tir import Expr, ForKind, IterKind, Var


@dataclass
class Loop:
    """One loop over ``[start, start + extent)``."""

    start: Any
    extent: Any
    kind: ForKind = ForKind.SERIAL
    thread: str | None = None
    annotations: dict[str, Any] = field(default_factory=dict)
    step: Any = None
    dtype: DType | None = None


@dataclass
class Loops:
    """A nest of loops, outermost first (``T.grid``, ``T.serial``, ...)."""

    loops: list[Loop]


@dataclass
class NewVar:
    """A variable that takes its name from what it is assigned to (``n = T.int64()``). Outside of scripts, in plain Python, it is the variable
    as soon as an expression is made of it."""

    dtype: DType
    size: bool
    name: str | None = None
    variable: Var | None = None

    def __repr__(self) -> str:
        return f"T.{self.dtype}()"

    def asexpr(self) -> Var:
        """The variable."""
        if self.variable is None:
            self.variable = Var(self.name or "n", self.dtype, self.size)
        return self.variable


def _through(name: str) -> Callable[..., Any]:
    return lambda self, *others: getattr(self.asexpr(), name)(*(o.asexpr() if isinstance(o, NewVar) else o for o in others))


for _name in "add radd sub rsub mul rmul floordiv rfloordiv mod rmod neg lt le gt ge".split():
    setattr(NewVar, f"__{_name}__", _through(f"__{_name}__"))


@dataclass
class BufferSpec:
    """A buffer that takes its name from what it is assigned to. ``role``: ``param`` (``T.Buffer``), ``alloc`` (block
    allocation), ``allocate`` and ``decl`` (statements), ``match`` (of ``source``).
    """

    role: str
    shape: Any
    dtype: DType
    options: dict[str, Any]
    source: Any = None
    annotations: dict[str, Any] = field(default_factory=dict)


@dataclass
class Axes:
    """Iteration variables of a block; ``doms`` has None for the domain of the loop bound to it (``remap``)."""

    kinds: list[IterKind]
    doms: list[Any]
    values: list[Any]
    dtype: DType | None = None


@dataclass
class BlockHead:
    """``with T.sblock(name):``"""

    name: str
    no_realize: bool = False
    axes: tuple[Axes, ...] = ()  # of the spelling with T.block([128, T.reduce_axis(128)], "C") as [vi, vk]


@dataclass
class InitHead:
    """``with T.init():``"""


@dataclass
class SeqHead:
    """``with T.seq():`` a sequence that is not flattened into its surroundings."""


@dataclass
class Regions:
    """``T.reads(...)`` or ``T.writes(...)``."""

    which: str
    regions: tuple[Any, ...]


@dataclass
class Where:
    """``T.where(predicate)``"""

    predicate: Any


@dataclass
class AttrsOf:
    """``T.func_attr({...})`` (``of`` is ``func``) or ``T.sblock_attr({...})`` (``block``)."""

    of: str
    attrs: dict[str, Any]


@dataclass
class AttrHead:
    """``T.attr(subject, key, value)``"""

    subject: Any
    key: str
    value: Any


@dataclass
class LetHead:
    """``T.bind(value)``, ``T.LetStmt(value)``: ``var`` where it exists already."""

    value: Any
    var: Any = None


@dataclass
class AssertHead:
    """``T.Assert(condition, message)``"""

    condition: Any
    message: str


@dataclass
class Launch:
    """``T.launch_thread(thread, extent)``; ``var`` is set when the axis was named by ``T.env_thread``."""

    thread: Any
    extent: Any


@dataclass
class EnvThread:
    """``T.env_thread("threadIdx.x")``"""

    thread: str


@dataclass
class ThreadVar:
    """``T.iter_var(tx, None, "ThreadIndex", "threadIdx.x")`` about which an attribute speaks"""

    var: Any
    thread: str


@dataclass
class Realize:
    """``T.realize(B[0:16], scope, condition)``"""

    region: Any
    scope: str
    condition: Any


@dataclass
class Literal:
    """``T.allocate_const(values, dtype, shape)``"""

    values: Any


@dataclass
class Store:
    """``A.vstore(indices, value, predicate)``"""

    buffer: Any
    indices: tuple[Expr, ...]
    value: Any
    predicate: Any = None


@dataclass
class Evaluated:
    """``T.evaluate(value)``"""

    value: Any


@dataclass
class Meta:
    """``T.meta_var(value)``: kept as a Python value instead of bound by a let."""

    value: Any


@dataclass
class ConstantsFile:
    """``I.module_constants(file)``"""

    file: str


# ---- graph functions


@dataclass
class Symbolic:
    """Struct info whose dimensions are text (``R.Tensor(("n", "4 * m"))``); ``build`` takes their reader."""

    build: Callable[[Callable[[Any], Any]], Any]


@dataclass
class DataflowHead:
    """``with R.dataflow():``"""


@dataclass
class BindingBlockHead:
    """``with R.binding_block():`` bindings kept apart from their neighbours."""


@dataclass
class Output:
    """``R.output(...)``"""

    variables: tuple[Any, ...]


@dataclass
class MatchCasting:
    """``R.match_cast(value, sinfo)``"""

    value: Any
    sinfo: Any


@dataclass
class Typed:
    """``R.typed(value, sinfo)``: the value knows this of itself, whatever its variable is annotated with."""

    value: Any


@dataclass
class EmitTe:
    """``R.emit_te(fn, ...)``"""

    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    name_hint: str | None = None


@dataclass
class Closure:
    """``R.make_closure(fn, args)``"""

    function: Any
    args: tuple[Any, ...]


@dataclass
class Looping:
    """``R.while_loop(condition, body, init)`` of functions defined above."""

    condition: Any
    body: Any
    init: tuple[Any, ...]
