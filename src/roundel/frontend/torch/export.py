# SPDX-License-Identifier: Apache-2.0
"""Modules and exported programs to graph functions: signatures, parameters and names of dimensions."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import signature
from typing import Any

from ...ir import graph
from ...ir.errors import ModelError, UnsupportedError
from ...ir.module import IRModule
from .composite import parts_of
from .dtypes import Sizes, const_data
from .importer import KEEP, convert_graph, decompositions
from .paths import explain_conditions, exported


def from_torch(model: Any, example_inputs: Sequence[Any] | None = None, *, dynamic_shapes: Any = None,
               example_kwargs: Mapping[str, Any] | None = None) -> IRModule:
    """A ``torch.nn.Module`` (exported with the example inputs) or a ``torch.export.ExportedProgram`` as a module.

    ``dynamic_shapes``: torch.export's, or True to leave open every dimension that can be.
    Raises ModelError for anything else and for what torch.export refuses, UnsupportedError (with the full list) for operators Roundel does not know.
    """
    import torch

    from .recurrent_steps import open_steps

    if isinstance(model, torch.export.ExportedProgram):
        return from_exported_program(model)
    if not isinstance(model, torch.nn.Module):
        raise ModelError(f"cannot compile a {type(model).__name__}", hint="give a torch.nn.Module or a torch.export.ExportedProgram")
    if example_inputs is None and example_kwargs is None:
        raise ModelError("a torch.nn.Module needs example inputs", hint="give them as example_inputs, such as rd.compile(model, (x, y))")
    args = tuple(example_inputs) if isinstance(example_inputs, tuple | list) else () if example_inputs is None else (example_inputs,)
    keywords = dict(example_kwargs or {})
    shapes = _open_dimensions(model, args, keywords) if dynamic_shapes is True else dynamic_shapes or None
    with torch.no_grad(), _evaluated(model), open_steps():
        program = exported(model, args, keywords, shapes)
    return from_exported_program(program, _specifications(model, args, keywords, shapes))


@contextmanager
def _evaluated(model: Any) -> Iterator[None]:
    """The module in evaluation mode, and each part in its own mode again afterwards."""
    training = [part for part in model.modules() if part.training]
    model.eval()
    try:
        yield
    finally:
        for part in training:
            part.training = True


def _open_dimensions(model: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Every dimension of every tensor left open, as far as the program allows (torch.export fixes those of size 0 and 1)."""
    import torch

    shapes = torch.export.ShapesCollection()
    for leaf in torch.utils._pytree.tree_leaves((args, keywords)):
        if isinstance(leaf, torch.Tensor):
            shapes[leaf] = dict.fromkeys(range(leaf.ndim), torch.export.Dim.AUTO)
    return shapes.dynamic_shapes(model, args, keywords)


def _specifications(model: Any, args: tuple[Any, ...], keywords: Mapping[str, Any], shapes: Any) -> list[Any]:
    """What ``shapes`` says of each tensor among the inputs, in their order."""
    found: list[Any] = []
    if isinstance(shapes, Mapping):  # by name of parameter
        _collect(signature(model.forward).bind_partial(*args).arguments, shapes, found)
    else:
        _collect(list(args), shapes, found)
    _collect(dict(keywords), shapes, found)
    return found


def _collect(value: Any, shapes: Any, found: list[Any]) -> None:
    if isinstance(value, Mapping):
        for key, part in value.items():
            _collect(part, shapes.get(key) if isinstance(shapes, Mapping) else None, found)
    elif isinstance(value, list | tuple):
        for k, part in enumerate(value):
            _collect(part, shapes[k] if isinstance(shapes, list | tuple) and k < len(shapes) else None, found)
    elif hasattr(value, "shape"):
        found.append(shapes)


def from_exported_program(program: Any, specifications: Sequence[Any] = (), *, keep_params_as_input: bool = False,
                          unwrap_unit_return_tuple: bool = True) -> IRModule:
    """An exported program as a module with the graph function ``main``; parameters and buffers become constants.

    ``specifications``: for each input torch.export's ``Dim`` of its axes, after which sizes are named. ``keep_params_as_input``: parameters and
    buffers are inputs behind the others, of which ``num_input`` tells how many there are; ``relax.frontend.detach_params`` gives their values.
    ``unwrap_unit_return_tuple``: whether a single result is returned as it is, or as a tuple of one.
    """
    is_draft = getattr(program, "_report", None) is not None
    parts = parts_of(program, decompositions(), KEEP)
    if parts is None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)  # of PyTorch about its own code
                program = program.run_decompositions(decompositions())
        except RuntimeError as error:
            raise UnsupportedError("PyTorch cannot make the program functional", why=str(error).splitlines()[0]) from error
    nodes, described = list(program.graph.nodes), program.graph_signature
    if is_draft:
        explain_conditions(nodes)
    placeholders = [n for n in nodes if n.op == "placeholder"]
    user = [n for n in placeholders if n.name in described.user_inputs and _is_given(n.meta.get("val"))]
    homes = {**described.inputs_to_parameters, **described.inputs_to_buffers, **described.inputs_to_lifted_tensor_constants}
    tensors = {**program.state_dict, **program.constants}
    kept = [n for n in placeholders if keep_params_as_input and n.name in {**described.inputs_to_parameters, **described.inputs_to_buffers}]
    constants = {n: tensors[homes[n.name]] for n in placeholders if n.name in homes and n not in kept}
    results, changed = _results(nodes, described, {n.name: k for k, n in enumerate(user)})
    if not results and not changed:
        raise ModelError("the program returns nothing", why="it has no tensor as its result and changes no input")
    updates = [(len(results) + k, place) for k, (_, place) in enumerate(changed)]
    sizes = Sizes(_symbol_names(placeholders, user, specifications))
    mod = convert_graph(nodes, [*user, *kept], constants, [*results, *(n for n, _ in changed)], sizes, updates=updates, ranges=_ranges(program, user),
                        parts=parts)
    main: Any = mod["main"]
    if names := _result_names(program, len(results)):
        main = main.with_attr({"output_names": (*names, *(f"out_{len(names) + k}" for k in range(len(changed))))})
    if keep_params_as_input:
        values = tuple(graph.Constant.of(const_data(tensors[homes[n.name]])) for n in kept)
        main = main.with_attr({"num_input": len(user), "params": values})
    if not unwrap_unit_return_tuple and len(results) + len(changed) == 1:
        result = graph.Tuple((main.body.body,))
        main = main.replace(body=main.body.replace(body=result), ret_sinfo=graph.TupleInfo((main.ret_sinfo,)))
    return mod.with_functions({"main": main})


_SPECIAL = 0, 2
"""Least sizes that are no conditions of the model: torch.export takes 0 and 1 for sizes of their own where the user has said nothing."""


def _ranges(program: Any, user: Sequence[Any]) -> dict[str, tuple[int | None, int | None]]:
    """The least and the largest size of each symbol that is a dimension of an input, as the user's ``Dim`` or the program demands it
    (None: any)."""
    given = {s.node.expr for n in user if hasattr(n.meta["val"], "shape") for s in n.meta["val"].shape if hasattr(s, "node")}
    found = {}
    for symbol, bounds in program.range_constraints.items():
        if symbol in given and symbol.is_Symbol:
            least, most = (int(b) if b.is_Integer else None for b in (bounds.lower, bounds.upper))
            found[str(symbol)] = None if least in _SPECIAL else least, most
    return found


def _symbol_names(placeholders: Sequence[Any], user: Sequence[Any], specifications: Sequence[Any]) -> dict[str, str]:
    """Names of dynamic dimensions: as the user calls them, else after the first input and axis that have them; of numbers: the input's."""
    names: dict[str, str] = {}
    for n in user:
        if hasattr(n.meta["val"], "node") and n.meta["val"].node.expr.is_Symbol:
            names.setdefault(str(n.meta["val"].node.expr), n.name)
    tensors = [n for n in user if hasattr(n.meta["val"], "shape")]
    for n, dims in zip(tensors, specifications, strict=False):
        for k, dim in dims.items() if isinstance(dims, Mapping) else enumerate(dims or ()):
            size = n.meta["val"].shape[k]
            if hasattr(size, "node") and size.node.expr.is_Symbol and str(getattr(dim, "__name__", "")).isidentifier():
                names.setdefault(str(size.node.expr), dim.__name__)
    for n in placeholders:
        value = n.meta.get("val")
        for k, s in enumerate(value.shape if hasattr(value, "shape") else ()):
            if hasattr(s, "node"):
                names.setdefault(str(s.node.expr), _dim_name(s.node) or f"{n.name}_{k}")
    return names


def _is_given(value: Any) -> bool:
    """Whether an input is a tensor or a number that only the call tells."""
    return hasattr(value, "shape") or hasattr(value, "node")


def _dim_name(size: Any) -> str:
    """The name of the user's ``Dim`` as the program's shape environment remembers it, or an empty text."""
    known = getattr(size.shape_env, "source_name_to_debug_name", {})
    sources = getattr(size.shape_env, "var_to_sources", {}).get(size.expr, ())
    found = (known.get(s.name() if callable(s.name) else s.name, "") for s in sources)
    return next((name for name in found if name.isidentifier()), "")


def _result_names(program: Any, count: int) -> tuple[str, ...]:
    """Names of results that are returned in a dictionary, or in an object with keys as ``transformers`` has them; none of others."""
    spec = getattr(getattr(program, "call_spec", None), "out_spec", None)
    if spec is None or not _keys(spec):
        return ()
    outputs = [s for s in program.graph_signature.output_specs if s.kind.name == "USER_OUTPUT"]
    names = [re.sub(r"\W", "_", name) for s, name in zip(outputs, _paths(spec, "")) if getattr(s.arg, "value", s.arg) is not None]
    return tuple(names) if len(set(names)) == count else ()


def _keys(spec: Any) -> list[str]:
    """The keys of what PyTorch flattens a dictionary to, or an object that is one."""
    keys = spec.context
    return keys if isinstance(keys, list) and keys and all(isinstance(k, str) for k in keys) else []


def _paths(spec: Any, name: str) -> list[str]:
    """A name for each leaf: the keys and places that lead to it."""
    if spec.is_leaf():
        return [name]
    children = spec.children() if hasattr(spec, "children") else spec.children_specs
    return [path for key, child in zip(_keys(spec) or range(len(children)), children) for path in _paths(child, f"{name}_{key}" if name else str(key))]


def _results(nodes: Sequence[Any], signature: Any, places: Mapping[str, int]) -> tuple[list[Any], list[tuple[Any, int]]]:
    """What the user gets, and the new content of inputs that the program changes, with the inputs' places; changed buffers are refused."""
    output = next(n for n in nodes if n.op == "output")
    kept, changed, state = [], [], []
    for spec, node in zip(signature.output_specs, output.args[0], strict=True):
        if spec.kind.name == "USER_OUTPUT":
            kept.append(node)
        elif spec.kind.name == "USER_INPUT_MUTATION":
            changed.append((node, places[spec.target]))
        elif spec.kind.name.endswith("MUTATION"):
            state.append(str(spec.target))
    if state:
        raise UnsupportedError(f"the program changes {', '.join(state[:8])} in place", why="a compiled model has no state",
                               hint="pass the state as an input and return the new one, or use torch.compile(model, backend='roundel')")
    return [n for n in kept if n is not None], changed
