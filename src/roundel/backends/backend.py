# SPDX-License-Identifier: Apache-2.0
"""What a backend is: patterns of a graph, and for each match a kernel that computes it: foreign code in C, a function of a library, or Python.

    def implement(c):                                        # of the composite function that a match became
        m, n = c.operands[0].shape
        return native(c, "my_relu", m * n, source=SOURCE)    # void my_relu(const float *x, float *out, int64_t count)

    MINE = Backend("mine", [("mine.relu", is_op("relax.nn.relu")(wildcard()))], implement)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..arith import Analyzer
from ..ir import graph, tir
from ..ir.annotations import GRAIN, IMPORT_C, IMPORT_C_CALLS, IMPORT_LLVM, RANGES
from ..ir.attrs import Attrs
from ..ir.dataclass import dataclass
from ..ir.dtype import FLOAT64, HANDLE, INT32, INT64, VOID
from ..ir.errors import OptionError
from ..ir.escape import assertion
from ..ir.op import FuseKind, OpDef
from ..ir.tir import as_index
from ..ir.visit import free_vars, substitute
from ..relax.fuse_by_pattern import FusionPattern
from ..strategy.parallelism import worth_a_thread
from ..target import Target
from .forms import Form
from .functions import Function
from .library import Library
from .prototypes import guard_prototype, is_real, prototype
from .sources import told_apart

Packing = Mapping[int, Callable[[np.ndarray], np.ndarray]]


@dataclass(frozen=True)
class Composite:
    """A part of a graph that a pattern matched: ``function`` computes it. ``constants`` are the arrays of those operands that are known at compile
    time, by their positions; ``bounds`` gives for an operand's position the least and greatest of the whole numbers that it holds, None where it may
    hold others; ``backend`` is the name of the one that is asked."""

    name: str
    function: graph.Function
    target: Target
    constants: Mapping[int, Any] = field(default_factory=dict)
    bounds: Callable[[int], tuple[float, float] | None] = lambda k: None
    backend: str = "?"

    @property
    def operands(self) -> tuple[graph.TensorInfo, ...]:
        """What is known of the operands, in order."""
        return tuple(p.sinfo for p in self.function.params)  # type: ignore[misc]

    @property
    def result(self) -> graph.TensorInfo:
        """What is known of the result."""
        return self.function.ret_sinfo  # type: ignore[return-value]

    @property
    def subject(self) -> str:
        """What is computed, in words: the pattern's name behind its first point, and the shapes of the operator's operands."""
        anchor: Any = anchor_of(self.function.body.bindings).value
        operands = [a.sinfo for a in getattr(anchor, "args", ()) if isinstance(a.sinfo, graph.TensorInfo)]
        return f"{self.name.partition('.')[2]} {' by '.join('x'.join(map(str, i.shape or ())) for i in operands)}"

    @cached_property
    def calls(self) -> dict[str, graph.Call]:
        """The calls of operators by the operators' names, the first of each."""
        found: dict[str, graph.Call] = {}
        for b in self.function.body.bindings:
            if isinstance(b.value, graph.Call):
                found.setdefault(b.value.op.name, b.value)  # type: ignore[union-attr]
        return found

    def attrs(self, operator: str) -> Attrs:
        """The attributes of the call of an operator. Raises KeyError where there is none."""
        return self.calls[operator].attrs

    def position(self, value: Any) -> int | None:
        """Which operand a value in the function is; None for what is computed there."""
        return next((k for k, p in enumerate(self.function.params) if p is value), None)


@dataclass(frozen=True)
class Kernel:
    """How a composite function is computed: a tensor program of its operands and its result, or a ``function`` of Python that is called with arrays
    of both. ``pack``: what becomes of operands that are constants, by position; done once, at compile time. ``forms``: in which form it wants operands,
    by position, and makes its result (-1), where these are not the graph's. ``library``: without which the program cannot run. ``guard``: a C function
    of these numbers, which says when the model runs whether it can (not 0). ``cycles``: what it is expected to take on one core, None if nothing is."""

    program: tir.PrimFunc | None = None
    function: Callable[..., None] | None = None
    pack: Packing = field(default_factory=dict)
    forms: Mapping[int, Form] = field(default_factory=dict)
    library: Library | None = None
    guard: tuple[Any, ...] = ()
    cycles: float | None = None


@dataclass(frozen=True)
class Backend:
    """A way to compute parts of graphs besides generated code. ``patterns`` come in order of priority, each is a `FusionPattern` or what makes one;
    ``implement`` returns the `Kernel` of a composite function, or a text: why there can be none. ``version``, or what gives it, is that of the library as
    it is on this machine: what was measured with another one does not count."""

    name: str
    patterns: Sequence[FusionPattern | tuple[Any, ...]]
    implement: Callable[[Composite], Kernel | str]
    version: str | Callable[[], str] = ""

    def __post_init__(self) -> None:
        """Raises OptionError for names that choices or C could not tell apart, and for what are no patterns."""
        if not str(self.name).isidentifier() or self.name in _TAKEN:
            raise OptionError(f"a backend cannot be called {self.name!r}",
                              hint=f"a name of letters, digits and underscores that is none of {', '.join(_TAKEN)}")
        if not callable(self.implement):
            raise OptionError(f"the implementation of backend {self.name} is a {type(self.implement).__name__}", hint="give a function of a Composite")
        object.__setattr__(self, "patterns", tuple(map(FusionPattern.of, self.patterns)))

    @property
    def fusion_patterns(self) -> Sequence[FusionPattern]:
        """The patterns."""
        return self.patterns  # type: ignore[return-value]

    @cached_property
    def current_version(self) -> str:
        """The version, asked for once."""
        return self.version() if callable(self.version) else self.version


GENERATED = "generated"
_TAKEN = (GENERATED, "off", "all", "fused", "separate")  # what choices and options say already


def anchor_of(bindings: Sequence[Any]) -> Any:
    """The binding whose operator others are fused into; the last where there is none."""
    return next((b for b in bindings if isinstance(op := getattr(b.value, "op", None), OpDef) and op.kind == FuseKind.ANCHOR), bindings[-1])


def native(composite: Composite, symbol: str, *numbers: Any, operands: Sequence[int] | None = None, source: str = "", llvm: str = "",
           library: Library | None = None, parallel: Any = None, ranges: bool = False, least: int = 1, workspace: Any = None, pack: Packing | None = None,
           forms: Mapping[int, Form] | None = None, statuses: Mapping[int, str] | None = None, guard: Sequence[Any] = (),
           cycles: float | None = None) -> Kernel:
    """The kernel that calls a C function: ``void symbol(const T *operand, ..., T *result, int64_t number, ...)``.

    ``operands`` are the positions of those that it gets, in its order (by default all, in that of the composite function's parameters).
    ``source`` is C text that defines it, ``llvm`` LLVM text; or ``library.source`` does. With ``parallel``, a number of parts, it is
    called once for each part, by the threads of the model, and its last argument is the part; with ``ranges`` once for each thread, and its last
    arguments are the first part and how many. A thread takes at least ``least`` parts, fewer are not worth waking it. ``forms`` are those of
    `Kernel`. ``workspace``: bytes of memory that each call gets after the result. ``numbers`` may be expressions of symbolic sizes.

    With ``statuses`` the function returns ``int32_t`` instead: 0, or why it could not compute the result, which fails the run of the model with what
    that status means here. ``guard`` is what is asked beforehand, the name of a function ``int32_t guard(int64_t number, ...)`` and its numbers: where it
    returns 0, generated code runs instead.

    Constants that are packed (``pack``) come as the arrays that packing makes. Raises OptionError for operands
    or results that are no tensors of known rank.
    """
    calls = [guard_prototype(composite.backend, *guard[:1], guard[1:])] if guard else []
    called = symbol
    text, renamed = told_apart(source) if source else (library.c_source if library is not None else "", {})
    symbol, guard = renamed.get(symbol, symbol), (*(renamed.get(g, g) for g in guard[:1]), *guard[1:])
    pack = dict(pack or {})
    infos = [*composite.operands, composite.result]
    order = tuple(range(len(infos) - 1)) if operands is None else tuple(operands)
    _must_be_operands("operands", order, composite)
    _must_be_operands("forms", [k for k in forms or () if k != -1], composite)
    _must_be_operands("pack", pack, composite)
    if others := [k for k in pack if k not in composite.constants]:
        raise OptionError(f"operand {others[0]} cannot be packed", where=f"{composite.backend}, pattern {composite.name}", why="it is no constant",
                          hint="ask whether its position is in c.constants, or give the pattern is_const() there")
    for k, change in pack.items():
        packed = np.asarray(change(composite.constants[k]))
        infos[k], pack[k] = graph.TensorInfo(packed.shape, packed.dtype), partial(_already, packed)
    for k, form in (forms or {}).items():
        infos[k] = form.info(infos[k])  # type: ignore[arg-type]
    if not all(isinstance(i, graph.TensorInfo) and i.shape is not None and i.dtype is not None for i in infos):
        raise OptionError(f"{composite.name} cannot be a C function", why="an operand or result is no tensor of known type and rank")
    own = {v: tir.Var(v.name, v.dtype, v.size) for i in infos for n in i.shape for v in free_vars(n)}  # type: ignore[union-attr]
    names = [*(f"p{k}" for k in range(len(infos) - 1)), "result"]
    buffers = [tir.decl_buffer([substitute(n, own) for n in i.shape], i.dtype, name) for name, i in zip(names, infos, strict=True)]  # type: ignore[union-attr]
    given: list[Any] = [*(buffers[k].data for k in order), buffers[-1].data]
    room = None if workspace is None else tir.decl_buffer((substitute(as_index(workspace), own),), "uint8", "workspace")
    given += [] if room is None else [room.data]
    given += [tir.const(float(n), FLOAT64) if is_real(n) else tir.cast(substitute(as_index(n), own), INT64) for n in numbers]
    part = tir.Var("part", INT64, True)
    given += [] if parallel is None else [part, tir.const(1, INT64)] if ranges else [part]
    call = tir.Call("call_extern", (tir.StringImm(symbol), *given), VOID if statuses is None else INT32)
    body: tir.Stmt = tir.Evaluate(call) if statuses is None else _checked(call, composite, statuses)
    body = body if room is None else tir.Allocate(room, body)
    if parallel is not None:
        how = Attrs({**({RANGES: True} if ranges else {}), **({GRAIN: least} if least > 1 else {})})
        body = tir.For(part, tir.index_const(0), substitute(as_index(parallel), own), tir.ForKind.PARALLEL, body, annotations=how)
    handles = [tir.Var(n, HANDLE) for n in names]
    parts = () if parallel is None else ("first", "count") if ranges else ("part",)
    calls.append(prototype(composite.backend, called, [(k, buffers[k].dtype) for k in order], buffers[-1].dtype, numbers,
                           status=statuses is not None, workspace=room is not None, parts=parts))
    imported = {**({IMPORT_C: (text,), IMPORT_C_CALLS: tuple(map(str, calls))} if text else {}), **({IMPORT_LLVM: (llvm,)} if llvm else {})}
    attrs = Attrs({"scheduled": composite.name, "fuse_kind": int(FuseKind.OPAQUE), "noalias": True, **imported})
    program = tir.PrimFunc(tuple(handles), body, tuple(zip(handles, buffers, strict=True)), attrs)
    return Kernel(program, pack=pack, forms=dict(forms or {}), library=library, guard=tuple(guard), cycles=cycles)


def shared(composite: Composite, parts: Any, cycles: float, each: Sequence[Any] = (), start: float = 0.0) -> dict[str, Any]:
    """What `native` is told of work that threads share: the parts, at least how many of them are worth waking a thread for, and the cycles of all on one
    core, where sizes are known. A part takes ``cycles`` times the product of the sizes ``each``; a call takes ``start`` more."""
    known = [Analyzer().value(tir.as_index(n)) for n in (parts, *each)]
    part = None if None in known[1:] else cycles * math.prod(known[1:])
    least = 1 if part is None else worth_a_thread(part, composite.target)
    return {"parallel": parts, "least": least, "cycles": None if part is None or known[0] is None else start + known[0] * part}


def _must_be_operands(option: str, positions: Iterable[Any], composite: Composite) -> None:
    """Raises OptionError for what is no position of an operand."""
    count = len(composite.operands)
    for k in positions:
        if type(k) is not int or not 0 <= k < count:
            raise OptionError(f"{option}= names the operand {k!r}", where=f"{composite.backend}, pattern {composite.name}",
                              why=f"the positions of operands of this part of the graph are 0 to {count - 1}",
                              hint="c.position(value) is None for what is computed inside of the part" if k is None else "")


def _already(packed: np.ndarray, constant: np.ndarray) -> np.ndarray:
    """What packing made when it was asked for the shape."""
    return packed


def _checked(call: tir.Call, composite: Composite, statuses: Mapping[int, str]) -> tir.Stmt:
    """A call whose status fails the run when it is not 0."""
    status = tir.Var("status", INT32)
    head, tail = assertion(f"{composite.name.partition('.')[0]} cannot compute {composite.subject}"), 'libraries="off" compiles generated code alone'
    named = [tir.Assert(tir.ne(status, tir.const(code, INT32)), f"{head}: status {code}, {assertion(meaning)}; {tail}") for code, meaning in statuses.items()]
    other = tir.Assert(tir.eq(status, tir.const(0, INT32)), f"{head}: status {{0}}; {tail}", None, (status,))
    return tir.Let(status, call, tir.If(tir.ne(status, tir.const(0, INT32)), tir.seq(*named, other)))


def python(function: Callable[..., None], *, operands: Sequence[int] | None = None, cycles: float | None = None) -> Kernel:
    """The kernel that is a function of Python: ``function(operand, ..., result)`` gets arrays over the model's memory, which it may only
    read, and writes the last one. ``operands`` are the positions of those that it gets, in its order."""
    return Kernel(function=Function(function, None if operands is None else tuple(operands)), cycles=cycles)
