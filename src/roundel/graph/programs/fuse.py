# SPDX-License-Identifier: Apache-2.0
"""Operator fusion: chains of call_tir become one tensor program.

Which calls go together is decided on the post-dominator tree of the dataflow (as in Relay's FuseOps): a call may
fuse with its immediate post-dominator when every call on the paths between may. The merged program keeps the parts as
blocks with their intermediate buffers; the schedule inlines or computes them in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Any

from ...arith import Analyzer
from ...ir import graph, tir
from ...ir.attrs import Attrs
from ...ir.dataclass import dataclass
from ...ir.equal import StructuralMap
from ...ir.module import IRModule
from ...ir.node import Span
from ...ir.op import CALL_TIR, FuseKind
from ...ir.visit import free_vars, walk
from ...passes import pass_
from ...strategy.choose import takes
from ...strategy.match.accesses import blocks_of
from ...strategy.match.moves import keeps_rows, moves, read_seldom
from ...strategy.rules import attention, contraction, matvec
from ...strategy.sketch import Rule
from ...target import Target
from ..expectations import setting_of
from ..rewriter import operands, site_of
from .boundaries import Boundaries, Times
from .legalize import without_units
from .merge_programs import Step, merge_programs
from .name_sizes import plain_sizes

_MAX_GROUP = 64
_MAX_READS = 512  # for an element of the result, once everything is written out: 20 calls of x + x would be a million


@dataclass(eq=False)
class _Known:
    """Of groups that were asked about: their programs, what to call for each (a name, and sizes as parameters) and which rules take it. A group
    that computes the same as one before (equal layers of a model) needs neither merging nor scheduling again."""

    boundaries: Boundaries
    names: StructuralMap = field(default_factory=StructuralMap)
    merged: dict[Any, tuple[tir.PrimFunc, tuple[tir.Var, ...]]] = field(default_factory=dict)
    groups: dict[Any, tuple[str, tuple[tir.Var, ...]]] = field(default_factory=dict)
    scheduled: dict[Any, bool] = field(default_factory=dict)


@pass_("fuse")
def fuse(mod: IRModule) -> IRModule:
    """Merge chains of call_tir: elementwise and broadcast operators into the matmul, convolution or reduction before them,
    cheap operators into the reduction after them, and with each other. Recorded for each node; one that ``separate`` is asked for has
    kernels of its own."""
    boundaries = Boundaries(setting_of(mod), mod.choices)
    for name in list(mod):
        func = mod[name]
        if isinstance(func, graph.Function):
            mod = _fuse_function(mod, name, func, boundaries)
    return mod.replace(choices=boundaries.choices())


@dataclass(eq=False)
class _Call:
    """A call_tir binding in the dataflow graph of one block."""

    binding: graph.VarBinding
    kind: FuseKind
    rearranges: bool = False    # every element is one of the operand's
    is_view: bool = False       # the result is the operand's memory
    reads: tuple[int, ...] = () # of each operand, for an element of the result
    users: list[_Call] = field(default_factory=list)
    producers: list[_Call | None] = field(default_factory=list)  # of the operands
    escapes: bool = False       # used by something other than a call_tir of this block
    index: int = 0
    depth: int = 0
    post_dominator: _Call | None = None
    group: _Group | None = None
    site: str = ""              # the model's node that it computes, or a part of it
    alone: bool = False         # it is to be a kernel of its own
    around: Any = None          # what that is known by among measurements

    @cached_property
    def info(self) -> graph.StructInfo:
        return self.binding.var.sinfo

    @cached_property
    def name(self) -> str:
        """Of the program."""
        return self.binding.value.args[0].name

    @cached_property
    def args(self) -> tuple:
        return self.binding.value.args[1].fields

    @cached_property
    def sizes(self) -> tuple[tir.Expr, ...]:
        """Sizes passed as numbers: those that no dimension of an operand is just."""
        rest = self.binding.value.args[2:]
        return rest[0].values if rest else ()


@dataclass(eq=False)
class _Group:
    members: list[_Call]

    @cached_property
    def kind(self) -> FuseKind:
        return max(m.kind for m in self.members)

    @property
    def is_allowed(self) -> bool:
        """Whether nobody asked for a kernel of its own for one of its nodes."""
        return not any(m.alone for m in self.members) or len({m.site for m in self.members}) == 1


def _fuse_function(mod: IRModule, name: str, func: graph.Function, boundaries: Boundaries) -> IRModule:
    mod, body = _fuse_seq(mod, func.body, _Known(boundaries=boundaries))
    return mod if body is func.body else mod.with_functions({name: func.replace(body=body)})


def _fuse_seq(mod: IRModule, seq: graph.SeqExpr, known: _Known) -> tuple[IRModule, graph.SeqExpr]:
    """Fuse in the dataflow blocks of a body, and of the branches and loops in it."""
    blocks = []
    escaping = set(_variables(seq.body))
    for block in seq.blocks:
        fuse_in = _fuse_block if isinstance(block, graph.DataflowBlock) else _fuse_nested
        mod, new = fuse_in(mod, block, escaping, known)
        blocks.append(new)
    same = all(a is b for a, b in zip(blocks, seq.blocks, strict=True))
    return mod, seq if same else seq.replace(blocks=tuple(blocks))


def _fuse_nested(mod: IRModule, block: graph.BindingBlock, escaping: set[graph.Var], known: _Known) -> tuple[IRModule, graph.BindingBlock]:
    bindings = []
    for binding in block.bindings:
        for part in _NESTED.get(type(binding.value), ()):
            mod, body = _fuse_seq(mod, getattr(binding.value, part), known)
            if body is not getattr(binding.value, part):
                binding = binding.replace(value=binding.value.replace(**{part: body}))
        bindings.append(binding)
    same = all(a is b for a, b in zip(bindings, block.bindings, strict=True))
    return mod, block if same else block.replace(bindings=tuple(bindings))


_NESTED = {graph.If: ("true_branch", "false_branch"), graph.While: ("condition", "body")}


def _fuse_block(mod: IRModule, block: graph.DataflowBlock, escaping: set[graph.Var], known: _Known) -> tuple[IRModule, graph.BindingBlock]:
    calls = _dataflow(mod, block, escaping, known.boundaries)
    _post_dominators(calls)
    for call in calls:
        _attention(mod, call, known)
    for call in calls:
        _epilogues(mod, call, known)
    for call in calls:
        _prologues(call)
    for call in calls:
        _moved(mod, call, known)
    groups = {id(c.group): c.group for c in calls}
    found = {key: ([m.name for m in g.members], _times(mod, g, known)) for key, g in groups.items()}
    for call in calls:
        known.boundaries.record(call.site, call.name, *found[id(call.group)], call.alone, call.around)
    groups = {key: g for key, g in groups.items() if len(g.members) > 1}
    if not groups:
        return mod, block
    last = {max(g.members, key=lambda c: c.index).binding: g for g in groups.values()}
    inside = {m.binding for g in groups.values() for m in g.members}
    bindings = []
    for binding in block.bindings:
        if binding in last:
            mod, fused = _emit(mod, last[binding], known)
            bindings.append(fused)
        elif binding not in inside:
            bindings.append(binding)
    return mod, block.replace(bindings=tuple(bindings))


def _times(mod: IRModule, group: _Group, known: _Known) -> Times:
    """What is expected of the members of a group as they are, and of the program that they become."""
    positions = lambda args: [k for k, a in enumerate(args) if isinstance(a, graph.Constant)]
    parts = lambda: [(mod[m.binding.value.args[0]], positions(m.args)) for m in group.members]
    whole = lambda: [(_merged(mod, group, known)[0], positions(_structure(group)[0]))]
    return known.boundaries.times(parts, whole if len(group.members) > 1 else None)


def _dataflow(mod: IRModule, block: graph.DataflowBlock, escaping: set[graph.Var], boundaries: Boundaries) -> list[_Call]:
    made: dict[graph.Var, _Call] = {}
    reads: dict[str, tuple[int, ...]] = {}  # by program
    for binding in block.bindings:
        value = binding.value
        is_tir = isinstance(value, graph.Call) and value.op is CALL_TIR and isinstance(binding.var.sinfo, graph.TensorInfo)
        here = None
        if is_tir:
            program = mod[value.args[0]]
            kind = FuseKind(program.attrs.get("fuse_kind", FuseKind.OPAQUE)) if program.root_block is not None else FuseKind.OPAQUE
            here = _Call(binding, kind, _rearranges(program), "view" in program.attrs, index=len(made),
                         escapes=not isinstance(binding.var, graph.DataflowVar) or binding.var in escaping, site=site_of(binding))
            if kind <= FuseKind.INJECTIVE:
                name = value.args[0].name
                reads[name] = here.reads = reads.get(name) or _reads(program)
            here.group = _Group([here])
            here.producers = [made.get(a) for a in here.args]
        for arg in _variables(value):
            producer = made.get(arg)
            if producer is None:
                continue
            if here is None:
                producer.escapes = True
            elif not producer.users or producer.users[-1] is not here:
                producer.users.append(here)
        if here is not None:
            made[binding.var] = here
    program_of = lambda call: call and mod[call.binding.value.args[0]]
    for here in made.values():
        here.around = boundaries.around(program_of(here), [program_of(p) for p in here.producers], [program_of(u) for u in here.users])
        here.alone = boundaries.is_alone(here.site, here.around)
    return list(made.values())


def _rearranges(program: tir.PrimFunc) -> bool:
    """Whether every element of the result is just an element of the operand."""
    found = blocks_of(program)
    return len(found) == 1 and found[0].is_plain and not found[0].reduce and type(found[0].block.body.value) is tir.BufferLoad


def _reads(program: tir.PrimFunc) -> tuple[int, ...]:
    """How often the program reads each of its operands for an element of its result."""
    count = dict.fromkeys(program.buffer_params, 0)
    for e in walk(program.body):
        if type(e) is tir.BufferLoad and e.buffer in count:
            count[e.buffer] += 1
    return tuple(count.values())


def _variables(value: object) -> list[graph.Var]:
    found, stack = [], [value]
    while stack:
        v = stack.pop()
        if isinstance(v, graph.Var):
            found.append(v)
        stack.extend(operands(v))
    return found


def _post_dominators(calls: list[_Call]) -> None:
    for call in reversed(calls):
        if call.escapes or not call.users:
            continue
        meet: _Call | None = call.users[0]
        for user in call.users[1:]:
            meet = _meet(meet, user)
        call.post_dominator = meet
        call.depth = meet.depth + 1 if meet is not None else 0


def _meet(a: _Call | None, b: _Call | None) -> _Call | None:
    while a is not b and a is not None and b is not None:
        if a.depth > b.depth or (a.depth == b.depth and a.index < b.index):
            a = a.post_dominator
        else:
            b = b.post_dominator
    return a if a is b else None


def _attention(mod: IRModule, call: _Call, known: _Known) -> None:
    """product -> elementwise of the scores -> softmax_matmul, with what rearranges the operands of both products (of the first one, of
    none) as far as there is a schedule for all that"""
    if call.kind != FuseKind.ATTENTION:
        return
    members, scores, product = {id(call): call}, call.producers[0], None
    todo = [scores]
    while todo:
        c = todo.pop()
        if c is None or not _only_here(c, members):
            continue
        if c.kind == FuseKind.ANCHOR and product is None:
            product = members[id(c)] = c
        elif c.kind <= FuseKind.BROADCAST and _same_shape(c, scores):
            members[id(c)] = c
            todo += c.producers
    if product is None:
        return
    for moved in ([*product.producers, call.producers[1]], product.producers, []):
        group = _Group(sorted(_with_rearranged(members, moved).values(), key=lambda m: m.index))
        if _has_schedule(mod, group, known):
            for m in group.members:
                m.group = group
            return


def _with_rearranged(members: dict[int, _Call], moved: Sequence[_Call | None]) -> dict[int, _Call]:
    """The members and what rearranges these operands of theirs."""
    members, todo = dict(members), list(moved)
    while todo:
        c = todo.pop()
        if c is not None and c.rearranges and _only_here(c, members):
            members[id(c)] = c
            todo += c.producers
    return members


def _has_schedule(mod: IRModule, group: _Group, known: _Known, rule: Rule = attention) -> bool:
    """Whether a rule takes the program of the group, with plain sizes as it will have them, and nothing else is asked for."""
    if not group.is_allowed:
        return False
    key = rule, _structure(group)[1]
    if key not in known.scheduled:
        func, _ = plain_sizes(_merged(mod, group, known)[0])
        known.scheduled[key] = takes(rule, func, mod.attrs.get("target") or Target.host())
    return known.scheduled[key]


def _only_here(call: _Call, members: dict[int, _Call]) -> bool:
    if call.escapes:
        return False
    for u in call.users:
        if id(u) not in members:
            return False
    return True


def _epilogues(mod: IRModule, call: _Call, known: _Known) -> None:
    """anchor or reduction -> elementwise of the same shape, or the other order of axes that attention's result gets"""
    def allowed(c: _Call) -> bool:
        turned = call.kind == FuseKind.ATTENTION and c.rearranges and not _expands(call, c)
        return turned or (c.kind <= FuseKind.BROADCAST and _same_shape(c, call.group.members[-1]))

    sink = call.post_dominator
    if call.kind not in (FuseKind.ANCHOR, FuseKind.REDUCTION, FuseKind.ATTENTION):
        return
    whole = len(call.group.members) > 1  # attention with its first product
    computed = narrowest = call.group
    bits = least = call.info.dtype.bits
    while sink is not None:
        before = call.group
        if not _fuse_path(call, sink, allowed, one_anchor=True):
            break
        if whole and not _has_schedule(mod, call.group, known):
            _take_back(call.group, before)
            break
        if not sink.is_view or sink.escapes:
            computed, bits = call.group, sink.info.dtype.bits
            if bits <= least or sink.escapes:
                narrowest, least = computed, bits
        sink = sink.post_dominator
    is_bare = (mod.attrs.get("target") or Target.host()).is_bare  # then memory is short
    # Views in the end go, too: they cost nothing alone, and hide the axes of what is before them.
    _take_back(call.group, narrowest if bits > least and (is_bare or _joins_product(sink)) else computed)


def _joins_product(sink: _Call | None) -> bool:
    """Whether what follows is computed in another product's kernel, where what is read can be made wider."""
    return sink is not None and sink.kind <= FuseKind.BROADCAST and sink.group.kind == FuseKind.ANCHOR


def _take_back(group: _Group, before: _Group) -> None:
    """What ``group`` has and ``before`` has not is by itself again."""
    for m in group.members:
        m.group = before if m in before.members else _Group([m])


def _prologues(call: _Call) -> None:
    """elementwise, broadcast or injective -> what follows, where no element is computed more often than before. What makes elements wider becomes part of
    what follows a product, too."""
    if call.kind > FuseKind.INJECTIVE or call.group.kind > FuseKind.INJECTIVE:
        return
    sink = call.post_dominator
    while sink is not None:
        limit = FuseKind.REDUCTION if call.group.kind <= FuseKind.BROADCAST else FuseKind.INJECTIVE
        if sink.group.kind > limit:
            if sink.kind <= FuseKind.BROADCAST and _widens(call):
                _fuse_path(call, sink, lambda c: c.kind <= FuseKind.BROADCAST and _same_shape(c, call), one_anchor=False)
            return
        if sink.group is not call.group and not _fuse_path(call, sink, lambda c, limit=limit: c.kind <= limit and not _expands(call, c), one_anchor=False):
            return
        if sink.kind > FuseKind.INJECTIVE:
            return
        sink = sink.post_dominator


def _widens(call: _Call) -> bool:
    """Whether a call's result is of a wider type than all that it reads."""
    return bool(call.args) and call.info.dtype.bits > max(a.sinfo.dtype.bits for a in call.args)


def _moved(mod: IRModule, call: _Call, known: _Known) -> None:
    """what joins tensors, or turns matrices -> the product that reads each element a few times"""
    if call.kind != FuseKind.ANCHOR:
        return
    infos = blocks_of(mod[call.binding.value.args[0]])
    for producer in call.producers:
        if producer is None or producer.escapes or producer.users != [call] or producer.group is call.group or len(infos) != 1:
            continue
        before = [i for m in producer.group.members for i in blocks_of(mod[m.binding.value.args[0]])]
        if not before or not all(map(moves, before)) or not read_seldom(before[-1], infos[0]):  # foreign code has no blocks
            continue
        group = _Group(sorted([*producer.group.members, *call.group.members], key=lambda m: m.index))
        if _has_schedule(mod, group, known, matvec) or (all(map(keeps_rows, before)) and _has_schedule(mod, group, known, contraction)):
            for m in group.members:
                m.group = group


def _fuse_path(call: _Call, sink: _Call, allowed, one_anchor: bool) -> bool:
    """Put everything between ``call`` and ``sink`` into one group, when every call on the way is allowed."""
    path: list[_Call] = []
    stack, seen = list(call.users), set()
    while stack:
        c = stack.pop()
        if id(c) in seen:
            continue
        seen.add(id(c))
        if not allowed(c) or (one_anchor and any(m.kind > FuseKind.INJECTIVE for m in c.group.members) and c.group is not call.group):
            return False
        path.append(c)
        if len(path) >= _MAX_GROUP:
            return False
        if c is not sink:
            if c.escapes:
                return False
            stack.extend(c.users)
    groups = {id(c.group): c.group for c in (call, *path)}
    members = {id(m): m for g in groups.values() for m in g.members}
    anchors = {id(m.group) for m in members.values() if m.kind > FuseKind.INJECTIVE}
    if len(members) > _MAX_GROUP or len(anchors) > 1 or not _one_output(members, sink):
        return False
    group = _Group(sorted(members.values(), key=lambda m: m.index))
    if not group.is_allowed or _written_out(group) > _MAX_READS:
        return False
    for m in group.members:
        m.group = group
    return True


def _written_out(group: _Group) -> int:
    """Reads of an element of the group's result once what is elementwise is put into what uses it, the most of all members."""
    reads = {id(m): 1 for m in group.members}
    for m in group.members:
        if m.reads:
            reads[id(m)] = sum(n * reads.get(id(p), 1) for n, p in zip(m.reads, m.producers, strict=False))
    return max(reads.values())


def _one_output(members: dict[int, _Call], sink: _Call) -> bool:
    """Only the last member's value is used outside the group."""
    last = max(members.values(), key=lambda m: m.index)
    return all(m is last or _only_here(m, members) for m in members.values())


def _same_shape(a: _Call, b: _Call) -> bool:
    if a.info.shape is None or b.info.shape is None:
        return False
    return without_units(a.info.shape) == without_units(b.info.shape)


def _expands(a: _Call, b: _Call) -> bool:
    """Whether ``b`` has more elements than ``a``, so that fusing computes elements of ``a`` again."""
    if b.kind == FuseKind.REDUCTION:
        return False
    if a.info.shape is not None and a.info.shape == b.info.shape:
        return False
    x, y = a.info.size, b.info.size
    return x is None or y is None or not (x is y or Analyzer().prove_equal(x, y))


def _emit(mod: IRModule, group: _Group, known: _Known) -> tuple[IRModule, graph.VarBinding]:
    """The merged program and the call of it."""
    last, names = group.members[-1], [m.binding.value.args[0].name for m in group.members]
    inputs, computed = _structure(group)
    if computed not in known.groups:
        func, scalars = _merged(mod, group, known)
        name = known.names.setdefault(func, lambda: mod.unique_name("fused_" + "_".join(n.removeprefix("fused_") for n in names)[:80]))
        mod = mod if name in mod else mod.with_functions({name: func})
        known.groups[computed] = name, scalars
    name, scalars = known.groups[computed]
    call = last.binding.value.replace(args=(graph.GlobalVar(name), graph.Tuple(inputs), *([graph.ShapeExpr(scalars)] if scalars else [])))
    span = last.binding.span or Span(last.site)
    return mod, last.binding.replace(value=call, span=replace(span, nodes=tuple(dict.fromkeys(m.site for m in group.members))))


def _structure(group: _Group) -> tuple[tuple[graph.GraphExpr, ...], Any]:
    """The group's operands, and what decides on its program: those of its members, how they are wired, types and sizes."""
    number: dict[graph.GraphExpr, int] = {}
    inputs, computed = [], []
    for member in group.members:
        for a in member.args:
            if a not in number:
                number[a] = len(number)
                inputs.append(a)
        wires = tuple(number[a] for a in member.args)
        number[member.binding.var] = len(number)
        computed.append((member.binding.value.args[0].name, wires, member.info.shape, member.info.dtype, member.sizes))
    return tuple(inputs), (tuple(computed), tuple((i.sinfo.shape, i.sinfo.dtype) for i in inputs))


def _merged(mod: IRModule, group: _Group, known: _Known) -> tuple[tir.PrimFunc, tuple[tir.Var, ...]]:
    """The program of a group, and the sizes that it needs as parameters of their own."""
    computed = _structure(group)[1]
    if computed not in known.merged:
        known.merged[computed] = _merge(mod, group)
    return known.merged[computed]


def _merge(mod: IRModule, group: _Group) -> tuple[tir.PrimFunc, tuple[tir.Var, ...]]:
    last = group.members[-1]
    inputs: dict[graph.GraphExpr, tir.Buffer] = {}
    produced: dict[graph.Var, tir.Buffer] = {}
    steps = []
    for member in group.members:
        program = mod[member.binding.value.args[0]]
        operand_buffers = [produced.get(a) or _input(inputs, a) for a in member.args]
        info = member.info
        out = produced[member.binding.var] = tir.decl_buffer(info.shape, info.dtype, member.binding.var.name)
        steps.append(Step(program, [*operand_buffers, out], member.sizes))
    temporaries = [b for v, b in produced.items() if v is not last.binding.var]
    params = [*inputs.values(), produced[last.binding.var]]
    scalars = _unsolvable(params, [*(d for b in (*params, *temporaries) for d in b.shape), *(s for m in group.members for s in m.sizes)])
    parts = [mod[m.binding.value.args[0]].attrs for m in group.members]
    attrs = Attrs({"fuse_kind": int(group.kind), "noalias": True, **({"target": parts[0]["target"]} if "target" in parts[0] else {})})
    if any("decisions" in p for p in parts):  # what somebody asked for stays asked for
        attrs = attrs | {"decisions": {n: v for p in parts for n, v in (p.get("decisions") or {}).items()}}
    views = [p.get("view") for p in parts]
    if None not in views and len({m.info.dtype for m in group.members}) == 1:
        attrs = attrs | {"view": sum(views)}  # one after another: a value that two members read is not fused
    return merge_programs(steps, params, scalars, temporaries, attrs), tuple(scalars)


def _input(inputs: dict, value: graph.GraphExpr) -> tir.Buffer:
    """The parameter for what is computed elsewhere; constants have names of their own, since annotations of loops name a buffer."""
    if value not in inputs:
        name, taken = getattr(value, "name", "const"), {b.name for b in inputs.values()}
        free = next(n for n in (name, *(f"{name}_{k}" for k in range(1, len(taken) + 1))) if n not in taken)
        inputs[value] = tir.decl_buffer(value.sinfo.shape, value.sinfo.dtype, free)
    return inputs[value]


def _unsolvable(params: list[tir.Buffer], sizes: list[tir.Expr]) -> list[tir.Var]:
    """Variables of the sizes that no parameter has as a plain dimension: these become explicit scalar parameters."""
    plain = {d for b in params for d in b.shape if type(d) is tir.Var}
    needed = {v: None for d in sizes for v in sorted(free_vars(d), key=lambda v: v.name)}
    return [v for v in needed if v not in plain]
