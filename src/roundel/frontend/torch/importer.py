# SPDX-License-Identifier: Apache-2.0
"""torch.export programs to graph functions: the walk over FX nodes. Converters live in ``ops/``, one file per family."""

from __future__ import annotations

import operator as py
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...builder import BlockBuilder
from ...ir import graph, tir
from ...ir.attrs import Attrs
from ...ir.errors import ModelError, RoundelError, UnsupportedError
from ...ir.module import IRModule
from ...ops import make
from ...ops.dims import assuming
from .dtypes import Sizes, const_data, dtype_of
from .registry import find

_IGNORED = ("aten._assert_tensor_metadata.default", "aten._assert_async.msg", "aten._assert_scalar.default", "aten.sym_constrain_range.default",
            "aten.sym_constrain_range_for_size.default", "aten._assert_async.default")
_SYMBOLIC: dict[Any, Callable[..., Any]] = {
    py.add: lambda a, b: a + b, py.sub: lambda a, b: a - b, py.mul: lambda a, b: a * b, py.floordiv: lambda a, b: a // b, py.mod: lambda a, b: a % b,
    py.neg: lambda a: -a,
}
KEEP = ("scaled_dot_product_attention.default",)
"""Composite operators that are imported whole rather than decomposed by PyTorch."""


class NodeContext:
    """One FX node being converted: what its converter builds with."""

    def __init__(self, importer: Importer, node: Any) -> None:
        self.importer, self.node, self.name = importer, node, node.name

    @property
    def value(self) -> Any:
        """The fake tensor (or symbolic size) that PyTorch found for the node's result."""
        return self.node.meta.get("val")

    def emit(self, value: Any) -> graph.GraphExpr:
        """Bind a call to a variable named like the node."""
        return self.importer.emit(value, self.name)

    def make(self, op: str, *args: Any, **attrs: Any) -> graph.GraphExpr:
        """Emit a call of a Roundel operator."""
        with assuming() as notes:
            call = make(op, *args, **attrs)
        for a, b in notes:
            if frozenset((a, b)) not in self.importer.checked:
                self.importer.checked.add(frozenset((a, b)))
                self.importer.bb.match_cast(graph.ShapeExpr((a,)), graph.ShapeInfo((b,)), "same_size")
        return self.emit(call)

    def te(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> graph.GraphExpr:
        """Emit a tensor expression as a tensor program."""
        return self.importer.bb.emit_te(fn, *args, **kwargs)

    def shape(self, sizes: Sequence[Any]) -> graph.ShapeExpr:
        """Ints and expressions as a shape."""
        return graph.ShapeExpr(tuple(tir.as_index(self.importer.sizes.get(s)) if not isinstance(s, tir.Expr) else s for s in sizes))

    def out_shape(self) -> graph.ShapeExpr:
        """The shape that PyTorch found for the (first) result."""
        value = self.value[0] if isinstance(self.value, tuple | list) else self.value
        return self.shape(value.shape)

    def out_dtype(self) -> Any:
        """The dtype that PyTorch found for the (first) result."""
        value = self.value[0] if isinstance(self.value, tuple | list) else self.value
        return dtype_of(value.dtype)

    def unsupported(self, what: str) -> UnsupportedError:
        """A refusal of this node."""
        return UnsupportedError(what, where=f"node {self.name!r} ({self.node.target})")


class Importer:
    """Converts the nodes of one FX graph inside a BlockBuilder's function."""

    def __init__(self, bb: BlockBuilder, sizes: Sizes) -> None:
        self.bb, self.sizes = bb, sizes
        self.values: dict[Any, Any] = {}
        self.checked: set[frozenset[tir.Expr]] = set()

    def emit(self, value: Any, hint: str = "lv") -> graph.GraphExpr:
        """Bind a call to a variable; atoms are returned as they are."""
        return self.bb.emit(value, hint) if isinstance(value, graph.Call | graph.If | graph.While | graph.TupleGetItem) else value

    def operand(self, arg: Any) -> Any:
        """An FX argument: nodes by their values, containers element by element, symbolic sizes as expressions."""
        import torch

        if isinstance(arg, torch.fx.Node):
            return self.values[arg]
        if isinstance(arg, tuple | list):
            return type(arg)(self.operand(a) for a in arg) if not isinstance(arg, torch.Size) else [self.operand(a) for a in arg]
        if isinstance(arg, torch.SymInt):
            return self.sizes.get(arg)
        return arg

    def call(self, node: Any) -> Any:
        """The value of a call_function node."""
        name = str(node.target)
        args = [self.operand(a) for a in node.args]
        kwargs = {k: self.operand(v) for k, v in node.kwargs.items()}
        if node.target is py.getitem:
            return args[0][args[1]]
        if node.target in _SYMBOLIC and all(isinstance(a, int | tir.Expr) for a in args):
            return _SYMBOLIC[node.target](*args)
        if name.startswith("aten.sym_size"):
            return args[0].sinfo.shape[args[1]]
        if not hasattr(node.meta.get("val", None), "shape") and hasattr(node.meta.get("val", None), "node"):
            return self.sizes.get(node.meta["val"])
        convert = find(name)
        context = NodeContext(self, node)
        try:
            out = convert(context, *args, **kwargs)  # type: ignore[misc]
        except RoundelError as e:
            if e.where is None:
                raise type(e)(e.what, where=f"node {node.name!r} ({name})", why=e.why, hint=e.hint) from e
            raise
        return tuple(self.emit(o, node.name) for o in out) if isinstance(out, tuple | list) else self.emit(out, node.name)


def _supported(node: Any) -> bool:
    name = str(node.target)
    symbolic = hasattr(node.meta.get("val", None), "node") and not hasattr(node.meta.get("val", None), "shape")
    return node.target is py.getitem or node.target in _SYMBOLIC or name in _IGNORED or name.startswith("aten.sym_size") or symbolic or find(name) is not None


def check_program(nodes: Sequence[Any]) -> None:
    """Raises UnsupportedError that lists every unsupported operator with counts and node names."""
    from . import ops  # noqa: F401  (fills the table)

    missing: dict[str, list[str]] = {}
    for n in nodes:
        if n.op == "call_function" and not _supported(n):
            missing.setdefault(str(n.target), []).append(n.name)
    if missing:
        lines = [f"  {k}, {len(v)} node{'s' if len(v) > 1 else ''}: {', '.join(v[:5])}" for k, v in sorted(missing.items())]
        raise UnsupportedError(f"the program uses {len(missing)} operators that Roundel does not support", why="\n".join(lines),
                               hint="supply them with @roundel.torch.operator(name)")


def from_torch(model: Any, example_inputs: Sequence[Any] | None = None, *, dynamic_shapes: Any = None,
               example_kwargs: Mapping[str, Any] | None = None) -> IRModule:
    """A ``torch.nn.Module`` (exported with the example inputs) or a ``torch.export.ExportedProgram`` as a module."""
    import torch

    if isinstance(model, torch.export.ExportedProgram):
        return from_exported_program(model)
    if not isinstance(model, torch.nn.Module):
        raise ModelError(f"cannot compile a {type(model).__name__}", hint="give a torch.nn.Module or a torch.export.ExportedProgram")
    if example_inputs is None and example_kwargs is None:
        raise ModelError("a torch.nn.Module needs example inputs", hint="rd.compile(model, (x, y))")
    args = tuple(example_inputs) if isinstance(example_inputs, tuple | list) else (example_inputs,)
    with torch.no_grad():
        program = torch.export.export(model.eval(), args, dict(example_kwargs or {}), dynamic_shapes=dynamic_shapes or None)
    return from_exported_program(program)


def from_exported_program(program: Any) -> IRModule:
    """An exported program as a module with the graph function ``main``; parameters and buffers become constants."""
    import torch

    table = torch.export.default_decompositions()
    for name in KEEP:
        base, overload = name.rsplit(".", 1)
        table.pop(getattr(getattr(torch.ops.aten, base), overload), None)
    program = program.run_decompositions(table)
    nodes = list(program.graph.nodes)
    check_program(nodes)
    signature = program.graph_signature
    bb = BlockBuilder()
    importer = Importer(bb, Sizes(_symbol_names(program)))
    user = [n for n in nodes if n.op == "placeholder" and n.name in signature.user_inputs and hasattr(n.meta.get("val"), "shape")]
    params = [graph.Var(n.name, _info(n.meta["val"], importer.sizes)) for n in user]
    importer.values.update(zip(user, params, strict=True))
    _constants(program, nodes, importer)
    for n in nodes:
        if n.op == "placeholder" and n not in importer.values:
            value = n.meta.get("val")
            importer.values[n] = importer.sizes.get(value) if hasattr(value, "node") else value
    attrs = Attrs(global_symbol="main", input_names=tuple(n.name for n in user))
    with bb.function("main", params, attrs=attrs):
        with bb.dataflow():
            for n in nodes:
                if n.op == "call_function" and str(n.target) not in _IGNORED:
                    importer.values[n] = importer.call(n)
            result = bb.emit_output(_result(nodes, importer, signature))
        bb.emit_func_output(result)
    return bb.get()


def _symbol_names(program: Any) -> dict[str, str]:
    """The user's names of dynamic dimensions, where torch.export keeps them."""
    names: dict[str, str] = {}
    for n in program.graph.nodes:
        value = n.meta.get("val")
        if n.op == "placeholder" and hasattr(value, "shape"):
            for k, s in enumerate(value.shape):
                if hasattr(s, "node"):
                    names.setdefault(str(s.node.expr), f"{n.name}_{k}")
    return names


def _info(value: Any, sizes: Sizes) -> graph.TensorInfo:
    return graph.TensorInfo(tuple(sizes.get(s) for s in value.shape), dtype_of(value.dtype))


def _constants(program: Any, nodes: Sequence[Any], importer: Importer) -> None:
    signature = program.graph_signature
    homes = {**signature.inputs_to_parameters, **signature.inputs_to_buffers, **signature.inputs_to_lifted_tensor_constants}
    known: dict[int, graph.Constant] = {}
    for n in nodes:
        if n.op == "placeholder" and n.name in homes:
            tensor = program.state_dict.get(homes[n.name], program.constants.get(homes[n.name]))
            if id(tensor) not in known:
                data = const_data(tensor)
                known[id(tensor)] = graph.Constant(data, graph.TensorInfo(data.shape, data.dtype))
            importer.values[n] = known[id(tensor)]


def _result(nodes: Sequence[Any], importer: Importer, signature: Any) -> graph.GraphExpr:
    output = next(n for n in nodes if n.op == "output")
    wanted = [o for spec, o in zip(signature.output_specs, output.args[0], strict=True) if spec.kind.name == "USER_OUTPUT"]
    values = [importer.operand(o) for o in wanted if o is not None]
    fields = [graph.ShapeExpr((tir.as_index(v),)) if isinstance(v, int | tir.Expr) else v for v in values]
    return fields[0] if len(fields) == 1 else graph.Tuple(tuple(fields))
