# SPDX-License-Identifier: Apache-2.0
"""Graph functions to host functions: one TensorIR function that plans memory and calls kernels (design decision 12).

Every tensor gets a storage (a piece of the arena, an input, an output or a constant) and is declared as a buffer over
it; ``call_tir`` becomes a kernel call, reshapes become views, control flow becomes ``If`` and ``While``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..graph.rewriter import nodes_of
from ..ir import graph, tir
from ..ir.constants import ConstData
from ..ir.dtype import HANDLE, INT32
from ..ir.module import IRModule
from ..ir.visit import free_vars
from ..lower.explicit_shape_params import as_sizes, explicit_shape_params
from ..passes import pass_
from ..strategy.pack_constants import calls_of
from . import caches, host_calls, host_control
from .arguments import output, parameter
from .host_builder import HostBuilder, Shape, flatten
from .host_memory import Opaque, close, place
from .inplace import ReplaceCalls, overwrite_operands


@pass_("lower_host")
def lower_host(mod: IRModule) -> IRModule:
    """Every exported graph function becomes a host function; the tensor programs it calls become its kernels."""
    mod = explicit_shape_params(_with_nodes(mod))
    constants: dict[str, ConstData] = dict(mod.constants or {})
    for name, func in list(mod.items()):
        if isinstance(func, graph.Function):
            host = HostBuilder(mod, name, func, _LOWERING)
            lowered = _lower(host)
            mod = host.mod.with_functions({name: lowered})
            constants.update(host.data)
    mod = mod.replace(constants=constants) if constants else mod
    return mod.with_functions({n: f.with_attr("kind", "kernel") for n, f in mod.items()
                               if isinstance(f, tir.PrimFunc) and "kind" not in f.attrs and "global_symbol" not in f.attrs})


def _with_nodes(mod: IRModule) -> IRModule:
    """With the nodes of the model that each kernel computes, which host functions do not name any more."""
    nodes: dict[str, dict[str, None]] = {}
    for binding, call in calls_of(mod):
        nodes.setdefault(call.args[0].name, {}).update(dict.fromkeys(nodes_of(binding)))
    return mod.replace(choices=mod.choices.with_kernels({name: {"nodes": list(found)} for name, found in nodes.items()})) if nodes else mod


_LOWERING: dict[type, Any] = {
    graph.Call: host_calls.call, graph.If: host_control.branch, graph.While: host_control.loop, graph.MatchCast: host_calls.match_cast,
}


def _lower(host: HostBuilder) -> tir.PrimFunc:
    """The host function."""
    func = host.func
    arguments = tuple(parameter(host, p) for p in func.params)
    inputs = len(host.params)
    host.caches = caches.caches(host, host.flow)
    value = host.seq(func.body)
    results = flatten(value)
    for k, result in enumerate(results):
        output(host, k, result)
    host.mod, calls = overwrite_operands(host)
    body = close([*host.prologue, *host.entries])
    body = place(ReplaceCalls(calls).rewrite(body) if calls else body, host.tensors, host.sizes.order)
    params = [*host.params, *((tir.Var(b.name + "_handle", HANDLE), b) for b in host.outputs)]
    attrs = func.attrs | {"kind": "host", "global_symbol": func.attrs.get("global_symbol", host.name), "num_inputs": inputs,
                          "num_outputs": len(results), "returns_tuple": isinstance(value, tuple)}
    if any(isinstance(a, tuple) for a in arguments):
        attrs = attrs | {"arguments": arguments}
    if isinstance(value, tuple) and any(isinstance(v, tuple) for v in value):
        attrs = attrs | {"result": _template(value, iter(range(len(results))))}
    attrs = attrs | caches.described(host, arguments) | _objects(host, results)
    made = tir.PrimFunc(tuple(p for p, _ in params), body, tuple((p, b) for p, b in params if b is not None), attrs, INT32, func.span)
    return _with_sizes(made, inputs, caches.rooms(host))


def _objects(host: HostBuilder, results: list[Any]) -> dict[str, Any]:
    """Where objects go in and come out, for `roundel.runtime.objects`; nothing where there are none."""
    given = [host.env[p] for p in host.func.params]
    places = tuple(k for k, v in enumerate(_inputs(given)) if isinstance(v, Opaque))
    made = tuple(k for k, v in enumerate(results) if isinstance(v, Opaque))
    return {"object_inputs": places, "object_outputs": made} if places or made or host.objects else {}


def _inputs(values: Sequence[Any]) -> list[Any]:
    """The inputs that parameters are, in order: a shape is one for each dimension."""
    return [v for leaf in flatten(tuple(values)) for v in (leaf.values if isinstance(leaf, Shape) else (leaf,))]


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
