# SPDX-License-Identifier: Apache-2.0
"""Adjacent axes that a program always goes through together become one axis.

    for h, w, c: y[h, w, c] = max(x[h, w, c] + b[c], 0)    ->    for hw, c: y[hw, c] = max(x[hw, c] + b[c], 0)

A convolution with a 1 x 1 kernel becomes a matrix product over all pixels this way, whatever its layout, and elementwise
programs need no division to find their indices. Callers pass views.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

from ...arith import Analyzer, block_access
from ...ir import graph, tir
from ...ir.constants import ConstData
from ...ir.module import IRModule
from ...ir.op import CALL_TIR
from ...ir.visit import Rewriter, free_vars, on, substitute, walk, walk_data
from ...ops import make
from ...passes import pass_
from ..rewriter import GraphRewriter, is_call
from .appends import readers
from .name_sizes import plain_sizes

Groups = tuple[tuple[int, ...], ...]
Access = tuple[tir.Buffer, tuple[tir.Expr, ...]]


@pass_("collapse_axes")
def collapse_axes(mod: IRModule) -> IRModule:
    """Collapse axes of elementwise programs, and of matrix products and convolutions with what is fused into them."""
    return _CollapseCalls(mod).module()


class _CollapseCalls(GraphRewriter):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.collapsed: dict[str, tuple[list[Groups], list[int]] | None] = {}
        self.reshaped: dict[tuple, graph.Constant] = {}
        self.kept = readers(mod)  # their operands may have gaps between the axes

    def call(self, call: graph.Call, binding: graph.VarBinding) -> graph.GraphExpr:
        if call.op is not CALL_TIR or not isinstance(call.args[1], graph.Tuple) or not isinstance(call.sinfo, graph.TensorInfo):
            return call
        found = self._collapsed(call.args[0])
        if found is None:
            return call
        groups, kept = found
        scalars = (graph.ShapeExpr(tuple(call.args[2].values[k] for k in kept)),) if kept else ()
        fields = tuple(self._reshape(f, g) for f, g in zip(call.args[1].fields, groups, strict=False))
        info = call.sinfo.replace(shape=merged(call.sinfo.shape, groups[-1]), ndim=len(groups[-1]))
        made = self.emit(call.replace(args=(call.args[0], graph.Tuple(fields), *scalars), sinfo=info, sinfo_args=(info,)), binding.var.name)
        return make("reshape", made, graph.ShapeExpr(call.sinfo.shape))

    def _collapsed(self, name: graph.GlobalVar) -> tuple[list[Groups], list[int]] | None:
        """How the dimensions of the program's parameters go together now, and which of its scalar parameters are left; None where
        it stays as it is."""
        if name.name not in self.collapsed:
            func, found = self.mod[name], None
            made = None
            plain = {"scheduled", "view", "global_symbol", "append"}.isdisjoint(func.attrs) and name.name not in self.kept
            if func.root_block is not None and plain:
                made = collapse(func)
            if made is not None:
                func, kept = plain_sizes(made[0])
                if _closed(func):
                    found = made[1], kept
                    self.mod = self.mod.with_functions({name.name: func})
            self.collapsed[name.name] = found
        return self.collapsed[name.name]

    def _reshape(self, value: graph.GraphExpr, groups: Groups) -> graph.GraphExpr:
        if len(groups) == value.sinfo.ndim:
            return value
        shape = merged(value.sinfo.shape, groups)
        if isinstance(value, graph.Constant):
            return self._constant(value, tuple(n.value for n in shape))
        made = self.producer(value)
        if is_call(made, "reshape") and isinstance(made.args[0], graph.Var) and made.args[0].sinfo.shape == shape \
                and isinstance(value, graph.DataflowVar) >= isinstance(made.args[0], graph.DataflowVar):  # seen wherever ``value`` is
            return made.args[0]
        return self.emit(make("reshape", value, graph.ShapeExpr(shape)))

    def _constant(self, value: graph.Constant, shape: tuple[int, ...]) -> graph.Constant:
        key = (id(value.data), shape)
        if key not in self.reshaped:
            source = value.data
            data = ConstData.derived(lambda a: a.reshape(shape), (source,), "reshape", shape=shape, dtype=source.dtype)
            self.reshaped[key] = graph.Constant(data, graph.TensorInfo(shape, source.dtype))
        return self.reshaped[key]


def _closed(func: tir.PrimFunc) -> bool:
    """Whether all sizes that the program uses are dimensions of its parameters, or parameters."""
    bound = {d for b in func.buffer_params for d in b.shape} | set(func.params)
    return all(n in bound for n in walk(func.body) if type(n) is tir.Var and n.size)


def merged(shape: tuple[tir.Expr, ...], groups: Groups) -> tuple[tir.Expr, ...]:
    """The shape with each group of dimensions as one."""
    an = Analyzer()
    return tuple(shape[g[0]] if len(g) == 1 else an.simplify(tir.product_of([shape[k] for k in g])) for g in groups)


def collapse(func: tir.PrimFunc) -> tuple[tir.PrimFunc, list[Groups]] | None:
    """The program with axes that go together as one, and the groups of dimensions of its buffer parameters; None where there are
    none, or the program is of another kind."""
    blocks = _plain_blocks(func)
    if blocks is None:
        return None
    blocks = [_without_units(b) for b in blocks]
    found = _Pairs(blocks)
    if not any(found.dims.values()):
        return None
    root = func.root_block
    buffers = [*func.buffer_params, *root.alloc_buffers]
    groups = {b: _groups(b.ndim, found.dims.get(b, set())) for b in buffers}
    table = {b: b if len(g) == b.ndim else b.replace(shape=merged(b.shape, g)) for b, g in groups.items()}
    body = tir.seq(*(_Collapse(block, found.axes[block], groups, table).nest() for block in blocks))
    root = root.replace(body=body, alloc_buffers=tuple(table[b] for b in root.alloc_buffers))
    pairs = tuple((p, table[b]) for p, b in func.buffer_map)
    return func.replace(body=func.body.replace(block=root), buffer_map=pairs), [groups[b] for b in func.buffer_params]


def _plain_blocks(func: tir.PrimFunc) -> list[tir.Block] | None:
    """The blocks of a program that is a sequence of plain loop nests."""
    root = func.root_block
    buffers = [*func.buffer_params, *root.alloc_buffers]
    if any(b.strides or b.elem_offset is not None or b.dtype.storage_bits < 8 for b in buffers):
        return None
    blocks = []
    for stmt in root.body.stmts if type(root.body) is tir.Seq else (root.body,):
        loops = []
        while type(stmt) is tir.For and stmt.kind is tir.ForKind.SERIAL and not stmt.annotations and stmt.step is None:
            loops.append(stmt)
            stmt = stmt.body
        if type(stmt) is not tir.BlockRealize or not _is_plain(stmt, loops):
            return None
        blocks.append(stmt.block)
    return blocks or None


def _is_plain(realize: tir.BlockRealize, loops: list[tir.For]) -> bool:
    block = realize.block
    kinds = {i.kind for i in block.iter_vars}
    return (
        [x.loop_var for x in loops] == list(realize.iter_values)
        and isinstance(realize.predicate, tir.IntImm)
        and kinds <= {tir.IterKind.SPATIAL, tir.IterKind.REDUCE}
        and (block.init is not None) == (tir.IterKind.REDUCE in kinds)
        and all(x.extent is i.dom.extent and _is_number(i.dom.min, 0) and _is_number(x.min, 0) for x, i in zip(loops, block.iter_vars, strict=True))
        and type(block.body) is tir.BufferStore
        and not block.alloc_buffers and not block.match_buffers and not block.annotations
    )


def _is_number(e: tir.Expr, value: int) -> bool:
    return isinstance(e, tir.IntImm) and e.value == value


def _without_units(block: tir.Block) -> tir.Block:
    """Reduce axes of extent 1 do not move anything."""
    units = {i.var: i.dom.min for i in block.iter_vars if i.kind is tir.IterKind.REDUCE and _is_number(i.dom.extent, 1)}
    if not units:
        return block
    an = Analyzer()
    return block.replace(body=_Indices(lambda buffer, indices: (buffer, tuple(an.simplify(substitute(i, units)) for i in indices))).rewrite(block.body))


class _Indices(Rewriter):
    """Rewrites accesses."""

    def __init__(self, change: Callable[[tir.Buffer, tuple[tir.Expr, ...]], Access]) -> None:
        self.change = change

    @on(tir.BufferLoad)
    def _load(self, load: tir.BufferLoad) -> tir.Expr:
        buffer, indices = self.change(load.buffer, load.indices)
        return tir.BufferLoad(buffer, tuple(map(self.rewrite, indices)), load.predicate)

    @on(tir.BufferStore)
    def _store(self, store: tir.BufferStore) -> tir.Stmt:
        buffer, indices = self.change(store.buffer, store.indices)
        return store.replace(buffer=buffer, indices=tuple(map(self.rewrite, indices)), value=self.rewrite(store.value))


class _Pairs:
    """Which neighbouring axes of blocks (``axes``: position of the first) and dimensions of buffers (``dims``) go together."""

    def __init__(self, blocks: list[tir.Block]) -> None:
        self.axes = {b: {k for k, (i, j) in enumerate(pairwise(b.iter_vars)) if i.kind is j.kind} for b in blocks}
        self.dims: dict[tir.Buffer, set[int]] = {}
        uses = {b: list(dict.fromkeys(_accesses(b))) for b in blocks}
        for block in blocks:
            for buffer, _ in uses[block]:
                self.dims.setdefault(buffer, set(range(buffer.ndim - 1)))
            elsewhere = _used_elsewhere(block)
            self.axes[block] = {k for k in self.axes[block] if not {i.var for i in block.iter_vars[k:k + 2]} & elsewhere}
        while any([self._check(b, uses[b]) for b in blocks]):
            continue

    def _check(self, block: tir.Block, accesses: list[Access]) -> bool:
        """Drop what this block does not go through together; whether anything was dropped."""
        place = {i.var: k for k, i in enumerate(block.iter_vars)}
        changed = False
        for buffer, indices in accesses:
            positions = [place.get(i) if type(i) is tir.Var else None for i in indices]
            for k in sorted(self.dims[buffer]):
                at, after = positions[k], positions[k + 1]
                together = at is not None and after == at + 1 and at in self.axes[block] \
                    and buffer.shape[k + 1] is block.iter_vars[after].dom.extent and buffer.shape[k] is block.iter_vars[at].dom.extent
                still = all(_is_number(e, v) for e, v in ((indices[k], 0), (indices[k + 1], 0), (buffer.shape[k], 1), (buffer.shape[k + 1], 1)))
                if not together and not still:
                    self.dims[buffer].discard(k)
                    changed = True
            together = {positions[k] for k in self.dims[buffer] if positions[k] is not None}
            used = {p for p in positions if p is not None}
            loose = {p for k, p in enumerate(positions) if p is not None and not {k, k - 1} & self.dims[buffer]}  # such as i of x[b, i, i]
            broken = {k for k in self.axes[block] if {k, k + 1} & loose or ((k in used or k + 1 in used) and k not in together)}
            if broken:
                self.axes[block] -= broken
                changed = True
        return changed


def _accesses(block: tir.Block) -> Iterable[Access]:
    for root in (block.body, block.init):
        for n in walk_data(root) if root is not None else ():
            if type(n) in (tir.BufferLoad, tir.BufferStore):
                yield n.buffer, n.indices


def _used_elsewhere(block: tir.Block) -> set[tir.Var]:
    """Variables that occur other than as an index of their own."""
    found: set[tir.Var] = set()
    stack: list[Any] = [block.body, *([block.init] if block.init is not None else [])]
    while stack:
        n = stack.pop()
        if type(n) is tir.Var:
            found.add(n)
        elif type(n) in (tir.BufferLoad, tir.BufferStore):
            found |= {v for i in n.indices if type(i) is not tir.Var for v in free_vars(i)}
            stack += [n.value] if type(n) is tir.BufferStore else []
            stack += [n.predicate] if n.predicate is not None else []
        else:
            stack += [c for name in n._children for c in _nodes(getattr(n, name))]
    return found


def _nodes(value: Any) -> list[Any]:
    if isinstance(value, tuple):
        return [n for v in value for n in _nodes(v)]
    return [value] if isinstance(value, tir.Expr | tir.Stmt) else []


def _groups(count: int, pairs: set[int]) -> Groups:
    """Runs of 0 ... count - 1 that the pairs join."""
    out: list[tuple[int, ...]] = []
    for k in range(count):
        if k - 1 in pairs and out:
            out[-1] = (*out[-1], k)
        else:
            out.append((k,))
    return tuple(out)


class _Collapse:
    """One block with its axes collapsed."""

    def __init__(self, block: tir.Block, pairs: set[int], groups: dict[tir.Buffer, Groups], table: dict[tir.Buffer, tir.Buffer]) -> None:
        self.source, self.groups, self.table = block, groups, table
        self.joined: dict[tir.Var, tir.Var] = {}
        self.iter_vars = []
        an = Analyzer()
        for group in _groups(len(block.iter_vars), pairs):
            axes = [block.iter_vars[k] for k in group]
            if len(axes) == 1:
                self.iter_vars.append(axes[0])
                continue
            var = tir.Var("v_" + "_".join(i.var.name.removeprefix("v_") for i in axes), axes[0].var.dtype)
            extent = an.simplify(tir.product_of([i.dom.extent for i in axes]))
            self.iter_vars.append(axes[0].replace(var=var, dom=tir.Range(tir.const(0, extent.dtype), extent)))
            self.joined |= {i.var: var for i in axes}

    def nest(self) -> tir.Stmt:
        """The block in loops over its axes; what it touches is worked out anew where axes or buffers are others."""
        s = self.source
        if not self.joined and all(self.table[r.buffer] is r.buffer for r in (*s.reads, *s.writes)):
            return _nest(s)
        block = self.block()
        reads, writes = block_access(block, list(self.table.values()))
        return _nest(block.replace(reads=reads, writes=writes))

    def block(self) -> tir.Block:
        """The block over the joined axes."""
        change = _Indices(self._access)
        init = None if self.source.init is None else change.rewrite(self.source.init)
        return self.source.replace(iter_vars=tuple(self.iter_vars), body=change.rewrite(self.source.body), init=init)

    def _access(self, buffer: tir.Buffer, indices: tuple[tir.Expr, ...]) -> Access:
        return self.table[buffer], tuple(self.joined.get(indices[g[0]], indices[g[0]]) if len(g) > 1 else indices[g[0]] for g in self.groups[buffer])


def _nest(block: tir.Block) -> tir.Stmt:
    """The block in loops over its axes."""
    loops = [tir.Var(i.var.name.removeprefix("v_"), i.var.dtype) for i in block.iter_vars]
    stmt: tir.Stmt = tir.BlockRealize(tuple(loops), tir.const(True), block)
    for var, it in zip(reversed(loops), reversed(block.iter_vars), strict=True):
        stmt = tir.For(var, tir.const(0, var.dtype), it.dom.extent, tir.ForKind.SERIAL, stmt)
    return stmt
