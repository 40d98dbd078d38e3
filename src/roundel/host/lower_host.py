# SPDX-License-Identifier: Apache-2.0
"""Graph functions to host functions: one TensorIR function that plans memory and calls kernels (design decision 12).

Every tensor gets a storage (a piece of the arena, an input, an output or a constant) and is declared as a buffer over
it; ``call_tir`` becomes a kernel call, reshapes become views, control flow becomes ``If`` and ``While``.
"""

from __future__ import annotations

from typing import Any

from ..graph.programs.appends import Flow
from ..ir import graph, tir
from ..ir.constants import ConstData
from ..ir.dtype import HANDLE, INT32
from ..ir.escape import assertion
from ..ir.module import IRModule
from ..ir.visit import free_vars
from ..lower.explicit_shape_params import as_sizes, explicit_shape_params
from ..passes import pass_
from . import caches, host_calls, host_control
from .host_builder import HostBuilder, Shape, flatten
from .host_memory import Storage, Tensor, close, nbytes, place
from .inplace import ReplaceCalls, overwrite_operands


@pass_("lower_host")
def lower_host(mod: IRModule) -> IRModule:
    """Every exported graph function becomes a host function; the tensor programs it calls become its kernels."""
    mod = explicit_shape_params(mod)
    constants: dict[str, ConstData] = dict(mod.constants or {})
    for name, func in list(mod.items()):
        if isinstance(func, graph.Function):
            host = HostLowering(mod, name, func)
            lowered = host.lower()
            mod = host.mod.with_functions({name: lowered})
            constants.update(host.data)
    mod = mod.replace(constants=constants) if constants else mod
    return mod.with_functions({n: f.with_attr("kind", "kernel") for n, f in mod.items()
                               if isinstance(f, tir.PrimFunc) and "kind" not in f.attrs and "global_symbol" not in f.attrs})


class HostLowering(HostBuilder):
    """Lowers one function."""

    def __init__(self, mod: IRModule, name: str, func: graph.Function) -> None:
        super().__init__(mod, name)
        self.func = func
        self.params: list[tuple[tir.Var, tir.Buffer | None]] = []
        self.outputs: list[tir.Buffer] = []
        self.flow = Flow(func)
        self.caches: dict[graph.Var, caches.Cache] = {}

    def lower(self) -> tir.PrimFunc:
        """The host function."""
        func = self.func
        arguments = tuple(map(self.parameter, func.params))
        inputs = len(self.params)
        self.caches = caches.caches(self, self.flow)
        value = self.seq(func.body)
        results = flatten(value)
        for k, result in enumerate(results):
            self.output(k, result)
        self.mod, calls = overwrite_operands(self)
        body = close([*self.prologue, *self.entries])
        body = place(ReplaceCalls(calls).rewrite(body) if calls else body, self.tensors, self.sizes.order)
        params = [*self.params, *((tir.Var(b.name + "_handle", HANDLE), b) for b in self.outputs)]
        attrs = func.attrs | {"kind": "host", "global_symbol": func.attrs.get("global_symbol", self.name), "num_inputs": inputs,
                              "num_outputs": len(results), "returns_tuple": isinstance(value, tuple)}
        if any(isinstance(a, tuple) for a in arguments):
            attrs = attrs | {"arguments": arguments}
        if isinstance(value, tuple) and any(isinstance(v, tuple) for v in value):
            attrs = attrs | {"result": _template(value, iter(range(len(results))))}
        attrs = attrs | caches.described(self, arguments)
        host = tir.PrimFunc(tuple(p for p, _ in params), body, tuple((p, b) for p, b in params if b is not None), attrs, INT32, func.span)
        return _with_sizes(host, inputs, caches.rooms(self))

    # -- parameters and results

    def parameter(self, var: graph.Var) -> Any:
        """Declare a parameter of the graph function; returns the positions of its inputs as a template."""
        template, self.env[var] = self._argument(var.sinfo, var.name)
        return template

    def _argument(self, info: graph.StructInfo, name: str) -> tuple[Any, Any]:
        if isinstance(info, graph.TupleInfo):
            parts = [self._argument(f, f"{name}_{i}") for i, f in enumerate(info.fields)]
            return tuple(t for t, _ in parts), tuple(v for _, v in parts)
        if isinstance(info, graph.ShapeInfo) and info.values is not None:
            scalars = [self._scalar(v, tir.const(0, "int64").dtype, f"{name}_{k}") for k, v in enumerate(info.values)]
            return tuple(t for t, _ in scalars), Shape(tuple(v for _, v in scalars))
        if isinstance(info, graph.PrimInfo):
            return self._scalar(info.value, info.dtype, name)
        if not isinstance(info, graph.TensorInfo) or info.shape is None or info.dtype is None:
            raise self.error(f"parameter {name} is not a tensor of known rank and dtype, a shape, a number or a tuple of them",
                             why=f"it is {info!r}", hint="annotate it, as in R.Tensor((n, 3), \"float32\")")
        buffer = tir.decl_buffer(info.shape, info.dtype, name)
        self.env.update({d: d for n in info.shape for d in free_vars(n)})
        self.params.append((tir.Var(buffer.name + "_handle", HANDLE), buffer))
        return len(self.params) - 1, Tensor(buffer, Storage(nbytes(buffer), "input", home=buffer))

    def _scalar(self, value: tir.Expr | None, dtype: Any, name: str) -> tuple[int, tir.Expr]:
        """A number as a parameter: the variable that it is to be, or one that is checked against the expression it is to be."""
        new = type(value) is tir.Var and value not in self.env
        var = value if isinstance(value, tir.Var) and new else tir.Var(name, dtype)
        self.params.append((var, None))
        self.env[var] = var
        if value is None or new:
            return len(self.params) - 1, var
        self.emit(tir.Assert(tir.eq(var, value), f"argument {assertion(name)} of {assertion(self.name)} is {{0}}, not {{1}}"))
        return len(self.params) - 1, value

    def output(self, index: int, value: Any) -> None:
        """Give result ``index`` its parameter: in place of the tensor's own storage where that is possible."""
        tensor = self.tensor(value, f"result {index}")
        if tensor.room:
            self.outputs.append(tensor.buffer)
            return
        names = self.func.attrs.get("output_names") or ()
        shape = tuple(self.sizes.resolve(d) for d in tensor.buffer.shape)
        out = tir.decl_buffer(shape, tensor.buffer.dtype, names[index] if index < len(names) else f"out_{index}")
        self.outputs.append(out)
        storage = tensor.storage.settled()
        movable = storage.kind == "arena" and storage.depth == 0 and tensor.offset is None
        late = any(self.sizes.late(d) for d in shape)
        if late:
            self._late_output(index, out, tensor, movable and storage.home is tensor.buffer)
        elif movable and self.an.prove_equal(storage.nbytes, nbytes(out)):
            storage.kind, storage.home = "output", out
        else:
            self.copy(out, self.touch(tensor).buffer)

    def _late_output(self, index: int, out: tir.Buffer, tensor: Tensor, movable: bool) -> None:
        """A result whose shape only the run can tell: its memory comes from the caller when the shape is known."""
        memory = tir.Call("alloc_output", (tir.const(index, "int32"), *out.shape), HANDLE)
        if movable:
            storage = tensor.storage
            storage.kind, storage.makes = "output", memory
            return
        target = self.made(out.shape, out.dtype, memory, out.name)
        self.copy(target.buffer, self.touch(tensor).buffer)

    # -- expressions

    def seq(self, expr: graph.SeqExpr) -> Any:
        """Lower the bindings and return the lowered result."""
        for binding in expr.bindings:
            self.clock += 1
            if isinstance(binding, graph.MatchCast):
                host_calls.match_cast(self, binding)
            else:
                self.env[binding.var] = self.value(binding.value, binding.var)
        self.clock += 1
        return self.use(expr.body)

    def value(self, value: graph.GraphExpr, var: graph.Var) -> Any:
        """What a bound expression is at run time."""
        handler = _VALUES.get(type(value))
        return handler(self, value, var) if handler else self.use(value)


_VALUES: dict[type, Any] = {graph.Call: host_calls.call, graph.If: host_control.branch, graph.While: host_control.loop}


def _template(value: Any, count: Any) -> Any:
    return tuple(_template(v, count) for v in value) if isinstance(value, tuple) else next(count)


def _with_sizes(host: tir.PrimFunc, inputs: int, rooms: list[tir.Var]) -> tir.PrimFunc:
    """The sizes in the inputs' shapes as further parameters, as kernels have them; those of results are computed from them, and from
    the room that caches have."""
    host = as_sizes(host, _sizes(host, inputs))
    return host.replace(params=(*host.params, *_sizes(host, inputs), *rooms))


def _sizes(host: tir.PrimFunc, inputs: int) -> tuple[tir.Var, ...]:
    buffers = host.buffers
    dims = [d for p in host.params[:inputs] if p in buffers for d in buffers[p].shape]
    return tuple({v: None for d in dims for v in sorted(free_vars(d), key=lambda v: v.name) if v not in host.params})
