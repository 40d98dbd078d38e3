# SPDX-License-Identifier: Apache-2.0
"""Parameters and results of a host function: what its callers give, and where they get what it computes."""

from __future__ import annotations

from typing import Any

from ..ir import graph, tir
from ..ir.dtype import HANDLE, INT64
from ..ir.errors import LowerError
from ..ir.escape import assertion
from ..ir.visit import free_vars
from .host_builder import HostBuilder, Shape
from .host_memory import Opaque, Storage, Tensor, nbytes


def parameter(host: HostBuilder, var: graph.Var) -> Any:
    """Declare a parameter of the graph function; returns the positions of its inputs as a template."""
    template, host.env[var] = _argument(host, var.sinfo, var.name)
    return template


def _argument(host: HostBuilder, info: graph.StructInfo, name: str) -> tuple[Any, Any]:
    if isinstance(info, graph.TupleInfo):
        parts = [_argument(host, f, f"{name}_{i}") for i, f in enumerate(info.fields)]
        return tuple(t for t, _ in parts), tuple(v for _, v in parts)
    if isinstance(info, graph.ShapeInfo) and info.values is not None:
        scalars = [_scalar(host, v, tir.const(0, "int64").dtype, f"{name}_{k}") for k, v in enumerate(info.values)]
        return tuple(t for t, _ in scalars), Shape(tuple(v for _, v in scalars))
    if isinstance(info, graph.PrimInfo):
        return _scalar(host, info.value, info.dtype, name)
    if isinstance(info, graph.ObjectInfo):
        number = tir.decl_buffer((), INT64, name)
        host.params.append((tir.Var(number.name + "_handle", HANDLE), number))
        return len(host.params) - 1, Opaque(number, Storage(nbytes(number), "input", home=number))
    if not isinstance(info, graph.TensorInfo) or info.shape is None or info.dtype is None:
        raise _undeclared(host, info, name)
    buffer = tir.decl_buffer(info.shape, info.dtype, name)
    host.env.update({d: d for n in info.shape for d in free_vars(n)})
    host.params.append((tir.Var(buffer.name + "_handle", HANDLE), buffer))
    return len(host.params) - 1, Tensor(buffer, Storage(nbytes(buffer), "input", home=buffer))


def _undeclared(host: HostBuilder, info: graph.StructInfo, name: str) -> LowerError:
    """What a parameter lacks to be compiled."""
    if not isinstance(info, graph.TensorInfo):
        return host.error(f"parameter {name} is not a tensor, a shape of known length, a number, an object or a tuple of them", why=f"it is {info!r}",
                          hint='annotate it, as in R.Tensor(("n", 3), "float32")')
    return host.error(f"parameter {name} does not tell its {info.unknown}", why=f"it is {info!r}",
                      hint=f"declare it whole; a size that only the run knows has a name: {info.completed}")


def _scalar(host: HostBuilder, value: tir.Expr | None, dtype: Any, name: str) -> tuple[int, tir.Expr]:
    """A number as a parameter: the variable that it is to be, or one that is checked against the expression it is to be."""
    new = type(value) is tir.Var and value not in host.env
    var = value if isinstance(value, tir.Var) and new else tir.Var(name, dtype)
    host.params.append((var, None))
    host.env[var] = var
    if value is None or new:
        return len(host.params) - 1, var
    host.emit(tir.Assert(tir.eq(var, value), f"argument {assertion(name)} of {assertion(host.name)} is {{0}}, not {{1}}"))
    return len(host.params) - 1, value


def output(host: HostBuilder, index: int, value: Any) -> None:
    """Give result ``index`` its parameter: in place of the tensor's own storage where that is possible."""
    tensor = host.tensor(value, f"result {index}")
    if tensor.room:
        host.outputs.append(tensor.buffer)
        return
    names = host.func.attrs.get("output_names") or ()
    shape = tuple(host.sizes.resolve(d) for d in tensor.buffer.shape)
    out = tir.decl_buffer(shape, tensor.buffer.dtype, names[index] if index < len(names) else f"out_{index}")
    host.outputs.append(out)
    storage = tensor.storage.settled()
    movable = storage.kind == "arena" and storage.depth == 0 and tensor.offset is None
    late = any(host.sizes.late(d) for d in shape)
    if late:
        _late_output(host, index, out, tensor, movable and storage.home is tensor.buffer)
    elif movable and host.an.prove_equal(storage.nbytes, nbytes(out)):
        storage.kind, storage.home = "output", out
    else:
        host.copy(out, host.touch(tensor).buffer)


def _late_output(host: HostBuilder, index: int, out: tir.Buffer, tensor: Tensor, movable: bool) -> None:
    """A result whose shape only the run can tell: its memory comes from the caller when the shape is known."""
    memory = tir.Call("alloc_output", (tir.const(index, "int32"), *out.shape), HANDLE)
    if movable:
        storage = tensor.storage
        storage.kind, storage.makes = "output", memory
        return
    target = host.made(out.shape, out.dtype, memory, out.name)
    host.copy(target.buffer, host.touch(tensor).buffer)
