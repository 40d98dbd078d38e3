# SPDX-License-Identifier: Apache-2.0
"""A graph function with its gradients: the function once more, then its steps from the last to the first, each by its rule.

    def main(x, w):                               def main_adjoint(x, w):
        y = R.matmul(x, w)                            y = R.matmul(x, w)
        loss = R.sum(y)              ->               loss = R.sum(y)
        return loss                                   y_adjoint = ...
                                                      return loss, (x_adjoint, w_adjoint)

Griewank and Walther, Evaluating Derivatives (2008), chapter 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...builder import BlockBuilder
from ...ir import graph
from ...ir.errors import RoundelError, UnsupportedError
from ...ir.module import IRModule
from ...ir.op import OpDef
from ...ops import make
from ...ops.dims import same
from ...relax.analysis import remove_all_unused
from ...relax.outline import Renamed
from ..rewriter import operands
from ..tidy.inline_functions import straightened
from . import compositions, elementwise, products, reductions, shapes, windows
from .rules import COMPOSITIONS, RULES, Step, zeros

_FAMILIES = (compositions, elementwise, products, reductions, shapes, windows)
"""They fill the tables of rules."""


def gradient(mod: IRModule, name: str, require_grads: Sequence[Any] | Any | None = None, target_index: int = 0) -> IRModule:
    """The module with a function ``NAME_adjoint`` beside the function ``name``: it takes the same parameters and returns its result, and a tuple of
    the gradients of the target by parameters.

    The target is the result, or the field ``target_index`` of it: a float scalar. ``require_grads`` are the parameters (variables or names) whose
    gradients are asked for, all where it is None; that of a tuple is a tuple. A parameter that the target does not depend on has zeros.
    Raises RoundelError where the target or a parameter does not fit and UnsupportedError where an operator in between has no gradient.
    """
    func = mod[name] if name in mod else None
    if not isinstance(func, graph.Function):
        raise RoundelError(f"there is no graph function {name}", hint=f"functions there are: {', '.join(mod)}")
    asked = [require_grads] if isinstance(require_grads, graph.Var | str) else func.params if require_grads is None else require_grads
    chosen = [_position(func, p, name) for p in asked]
    params, bindings, result = straightened(mod, name)
    builder, adjoint = BlockBuilder(mod), f"{name}_adjoint"
    attrs = {k: v for k, v in func.attrs.items() if k != "global_symbol"}
    with builder.function(adjoint, params, attrs):
        with builder.dataflow():
            sweep = _Sweep(builder, {params[k] for k in chosen})
            sweep.forward(bindings)
            values = _outputs(builder, sweep.renamed(result), name)
            sweep.back(_target(values, target_index, name))
            gradients = graph.Tuple(tuple(_outputs(builder, sweep.of(params[k]), f"{params[k].name}_adjoint_out") for k in chosen))
        builder.emit_func_output(graph.Tuple((values, gradients)))
    made = builder.finalize()
    return made.with_functions({adjoint: remove_all_unused(made[adjoint])})


def _position(func: graph.Function, wanted: Any, name: str) -> int:
    """The index of a parameter, which has to be of floats."""
    names = [p.name for p in func.params]
    found = [k for k, p in enumerate(func.params) if p is wanted or p.name == wanted]
    if len(found) != 1:
        raise RoundelError(f"{getattr(wanted, 'name', wanted)} is no parameter of {name}", hint=f"its parameters are {', '.join(names)}")
    if not _of_floats(func.params[found[0]].sinfo):
        raise RoundelError(f"the parameter {names[found[0]]} of {name} is {func.params[found[0]].sinfo}, which has no gradient",
                           hint="require_grads=[...] names the parameters whose gradients are wanted: tensors of floats")
    return found[0]


def _of_floats(info: graph.StructInfo) -> bool:
    if isinstance(info, graph.TupleInfo):
        return all(map(_of_floats, info.fields))
    return isinstance(info, graph.TensorInfo) and info.dtype is not None and info.dtype.is_float


def _target(values: Any, index: int, name: str) -> graph.Var:
    """The scalar whose gradients are wanted."""
    fields = values.fields if isinstance(values, graph.Tuple) else (values,)
    if not 0 <= index < len(fields):
        raise RoundelError(f"{name} has {len(fields)} results, there is no target {index}")
    info = fields[index].sinfo
    if not isinstance(info, graph.TensorInfo) or info.shape != () or not _of_floats(info):
        raise RoundelError(f"the target of {name} is {info}, no float scalar", hint="reduce it, for instance by R.sum(x), or give target_index")
    return fields[index]


def _outputs(builder: BlockBuilder, value: Any, hint: str) -> Any:
    """A value that leaves the dataflow block."""
    if isinstance(value, graph.Tuple):
        return graph.Tuple(tuple(_outputs(builder, f, hint) for f in value.fields))
    return builder.emit_output(value, value.name if isinstance(value, graph.DataflowVar) else hint)


class _Sweep:
    """The two directions: ``steps`` are the values that were bound; ``active`` the variables that the chosen parameters reach; ``adjoints`` the gradients
    by variable, for tuples a list with None for fields that have none."""

    def __init__(self, builder: BlockBuilder, active: set[graph.Var]) -> None:
        self.builder, self.active = builder, set(active)
        self.table: dict[Any, Any] = {}
        self.steps: list[tuple[graph.Var, Any]] = []
        self.adjoints: dict[graph.Var, Any] = {}

    def renamed(self, value: Any) -> Any:
        """The value in the variables of the new function."""
        return Renamed(self.table).rewrite(value)

    def forward(self, bindings: Sequence[graph.Binding]) -> None:
        """The function's bindings, operators that are made of others taken apart where gradients pass."""
        for binding in bindings:
            if isinstance(binding, graph.MatchCast):
                made: Any = self.builder.match_cast(self.renamed(binding.value), binding.sinfo, binding.var.name)
                self._note(made, self.renamed(binding.value))
            else:
                made = self.emit(self.renamed(binding.value), binding.var.name)
            self.table[binding.var] = made

    def emit(self, value: Any, hint: str = "lv") -> Any:
        """Bind a value, or what it is composed of."""
        if isinstance(value, graph.Tuple):
            return graph.Tuple(tuple(map(self.emit, value.fields)))
        if isinstance(value, graph.Call):
            value = value.replace(args=tuple(self.emit(a) if isinstance(a, graph.Call) else a for a in value.args))
            if self._reached(value) and isinstance(value.op, OpDef) and value.op.name not in RULES:
                if value.op.name in COMPOSITIONS:
                    return self.emit(COMPOSITIONS[value.op.name](self._make, *value.args, **value.attrs), hint)
                if value.op.has("decompose"):
                    return self.emit(value.op.decompose(self, value.args, value.attrs), hint)
        if isinstance(value, graph.Var | graph.Constant):
            return value
        var = self.builder.emit(value, hint)
        self._note(var, value)
        return var

    def _make(self, name: str, *args: Any, **attrs: Any) -> Any:
        return self.emit(make(name, *args, **attrs))

    def _note(self, var: graph.Var, value: Any) -> None:
        if self._reached(value):
            self.active.add(var)
        self.steps.append((var, value))

    def _reached(self, value: Any) -> bool:
        """Whether a chosen parameter reaches the value."""
        return value in self.active if isinstance(value, graph.Var) else any(map(self._reached, operands(value)))

    def back(self, target: graph.Var) -> None:
        """The gradients of the target."""
        bound = self.builder.lookup_binding(target)
        self.add(bound, self.builder.emit(make("ones", (), dtype=target.sinfo.dtype), f"{target.name}_adjoint"))
        for var, value in reversed(self.steps):
            tree = self.adjoints.pop(var, None)
            if tree is None or var not in self.active:
                continue
            if isinstance(value, graph.Call):
                self._call(Step(value, var, self.builder), tree)
            elif isinstance(value, graph.If | graph.While):
                raise UnsupportedError("there is no gradient through a branch or a loop", where=var.name, hint="R.where takes both sides")
            else:
                self.add(value, tree)

    def _call(self, step: Step, tree: Any) -> None:
        name = step.call.op.name if isinstance(step.call.op, OpDef) else getattr(step.call.op, "name", "a function")
        if name not in RULES:
            hint = "gradients are made of operators: ask for them before LegalizeOps; a program of your own names its gradient by R.call_tir_with_grad"
            raise UnsupportedError(f"R.{name} has no gradient", where=step.out.name, hint=hint)
        for operand, found in zip(step.args, RULES[name](step, tree), strict=False):
            self.add(operand, found)

    def add(self, value: Any, tree: Any) -> None:
        """Add a gradient to that of a value: of the variables that it is made of."""
        if tree is None or not self._reached(value):
            return
        if isinstance(value, graph.Tuple):
            for field, part in zip(value.fields, tree, strict=True):
                self.add(field, part)
        elif isinstance(value, graph.TupleGetItem):
            fields: list[Any] = [None] * len(value.tuple_value.sinfo.fields)
            fields[value.index] = tree
            self.add(value.tuple_value, fields)
        elif isinstance(value, graph.Var) and not (isinstance(value.sinfo, graph.TensorInfo) and not _of_floats(value.sinfo)):
            self.adjoints[value] = self._sum(self.adjoints.get(value), self._fit(tree, value.sinfo, value.name))

    def _sum(self, a: Any, b: Any) -> Any:
        if a is None or b is None:
            return b if a is None else a
        if isinstance(a, list):
            return [self._sum(x, y) for x, y in zip(a, b, strict=True)]
        return self.builder.emit(a + b)

    def _fit(self, tree: Any, info: Any, name: str) -> Any:
        """A gradient in the shape and type of what it is of, bound."""
        if isinstance(tree, list | tuple):
            return [None if t is None else self._fit(t, i, name) for t, i in zip(tree, info.fields, strict=True)]
        if isinstance(info, graph.TupleInfo):
            return [graph.TupleGetItem(tree, k) for k in range(len(info.fields))]
        if info.shape is None:
            raise UnsupportedError("the gradient of a tensor whose shape is not known cannot be made", where=name, hint="state its shape by R.match_cast")
        value = tree if isinstance(tree, graph.Var) else self.builder.emit(tree, f"{name}_adjoint")
        if len(value.sinfo.shape) != len(info.shape) or not all(map(same, value.sinfo.shape, info.shape)):
            value = self.builder.emit(make("collapse_sum_to", value, graph.ShapeExpr(info.shape)), f"{name}_adjoint")
        return value if value.sinfo.dtype is info.dtype else self.builder.emit(make("astype", value, dtype=info.dtype), f"{name}_adjoint")

    def of(self, param: graph.Var) -> Any:
        """The gradient by a parameter, zeros where there is none."""
        return self._whole(self.adjoints.get(param), param)

    def _whole(self, tree: Any, value: Any) -> Any:
        if isinstance(value.sinfo, graph.TupleInfo):
            fields = tree or [None] * len(value.sinfo.fields)
            return graph.Tuple(tuple(self._whole(t, graph.TupleGetItem(value, k)) for k, t in enumerate(fields)))
        return self.builder.emit(zeros(value)) if tree is None else tree
