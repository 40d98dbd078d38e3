# SPDX-License-Identifier: Apache-2.0
"""What backends could compute of a function: for each operator that counts, what each of them offers, and what generated code makes one kernel of there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, NamedTuple

from ..graph.pattern import Match
from ..graph.rewriter import site_of
from ..graph.tidy.whole_numbers import bounds
from ..ir import graph, tir
from ..ir.dataclass import dataclass
from ..ir.errors import OptionError, RoundelError
from ..ir.module import IRModule
from ..ir.op import FuseKind, OpDef
from ..ir.visit import walk
from ..relax.fuse_by_pattern import FusionPattern, PatternCheckContext, fuse_by_pattern
from ..relax.outline import Renamed, outline, unknown_sizes, with_own_sizes
from ..target import Target
from .backend import Backend, Composite, Kernel, anchor_of
from .functions import guarded

MOST_AROUND = 8  # operators behind one, which generated code may compute with it


class Offer(NamedTuple):
    """What a backend could compute: these bindings, of which the last is the result, as a composite function of these operands. ``sizes``: what
    sizes of the composite function's own stand for around it (`with_own_sizes`)."""

    bindings: Sequence[graph.VarBinding]
    composite: Composite
    operands: Sequence[Any]
    kernel: Kernel | str
    sizes: Mapping[Any, Any] = {}

    @property
    def result(self) -> graph.TensorInfo:
        """What is known of the result, in the sizes around."""
        return self.bindings[-1].var.sinfo  # type: ignore[return-value]


@dataclass(frozen=True, eq=False)
class Part:
    """An operator with what backends offer for it, by their names. ``around``: the operator with those before and behind it that generated code
    may compute in the same kernel."""

    anchor: graph.VarBinding
    offers: Mapping[str, Offer]
    around: Sequence[graph.VarBinding] = field(default_factory=tuple)

    @property
    def site(self) -> str:
        """The name of the model's node."""
        return site_of(self.anchor)

    @property
    def longest(self) -> Sequence[graph.VarBinding]:
        """The bindings of the offer that takes in most."""
        return max((o.bindings for o in self.offers.values()), key=len)

    @property
    def subject(self) -> str:
        """What is computed, in words."""
        return next(iter(self.offers.values())).composite.subject

    def key(self) -> tuple[Any, ...]:
        """What measurements of it hold for: the operators, and which operands are constants; not their values."""
        func, operands = outline(self.around, [self.around[-1].var], {}, bind_constants=False, dataflow=False)
        return func, tuple(isinstance(o, graph.Constant) for o in operands)


def parts_of(func: graph.Function, backends: Sequence[Backend], target: Target) -> list[Part]:
    """The parts of a function whose bindings are all in plain blocks, the last first. An offer's kernel may be the reason why there is none."""
    return _Function(func, backends, target).parts()


def offer_of(backend: Backend, name: str, bindings: Sequence[graph.VarBinding], target: Target,
             made: Callable[[Any], Any] = lambda value: None) -> Offer:
    """What a backend offers for bindings that its pattern of this name matches. ``made`` gives what a variable before them is bound to. Raises
    RoundelError that names the backend where it fails."""
    func, operands = outline(bindings, [bindings[-1].var], {"Composite": name}, bind_constants=False, dataflow=False)
    func, sizes = with_own_sizes(func)
    constants = {k: o.data.numpy() for k, o in enumerate(operands) if isinstance(o, graph.Constant)}
    composite = Composite(name, func, target, constants, lambda k: bounds(operands[k], Match(made, {})), backend.name)
    if unknown := sorted(v.name for v in unknown_sizes(func)):
        return Offer(bindings, composite, operands, f"{', '.join(unknown)} cannot be told from the shapes of its operands")
    if not isinstance(func.ret_sinfo, graph.TensorInfo):
        return Offer(bindings, composite, operands, "its result is no tensor, and a kernel makes one")
    where = f"backend {backend.name}, pattern {name} at {site_of(anchor_of(bindings))}"
    return Offer(bindings, composite, operands, _kernel(_answer(backend.implement, composite, where), composite, where), sizes)


def _answer(function: Callable[[Any], Any], of: Any, where: str) -> Any:
    """What a function of a backend says. Raises RoundelError where it fails."""
    try:
        return function(of)
    except RoundelError:
        raise
    except Exception as error:
        raise RoundelError(f"{getattr(function, '__name__', 'a function')} failed: {type(error).__name__}: {error}", where=where) from error


def _kernel(made: Any, composite: Composite, where: str) -> Kernel | str:
    """What an implementation returned. Raises OptionError for what is no kernel, and no reason why there is none."""
    hint = "it returns what backends.native or backends.python makes, a Kernel of a tensor program, or a text that says why there can be none"
    if not isinstance(made, Kernel | str):
        raise OptionError(f"the implementation returned {f'a {type(made).__name__}' if made is not None else 'nothing'}", where=where, hint=hint)
    if isinstance(made, str):
        return made or "it did not say why"
    if made.function is not None:
        return replace(made, function=guarded(made.function, where, len(composite.operands)))
    if not isinstance(made.program, tir.PrimFunc):
        raise OptionError(f"the implementation returned a Kernel {'of nothing' if made.program is None else f'of a {type(made.program).__name__}'}",
                          where=where, hint=hint)
    return made


def plain(func: graph.Function) -> graph.Function:
    """The function without dataflow blocks: values of branches stand beside others in it."""
    if not any(isinstance(block, graph.DataflowBlock) for block in func.body.blocks):
        return func
    table = {b.var: graph.Var(b.var.name, b.var.sinfo) for b in func.body.bindings if isinstance(b.var, graph.DataflowVar)}
    body = Renamed(dict(table)).rewrite(func.body)
    return func.replace(body=graph.SeqExpr(tuple(graph.BindingBlock(b.bindings) for b in body.blocks), body.body))


def users_in(func: graph.Function) -> dict[graph.Var, list[graph.VarBinding | None]]:
    """Who uses each variable of a function; None is its result."""
    users: dict[graph.Var, list[Any]] = {}
    for user, value in (*((b, b.value) for b in func.body.bindings), (None, func.body.body)):
        for v in dict.fromkeys(n for n in walk(value) if isinstance(n, graph.Var)):
            users.setdefault(v, []).append(user)
    return users


class _Function:
    """One function, and the backends that may compute parts of it."""

    def __init__(self, func: graph.Function, backends: Sequence[Backend], target: Target) -> None:
        self.func, self.backends, self.target = func, backends, target
        self.bindings = {b.var: b for b in func.body.bindings}
        self.order = {v: k for k, v in enumerate(self.bindings)}
        self.users = users_in(func)

    def parts(self) -> list[Part]:
        """Of each backend the first pattern by which it can compute an operator, and the last place of that pattern."""
        found: dict[graph.Var, dict[str, Offer]] = {}
        alone = IRModule({"main": self.func})
        for backend in self.backends:
            for pattern in backend.fusion_patterns:
                fuse_by_pattern(alone, [replace(pattern, check=self._noting(backend, pattern, found))])
        parts = [Part(self.bindings[v], offers, self.around(self.bindings[v])) for v, offers in found.items() if offers]  # type: ignore[arg-type]
        return sorted(parts, key=lambda p: -max(self.order[o.bindings[-1].var] for o in p.offers.values()))

    def _noting(self, backend: Backend, pattern: FusionPattern, found: dict[graph.Var, dict[str, Offer]]) -> Callable[[PatternCheckContext], bool]:
        """A check that refuses everything, and keeps what it was asked about."""

        def check(context: PatternCheckContext) -> bool:
            bindings = [graph.VarBinding(v, value, self.bindings[v].span) for v, value in context.matched_bindings.items()]
            anchor = anchor_of(bindings)
            there, where = found.setdefault(anchor.var, {}), f"backend {backend.name}, pattern {pattern.name} at {site_of(anchor)}"
            if (backend.name not in there or isinstance(there[backend.name].kernel, str)) and (pattern.check is None or _answer(pattern.check, context, where)):
                there[backend.name] = offer_of(backend, pattern.name, bindings, self.target, self._made)
            return False

        return check

    def _made(self, value: Any) -> Any:
        """What a variable is bound to; None for what is no variable of the function."""
        return getattr(self.bindings.get(value), "value", None)

    def around(self, anchor: graph.VarBinding) -> list[graph.VarBinding]:
        """The operator, rearrangements of its operands that nothing else uses, and elementwise operators behind it, up to the last one from which
        alone values leave."""
        before = [self.bindings[a] for a in dict.fromkeys(anchor.value.args) if a in self.bindings and self.users[a] == [anchor]  # type: ignore[attr-defined]
                  and _kind(self.bindings[a]) == FuseKind.INJECTIVE]
        taken, best = [anchor], [anchor]
        while len(taken) <= MOST_AROUND:
            leaving = {b.var: [u for u in self.users.get(b.var, ()) if u not in taken] for b in taken}
            if sum(map(bool, leaving.values())) == 1 and leaving[taken[-1].var]:
                best = list(taken)
            others = {u.var: u for found in leaving.values() for u in found if u is not None}
            following = min(others.values(), key=lambda b: self.order[b.var], default=None)
            if following is None or (kind := _kind(following)) is None or kind > FuseKind.BROADCAST or following.var.sinfo != anchor.var.sinfo:
                break
            taken.append(following)
        return [*sorted(before, key=lambda b: self.order[b.var]), *best]  # type: ignore[list-item]


def _kind(binding: Any) -> FuseKind | None:
    """How the operator that a binding calls is fused; None for other values."""
    op = getattr(binding.value, "op", None)
    return op.kind if isinstance(op, OpDef) else None
