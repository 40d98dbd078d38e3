# SPDX-License-Identifier: Apache-2.0
"""Graph functions to host functions: one TensorIR function that plans memory and calls kernels (design decision 12).

Every tensor gets a storage (a piece of the arena, an input, an output or a constant) and is declared as a buffer over
it; ``call_tir`` becomes a kernel call, reshapes become views, control flow becomes ``If`` and ``While``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..arith import Analyzer
from ..ir import graph, tir
from ..ir.attrs import Attrs
from ..ir.constants import ConstData
from ..ir.dtype import HANDLE, INT32, VOID, DType
from ..ir.errors import LowerError
from ..ir.module import IRModule
from ..ir.op import CALL_DPS_PACKED, CALL_TIR, CALL_TIR_INPLACE
from ..ir.tir.expr import StringImm
from ..ir.visit import free_vars, substitute
from ..lower.explicit_shape_params import explicit_shape_params
from ..passes import pass_
from .memory_plan import Request, plan
from .merge_programs import bind_shape

VIEWS = ("reshape", "squeeze", "expand_dims", "flatten")


@pass_("lower_host")
def lower_host(mod: IRModule) -> IRModule:
    """Every exported graph function becomes a host function; the tensor programs it calls become its kernels."""
    mod = explicit_shape_params(mod)
    constants = dict(mod.constants or {})
    for name, func in list(mod.items()):
        if isinstance(func, graph.Function):
            host = _Host(mod, name, func)
            mod = mod.with_functions({name: host.lower()})
            constants.update(host.data)
    mod = mod.replace(constants=constants) if constants else mod
    return mod.with_functions({n: f.with_attr("kind", "kernel") for n, f in mod.items()
                               if isinstance(f, tir.PrimFunc) and "kind" not in f.attrs and "global_symbol" not in f.attrs})


@dataclass(eq=False)
class _Storage:
    """Memory for tensors, needed from step ``first`` to step ``last``. ``home`` is the parameter that holds it, if any."""

    nbytes: tir.Expr
    kind: str  # "arena", "input", "output", "constant"
    first: int = 0
    last: int = 0
    home: tir.Buffer | None = None


@dataclass(eq=False)
class _Tensor:
    """A buffer over a storage. Where it lies is settled when all lifetimes are known."""

    buffer: tir.Buffer
    storage: _Storage


@dataclass(eq=False)
class _Shape:
    """A shape value: index expressions."""

    values: tuple[tir.Expr, ...]


Entry = tir.Stmt | Callable[[tir.Stmt], tir.Stmt]


def _close(entries: list[Entry]) -> tir.Stmt:
    """Statements in order; an entry that is callable wraps all that follow it (declarations, lets)."""
    body: list[tir.Stmt] = []
    for entry in reversed(entries):
        if isinstance(entry, tir.Stmt):
            body.insert(0, entry)
        else:
            body = [entry(tir.seq(*body) if body else tir.Seq(()))]
    return tir.seq(*body) if body else tir.Seq(())


class _Host:
    """Lowers one function."""

    def __init__(self, mod: IRModule, name: str, func: graph.Function) -> None:
        self.mod, self.name, self.func = mod, name, func
        self.env: dict[Any, Any] = {}
        self.constants: dict[str, _Tensor] = {}
        self.data: dict[str, ConstData] = {}
        self.tensors: list[_Tensor] = []
        self.prologue: list[Entry] = []
        self.entries: list[Entry] = []
        self.clock = 0
        self.an = Analyzer()

    def lower(self) -> tir.PrimFunc:
        """The host function."""
        func = self.func
        inputs = [self._parameter(p) for p in func.params]
        result = self.seq(func.body)
        outputs = [self._output(k, value) for k, value in enumerate(_flatten(result))]
        body = self._place(_close([*self.prologue, *self.entries]))
        params = [*inputs, *outputs]
        handles = tuple(tir.Var(b.name + "_handle", HANDLE) for b in params)
        attrs = func.attrs | {"kind": "host", "global_symbol": func.attrs.get("global_symbol", self.name),
                              "num_inputs": len(inputs), "num_outputs": len(outputs), "returns_tuple": isinstance(result, tuple)}
        host = tir.PrimFunc(handles, body, tuple(zip(handles, params, strict=True)), attrs, INT32, func.span)
        return explicit_shape_params.on_func(host)

    # -- storage

    def _parameter(self, var: graph.Var) -> tir.Buffer:
        info = var.sinfo
        if not isinstance(info, graph.TensorInfo) or info.shape is None or info.dtype is None:
            raise LowerError(f"parameter {var.name} of {self.name} is not a tensor of known rank and dtype", why=f"it is {info!r}")
        buffer = tir.decl_buffer(info.shape, info.dtype, var.name)
        self.env.update({d: d for n in info.shape for d in free_vars(n)})
        self.env[var] = _Tensor(buffer, _Storage(_nbytes(buffer), "input", home=buffer))
        return buffer

    def _allocate(self, info: graph.TensorInfo, name: str) -> _Tensor:
        """A new tensor, declared here."""
        buffer = tir.decl_buffer(info.shape, info.dtype, name)
        return self._declare(buffer, _Storage(self.an.simplify(_nbytes(buffer)), "arena", self.clock, self.clock))

    def _view(self, source: _Tensor, info: graph.TensorInfo, name: str) -> _Tensor:
        """The same elements under another shape."""
        return self._declare(tir.decl_buffer(info.shape, info.dtype or source.buffer.dtype, name), source.storage)

    def _declare(self, buffer: tir.Buffer, storage: _Storage) -> _Tensor:
        self.entries.append(lambda body: tir.DeclBuffer(buffer, body))
        self.tensors.append(_Tensor(buffer, storage))
        return self.tensors[-1]

    def _constant(self, value: graph.Constant) -> _Tensor:
        key = value.data.key
        if key not in self.constants:
            buffer = tir.decl_buffer(value.data.shape, value.data.dtype, "const")
            load = tir.Call("constant_ptr", (StringImm(key),), HANDLE)
            self.prologue.append(lambda body: tir.Let(buffer.data, load, tir.DeclBuffer(buffer, body)))
            self.data[key] = value.data
            self.constants[key] = _Tensor(buffer, _Storage(_nbytes(buffer), "constant", home=buffer))
        return self.constants[key]

    def _touch(self, tensor: _Tensor) -> _Tensor:
        tensor.storage.last = max(tensor.storage.last, self.clock)
        return tensor

    def _place(self, body: tir.Stmt) -> tir.Stmt:
        """Settle where every storage lies, move the buffers there and allocate the arena."""
        inner = list({id(t.storage): t.storage for t in self.tensors if t.storage.kind == "arena"}.values())
        made = plan([Request(s.nbytes, s.first, s.last) for s in inner])
        offsets = {id(s): o for s, o in zip(inner, made.offsets, strict=True)}
        arena = tir.decl_buffer((made.total,), "uint8", "arena")
        table: dict[tir.Buffer, tir.Buffer] = {}
        for t in self.tensors:
            if t.storage.kind == "arena":
                offset = _elements(offsets[id(t.storage)], t.buffer.dtype)
                table[t.buffer] = t.buffer.replace(data=arena.data, elem_offset=offset)
            else:
                assert t.storage.home is not None
                table[t.buffer] = t.buffer.replace(data=t.storage.home.data)
        body = substitute(body, {}, table)
        return tir.Allocate(arena, body, Attrs(arena=True)) if inner else body

    def _output(self, index: int, value: Any) -> tir.Buffer:
        """The parameter that receives result ``index``: in place of the tensor's own storage where that is possible."""
        tensor = self._tensor(value)
        names = self.func.attrs.get("output_names") or ()
        out = tir.decl_buffer(tensor.buffer.shape, tensor.buffer.dtype, names[index] if index < len(names) else f"out_{index}")
        storage = tensor.storage
        if storage.kind == "arena" and self.an.prove_equal(storage.nbytes, _nbytes(out)):
            storage.kind, storage.home = "output", out
        else:
            self._copy(out, self._touch(tensor).buffer)
        return out

    def _copy(self, target: tir.Buffer, source: tir.Buffer) -> None:
        call = tir.Call("copy_bytes", (_address(target), _address(source), self.an.simplify(_nbytes(target))), VOID)
        self.entries.append(_unless_empty(tir.Evaluate(call), target.shape))

    # -- values

    def seq(self, expr: graph.SeqExpr) -> Any:
        """Lower the bindings and return the lowered result."""
        for binding in expr.bindings:
            self.clock += 1
            if isinstance(binding, graph.MatchCast):
                self._match_cast(binding)
            else:
                self.env[binding.var] = self.value(binding.value, binding.var)
        self.clock += 1
        return self._use(expr.body)

    def value(self, value: graph.GraphExpr, var: graph.Var) -> Any:
        """What a bound expression is at run time: a tensor, a tuple, a shape, a scalar."""
        handler = _VALUES.get(type(value))
        return handler(self, value, var) if handler else self._use(value)

    def _use(self, value: Any) -> Any:
        """An operand: marks its storage as used now."""
        if isinstance(value, graph.Var):
            found = self.env[value]
            for t in _flatten(found):
                if isinstance(t, _Tensor):
                    self._touch(t)
            return found
        if isinstance(value, graph.Constant):
            return self._constant(value)
        if isinstance(value, graph.Tuple):
            return tuple(self._use(f) for f in value.fields)
        if isinstance(value, graph.TupleGetItem):
            return self._use(value.tuple_value)[value.index]
        if isinstance(value, graph.ShapeExpr):
            return _Shape(value.values)
        if isinstance(value, graph.PrimValue | graph.StringValue | graph.DTypeValue):
            return value.value
        raise LowerError(f"{type(value).__name__} is not an operand", where=self.name)

    def _tensor(self, value: Any) -> _Tensor:
        if isinstance(value, _Tensor):
            return value
        if isinstance(value, _Shape):  # a shape that is a result: as an int64 tensor
            tensor = self._allocate(graph.TensorInfo((len(value.values),), "int64"), "shape")
            for i, v in enumerate(value.values):
                self.entries.append(tir.BufferStore(tensor.buffer, tir.cast(v, "int64"), (tir.index_const(i),)))
            return tensor
        if isinstance(value, tir.Expr):
            tensor = self._allocate(graph.TensorInfo((), value.dtype), "scalar")
            self.entries.append(tir.BufferStore(tensor.buffer, value, ()))
            return tensor
        raise LowerError(f"a result of {self.name} is not a tensor", why=f"it is a {type(value).__name__}")

    def _results(self, info: graph.StructInfo, name: str) -> Any:
        """Fresh tensors for a result of this struct info."""
        if isinstance(info, graph.TupleInfo):
            return tuple(self._results(f, f"{name}_{i}") for i, f in enumerate(info.fields))
        if not isinstance(info, graph.TensorInfo) or info.shape is None or info.dtype is None:
            raise LowerError(f"the shape or dtype of {name} is not known", where=self.name, why=f"it is {info!r}",
                             hint="bind it with R.match_cast")
        return self._allocate(info, name)

    def _kernel_call(self, callee: graph.GlobalVar, args: list[Any], out: list[_Tensor], explicit: tuple[tir.Expr, ...]) -> tir.Stmt:
        kernel = self.mod[callee]
        buffers = dict(zip((p for p in kernel.params if p in kernel.buffers), (t.buffer for t in [*args, *out]), strict=True))
        variables: dict[Any, tir.Expr] = {}
        for p, actual in buffers.items():
            bind_shape(kernel.buffers[p].shape, actual.shape, variables)
        variables.update(zip((p for p in kernel.params if p not in buffers), explicit, strict=False))
        missing = [p.name for p in kernel.params if p not in buffers and p not in variables]
        if missing:
            raise LowerError(f"the call of {callee.name} does not give its scalar parameter {', '.join(missing)}", where=self.name,
                             hint="pass it in tir_vars")
        operands = [_address(buffers[p]) if p in buffers else variables[p] for p in kernel.params]
        call = tir.Evaluate(tir.Call(callee, tuple(operands), VOID))
        return _unless_empty(call, *(t.buffer.shape for t in out))

    def _match_cast(self, binding: graph.MatchCast) -> None:
        value = self._use(binding.value)
        info = binding.sinfo
        actual = value.values if isinstance(value, _Shape) else value.buffer.shape if isinstance(value, _Tensor) else ()
        wanted = info.values if isinstance(info, graph.ShapeInfo) else info.shape if isinstance(info, graph.TensorInfo) else None
        for k, (dim, is_now) in enumerate(zip(wanted or (), actual, strict=False)):
            if type(dim) is tir.Var and dim not in self.env:
                self.env[dim] = is_now
                self.entries.append(lambda body, dim=dim, is_now=is_now: tir.Let(dim, is_now, body))
            elif dim is not is_now:
                self.entries.append(tir.Assert(tir.eq(dim, is_now), f"match_cast of {binding.var.name}: dimension {k} differs: {_text(dim)} is not {_text(is_now)}"))
        if wanted is not None and isinstance(value, _Tensor):
            value = self._view(value, info, binding.var.name)
        self.env[binding.var] = value


def _text(e: tir.Expr) -> str:
    return e.name if isinstance(e, tir.Var) else e.script()


def _call(self: _Host, call: graph.Call, var: graph.Var) -> Any:
    op = call.op
    if isinstance(op, graph.ExternFunc):
        return _packed(self, call, var)
    handler = _CALLS.get(op.name) if not isinstance(op, graph.GlobalVar | graph.Var) else None
    if handler is None:
        what = getattr(op, "name", str(op))
        raise LowerError(f"{what} is not lowered to a tensor program", where=self.name, hint="run the pass `legalize` before `lower_host`")
    return handler(self, call, var)


def _call_tir(self: _Host, call: graph.Call, var: graph.Var) -> Any:
    if self.mod[call.args[0]].attrs.get("view"):
        return self._view(self._tensor(self._use(call.args[1].fields[0])), var.sinfo, var.name)
    args = [self._tensor(self._use(a)) for a in call.args[1].fields]
    result = self._results(call.sinfo_args[0] if call.sinfo_args else var.sinfo, var.name)
    explicit = call.args[2].values if len(call.args) > 2 else ()
    self.entries.append(self._kernel_call(call.args[0], args, _flatten(result), explicit))
    return result


def _call_tir_inplace(self: _Host, call: graph.Call, var: graph.Var) -> Any:
    args = [self._tensor(self._use(a)) for a in call.args[1].fields]
    self.entries.append(self._kernel_call(call.args[0], args, [], call.args[2].values if len(call.args) > 2 else ()))
    chosen = tuple(args[i] for i in call.attrs["inplace_indices"])
    return chosen if isinstance(var.sinfo, graph.TupleInfo) else chosen[0]


def _call_dps_packed(self: _Host, call: graph.Call, var: graph.Var) -> Any:
    args = [self._use(a) for a in call.args[1].fields]
    result = self._results(call.sinfo_args[0] if call.sinfo_args else var.sinfo, var.name)
    operands = [_packed_operand(a) for a in [*args, *_flatten(result)]]
    self.entries.append(tir.Evaluate(tir.Call("call_packed", (StringImm(call.args[0].name), *operands), INT32)))
    return result


def _packed(self: _Host, call: graph.Call, var: graph.Var) -> Any:
    operands = [_packed_operand(a) for arg in call.args for a in _flatten(self._use(arg))]
    name = StringImm(call.op.name)
    info = call.sinfo_args[0] if call.sinfo_args else var.sinfo
    if not isinstance(info, graph.TensorInfo):
        self.entries.append(tir.Evaluate(tir.Call("call_packed", (name, *operands), INT32)))
        return ()
    result = self._results(info, var.name)
    self.entries.append(tir.Evaluate(tir.Call("call_packed_into", (name, *operands, _packed_operand(result)), INT32)))
    return result


def _packed_operand(value: Any) -> tir.Expr:
    if not isinstance(value, _Tensor):
        return tir.const(value)
    b = value.buffer
    return tir.Call("tensor_view", (StringImm(str(b.dtype)), _address(b), tir.index_const(b.ndim), *b.shape), HANDLE)


def _reshape(self: _Host, call: graph.Call, var: graph.Var) -> Any:
    source = self._tensor(self._use(call.args[0]))
    return self._view(source, var.sinfo, var.name)


def _shape_of(self: _Host, call: graph.Call, var: graph.Var) -> Any:
    return _Shape(self._tensor(self._use(call.args[0])).buffer.shape)


def _shape_to_tensor(self: _Host, call: graph.Call, var: graph.Var) -> Any:
    return self._tensor(self._use(call.args[0]))


def _if(self: _Host, value: graph.If, var: graph.Var) -> Any:
    condition = self._tensor(self._use(value.condition)).buffer
    result = self._results(value.sinfo, var.name)
    branches = [_branch(self, b, _flatten(result)) for b in (value.true_branch, value.false_branch)]
    self.entries.append(tir.If(tir.BufferLoad(condition, (tir.index_const(0),) * condition.ndim), *branches))
    return result


def _branch(self: _Host, body: graph.SeqExpr, targets: list[_Tensor], extra: Callable[[], None] | None = None) -> tir.Stmt:
    """A nested sequence whose results are copied into ``targets``."""
    saved, self.entries = self.entries, []
    values = _flatten(self.seq(body))
    self.clock += 1
    for target, value in zip(targets, values, strict=True):
        self._copy(self._touch(target).buffer, self._touch(self._tensor(value)).buffer)
    if extra is not None:
        extra()
    stmt = _close(self.entries)
    self.entries = saved
    return stmt


def _while(self: _Host, value: graph.While, var: graph.Var) -> Any:
    start = self.clock
    state = [self._results(v.sinfo, v.name) for v in value.loop_vars]
    for target, initial in zip(state, value.init, strict=True):
        self._copy(target.buffer, self._tensor(self._use(initial)).buffer)
    flag = self._allocate(graph.TensorInfo((), "bool"), "go_on")
    self.env.update(zip(value.loop_vars, state, strict=True))
    self.entries.append(_branch(self, value.condition, [flag]))
    body = _branch(self, value.body, state, lambda: self.entries.append(_branch(self, value.condition, [flag])))
    self.entries.append(tir.While(tir.BufferLoad(flag.buffer, ()), body))
    self.clock += 1
    for t in self.tensors:  # what the loop uses and did not make must last until its end
        if t.storage.first <= start < t.storage.last:
            t.storage.last = self.clock
    return tuple(state)


_VALUES: dict[type, Callable[[_Host, Any, graph.Var], Any]] = {graph.Call: _call, graph.If: _if, graph.While: _while}
_CALLS: dict[str, Callable[[_Host, graph.Call, graph.Var], Any]] = {
    CALL_TIR.name: _call_tir, CALL_TIR_INPLACE.name: _call_tir_inplace, CALL_DPS_PACKED.name: _call_dps_packed,
    "shape_of": _shape_of, "shape_to_tensor": _shape_to_tensor, **{name: _reshape for name in VIEWS}}


def _flatten(value: Any) -> list[Any]:
    return [t for v in value for t in _flatten(v)] if isinstance(value, tuple) else [value]


def _nbytes(buffer: tir.Buffer) -> tir.Expr:
    """Bytes of a compact buffer (two 4-bit elements a byte)."""
    count, bits = tir.product_of(buffer.shape), buffer.dtype.storage_bits
    return count * (bits // 8) if bits >= 8 else tir.ceildiv(count, 8 // bits)


def _elements(nbytes: tir.Expr, dtype: DType) -> tir.Expr:
    bits = dtype.storage_bits
    return tir.floordiv(nbytes, bits // 8) if bits >= 8 else nbytes * (8 // bits)


def _address(buffer: tir.Buffer) -> tir.Expr:
    return tir.Call("address_of", (tir.BufferLoad(buffer, (tir.index_const(0),) * buffer.ndim),), HANDLE)


def _unless_empty(stmt: tir.Stmt, *shapes: tuple[tir.Expr, ...]) -> tir.Stmt:
    """The statement, unless all outputs are empty: kernels may assume extents >= 1 for what they compute at all."""
    sizes = [Analyzer().simplify(tir.product_of(s)) for s in shapes]
    if not sizes or any(isinstance(n, tir.IntImm) and n.value > 0 for n in sizes):
        return stmt
    conditions = [tir.gt(n, 0) for n in sizes if not isinstance(n, tir.IntImm)]
    return tir.If(tir.logical_or(*dict.fromkeys(conditions)), stmt) if conditions else tir.Seq(())
