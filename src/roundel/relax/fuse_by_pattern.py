# SPDX-License-Identifier: Apache-2.0
"""Functions of their own for the values that a pattern matches, so that a library or a device takes them over.

    x, w, bias = wildcard(), wildcard(), wildcard()
    out = is_op("relax.add")(is_op("relax.matmul")(x, w), bias)
    mod = fuse_by_pattern(mod, [FusionPattern("mine.matmul_bias", out)])

        lv = R.matmul(x, w)                                    lv1 = cls.fused_matmul_add(x, w, b)
        lv1 = R.add(lv, b)                 ->       and        @R.function(private=True)
                                                               def fused_matmul_add(x, w, b):
                                                                   R.func_attr({"Composite": "mine.matmul_bias"})
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from roundel.ir import graph, structural_equal
from roundel.ir.dataclass import dataclass
from roundel.ir.errors import OptionError
from roundel.ir.module import IRModule
from roundel.ir.op import OpDef
from roundel.ir.visit import walk

from .merge_composites import for_codegen
from .outline import outline, unknown_sizes
from .patterns import CallPattern, DFPattern, Matcher, TupleGetItemPattern, TuplePattern, UnorderedTuplePattern

_PATTERN_HINT = "give a FusionPattern, or a tuple of a name, a pattern, a dictionary of parts (or {}) and a function that checks"
_INNER = (CallPattern, TuplePattern, TupleGetItemPattern, UnorderedTuplePattern)
"""Patterns whose values are part of the function; those of others are its operands."""


@dataclass(frozen=True)
class FusionPattern:
    """What is merged under which name; ``check`` says of a match whether it is wanted, by the parts that ``annotation_patterns`` name."""

    name: str
    pattern: DFPattern
    annotation_patterns: Mapping[str, DFPattern] = field(default_factory=dict)
    check: Callable[[PatternCheckContext], bool] | None = None

    @classmethod
    def of(cls, given: Any) -> FusionPattern:
        """What a tuple of a name, a pattern, parts that have names and a check stands for. Raises OptionError for anything else."""
        if isinstance(given, cls):
            return given
        kinds = (("a name", str), ("a pattern", DFPattern), ("a dictionary of parts", Mapping), ("a function that checks", Callable))
        if not isinstance(given, tuple) or not 2 <= len(given) <= 4:
            raise OptionError(f"a pattern cannot be a {type(given).__name__}{f' of {len(given)}' if isinstance(given, tuple) else ''}", hint=_PATTERN_HINT)
        for k, (value, (what, kind)) in enumerate(zip(given, kinds, strict=False)):
            if not isinstance(value, kind) and not (k > 1 and value is None):  # type: ignore[arg-type]
                raise OptionError(f"part {k + 1} of a pattern is a {type(value).__name__}, and should be {what}", hint=_PATTERN_HINT)
        return cls(given[0], given[1], (given[2] if len(given) > 2 else None) or {}, *given[3:])


@dataclass(frozen=True)
class PatternCheckContext:
    """A match: its value, the values of the parts that have names, the variables that would go into the function with their values, who uses
    which variable, and the variable of each value."""

    matched_expr: Any
    annotated_expr: Mapping[str, Any]
    matched_bindings: Mapping[graph.Var, Any]
    var_usages: Mapping[graph.Var, Sequence[graph.Var]]
    value_to_bound_var: Mapping[Any, graph.Var]


def fuse_by_pattern(mod: IRModule, patterns: Sequence[FusionPattern | tuple[Any, ...]], bind_constants: bool = True,
                    annotate_codegen: bool = False) -> IRModule:
    """The module with a private function for each match, in the order of the patterns, and calls of these.

    A value that something else uses too is in no match: it would have to leave the function. ``bind_constants``: constants become part of the
    function, not its operands. ``annotate_codegen``: the part of the name before the dot is the function's attribute ``Codegen``.
    """
    wanted = [FusionPattern.of(p) for p in patterns]
    for pattern in wanted:
        for name, func in list(mod.items()):
            if isinstance(func, graph.Function) and not {"Composite", "Codegen"} & func.attrs.keys():
                mod = _Fusion(mod, name, func, bind_constants, annotate_codegen).by(pattern)
    return mod


class _Fusion:
    """One function of a module."""

    def __init__(self, mod: IRModule, name: str, func: graph.Function, bind_constants: bool, annotate: bool) -> None:
        self.mod, self.name, self.func, self.bind_constants, self.annotate = mod, name, func, bind_constants, annotate
        self.bindings = [b for block in func.body.blocks for b in block.bindings if isinstance(b, graph.VarBinding)]
        self.values = {b.var: b.value for b in self.bindings}
        self.bound = {id(value): var for var, value in self.values.items()}
        self.users: dict[graph.Var, list[graph.Var]] = {}
        for b in func.body.bindings:
            for v in dict.fromkeys(n for n in walk(b.value) if isinstance(n, graph.Var)):
                self.users.setdefault(v, []).append(b.var)
        self.leaving = {n for n in walk(func.body.body) if isinstance(n, graph.Var)}
        self.leaving |= {b.var for block in func.body.blocks if isinstance(block, graph.DataflowBlock) for b in block.bindings  # type: ignore[attr-defined]
                         if not isinstance(b.var, graph.DataflowVar)}  # type: ignore[attr-defined]

    def by(self, pattern: FusionPattern) -> IRModule:
        """The module with what the pattern matches in this function in functions of their own; the last matches come first."""
        taken: set[graph.Var] = set()
        calls: dict[graph.Var, graph.GraphExpr] = {}
        for b in reversed(self.bindings):
            group = self._group(pattern, b)
            if group and not taken & set(group) and (call := self._outlined(pattern.name, group)) is not None:
                taken |= set(group)
                calls[b.var] = call
        if not calls:
            return self.mod
        return self.mod.with_functions({self.name: without(self.func, taken - set(calls), calls)})

    def _group(self, pattern: FusionPattern, last: graph.VarBinding) -> list[graph.Var]:
        """The variables that a match ending in this binding takes in, in order; none where there is no match."""
        m = Matcher(self.values)
        if not isinstance(last.value, graph.Call) or not m.match(pattern.pattern, last.var):
            return []
        inner = {v if isinstance(v, graph.Var) else self.bound.get(id(v)) for p, v in m.found.items() if isinstance(p, _INNER)} - {None}
        group = [b.var for b in self.bindings if b.var in inner]
        if any(v is not last.var and (v in self.leaving or not set(self.users.get(v, ())) <= inner) for v in group):
            return []
        named = {name: m.value(m.found[p]) for name, p in pattern.annotation_patterns.items() if p in m.found}
        context = PatternCheckContext(last.value, named, {v: self.values[v] for v in group}, self.users, {value: var for var, value in self.values.items()})
        return group if pattern.check is None or pattern.check(context) else []

    def _outlined(self, name: str, group: Sequence[graph.Var]) -> graph.Call | None:
        """The call of a new private function of the module that makes the last of these variables; None where it could not know its sizes."""
        members = [graph.VarBinding(v, self.values[v]) for v in group]
        func, operands = outline(members, group[-1:], {"Composite": name, "Primitive": True}, bind_constants=self.bind_constants)
        if unknown_sizes(func):
            return None
        ops = [v.op.name.replace(".", "_") for v in map(self.values.get, group) if isinstance(v, graph.Call) and isinstance(v.op, OpDef)]
        stem = "_".join(["fused", *ops])
        equal = (n for n, f in self.mod.items() if n.startswith(stem) and structural_equal(f, func))
        symbol = next(equal, None) or self.mod.unique_name(stem)
        self.mod = self.mod.with_functions({symbol: func})
        call = graph.Call(graph.GlobalVar(symbol), operands, sinfo=group[-1].sinfo)
        if self.annotate:
            self.mod, call = for_codegen(self.mod, call)
        return call


def without(func: graph.Function, dropped: set[graph.Var], calls: Mapping[graph.Var, Any]) -> graph.Function:
    """The function with some bindings left out and the values of others replaced."""
    blocks = []
    for block in func.body.blocks:
        kept = tuple(b.replace(value=calls[b.var]) if b.var in calls else b for b in block.bindings if b.var not in dropped)  # type: ignore[attr-defined]
        blocks.append(type(block)(kept))
    return func.replace(body=graph.SeqExpr(tuple(blocks), func.body.body))


__all__ = ["FusionPattern", "PatternCheckContext", "fuse_by_pattern", "without"]
