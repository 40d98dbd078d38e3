# SPDX-License-Identifier: Apache-2.0
"""ONNX models to graph functions: the walk over nodes. Converters of operators live in ``ops/``, one file per family."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...builder import BlockBuilder
from ...graph.convert_to_dataflow import convert_to_dataflow
from ...ir import graph, tir
from ...ir.attrs import Attrs
from ...ir.constants import ConstData
from ...ir.dtype import INT64, DType
from ...ir.errors import ModelError, OptionError, RoundelError, UnsupportedError
from ...ir.module import IRModule
from ...ops import make
from ...ops.dims import assuming
from . import symbolic
from .functions import body_of, defaults_of
from .load import MAX_BYTES, dtype_of, load_model, tensor_data
from .registry import find

if TYPE_CHECKING:
    import onnx

_MISSING = object()


class DataDependentError(UnsupportedError):
    """Something that must be known when the model is compiled depends on its inputs."""


class Value:
    """A value of the model: a graph expression, or the known content of an integer tensor that becomes one when asked for."""

    __slots__ = ("_expr", "_emit", "content", "dtype")

    def __init__(self, expr: graph.GraphExpr | None = None, content: np.ndarray | None = None, dtype: DType = INT64,
                 emit: Callable[[graph.GraphExpr, str], graph.GraphExpr] | None = None) -> None:
        self._expr, self.content, self.dtype, self._emit = expr, content, dtype, emit

    @property
    def expr(self) -> graph.GraphExpr:
        """As a tensor expression."""
        if self._expr is None:
            self._expr = self._materialize()
        return self._expr

    def _materialize(self) -> graph.GraphExpr:
        assert self.content is not None and self._emit is not None
        if symbolic.is_static(self.content):
            return graph.Constant.of(self.content.astype(self.dtype.numpy))
        flat = graph.ShapeExpr(tuple(tir.as_index(v) for v in self.content.reshape(-1)))
        out = self._emit(make("shape_to_tensor", flat), "shape")
        if self.dtype != INT64:
            out = self._emit(make("astype", out, dtype=self.dtype), "shape")
        return out if self.content.ndim == 1 else self._emit(make("reshape", out, graph.ShapeExpr(
            tuple(tir.as_index(n) for n in self.content.shape))), "shape")

    @property
    def is_constant(self) -> bool:
        """Whether the value is known at compile time."""
        return self.constant() is not None

    def constant(self) -> np.ndarray | None:
        """The value as an array when it is known at compile time, else None."""
        if self.content is not None:
            return self.content.astype(self.dtype.numpy) if symbolic.is_static(self.content) else None
        return self._expr.data.numpy() if isinstance(self._expr, graph.Constant) else None


class NodeContext:
    """One node being converted: its attributes, its place, and what converters build with."""

    def __init__(self, importer: GraphImporter, node: onnx.NodeProto, opset: int) -> None:
        self.importer, self.node, self.opset = importer, node, opset
        self.name = node.name or f"{node.op_type} -> {', '.join(node.output)}"
        self._attrs = {a.name: a for a in node.attribute}

    def attr(self, name: str, default: Any = _MISSING) -> Any:
        """An attribute as a Python value (tensors as ConstData, subgraphs as GraphProto); raises ModelError when required and absent."""
        if name not in self._attrs:
            if default is _MISSING:
                raise self.error(f"the required attribute {name!r} is missing")
            return default
        return _attribute(self._attrs[name], self)

    def emit(self, value: Any, hint: str = "") -> graph.GraphExpr:
        """Bind a call to a variable."""
        return self.importer.emit(value, hint or self.node.op_type.lower())

    def make(self, op: str, *args: Any, **attrs: Any) -> graph.GraphExpr:
        """Emit a call of a Roundel operator."""
        with assuming() as notes:
            call = make(op, *args, **attrs)
        self.importer.check_sizes(notes)
        return self.emit(call, self.node.op_type.lower())

    def value(self, content: Any, dtype: DType = INT64) -> Value:
        """An integer tensor with known content."""
        return Value(content=symbolic.content(content), dtype=dtype, emit=self.importer.emit)

    def ints(self, value: Value | None, what: str) -> list[Any]:
        """The elements of a one-dimensional integer input as ints and expressions; raises UnsupportedError where not known."""
        if value is None:
            return []
        if value.content is not None:
            return list(value.content.reshape(-1))
        known = value.constant()
        if known is None:
            raise self.data_dependent(what)
        return [int(v) for v in known.reshape(-1)]

    def static_ints(self, value: Value | None, what: str) -> list[int]:
        """Like ``ints``, all of them numbers."""
        items = self.ints(value, what)
        if any(isinstance(v, tir.Expr) for v in items):
            raise self.unsupported(f"{what} must be constant")
        return items

    def te(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> graph.GraphExpr:
        """Emit a tensor expression ``fn(*tensors)`` as a tensor program."""
        return self.importer.bb.emit_te(fn, *args, **kwargs)

    def subgraph(self, proto: onnx.GraphProto, inputs: Sequence[Any]) -> list[Value]:
        """Convert a subgraph in the scope of this node, its inputs bound to ``inputs``."""
        return self.importer.nested(proto, inputs)

    def error(self, what: str) -> ModelError:
        """An error about this node."""
        return ModelError(what, where=f"node {self.name!r} ({self.node.op_type})")

    def data_dependent(self, what: str) -> DataDependentError:
        """A refusal because something must be known at compile time and is not."""
        return DataDependentError(f"{what}: this depends on the model's data", where=f"node {self.name!r} ({self.node.op_type})",
                                  hint="fix the input that it comes from: from_onnx(model, constants={name: value})")

    def unsupported(self, what: str) -> UnsupportedError:
        """A refusal of this node."""
        return UnsupportedError(what, where=f"node {self.name!r} ({self.node.op_type})")


def _attribute(a: onnx.AttributeProto, node: NodeContext) -> Any:
    kind = a.type
    if kind == 4:
        return tensor_data(a.t, node.importer.folder)
    if kind == 9:
        return [tensor_data(t, node.importer.folder) for t in a.tensors]
    read = {1: lambda: a.f, 2: lambda: a.i, 3: lambda: a.s.decode("utf-8", "replace"), 5: lambda: a.g, 6: lambda: list(a.floats), 7: lambda: list(a.ints),
            8: lambda: [s.decode("utf-8", "replace") for s in a.strings], 10: lambda: list(a.graphs), 11: lambda: a.sparse_tensor}
    if kind not in read:
        raise node.error(f"attribute {a.name!r} has an unknown type {kind}")
    return read[kind]()


class GraphImporter:
    """Converts one ONNX graph inside a BlockBuilder's function."""

    def __init__(self, bb: BlockBuilder, opsets: Mapping[str, int], folder: Path | None, functions: Mapping[tuple[str, str], Any]) -> None:
        self.bb, self.opsets, self.folder, self.functions = bb, dict(opsets), folder, functions
        self.values: dict[str, Value | None] = {"": None}
        self.checked: set[frozenset[tir.Expr]] = set()

    def emit(self, value: Any, hint: str = "lv") -> graph.GraphExpr:
        """Bind a call to a variable; atoms are returned as they are."""
        return self.bb.emit(value, hint) if isinstance(value, graph.Call | graph.If | graph.While | graph.TupleGetItem) else value

    def check_sizes(self, notes: Sequence[tuple[tir.Expr, tir.Expr]]) -> None:
        """Have equalities of sizes that inference assumed checked when the model runs."""
        for a, b in notes:
            key = frozenset((a, b))
            if key not in self.checked:
                self.checked.add(key)
                self.bb.match_cast(graph.ShapeExpr((a,)), graph.ShapeInfo((b,)), "same_size")

    def wrap(self, out: Any) -> Value:
        """What a converter returned as a Value."""
        return out if isinstance(out, Value) else Value(self.emit(out))

    def initializers(self, proto: onnx.GraphProto) -> None:
        """Bind the graph's constants."""
        for t in proto.initializer:
            self.values[t.name] = Value(_constant(tensor_data(t, self.folder)))
        if proto.sparse_initializer:
            raise UnsupportedError("sparse initializers are not supported", where=f"graph {proto.name!r}")

    def run(self, proto: onnx.GraphProto) -> None:
        """Convert the nodes in order (sorted where the file has them out of order)."""
        for node in sorted_nodes(proto, self.values):
            self.node(node)

    def node(self, node: onnx.NodeProto) -> None:
        """Convert one node and bind its outputs."""
        domain = "" if node.domain == "ai.onnx" else node.domain
        function = self.functions.get((domain, node.op_type))
        opset = self.opsets.get(domain, 1)
        convert = find(domain, node.op_type, opset)
        context = NodeContext(self, node, opset)
        inputs = [self.lookup(name, context) for name in node.input]
        if convert is None and function is None:
            function = body_of(node, opset, inputs)
        if convert is None and function is not None:
            outputs = self.call_function(function, node)
        else:
            outputs = self.convert(context, convert, inputs)
        for name, out in zip(node.output, outputs, strict=False):
            if name and out is not None:
                self.values[name] = out

    def convert(self, context: NodeContext, convert: Callable[..., Any] | None, inputs: list[Value | None]) -> list[Value]:
        """Outputs of a node: by content where all inputs' contents are known, else by its converter."""
        known = _contents(inputs)
        rule = symbolic.TABLE.get(context.node.op_type) if context.node.domain in ("", "ai.onnx") else None
        if rule is not None and known is not None:
            try:
                content = np.asarray(rule(context, *known), dtype=object)
                dtype = DType("bool") if content.size and all(isinstance(v, bool) for v in content.reshape(-1)) else _content_dtype(context, inputs)
                return [Value(content=content, dtype=dtype, emit=self.emit)]
            except symbolic.Unknown:
                pass  # falls through to tensors, which is always right
        if convert is None:
            raise context.unsupported(f"operator {context.node.op_type} is not supported")
        try:
            out = convert(context, *inputs)
        except RoundelError as e:
            if e.where is None:
                raise type(e)(e.what, where=f"node {context.name!r} ({context.node.op_type})", why=e.why, hint=e.hint) from e
            raise
        except (TypeError, IndexError, KeyError, AttributeError, ValueError, ZeroDivisionError) as e:
            raise ModelError(f"the node is not valid: {e}", where=f"node {context.name!r} ({context.node.op_type})",
                             why=f"it has {len(inputs)} inputs, opset {context.opset}") from e
        made = [self.wrap(o) for o in (out if isinstance(out, tuple | list) else (out,))]
        for value in made:
            if value is not None and value.content is None:
                require_possible(value.expr.sinfo, f"node {context.name!r} ({context.node.op_type})")
        return made

    def lookup(self, name: str, context: NodeContext) -> Value | None:
        """The value of this name; raises ModelError when nothing defines it."""
        if name not in self.values:
            raise context.error(f"input {name!r} is not defined by any node, input or initializer")
        return self.values[name]

    def nested(self, proto: onnx.GraphProto, inputs: Sequence[Any]) -> list[Value]:
        """Convert a subgraph whose names shadow the outer ones."""
        saved = dict(self.values)
        self.initializers(proto)
        for info, value in zip(proto.input, inputs, strict=False):
            self.values[info.name] = self.wrap(value)
        self.run(proto)
        missing = [o.name for o in proto.output if o.name not in self.values]
        if missing:
            raise ModelError(f"output {missing[0]!r} of a subgraph is not defined", where=f"graph {proto.name!r}")
        out = [self.values[o.name] for o in proto.output]
        self.values = saved
        return out  # type: ignore[return-value]

    def call_function(self, function: onnx.FunctionProto, node: onnx.NodeProto) -> list[Value]:
        """Inline a model-local function, its attributes replaced by the node's."""
        given = {a.name: a for a in (*defaults_of(node, self.opsets), *function.attribute_proto, *node.attribute)}
        inner = GraphImporter(self.bb, {**self.opsets, **{o.domain if o.domain != "ai.onnx" else "": o.version for o in function.opset_import}},
                              self.folder, self.functions)
        context = NodeContext(self, node, 1)
        for k, name in enumerate(function.input):
            inner.values[name] = self.lookup(node.input[k], context) if k < len(node.input) else None
        for inner_node in sorted_nodes(function, inner.values):
            inner.node(_bind_attributes(inner_node, given))
        return [inner.values.get(name) for name in function.output]  # type: ignore[misc]


def _bind_attributes(node: onnx.NodeProto, given: Mapping[str, Any]) -> onnx.NodeProto:
    if not any(a.ref_attr_name for a in node.attribute) and not any(a.HasField("g") for a in node.attribute):
        return node
    new = type(node)()
    new.CopyFrom(node)
    del new.attribute[:]
    for a in node.attribute:
        if a.ref_attr_name:
            if a.ref_attr_name in given:
                new.attribute.add().CopyFrom(given[a.ref_attr_name])
                new.attribute[-1].name = a.name
            continue
        copy = new.attribute.add()
        copy.CopyFrom(a)
        if copy.HasField("g"):
            bound = [_bind_attributes(n, given) for n in copy.g.node]
            del copy.g.node[:]
            copy.g.node.extend(bound)
    return new


def require_possible(info: graph.StructInfo, where: str) -> None:
    """Raises ModelError for a tensor that no machine holds, its symbolic sizes left aside."""
    shape = getattr(info, "shape", None)
    if not shape or not isinstance(info, graph.TensorInfo):
        return
    sizes = [d.value for d in shape if isinstance(d, tir.IntImm)]
    if info.dtype.nbytes(math.prod(sizes)) > MAX_BYTES:
        raise ModelError("the tensor is absurdly large", where=where, why=f"its shape is {[d.value if isinstance(d, tir.IntImm) else str(d) for d in shape]}, "
                         f"elements are {info.dtype}")


def _contents(inputs: list[Value | None]) -> list[np.ndarray | None] | None:
    """Contents of all inputs where known and where at least one is (plain constants count when they are small)."""
    if not any(v is not None and (v.content is not None or _is_small_integer(v)) for v in inputs):
        return None
    out: list[np.ndarray | None] = []
    for v in inputs:
        if v is None or v.content is not None:
            out.append(None if v is None else v.content)
            continue
        known = v.constant()
        if known is None or known.size > 64 or known.dtype.kind not in "iufb":
            return None
        out.append(symbolic.content(known))
    return out


def _is_small_integer(value: Value) -> bool:
    """A constant such as models write shapes with, 32-bit ones cast to 64 bits included."""
    known = value.constant()
    return known is not None and known.size <= 16 and known.dtype.name in ("int32", "int64")


def _content_dtype(context: NodeContext, inputs: list[Value | None]) -> DType:
    if context.node.op_type == "Cast":
        return dtype_of(context.attr("to"))
    values = [v for v in inputs if v is not None]
    chosen = values[1] if context.node.op_type == "Where" else values[0]
    return chosen.dtype if chosen.content is not None else chosen.expr.sinfo.dtype  # type: ignore[attr-defined]


def _constant(data: ConstData) -> graph.Constant:
    return graph.Constant(data, graph.TensorInfo(data.shape, data.dtype))


def sorted_nodes(proto: Any, defined: Mapping[str, Any]) -> list[onnx.NodeProto]:
    """The nodes in an order in which everything is defined before it is used; raises ModelError for a cycle."""
    nodes = list(proto.node)
    have = set(defined)
    if _in_order(nodes, have):
        return nodes
    makers = {name: k for k, n in enumerate(nodes) for name in n.output if name}
    state = [0] * len(nodes)
    order: list[onnx.NodeProto] = []
    for start in range(len(nodes)):
        stack = [(start, iter(_needs(nodes[start])))]
        if state[start]:
            continue
        state[start] = 1
        while stack:
            k, needs = stack[-1]
            step = next((makers[n] for n in needs if n in makers and state[makers[n]] != 2), None)
            if step is None:
                state[k] = 2
                order.append(nodes[k])
                stack.pop()
            elif state[step] == 1:
                names = ", ".join(repr(nodes[i].name or nodes[i].op_type) for i, _ in stack)
                raise ModelError("the graph has a cycle", where=f"graph {proto.name!r}", why=f"nodes on it: {names}")
            else:
                state[step] = 1
                stack.append((step, iter(_needs(nodes[step]))))
    return order


def _in_order(nodes: list[Any], have: set[str]) -> bool:
    for n in nodes:
        if any(i and i not in have for i in _needs(n)):
            return False
        have.update(n.output)
    return True


def _needs(node: Any) -> list[str]:
    """Names a node uses, those its subgraphs take from outside included."""
    out = [i for i in node.input if i]
    for a in node.attribute:
        for g in [a.g] if a.HasField("g") else list(a.graphs):
            inner = {i.name for i in g.input} | {t.name for t in g.initializer} | {o for n in g.node for o in n.output}
            out += [name for n in g.node for name in _needs(n) if name not in inner]
            out += [o.name for o in g.output if o.name not in inner]
    return out


def from_onnx(source: Any, *, dims: Mapping[str, int] | None = None, shapes: Mapping[str, Sequence[Any]] | None = None,
              constants: Mapping[str, np.ndarray] | None = None) -> IRModule:
    """An ONNX model (path, bytes or ModelProto) as a module with the graph function ``main``.

    ``dims`` fixes symbolic dimensions by name (``{"batch": 1}``); ``shapes`` gives inputs other shapes;
    ``constants`` gives inputs fixed values, which are then no parameters any more. Raises ModelError for
    broken models and UnsupportedError, which lists everything unsupported, before any work is done.
    """
    from . import ops  # noqa: F401  (fills the table)
    from .check import check_model

    model, folder = load_model(source)
    check_model(model).raise_if_unsupported()
    opsets = {"" if o.domain == "ai.onnx" else o.domain: o.version for o in model.opset_import}
    functions = {("" if f.domain == "ai.onnx" else f.domain, f.name): f for f in model.functions}
    bb = BlockBuilder()
    proto = model.graph
    fixed = dict(constants or {})
    initial = {t.name for t in proto.initializer}
    inputs = [i for i in proto.input if i.name not in initial and i.name not in fixed]
    scope = _Dimensions(dims or {})
    params = [graph.Var(_identifier(i.name), _input_info(i, scope, (shapes or {}).get(i.name))) for i in inputs]
    scope.check()
    importer = GraphImporter(bb, opsets, folder, functions)
    with bb.function("main", params, attrs=Attrs(global_symbol="main", input_names=tuple(i.name for i in inputs),
                                                 output_names=tuple(o.name for o in proto.output))):
        importer.initializers(proto)
        importer.values.update({name: Value(graph.Constant.of(value)) for name, value in fixed.items()})
        for info, var in zip(inputs, params, strict=True):
            importer.values[info.name] = Value(var)
        importer.run(proto)
        outputs = [_result(importer, o) for o in proto.output]
        bb.emit_func_output(bb.emit(outputs[0] if len(outputs) == 1 else graph.Tuple(tuple(outputs)), "result"))
    return convert_to_dataflow(bb.get())


def _result(importer: GraphImporter, info: Any) -> graph.GraphExpr:
    if info.name not in importer.values:
        raise ModelError(f"output {info.name!r} is not defined by any node", where="the model's graph")
    return importer.values[info.name].expr  # type: ignore[union-attr]


class _Dimensions:
    """Named dimensions become one shape variable each."""

    def __init__(self, fixed: Mapping[str, int]) -> None:
        self.fixed, self.variables, self.used = dict(fixed), {}, set()

    def get(self, name: str) -> Any:
        self.used.add(name)
        if name in self.fixed:
            return self.fixed[name]
        if name not in self.variables:
            self.variables[name] = tir.Var(_identifier(name), INT64, True)
        return self.variables[name]

    def check(self) -> None:
        """Raises OptionError for fixed dimensions that no input has."""
        if unknown := [n for n in self.fixed if n not in self.used]:
            hint = f"they are {', '.join(sorted(self.used))}" if self.used else "all its dimensions are numbers"
            raise OptionError(f"the model has no symbolic dimension {unknown[0]!r}", hint=hint)


def _identifier(name: str) -> str:
    text = "".join(c if c.isalnum() or c == "_" else "_" for c in name)
    return text if text and not text[0].isdigit() else f"x_{text}"


def _input_info(info: Any, scope: _Dimensions, given: Sequence[Any] | None) -> graph.TensorInfo:
    kind = info.type.WhichOneof("value")
    if kind != "tensor_type":
        raise UnsupportedError(f"input {info.name!r} is a {kind or 'value without type'}, not a tensor", where="the model's inputs")
    t = info.type.tensor_type
    dtype = dtype_of(t.elem_type, f"input {info.name!r}")
    if given is not None:
        return graph.TensorInfo(tuple(scope.get(d) if isinstance(d, str) else d for d in given), dtype)
    if not t.HasField("shape"):
        raise UnsupportedError(f"input {info.name!r} has no shape", where="the model's inputs", hint=f"give one: shapes={{{info.name!r}: [...]}}")
    dims: list[Any] = []
    for k, d in enumerate(t.shape.dim):
        if d.HasField("dim_value") and d.dim_value >= 0:
            dims.append(d.dim_value)
        else:
            name = d.dim_param if any(c.isalnum() for c in d.dim_param) else ""  # some exporters write "?" for every unknown size
            dims.append(scope.get(name or f"{info.name}_dim{k}"))
    made = graph.TensorInfo(tuple(dims), dtype)
    require_possible(made, f"input {info.name!r}")
    return made
