# SPDX-License-Identifier: Apache-2.0
"""``create_prim_func``: tensor expressions to a tensor program in block form, one block per stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from roundel.arith import block_access
from roundel.ir import tir
from roundel.ir.attrs import Attrs
from roundel.ir.dtype import BOOL, HANDLE, DType
from roundel.ir.errors import RoundelError
from roundel.ir.visit import free_vars, substitute

from .reduce import Reduce, is_reduced_over
from .tensor import Compute, Definition, Extern, Placeholder, Scan, Tensor


def create_prim_func(
    args: Sequence[Tensor | tir.Var],
    index_dtype_override: Any = None,
    *,
    name: str | None = "main",
    attrs: Mapping[str, Any] | None = None,
) -> tir.PrimFunc:
    """A tensor program with these tensors (and scalars) as parameters, in order; other stages become ``alloc_buffers``.

    Variables of shapes are bound by the buffers' shapes, others have to be in ``args``. ``name`` exports the program. A parameter that a
    stage's attribute ``layout_free_placeholders`` names counts in the program's attribute ``layout_free_buffers``. Indices are of the type of
    their sizes (int64 where these are numbers); ``index_dtype_override`` is the type that all have to have.
    """
    tensors = [a for a in args if isinstance(a, Tensor)]
    stages = _in_order(tensors)
    buffers = _buffers(tensors, stages)
    given = set(tensors)
    for t in buffers:
        if isinstance(t.definition, Placeholder) and t not in given:
            raise RoundelError(
                f"tensor {t.name} is read but is not among the parameters",
                hint="add the placeholder to create_prim_func's list",
            )
    _check_axes(stages)
    body = tir.seq(*(_stage(stage, outs, buffers) for stage, outs in stages if not isinstance(stage, Placeholder)))
    root = tir.Block((), (), (), "root", body, alloc_buffers=_inner(buffers, given))
    params, pairs = [], []
    for a in args:
        if isinstance(a, Tensor):
            params.append(tir.Var(a.name, HANDLE))
            pairs.append((params[-1], buffers[a]))
        else:
            params.append(a)
    if index_dtype_override is not None:
        _require_sizes(buffers, DType(index_dtype_override))
    symbol = {} if name is None else {"global_symbol": name}
    func = tir.PrimFunc(
        tuple(params),
        tir.BlockRealize((), tir.IntImm(1, BOOL), root),
        tuple(pairs),
        Attrs({**symbol, "noalias": True, **_layout_free(tensors, stages), **(attrs or {})}),
    )
    return _with_sizes(func)


def _check_axes(stages: list[tuple[Definition, list[Tensor]]]) -> None:
    """Raises RoundelError for an element that is read along an axis over which nothing reduces."""
    for stage, outs in stages:
        for body in stage.bodies if isinstance(stage, Compute) else ():
            over = {x.var for x in (*stage.axes, *(body.axes if isinstance(body, Reduce) else ()))}
            for v in sorted(filter(is_reduced_over, free_vars(body) - over), key=lambda v: v.name):
                raise RoundelError(f"te.compute {outs[0].name!r} uses {v.name}, which is none of its axes", hint=f"reduce over it: te.sum(..., axis={v.name})")


def _inner(buffers: Mapping[Tensor, tir.Buffer], given: set[Tensor]) -> tuple[tir.Buffer, ...]:
    """The buffers of no parameter."""
    outside = {buffers[t] for t in given}
    return tuple(b for b in dict.fromkeys(buffers.values()) if b not in outside)


def _with_sizes(func: tir.PrimFunc) -> tir.PrimFunc:
    """The program in which the variables that shapes bind are known to be sizes, at least 0."""
    shapes = {n for b in func.buffer_params for n in b.shape if type(n) is tir.Var and not n.size}
    bound = shapes.difference(func.params)
    return substitute(func, {v: tir.Var(v.name, v.dtype, True) for v in bound}) if bound else func


def _require_sizes(buffers: Mapping[Tensor, tir.Buffer], dtype: DType) -> None:
    for b in buffers.values():
        for n in b.shape:
            if n.dtype is not dtype:
                raise RoundelError(f"a size of tensor {b.name} is of type {n.dtype}, not {dtype}", hint=f"make its variable with te.var(dtype={str(dtype)!r})")


def _layout_free(params: Sequence[Tensor], stages: list[tuple[Definition, list[Tensor]]]) -> dict[str, Any]:
    """The positions of the parameters whose layout stages leave to the compiler."""
    named = [t for stage, _ in stages if isinstance(stage, Compute) for t in stage.attrs.get(_LAYOUT_FREE, ())]
    found = sorted({params.index(t) for t in named if t in params})
    return {"layout_free_buffers": tuple(found)} if found else {}


_LAYOUT_FREE = "layout_free_placeholders"


def _in_order(outputs: Sequence[Tensor]) -> list[tuple[Definition, list[Tensor]]]:
    """Stages, producers first, each with its outputs that are used (of a statement, with all that it writes)."""
    found: dict[Definition, list[Tensor]] = {}
    done: set[Definition] = set()
    stack: list[tuple[Tensor, bool]] = [(t, False) for t in reversed(outputs)]
    order: list[Definition] = []
    while stack:
        t, leaving = stack.pop()
        stage = t.definition
        if leaving:
            if stage not in done:
                done.add(stage)
                order.append(stage)
            continue
        outs = found.setdefault(stage, list(stage.outputs) if isinstance(stage, Extern) else [])
        if t not in outs:
            outs.append(t)
        if stage not in done:
            stack.append((t, True))
            stack.extend((i, False) for i in reversed(stage.inputs))
    return [(s, sorted(found[s], key=lambda t: t.value_index)) for s in order]


def _buffers(params: Sequence[Tensor], stages: list[tuple[Definition, list[Tensor]]]) -> dict[Tensor, tir.Buffer]:
    """A fresh buffer with a name of its own for every tensor (outputs of a stage that nobody reads included)."""
    taken: set[str] = set()
    out: dict[Tensor, tir.Buffer] = {}
    for t in (*params, *(t for _, outs in stages for t in outs)):
        if t not in out:
            name, k = t.name, 0
            while name in taken:
                k += 1
                name = f"{t.name}_{k}"
            taken.add(name)
            out[t] = tir.decl_buffer(t.shape, t.dtype, name)
    return out


def _stage(stage: Any, outs: list[Tensor], buffers: dict[Tensor, tir.Buffer]) -> tir.Stmt:
    if isinstance(stage, Extern):
        return _extern_block(stage, outs, buffers)
    if isinstance(stage, Scan):
        return _scan(stage, outs, buffers)
    if any(type(b) is Reduce for b in stage.bodies):
        return _compute_block(stage, _all_outputs(stage, outs, buffers), buffers)
    return tir.seq(*(_compute_block(stage, [t], buffers) for t in outs))


def _all_outputs(stage: Compute, outs: list[Tensor], buffers: dict[Tensor, tir.Buffer]) -> list[Tensor]:
    """A reduction over a tuple writes all of it; parts that nobody reads get a buffer too."""
    missing = [k for k in range(len(stage.bodies)) if all(t.value_index != k for t in outs)]
    made = [outs[0].replace(name=f"{outs[0].name}_{k}", dtype=stage.bodies[k].dtype, value_index=k) for k in missing]
    for t in made:
        buffers[t] = tir.decl_buffer(t.shape, t.dtype, t.name)
    return sorted([*outs, *made], key=lambda t: t.value_index)


class _Axes:
    """Block variables for a stage's axes, and the loops around the block."""

    def __init__(self, axes: Sequence[tir.IterVar]) -> None:
        axes = axes or (tir.IterVar(tir.Var("i", tir.index_const(0).dtype), tir.Range.of(1), tir.IterKind.SPATIAL),)
        self.variables = [tir.Var("v_" + a.var.name, a.var.dtype) for a in axes]
        self.iter_vars = tuple(tir.IterVar(v, a.dom, a.kind) for v, a in zip(self.variables, axes))
        self.loops = [tir.Var(a.var.name, a.var.dtype) for a in axes]
        self.table: dict[Any, Any] = {a.var: v for a, v in zip(axes, self.variables)}
        self.doms = [a.dom for a in axes]

    def nest(self, block: tir.Block) -> tir.Stmt:
        """The block realized inside one serial loop per axis."""
        body: tir.Stmt = tir.BlockRealize(tuple(self.loops), tir.IntImm(1, BOOL), block)
        for v, dom in zip(reversed(self.loops), reversed(self.doms)):
            body = tir.For(v, dom.min, dom.extent, tir.ForKind.SERIAL, body)
        return body

    def within(self, outer: _Axes) -> _Axes:
        """These axes inside of a block over ``outer``: their domains are those at its variables and at the loops of one another."""
        at = {**outer.table, **{a: v for a, v in zip(self.table, self.loops)}}
        self.doms = [substitute(d, at) for d in self.doms]
        self.iter_vars = tuple(i.replace(dom=d) for i, d in zip(self.iter_vars, self.doms))
        return self


def _block(
    axes: _Axes, name: str, body: tir.Stmt, init: tir.Stmt | None, attrs: Attrs, scratch: tuple[tir.Buffer, ...] = ()
) -> tir.Stmt:
    block = tir.Block(axes.iter_vars, (), (), name, body, init, scratch, annotations=attrs)
    reads, writes = block_access(block)
    return axes.nest(block.replace(reads=reads, writes=writes))


def _compute_block(stage: Compute, outs: list[Tensor], buffers: Mapping[Tensor, tir.Buffer]) -> tir.Stmt:
    bodies = [stage.bodies[t.value_index] for t in outs]
    targets = [buffers[t] for t in outs]
    attrs = _with_buffers(_of_block(stage.attrs), buffers)
    if type(bodies[0]) is Reduce:
        return _reduction(stage, bodies[0], targets, attrs, buffers)
    axes = _Axes(stage.axes)
    value = substitute(bodies[0], axes.table, buffers)
    store = tir.BufferStore(targets[0], value, tuple(axes.variables[: len(stage.axes)]))
    return _block(axes, targets[0].name, store, None, attrs)


def _reduction(
    stage: Compute, top: Reduce, targets: list[tir.Buffer], attrs: Attrs, buffers: Mapping[Tensor, tir.Buffer]
) -> tir.Stmt:
    """One block with an init; where the domain of an axis depends on another axis, a block around that starts the result and one that updates it."""
    known = {a.var for a in (*stage.axes, *top.axes)}
    if not any(known & (free_vars(a.dom.min) | free_vars(a.dom.extent)) for a in top.axes):
        axes = _Axes((*stage.axes, *top.axes))
        at = tuple(axes.variables[: len(stage.axes)])
        init, update = _start_and_update(top, targets, at, axes.table, buffers)
        return _block(axes, targets[0].name, update, init, attrs)
    around = _Axes(stage.axes)
    axes = _Axes(top.axes).within(around)
    at = tuple(around.variables[: len(stage.axes)])
    init, update = _start_and_update(top, targets, at, {**around.table, **axes.table}, buffers)
    return _block(around, targets[0].name, tir.seq(init, _block(axes, f"{targets[0].name}_update", update, None, Attrs())), None, attrs)


def _start_and_update(
    top: Reduce, targets: list[tir.Buffer], at: tuple[tir.Expr, ...], table: Mapping[Any, Any], buffers: Mapping[Tensor, tir.Buffer]
) -> tuple[tir.Stmt, tir.Stmt]:
    """The statements that store the identity, and that combine what is stored with one more element."""

    def here(e: tir.Expr) -> tir.Expr:
        return substitute(e, table, buffers)

    start = tuple(map(here, top.combiner.identity(tuple(s.dtype for s in top.sources))))
    sources = tuple(tir.if_then_else(here(top.condition), here(s), i) for s, i in zip(top.sources, start))
    init = tir.seq(*(tir.BufferStore(b, i, at) for b, i in zip(targets, start)))
    values = tuple(map(here, top.combiner.combine(tuple(b[at] for b in targets), sources)))
    if len(targets) == 1:
        return init, tir.BufferStore(targets[0], tir.cast(values[0], targets[0].dtype), at)
    held = [tir.Var(f"v_{b.name}", v.dtype) for b, v in zip(targets, values)]
    body = tir.seq(*(tir.BufferStore(b, v, at) for b, v in zip(targets, held)))
    for v, value in zip(reversed(held), reversed(values)):
        body = tir.Let(v, value, body)
    return init, body


def _of_block(attrs: Attrs) -> Attrs:
    """A stage's attributes without the parameters among its tensors of free layout, which the program's attribute names."""
    if _LAYOUT_FREE not in attrs:
        return attrs
    inner = tuple(t for t in attrs[_LAYOUT_FREE] if not isinstance(t.definition, Placeholder))
    rest = {k: v for k, v in attrs.items() if k != _LAYOUT_FREE}
    return Attrs({**rest, **({_LAYOUT_FREE: inner} if inner else {})})


def _scan(stage: Scan, outs: list[Tensor], buffers: dict[Tensor, tir.Buffer]) -> tir.Stmt:
    """The first rows of all states, and a loop over further rows."""
    made = {t.value_index: buffers[t] for t in outs}
    for k, s in enumerate(stage.state):
        buffers[s] = made[k] if k in made else buffers.setdefault(s, tir.decl_buffer(s.shape, s.dtype, f"{outs[0].name}_{k}"))
    first = []
    for init, s in zip(stage.init, stage.state):
        axes = _Axes(tuple(tir.IterVar(tir.Var(f"i{k}", n.dtype), tir.Range(tir.const(0, n.dtype), n), tir.IterKind.SPATIAL) for k, n in enumerate(init.shape)))
        at = tuple(axes.variables)
        first.append(_block(axes, f"{buffers[s].name}_init", tir.BufferStore(buffers[s], buffers[init][at], at), None, Attrs()))
    rows = stage.state[0].shape[0]
    start = stage.init[0].shape[0]
    t = tir.Var("t", rows.dtype)
    steps = [_row(u, buffers[s], t, start, buffers) for u, s in zip(stage.update, stage.state)]
    return tir.seq(*first, tir.For(t, start, rows - start, tir.ForKind.SERIAL, tir.seq(*steps)))


def _row(update: Tensor, target: tir.Buffer, t: tir.Var, start: tir.Expr, buffers: Mapping[Tensor, tir.Buffer]) -> tir.Stmt:
    """The nest that makes row ``t`` of one state."""
    stage = update.definition
    assert isinstance(stage, Compute)
    row = stage.axes[0].replace(dom=tir.Range(start, stage.axes[0].dom.extent - start), kind=tir.IterKind.SCAN)
    axes = _Axes((row, *stage.axes[1:]))
    value = substitute(stage.bodies[update.value_index], axes.table, buffers)
    nest = _block(axes, target.name, tir.BufferStore(target, value, tuple(axes.variables)), None, _with_buffers(_of_block(stage.attrs), buffers))
    assert type(nest) is tir.For
    return substitute(nest.body, {nest.loop_var: t})


def _with_buffers(value: Any, buffers: Mapping[Tensor, tir.Buffer]) -> Any:
    """Attributes in which buffers stand for tensors."""
    if isinstance(value, Tensor):
        return buffers[value]
    if isinstance(value, Attrs):
        return Attrs({k: _with_buffers(v, buffers) for k, v in value.items()})
    return tuple(_with_buffers(v, buffers) for v in value) if isinstance(value, tuple) else value


def _extern_block(stage: Extern, outs: list[Tensor], buffers: Mapping[Tensor, tir.Buffer]) -> tir.Stmt:
    axes = _Axes(stage.axes)
    scratch = tuple(tir.decl_buffer(b.shape, b.dtype, b.name) for b in stage.scratch)
    points = axes.variables[: len(stage.axes)]
    body = stage.build(tuple(buffers[t] for t in stage.inputs), tuple(buffers[t] for t in outs), scratch, *points)
    return _block(axes, buffers[outs[0]].name, body, None, stage.attrs, scratch)
