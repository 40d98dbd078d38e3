# SPDX-License-Identifier: Apache-2.0
"""Composite operators of an exported program, each taken apart by itself.

``ExportedProgram.run_decompositions`` traces the whole program again, every operator of it. What a composite operator consists of follows
from its own operands, though: so only these are traced, and equal ones once. It takes a program in which nothing is changed in place; of
others PyTorch makes functional ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch._dispatch.python import enable_python_dispatcher
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import is_traceable_wrapper_subclass
from torch.utils._pytree import tree_flatten, tree_unflatten

Parts = Mapping[Any, Any]
"""From nodes to the graphs that stand for them; the placeholders are the nodes among the operands, in their order."""


def parts_of(program: Any, table: Mapping[Any, Callable[..., Any]], keep: Sequence[str]) -> Parts | None:
    """The composite operators of a program taken apart as ``table`` says and as PyTorch does, but for those in ``keep``. None for a program
    that has to be made functional first, has graphs within its graph, complex numbers, or tensors that are made of others (quantised weights)."""
    if any(spec.kind.name.endswith("MUTATION") for spec in program.graph_signature.output_specs):
        return None
    if any(map(is_traceable_wrapper_subclass, (*program.state_dict.values(), *program.constants.values()))):
        return None
    known: dict[Any, Any] = {}
    found: dict[Any, Any] = {}
    for node in program.graph.nodes:
        if node.op == "get_attr" or _is_complex(node):
            return None
        if node.op != "call_function" or _is_python(node.target):
            continue
        if not isinstance(node.target, torch._ops.OpOverload):
            return None
        if node.target._schema.is_mutable or node.meta.get("unbacked_bindings"):
            return None
        if node.target in table or (_is_composite(node.target) and not str(node.target).endswith(tuple(keep))):
            key = _key(node)
            if key not in known:
                known[key] = _traced(node, table)
            if known[key] is None:
                return None
            found[node] = known[key]
    return found


def operands_of(node: Any) -> list[Any]:
    """The nodes among a node's operands, in the order of the placeholders of its graph."""
    return [leaf for leaf in tree_flatten((node.args, node.kwargs))[0] if isinstance(leaf, torch.fx.Node)]


def _is_python(function: Any) -> bool:
    """Whether it is arithmetic on sizes, or takes one of several results."""
    return getattr(function, "__module__", None) in ("_operator", "math", "builtins")


def _is_composite(op: Any) -> bool:
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), "CompositeImplicitAutograd"))


def _is_complex(node: Any) -> bool:
    values = node.meta.get("val")
    return any(isinstance(v, torch.Tensor) and v.is_complex() for v in (values if isinstance(values, tuple | list) else (values,)))


def _key(node: Any) -> Any:
    """Nodes of equal keys are taken apart alike: the operator, its constant operands, what is known of the others."""
    leaves, form = tree_flatten((node.args, node.kwargs))
    return node.target, str(form), tuple(_fact(leaf) for leaf in leaves)


def _fact(leaf: Any) -> Any:
    value = leaf.meta.get("val") if isinstance(leaf, torch.fx.Node) else leaf
    if isinstance(value, torch.Tensor):
        return str(value.dtype), tuple(map(str, value.shape)), tuple(map(str, value.stride())), str(value.storage_offset()), value.requires_grad
    return type(value).__name__, repr(value)


def _apart(values: Sequence[Any]) -> list[Any]:
    """The same values, each an object of its own: PyTorch takes an operand that is given twice for one, and nodes of equal keys need not do so."""
    return [v.detach() if isinstance(v, torch.Tensor) and any(v is w for w in values[:k]) else v for k, v in enumerate(values)]


@contextmanager
def _without_onednn() -> Iterator[None]:
    """Within, PyTorch uses no operators of oneDNN. ``torch.backends.mkldnn.flags`` would set precisions too, which PyTorch warns of."""
    before = torch.backends.mkldnn.enabled
    torch.backends.mkldnn.enabled = False
    try:
        yield
    finally:
        torch.backends.mkldnn.enabled = before


def _traced(node: Any, table: Mapping[Any, Callable[..., Any]]) -> Any:
    """What a node consists of; None where something in it is changed in place or PyTorch cannot trace it by itself."""
    leaves, form = tree_flatten((node.args, node.kwargs))
    places = [k for k, leaf in enumerate(leaves) if isinstance(leaf, torch.fx.Node)]
    inputs = [leaves[k].meta.get("val") for k in places]

    def call(*values: Any) -> Any:
        given = list(leaves)
        for k, v in zip(places, values, strict=True):
            given[k] = v
        args, kwargs = tree_unflatten(given, form)
        return node.target(*args, **kwargs)

    results = node.meta.get("val")
    known = (*inputs, *(results if isinstance(results, tuple | list) else (results,)))  # what is made of nothing has no operands
    mode = next((v.fake_mode for v in known if hasattr(v, "fake_mode")), None)
    if mode is None or any(v is None or isinstance(v, tuple | list) for v in inputs):
        return None
    try:
        with mode, torch.no_grad(), enable_python_dispatcher(), _without_onednn():
            made = make_fx(call, decomposition_table=dict(table))(*_apart(inputs))
    except Exception:  # whatever hinders it: PyTorch takes the whole program apart then, and says what is wrong if that fails too
        return None
    called = [n.target for n in made.graph.nodes if n.op == "call_function"]
    plain = all(n.op != "get_attr" for n in made.graph.nodes) and not any(getattr(getattr(t, "_schema", None), "is_mutable", False) for t in called)
    return made if plain else None
