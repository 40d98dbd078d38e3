# SPDX-License-Identifier: Apache-2.0
"""ATen operators that are left to PyTorch itself: a compiled model calls them back as functions of the process.

These are the decompositions of LAPACK whose result depends on how it goes about it (signs and order of vectors), random numbers, which
come from PyTorch's own generators, rare special functions, rare functions of complex numbers, and operators of other libraries and of the
user (``torch.library``). A model with such a call runs where Python and PyTorch are; it is not a file for elsewhere. All else is native.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ...ir import graph
from ...ir.op import CALL_DPS_PACKED
from ...runtime.registry import register_func
from .dtypes import dtype_of, real_of
from .importer import NodeContext
from .registry import converter

LINEAR_ALGEBRA = ("_linalg_svd", "_linalg_eigh", "linalg_eig", "linalg_eigvals", "_linalg_eigvals", "linalg_ldl_factor_ex", "linalg_ldl_solve",
                  "linalg_matrix_exp", "linalg_lstsq")
RANDOM = (
    "rand", "randn", "randint", "rand_like", "randn_like", "randint_like", "randperm", "bernoulli", "multinomial", "normal", "normal_functional",
    "uniform", "exponential", "cauchy", "geometric", "log_normal", "poisson", "binomial", "native_dropout", "_standard_gamma", "_sample_dirichlet",
    "rrelu_with_noise_functional",
)
SPECIAL = ("special_zeta", "polygamma", "igamma", "igammac")
OTHER = (
    "histogram", "histogram.bin_ct", "histogram.bins_tensor", "_histogramdd_bin_edges", "_histogramdd_from_bin_cts", "_histogramdd_from_bin_tensors",
    "hash_tensor", "fractional_max_pool2d", "fractional_max_pool3d", "segment_reduce",
)
CHANGING = ("auto_functionalized", "auto_functionalized_v2")
"""Calls of operators that change their operands, on copies of them, as PyTorch makes programs functional."""
_OWN = ("aten", "prims", "prim")
_KERNELS = ("CPU", "CompositeExplicitAutograd", "CompositeImplicitAutograd")
_numbers = itertools.count()


def can_call(target: Any) -> bool:
    """Whether an operator is a function of tensors on this processor: it changes no operand."""
    return (isinstance(target, torch._ops.OpOverload) and not target._schema.is_mutable
            and any(torch._C._dispatch_has_kernel_for_dispatch_key(target.name(), key) for key in _KERNELS))


def is_foreign(target: Any) -> bool:
    """Whether an operator is another library's or the user's, and can be called."""
    return can_call(target) and target.namespace not in _OWN


def tensor_views(arrays: Sequence[Any], like: Sequence[Any]) -> list[torch.Tensor]:
    """Arrays as the tensors PyTorch has for them: bfloat16 by its bits, complex numbers from pairs."""
    out = []
    for array, (dtype, is_complex) in zip(arrays, like, strict=True):
        t = torch.from_numpy(array.view("int16")).view(torch.bfloat16) if dtype == torch.bfloat16 else torch.from_numpy(array)
        t = t if t.numel() else torch.empty(t.shape, dtype=t.dtype)  # an empty array may have any strides
        out.append(torch.view_as_complex(t) if is_complex else t)
    return out


@converter(*LINEAR_ALGEBRA, *RANDOM, *SPECIAL, *OTHER, *CHANGING)
def on_host(node: NodeContext, *args: Any, **kwargs: Any) -> Any:
    """The call of PyTorch's own function, writing into the results' memory."""
    fx_args = pytree.tree_leaves((tuple(node.node.args), dict(node.node.kwargs)))
    fx, spec = pytree.tree_flatten((tuple(node.node.args), dict(node.node.kwargs)))
    tensors = [a for a in fx_args if isinstance(a, torch.fx.Node) and isinstance(a.meta.get("val"), torch.Tensor)]
    if node.node.meta.get("unbacked_bindings"):
        raise node.unsupported("a shape that depends on data as the result of a function of the host")
    if any(isinstance(a, torch.fx.Node) and a not in tensors for a in fx):
        raise node.unsupported("a size known at run time alone as an argument of a function of the host")
    values = [node.importer.plain(node.importer.values[a]) for a in tensors]
    like = [(a.meta["val"].dtype, a.meta["val"].is_complex()) for a in tensors]
    single = not isinstance(node.value, tuple | list)
    results = [node.value] if single else node.value
    made = [v for v in results if isinstance(v, torch.Tensor)]
    infos = [_info(node, v) for v in made]
    function, name = node.node.target, f"roundel.torch.{node.node.target}.{next(_numbers)}"

    def call(*arrays: Any) -> None:
        inputs = iter(tensor_views(arrays[:len(tensors)], like))
        leaves = [next(inputs) if isinstance(a, torch.fx.Node) else a for a in fx]
        again, named = pytree.tree_unflatten(leaves, spec)
        with torch.no_grad():
            found = function(*again, **named)
        outputs = tensor_views(arrays[len(tensors):], [(v.dtype, v.is_complex()) for v in made])
        for out, value in zip(outputs, [found] if single else [v for v in found if isinstance(v, torch.Tensor)], strict=True):
            out.copy_(value)

    register_func(name, call)
    node.importer.python.append(str(function))
    info = infos[0] if len(infos) == 1 else graph.TupleInfo(tuple(infos))
    out = node.emit(graph.Call(CALL_DPS_PACKED, (graph.ExternFunc(name), graph.Tuple(tuple(values))), sinfo_args=(info,), sinfo=info))
    fields = iter([out] if len(infos) == 1 else [node.emit(graph.TupleGetItem(out, k)) for k in range(len(infos))])
    parts = tuple(node.importer.typed(next(fields), v) if isinstance(v, torch.Tensor) else None for v in results)
    return parts[0] if single else parts


def _info(node: NodeContext, value: Any) -> graph.TensorInfo:
    shape = [*value.shape, *([2] if value.is_complex() else [])]
    return graph.TensorInfo(node.shape(shape).values, dtype_of(real_of(value.dtype)))
