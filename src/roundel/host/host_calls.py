# SPDX-License-Identifier: Apache-2.0
"""Calls in a host function: kernels, packed functions, views, shapes as tensors and tensors as shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..graph.programs.legalize import VIEWS
from ..graph.programs.merge_programs import bind_shape
from ..ir import graph, tir
from ..ir.dtype import BOOL, HANDLE, INT32, INT64, VOID
from ..ir.escape import assertion
from ..ir.op import CALL_DPS_PACKED, CALL_TIR, CALL_TIR_INPLACE, FuseKind
from ..ir.positions import message
from ..ir.tir.expr import StringImm
from ..ir.visit import free_vars
from ..runtime.objects import CALL_WITH_OBJECTS
from . import caches, range_copies
from .host_builder import HostBuilder, InPlace, Shape, flatten, unless_empty
from .host_memory import Opaque, Tensor, address


def call(host: HostBuilder, value: graph.Call, var: graph.Var) -> Any:
    """Lower a call by what is called."""
    op = value.op
    if isinstance(op, graph.ExternFunc):
        return _packed(host, value, var)
    handler = _CALLS.get(op.name) if not isinstance(op, graph.GlobalVar | graph.Var) else None
    if handler is None:
        what = getattr(op, "name", str(op))
        hint = "run the pass `inline_functions` first" if isinstance(op, graph.GlobalVar) else "run the pass `legalize` before `lower_host`"
        raise host.error(f"{what} is not lowered to a tensor program", hint=hint)
    return handler(host, value, var)


# -- tensor programs


def _call_tir(host: HostBuilder, value: graph.Call, var: graph.Var) -> Any:
    callee = value.args[0]
    kernel = host.mod[callee]
    if var in host.caches:
        return caches.append(host, host.caches[var], value, var)
    if "view" in kernel.attrs:
        source = host.tensor(host.use(value.args[1].fields[0]))
        start = kernel.attrs["view"] * source.buffer.dtype.storage_bits // 8
        return host.view(source, var.sinfo, var.name, tir.index_const(start) if start else None)
    args = [host.tensor(host.use(a)) for a in _operands(host, value.args[1])]
    result = host.fresh(value.sinfo_args[0] if value.sinfo_args else var.sinfo, var.name)
    made = _kernel_call(host, callee, args, flatten(result), _explicit(host, value))
    results = flatten(result)
    results = results[: len(results) - kernel.attrs.get("checks", 0)]
    host.emit(unless_empty(tir.Evaluate(made), *(t.buffer.shape for t in results)))
    kind = kernel.attrs.get("fuse_kind", FuseKind.OPAQUE)
    if len(results) == 1 and isinstance(results[0], Tensor) and (kind <= FuseKind.INJECTIVE or kind == FuseKind.OPAQUE):
        host.inplace.append(InPlace(made, host.clock, [*args, *results]))
    return result


def _operands(host: HostBuilder, value: graph.GraphExpr) -> list[graph.GraphExpr]:
    """The operands of a call_tir: a tuple written out, or a variable that holds one."""
    if isinstance(value, graph.Tuple):
        return list(value.fields)
    fields = value.sinfo.fields if isinstance(value.sinfo, graph.TupleInfo) else ()
    return [graph.TupleGetItem(value, k) for k in range(len(fields))] if fields else [value]


def _explicit(host: HostBuilder, value: graph.Call) -> tuple[tir.Expr, ...]:
    return host.use(value.args[2]).values if len(value.args) > 2 else ()


def _call_tir_inplace(host: HostBuilder, value: graph.Call, var: graph.Var) -> Any:
    args = [host.tensor(host.use(a)) for a in _operands(host, value.args[1])]
    places = value.attrs["inplace_indices"]
    places = places if isinstance(places, tuple) else (places,)
    infos = value.sinfo_args[0] if value.sinfo_args else var.sinfo
    infos = infos.fields if isinstance(infos, graph.TupleInfo) else (infos,)
    for k in {p for p in places if p >= 0}:  # values do not change in a graph function: the kernel overwrites a copy
        copy = host.allocate(graph.TensorInfo(args[k].buffer.shape, args[k].buffer.dtype), var.name)
        host.copy(copy.buffer, args[k].buffer)
        args[k] = copy
    results = tuple(args[p] if p >= 0 else host.fresh(info, var.name) for p, info in zip(places, infos, strict=True))
    fresh = [r for p, r in zip(places, results, strict=True) if p < 0]
    made = _kernel_call(host, value.args[0], args, fresh, _explicit(host, value))
    host.emit(unless_empty(tir.Evaluate(made), *(t.buffer.shape for t in results)))
    return results if isinstance(var.sinfo, graph.TupleInfo) else results[0]


def _kernel_call(host: HostBuilder, callee: graph.GlobalVar, args: list[Tensor], out: list[Tensor], explicit: tuple[tir.Expr, ...]) -> tir.Call:
    kernel = host.mod[callee]
    places = [p for p in kernel.params if p in kernel.buffers]
    if len(places) != len(args) + len(out):
        raise host.error(f"{callee.name} takes {len(places)} tensors", why=f"the call has {len(args)} operands and {len(out)} results")
    given = dict(zip(places, [*args, *out], strict=True))
    buffers = {p: t.buffer for p, t in given.items()}
    variables: dict[Any, tir.Expr] = {}
    for p, actual in given.items():
        bind_shape(kernel.buffers[p].shape, actual.shape, variables)
    variables.update(zip((p for p in kernel.params if p not in buffers), explicit, strict=False))
    if any(t.room for t in args):
        callee, rooms = caches.roomy(host, callee, [t.room for t in args])
        kernel = host.mod[callee]
        variables.update(rooms)
    missing = [p.name for p in kernel.params if p not in buffers and p not in variables]
    if missing:
        raise host.error(f"the call of {callee.name} does not give its scalar parameter {', '.join(missing)}", hint="pass it in tir_vars")
    operands = [address(buffers[p]) if p in buffers else tir.cast(variables[p], p.dtype) for p in kernel.params]
    return tir.Call(callee, tuple(operands), VOID)


# -- packed functions


def _call_dps_packed(host: HostBuilder, value: graph.Call, var: graph.Var) -> Any:
    args = [host.use(a) for a in _operands(host, value.args[1])]
    result = host.fresh(value.sinfo_args[0] if value.sinfo_args else var.sinfo, var.name)
    host.emit(tir.Evaluate(tir.Call("call_packed", _named(host, value.args[0].name, _spread((*args, result))), INT32)))
    return result


def _packed(host: HostBuilder, value: graph.Call, var: graph.Var) -> Any:
    info = value.sinfo_args[0] if value.sinfo_args else var.sinfo
    opaque = isinstance(info, graph.ObjectInfo) and host.flow.needed(var)
    operands = _named(host, value.op.name, _spread(tuple(map(host.use, value.args))), opaque)
    if opaque:
        number = host.allocate(graph.TensorInfo((), INT64), var.name)
        host.emit(tir.Evaluate(tir.Call("call_packed_into", (*operands, _packed_operand(number)), INT32)))
        return Opaque(number.buffer, number.storage, number.offset)
    if isinstance(info, graph.ObjectInfo) or (isinstance(info, graph.TupleInfo) and not info.fields):
        host.emit(tir.Evaluate(tir.Call("call_packed", operands, INT32)))
        return ()
    scalar = isinstance(info, graph.PrimInfo)
    if isinstance(info, graph.TupleInfo):
        raise host.error(f"the result of the packed function {value.op.name} is a tuple", hint="write into tensors with R.call_dps_packed")
    result = host.fresh(graph.TensorInfo((), info.dtype) if scalar else info, var.name)
    host.emit(tir.Evaluate(tir.Call("call_packed_into", (*operands, _packed_operand(result)), INT32)))
    return host.read(result, var.name) if scalar else result


def _named(host: HostBuilder, name: str, values: Sequence[Any], opaque: bool = False) -> tuple[tir.Expr, ...]:
    """The operands of a call of a packed function, its name first; where objects are among its arguments or its result is one, the function that
    knows them stands between."""
    operands = tuple(map(_packed_operand, values))
    if not opaque and not any(isinstance(v, Opaque) for v in values):
        return (StringImm(name), *operands)
    host.objects = True
    kinds = "".join("o" if isinstance(v, Opaque) else "." for v in values) + ("o" if opaque else ".")
    numbers = (tir.BufferLoad(v.buffer, ()) if isinstance(v, Opaque) else o for v, o in zip(values, operands, strict=True))
    return (StringImm(CALL_WITH_OBJECTS), StringImm(name), StringImm(kinds), *numbers)


def _spread(values: Any) -> list[Any]:
    """Operands of a packed function: the leaves of tuples, the elements of shapes."""
    return [v for leaf in flatten(values) for v in (leaf.values if isinstance(leaf, Shape) else (leaf,))]


def _packed_operand(value: Any) -> tir.Expr:
    if not isinstance(value, Tensor):
        return StringImm(value) if isinstance(value, str) else tir.const(value)
    b = value.buffer
    return tir.Call("tensor_view", (StringImm(str(b.dtype)), address(b), tir.index_const(b.ndim), *b.shape), HANDLE)


# -- views and shapes


def _reshape(host: HostBuilder, value: graph.Call, var: graph.Var) -> Any:
    source = host.tensor(host.use(value.args[0]))
    return caches.view(host, source, var) if source.room else host.view(source, var.sinfo, var.name)


def _assert_op(host: HostBuilder, value: graph.Call, var: graph.Var) -> Any:
    condition = host.use(value.args[0])
    holds = host.read(condition, var.name) if isinstance(condition, Tensor) else condition
    text = value.attrs["format"]
    if _shows_sides(host, holds, value.args[1:]):
        host.emit(tir.Assert(holds, text))
        return ()
    text = text.replace("{", "(").replace("}", ")")
    host.emit(tir.Assert(tir.cast(holds, BOOL), text or "assertion failed"))
    return ()


def _shows_sides(host: HostBuilder, condition: Any, values: Sequence[Any]) -> bool:
    """Whether the values for the message are the two sides of the comparison that is asserted: these a compiled assertion shows."""
    shown = tuple(map(host.use, values[0].fields)) if values and isinstance(values[0], graph.Tuple) else ()
    return isinstance(condition, tir.Compare) and shown == (condition.a, condition.b)


def _check_indices(host: HostBuilder, value: graph.Call, var: graph.Var) -> Any:
    """The indices are where they are; they are looked at one by one where the flag says so, or where there is none. Where a program has
    looked at them, its result is where it is; a program that is left out because its result is empty sets no flag."""
    source, limits = host.tensor(host.use(value.args[0])), host.use(value.args[1]).values
    scan = _look_at_each(source, limits, value.attrs["negative"], value.attrs["node"])
    if len(value.args) > 2:
        flag = host.use(value.args[2])
        doubt = tir.lt(tir.BufferLoad(flag.buffer, ()), 0) if isinstance(flag, Tensor) else flag
        if len(value.args) > 3:
            source = host.tensor(host.use(value.args[3]))
            doubt = tir.logical_or(*(tir.eq(n, 0) for n in source.shape if not isinstance(n, tir.IntImm)), doubt)
        scan = tir.If(doubt, scan)
    host.emit(scan)
    return caches.view(host, source, var) if source.room else host.view(source, var.sinfo, var.name)


def _look_at_each(source: Tensor, limits: tuple[tir.Expr, ...], negative: bool, name: str) -> tir.Stmt:
    """Fail at the first index that is not in [0, limit), or [-limit, limit) where ``negative``."""
    at = [tir.Var(f"i{k}", INT64) for k in range(source.buffer.ndim)]
    limit = limits[-1]
    for k in reversed(range(len(limits) - 1)):
        limit = tir.select(tir.eq(at[-1], k), limits[k], limit)
    index = tir.cast(tir.BufferLoad(source.buffer, tuple(at)), INT64)
    low = 0 - limit if negative and source.buffer.dtype.kind == "int" else tir.index_const(0)
    inside = tir.logical_and(tir.ge(index, tir.cast(low, INT64)), tir.lt(index, tir.cast(limit, INT64)))
    out: tir.Stmt = tir.Assert(inside, message(name, len(at)), None, (index, *at, low, limit))
    for i, n in zip(reversed(at), reversed(source.shape), strict=True):
        out = tir.For(i, tir.index_const(0), n, tir.ForKind.SERIAL, out)
    return out


def _shape_of(host: HostBuilder, value: graph.Call, var: graph.Var) -> Any:
    return Shape(host.tensor(host.use(value.args[0])).buffer.shape)


def _shape_to_tensor(host: HostBuilder, value: graph.Call, var: graph.Var) -> Any:
    return host.tensor(host.use(value.args[0]))


def _tensor_to_shape(host: HostBuilder, value: graph.Call, var: graph.Var) -> Any:
    source = host.tensor(host.use(value.args[0]))
    count = source.buffer.shape[0]
    if not isinstance(count, tir.IntImm):
        raise host.error(f"the shape {var.name} has a rank that only the run can tell", hint="reshape the tensor to one of constant length")
    upper = value.args[1] if len(value.args) > 1 else None
    uppers = None if upper is None or (isinstance(upper, graph.Tuple) and not upper.fields) else host.use(upper).values
    return Shape(host.load_integers(source, [f"{var.name}_{k}" for k in range(count.value)]), uppers)


def match_cast(host: HostBuilder, binding: graph.MatchCast) -> None:
    """Bind the variables that are new in the struct info, check the dimensions that are not."""
    value, info, name = host.use(binding.value), binding.sinfo, binding.var.name
    if isinstance(value, Shape):
        actual, wanted = value.values, info.values if isinstance(info, graph.ShapeInfo) else None
    elif isinstance(value, Tensor):
        actual, wanted = value.buffer.shape, info.shape if isinstance(info, graph.TensorInfo) else None
        if isinstance(info, graph.TensorInfo) and info.dtype not in (None, value.buffer.dtype):
            raise host.error(f"match_cast of {name} to {info.dtype}", why=f"the value is {value.buffer.dtype}")
    else:
        actual, wanted = (value,) if isinstance(value, tir.Expr) else (), (info.value,) if isinstance(info, graph.PrimInfo) else None
    if wanted is not None and None not in wanted:
        if len(wanted) != len(actual):
            raise host.error(f"match_cast of {name} to {len(wanted)} dimensions", why=f"the value has {len(actual)}")
        node = binding.span is not None and not binding.span.line
        where = assertion(str(binding.span)) if node else f"match_cast of {name}"
        alone = isinstance(value, Shape) and len(wanted) == 1  # a number that the model computes, called what it is
        called = (lambda k: assertion(name.replace("_", " "))) if node and alone else lambda k: f"dimension {k}{_text(wanted[k])}"
        _bind(host, wanted, actual, value.uppers if isinstance(value, Shape) else None, where, called)
        if isinstance(value, Tensor):
            value = host.view(value, info, name)
        elif isinstance(value, Shape):
            value = Shape(tuple(wanted))
    host.env[binding.var] = value


def _bind(host: HostBuilder, wanted: tuple[tir.Expr, ...], actual: tuple[tir.Expr, ...], uppers: Any, where: str,
          called: Callable[[int], str]) -> None:
    new: dict[tir.Var, tir.Expr] = {}
    bounds: dict[tir.Var, tir.Expr] = {}
    checks = []
    for k, (dim, is_now) in enumerate(zip(wanted, actual, strict=True)):
        if type(dim) is tir.Var and dim not in host.env and dim not in new:
            new[dim] = is_now
            if uppers is not None:
                bounds[dim] = uppers[k]
        elif dim is not is_now:
            checks.append((k, dim, is_now))
    if new:
        host.bind_sizes(new, bounds, where)
    for k, dim, is_now in checks:
        unknown = [v.name for v in free_vars(dim) if v not in host.env]
        if unknown:
            raise host.error(f"{where}: {', '.join(unknown)} in dimension {k} is not known",
                             hint="bind a new variable as a whole dimension first")
        if not host.an.prove_equal(dim, is_now):
            host.emit(tir.Assert(tir.eq(dim, is_now), f"{where}: {called(k)} is {{1}}, not {{0}}"))


def _text(e: tir.Expr) -> str:
    """What a dimension is called, in brackets; of a number, nothing."""
    return "" if isinstance(e, tir.IntImm) else f" ({e.name if isinstance(e, tir.Var) else e.script()})"


_CALLS: dict[str, Callable[[HostBuilder, graph.Call, graph.Var], Any]] = {
    CALL_TIR.name: _call_tir, CALL_TIR_INPLACE.name: _call_tir_inplace, CALL_DPS_PACKED.name: _call_dps_packed,
    "assert_op": _assert_op, "check_indices": _check_indices, "concat": range_copies.concat, "strided_slice": range_copies.part,
    "null_value": lambda host, value, var: (), "shape_of": _shape_of, "shape_to_tensor": _shape_to_tensor,
    "tensor_to_shape": _tensor_to_shape,
    **{name: _reshape for name in VIEWS}}
