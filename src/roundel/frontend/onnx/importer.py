# SPDX-License-Identifier: Apache-2.0
"""ONNX models to graph functions: the walk over nodes. Converters of operators live in ``ops/``, one file per family."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...builder import BlockBuilder
from ...graph.tidy.fold_constants import folded
from ...ir import graph, tir
from ...ir.constants import ConstData
from ...ir.dtype import INT64, DType
from ...ir.errors import ModelError, RoundelError, UnsupportedError
from ...ir.node import Span
from ...ops import make
from ...ops.dims import assuming, differ, dim_text, equal
from ..common.importer import ModelImporter, ModelNode, is_tiny
from . import symbolic
from .folder import ModelFolder
from .functions import body_of, defaults_of
from .limits import Limits
from .load import MAX_BYTES, STRING, check_rank, dtype_of, tensor_data
from .registry import find
from .run_time_sizes import broadcasts, integers, require, stretched
from .signature import check_call, check_function, check_read, check_results, failed
from .strings import mark_text
from .values import SequenceValue, UndecidedError, UnsupportedDataError, Value

if TYPE_CHECKING:
    import onnx

_MISSING = object()
_INVALID = (TypeError, LookupError, AttributeError, ValueError, ArithmeticError, AssertionError, RuntimeError, MemoryError, OSError)
"""What converters raise by themselves for nodes that are not valid."""
_TINY = symbolic.LARGEST
"""Constants of at most that many elements are computed during import: axes, shapes and decisions may come from them."""


_COUNTS = frozenset({"strides", "dilations", "kernel_shape", "blocksize", "group", "offset_group", "num_groups", "hidden_size"})
"""Attributes that count or step: none of their numbers is below 1."""


class NodeContext(ModelNode):
    """One node being converted: its attributes, its place, and what converters build with."""

    importer: GraphImporter

    def __init__(self, importer: GraphImporter, node: onnx.NodeProto, opset: int) -> None:
        name = node.name or f"{node.op_type} -> {', '.join(node.output)}"
        super().__init__(importer, name, node.op_type, f"{node.op_type} {node.name}" if node.name else name)
        self.node, self.opset, self.domain = node, opset, "" if node.domain == "ai.onnx" else node.domain
        self._attrs = {a.name: a for a in node.attribute}
        self.read: set[str] = set()
        """Names of the attributes that somebody asked for."""

    @classmethod
    def of_graph(cls, importer: GraphImporter, output: str) -> NodeContext:
        """A place that belongs to no node: where an output is handed out."""
        from onnx import helper

        return cls(importer, helper.make_node("Identity", [output], [output]), 1)

    def attr(self, name: str, default: Any = _MISSING) -> Any:
        """An attribute as a Python value (tensors as ConstData, subgraphs as GraphProto); raises ModelError when required and absent."""
        self.read.add(name)
        if name not in self._attrs:
            if default is _MISSING:
                raise self.error(f"the required attribute {name!r} is missing")
            return default
        value = _attribute(self._attrs[name], self)
        if name in _COUNTS and any(v < 1 for v in (value if isinstance(value, list) else [value])):
            raise self.error(f"the attribute {name!r} is {value}: 1 is the least possible")
        return value

    def axis(self, value: int, rank: int, *, end: bool = False) -> int:
        """An axis of a tensor of ``rank`` dimensions, counted from the first; raises ModelError unless it is in [-rank, rank), with ``end``
        in [-rank, rank]. A tensor without dimensions counts as one of one dimension."""
        rank = max(rank, 1)
        if not -rank <= value < rank + end:
            raise self.error(f"axis {value} is out of range for {rank} dimension{'s' * (rank > 1)}: it must be from {-rank} to {rank - 1 + end}")
        return int(value) + rank if value < 0 else int(value)

    def axes(self, values: Sequence[int], rank: int) -> tuple[int, ...]:
        """Axes like ``axis``; raises ModelError for one that is given twice."""
        found = tuple(self.axis(v, rank) for v in values)
        if len(set(found)) < len(found):
            raise self.error(f"the axes {list(values)} of {rank} dimensions name one of them twice")
        return found

    @property
    def node_attributes(self) -> Collection[str]:
        """Names of the attributes that are given."""
        return self._attrs.keys()

    def static_dims(self, dims: Sequence[Any], what: str) -> list[int]:
        """Sizes that have to be known before the model runs, as numbers."""
        if not all(isinstance(d, tir.IntImm) for d in dims):
            raise self.unsupported(f"{what} must be known when the model is compiled, it is ({', '.join(map(dim_text, dims))})")
        return [d.value for d in dims]

    def is_text_attr(self, name: str) -> bool:
        """Whether an attribute is a tensor of strings."""
        return name in self._attrs and self._attrs[name].t.data_type == STRING

    def emit(self, value: Any, hint: str = "") -> graph.GraphExpr:
        """Bind a call to a variable."""
        return self.importer.emit(value, hint or self.node.op_type.lower())

    def make(self, op: str, *args: Any, **attrs: Any) -> graph.GraphExpr:
        """Emit a call of a Roundel operator."""
        args = stretched(self, args) if broadcasts(op) else args
        with assuming() as notes:
            call = make(op, *args, **attrs)
        self.importer.check_sizes(notes, self.title, args)
        return self.emit(call, self.node.op_type.lower())

    def value(self, content: Any, dtype: DType = INT64) -> Value:
        """An integer tensor with known content."""
        return Value(content=symbolic.content(content), dtype=dtype, scope=self.importer)

    def ints(self, value: Value | None, what: str, *, signed: bool = False, upper: Any = None) -> list[Any]:
        """The elements of a one-dimensional integer input as ints and expressions. What depends on data becomes variables, which
        are checked when the model runs: >= 0 unless ``signed``, at most ``upper``. Raises ModelError for more dimensions."""
        if value is None:
            return []
        if (rank := value.content.ndim if value.content is not None else value.expr.sinfo.ndim) > 1:
            raise self.error(f"{what} must be a tensor of one dimension, not of {rank}")
        if value.content is not None:
            return list(value.content.reshape(-1))
        known = value.constant()
        return list(integers(self, value, what, signed=signed, upper=upper)) if known is None else [int(v) for v in known.reshape(-1)]

    def static_ints(self, value: Value | None, what: str) -> list[int]:
        """Like ``ints``, all of them numbers."""
        if value is not None and value.content is None and value.constant() is None:
            raise self.data_dependent(what)
        items = self.ints(value, what)
        if any(isinstance(v, tir.Expr) for v in items):
            raise self.unsupported(f"{what} must be constant")
        return items

    def number(self, size: Any) -> graph.GraphExpr:
        """A size as a tensor without dimensions, int64."""
        size = tir.as_index(size)
        return graph.Constant.of(np.int64(size.value)) if isinstance(size, tir.IntImm) else self.make("reshape", self.value([size]).expr, graph.ShapeExpr(()))

    def same_size(self, a: Any, b: Any, what: str) -> None:
        """Have two sizes that have to be equal checked when the model runs; raises ModelError that says ``what`` where they never are."""
        a, b = tir.as_index(a), tir.as_index(b)
        if differ(a, b):
            raise self.error(f"{what}: {dim_text(a)} and {dim_text(b)}")
        if not equal(a, b):
            self.importer.check_sizes([(a, b)], f"{self.title}: {what}")

    def numpy(self, fn: Callable[..., Any], inputs: Sequence[graph.GraphExpr], infos: Sequence[Any]) -> Any:
        """Call ``fn(*arrays)`` in this process when the model runs; ``infos`` are (shape, dtype) of its results.

        A model with such a call needs Python where it runs. One info gives a tensor, several a tuple of them.
        """
        from .callbacks import emit_callback

        return emit_callback(self, fn, inputs, infos)

    def text(self, expr: graph.GraphExpr) -> Value:
        """Numbers that stand for strings."""
        return Value(self.emit(expr), is_text=True)

    def subgraph(self, proto: onnx.GraphProto, inputs: Sequence[Any]) -> list[Value]:
        """Convert a subgraph in the scope of this node, its inputs bound to ``inputs``."""
        return self.importer.nested(proto, inputs)

    def data_dependent(self, what: str) -> UnsupportedDataError:
        """A refusal because something must be known at compile time and is not."""
        return UnsupportedDataError(f"{what}: this depends on the model's data", where=self.where,
                                  hint="fix the input that it comes from: from_onnx(model, constants={name: value})")


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


class Decisions:
    """Which branches are taken of the Ifs that cannot stay open, in the order in which the import meets them."""

    def __init__(self, made: Sequence[bool] = ()) -> None:
        self.made, self.used = tuple(made), 0

    def next(self) -> bool | None:
        """The decision for the next such If, None when there is none yet."""
        self.used += 1
        return self.made[self.used - 1] if self.used <= len(self.made) else None


class GraphImporter(ModelImporter):
    """Converts one ONNX graph inside a BlockBuilder's function."""

    def __init__(self, bb: BlockBuilder, opsets: Mapping[str, int], folder: ModelFolder | None, functions: Mapping[tuple[str, str], Any],
                 limits: Limits | None = None) -> None:
        super().__init__(bb)
        self.opsets, self.folder, self.functions = dict(opsets), folder, functions
        self.values: dict[str, Value | None] = {"": None}
        self.sizes: frozenset[tir.Var] = frozenset()  # of the model's inputs; others come from data
        self.decisions = Decisions()
        self.python: dict[str, None] = {}
        self.depth = 0
        self.limits = limits or Limits()

    def emit(self, value: Any, hint: str = "lv") -> graph.GraphExpr:
        """Bind a call to a variable; atoms are returned as they are, small constants computed at once."""
        if isinstance(value, graph.Call) and is_tiny(value, _TINY):
            value = folded(value)
        elif isinstance(value, graph.TupleGetItem) and isinstance(value.tuple_value, graph.Tuple):
            return value.tuple_value.fields[value.index]
        return super().emit(value, hint)

    def decide(self, node: NodeContext, condition: Value) -> bool:
        """Which branch of an If is taken for good; that the condition says so is checked when the model runs."""
        chosen = self.decisions.next()
        if chosen is None:
            raise UndecidedError("whether a tensor has one or another number of dimensions: this depends on the model's data",
                                 where=node.where)
        require(node, condition.expr, f"branch of {node.name}", chosen)
        return chosen

    def wrap(self, out: Any) -> Value:
        """What a converter returned as a Value."""
        return out if out is None or isinstance(out, Value | SequenceValue) else Value(self.emit(out))

    def initializers(self, proto: onnx.GraphProto) -> None:
        """Bind the graph's constants."""
        for t in proto.initializer:
            self.values[t.name] = Value(_constant(tensor_data(t, self.folder)), is_text=t.data_type == STRING)
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
        self.limits.count(context.where)
        inputs = [self.lookup(name, context) for name in node.input]
        if convert is None and function is not None:
            check_function(context, function)
        else:
            check_call(context, inputs)
        if convert is None and function is None:
            check_read(context)
            function = body_of(node, opset, inputs)
        if convert is None and function is not None:
            with self.limits.inside((domain, node.op_type), context.where):
                outputs = self.call_function(function, node)
        else:
            outputs = self.convert(context, convert, inputs)
            mark_text(node, opset, inputs, outputs)
            check_read(context)
        check_results(context, outputs)
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
                if content.size > _TINY:
                    raise symbolic.Unknown
                dtype = _content_dtype(context, inputs)
                return [Value(content=content, dtype=dtype, scope=self)]
            except (symbolic.Unknown, *_INVALID):
                pass  # falls through to tensors, which is always right, and where what is invalid is told
        if convert is None:
            raise context.unsupported(f"operator {context.node.op_type} is not supported")
        try:
            with context.converting():
                out = convert(context, *inputs)
        except RoundelError:
            raise
        except _INVALID as e:
            raise failed(context, inputs) from e
        self.bb.span = Span(context.title, name=context.name)  # a subgraph had its own nodes' names
        made = [self.wrap(o) for o in (out if isinstance(out, tuple | list) else (out,))]
        for value in made:
            if isinstance(value, Value) and value.content is None:
                require_possible(value.expr.sinfo, context.where)
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
        with self.limits.inside(None, f"graph {proto.name!r}"):
            self.run(proto)
        missing = [o.name for o in proto.output if o.name not in self.values]
        if missing:
            raise ModelError(f"output {missing[0]!r} of a subgraph is not defined", where=f"graph {proto.name!r}")
        out = [self.values[o.name] for o in proto.output]
        self.values = saved
        return out  # type: ignore[return-value]

    def sequence(self, build: Callable[[], Any]) -> graph.SeqExpr:
        """A branch or a loop's body: what ``build`` emits, and its result."""
        checked = set(self.checked)
        self.depth += 1
        try:
            return self.bb.sequence(build)
        finally:
            self.depth, self.checked = self.depth - 1, checked

    def call_function(self, function: onnx.FunctionProto, node: onnx.NodeProto) -> list[Value]:
        """Inline a model-local function, its attributes replaced by the node's."""
        given = {a.name: a for a in (*defaults_of(node, self.opsets), *function.attribute_proto, *node.attribute)}
        inner = GraphImporter(self.bb, {**self.opsets, **{o.domain if o.domain != "ai.onnx" else "": o.version for o in function.opset_import}},
                              self.folder, self.functions, self.limits)
        inner.depth, inner.checked, inner.decisions, inner.python, inner.sizes = self.depth, self.checked, self.decisions, self.python, self.sizes
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
    """Raises ModelError for a tensor that no machine holds, its symbolic sizes left aside, for a negative size and for too many dimensions."""
    for part in info.fields if isinstance(info, graph.TupleInfo) else ():
        require_possible(part, where)
    shape = getattr(info, "shape", None)
    if not shape or not isinstance(info, graph.TensorInfo):
        return
    check_rank(len(shape), where)
    sizes = [d.value for d in shape if isinstance(d, tir.IntImm)]
    if any(size < 0 for size in sizes):
        raise ModelError("a dimension is negative", where=where, why=f"its shape is [{', '.join(d.script() for d in shape)}]")
    if info.dtype.nbytes(math.prod(sizes)) > MAX_BYTES:
        raise ModelError("the tensor is absurdly large", where=where, why=f"its shape is [{', '.join(d.script() for d in shape)}], "
                         f"elements are {info.dtype}")


def _contents(inputs: list[Value | None]) -> list[np.ndarray | None] | None:
    """Contents of all inputs where known and where at least one is (plain constants count when they are small)."""
    if not any(v is not None and (v.content is not None or _is_small_integer(v)) for v in inputs) or any(isinstance(v, Value) and v.is_text for v in inputs):
        return None
    out: list[np.ndarray | None] = []
    for v in inputs:
        if v is None or v.content is not None:
            out.append(None if v is None else v.content)
            continue
        known = _small_constant(v, 64)
        if known is None or known.dtype.kind not in "iufb":
            return None
        out.append(symbolic.content(known))
    return out


def _is_small_integer(value: Value) -> bool:
    """A constant such as models write shapes with, 32-bit ones cast to 64 bits included."""
    known = _small_constant(value, 16)
    return known is not None and known.dtype.name in ("int32", "int64")


def _small_constant(value: Value, most: int) -> np.ndarray | None:
    """The array of a constant with at most so many elements; larger ones are not read from their files."""
    if not value.is_constant or (value.content is None and math.prod(value.expr.data.shape) > most):  # type: ignore[attr-defined]
        return None
    known = value.constant()
    return known if known is not None and known.size <= most else None


_TESTS = {"Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Not", "And", "Or"}


def _content_dtype(context: NodeContext, inputs: list[Value | None]) -> DType:
    if context.node.op_type == "Cast":
        return dtype_of(context.attr("to"))
    if context.node.op_type in _TESTS:
        return DType("bool")
    values = [v for v in inputs if v is not None]
    chosen = values[1] if context.node.op_type == "Where" else values[0]
    return chosen.dtype if chosen.content is not None else chosen.expr.sinfo.dtype  # type: ignore[attr-defined]


def _constant(data: ConstData) -> graph.Constant:
    return graph.Constant(data, graph.TensorInfo(data.shape, data.dtype))


def sorted_nodes(proto: Any, defined: Mapping[str, Any]) -> list[onnx.NodeProto]:
    """The nodes in an order in which everything is defined before it is used; raises ModelError for a cycle and for a name defined twice."""
    nodes = list(proto.node)
    _check_unique(proto, nodes)
    have = set(defined)
    if _in_order(nodes, have):
        return nodes
    makers = {name: k for k, n in enumerate(nodes) for name in n.output if name}
    state = [0] * len(nodes)
    order: list[onnx.NodeProto] = []
    for start in range(len(nodes)):
        stack = [(start, iter(needs(nodes[start])))]
        if state[start]:
            continue
        state[start] = 1
        while stack:
            k, left = stack[-1]
            step = next((makers[n] for n in left if n in makers and state[makers[n]] != 2), None)
            if step is None:
                state[k] = 2
                order.append(nodes[k])
                stack.pop()
            elif state[step] == 1:
                names = ", ".join(repr(nodes[i].name or nodes[i].op_type) for i, _ in stack)
                raise ModelError("the graph has a cycle", where=f"graph {proto.name!r}", why=f"nodes on it: {names}")
            else:
                state[step] = 1
                stack.append((step, iter(needs(nodes[step]))))
    return order


def _check_unique(proto: Any, nodes: Sequence[Any]) -> None:
    """Raises ModelError when two nodes, inputs or initializers, or a node and one of these, define one name (subgraphs may hide names from outside;
    an initializer of an input's name is its default)."""
    makers: dict[str, str] = {}
    for what, found in (("an initializer", [t.name for t in getattr(proto, "initializer", ())]),
                        ("an input", [i if isinstance(i, str) else i.name for i in proto.input])):
        for name in found:
            if name and makers.get(name) == what:
                raise ModelError(f"{name!r} is defined twice", where=f"graph {proto.name!r}", why=f"each time by {what}",
                                 hint="every name of a graph has one definition; give one of the two another name")
            makers[name] = what
    for n in nodes:
        title = f"node {n.name!r} ({n.op_type})" if n.name else f"a node {n.op_type}"
        for name in n.output:
            if name in makers:
                raise ModelError(f"{name!r} is defined twice", where=title, why=f"also by {makers[name]}",
                                 hint="every name of a graph has one definition; give one of the two another name")
            if name:
                makers[name] = title


def _in_order(nodes: list[Any], have: set[str]) -> bool:
    for n in nodes:
        if any(i and i not in have for i in needs(n)):
            return False
        have.update(n.output)
    return True


def needs(node: Any) -> list[str]:
    """Names a node uses, those its subgraphs take from outside included."""
    out = [i for i in node.input if i]
    for a in node.attribute:
        for g in [a.g] if a.HasField("g") else list(a.graphs):
            inner = {i.name for i in g.input} | {t.name for t in g.initializer} | {o for n in g.node for o in n.output}
            out += [name for n in g.node for name in needs(n) if name not in inner]
            out += [o.name for o in g.output if o.name not in inner]
    return out
