# SPDX-License-Identifier: Apache-2.0
"""Relay expressions to a graph function: the walk over nodes. Converters of operators live in ``ops/``, one file per family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...builder import BlockBuilder
from ...graph.tidy.fold_constants import folded
from ...ir import graph, tir
from ...ir.attrs import Attrs
from ...ir.dataclass import dataclass
from ...ir.dtype import INT64, DType
from ...ir.errors import ModelError, RoundelError, UnsupportedError
from ...ir.module import IRModule
from ...ops import make
from ...ops.dims import assuming, differ, dim_text, equal
from ..common.importer import ModelImporter, ModelNode, is_tiny
from . import expr as relay
from .loops import as_loop
from .nested import form, nested, tensors
from .registry import find

_MISSING = object()
_INVALID = (TypeError, LookupError, AttributeError, ValueError, ArithmeticError)
"""What converters raise by themselves for nodes that are not valid."""
_DEEPEST = 100  # calls of functions within functions
_TINY = 64
"""Constants of at most that many elements are computed during import: sizes may be made of them."""


@dataclass(frozen=True, eq=False)
class Closure:
    """A function as a value: what its body names outside of it is known by the scope. ``name`` tells it in errors."""

    function: relay.Function
    scope: Mapping[relay.Expr, Any]
    name: str


class NodeContext(ModelNode):
    """One call being converted: its attributes, and what converters build with."""

    importer: RelayImporter

    def __init__(self, importer: RelayImporter, op: str, attrs: Mapping[str, Any], name: str) -> None:
        super().__init__(importer, name, op, f"{op} {name}")
        self.attrs = attrs

    def attr(self, name: str, default: Any = _MISSING) -> Any:
        """An attribute as a Python value; None and empty texts count as absent. Raises ModelError where it is required and absent."""
        value = self.attrs.get(name)
        if value is None or value == "" or value == "void":
            if default is _MISSING:
                raise self.error(f"the required attribute {name!r} is missing")
            return default
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        """An attribute that is true or false."""
        return bool(self.attr(name, default))

    def dtype(self, default: Any = _MISSING, name: str = "dtype") -> DType:
        """An attribute that is a type of elements."""
        return dtype_of(self.attr(name, default))

    def ints(self, name: str, default: Any = _MISSING) -> tuple[int, ...]:
        """An attribute that is a list of integers (one integer counts as a list)."""
        value = self.attr(name, default)
        value = value if isinstance(value, list | tuple) else (value,)
        if not all(isinstance(v, int) and not isinstance(v, bool) for v in value):
            raise self.error(f"the attribute {name!r} is {value}: integers that are known when the model is compiled are expected")
        return tuple(value)

    def emit(self, value: Any) -> graph.GraphExpr:
        """Bind a call to a variable."""
        return self.importer.emit(value, self.kind.rsplit(".", 1)[-1])

    def make(self, op: str, *args: Any, **attrs: Any) -> graph.GraphExpr:
        """Emit a call of a Roundel operator."""
        with assuming() as notes:
            call = make(op, *args, **attrs)
        self.importer.check_sizes(notes, self.title, args)
        return self.emit(folded(call) if is_tiny(call, _TINY) else call)

    def reshape(self, x: Any, dims: Sequence[Any]) -> Any:
        """``x`` with other dimensions (numbers and expressions)."""
        return self.make("reshape", x, graph.ShapeExpr(tuple(map(tir.as_index, dims))))

    def like(self, value: Any, x: Any) -> graph.Constant:
        """A number of the dtype of ``x``."""
        return graph.Constant.of(value, x.sinfo.dtype)

    def same_size(self, a: Any, b: Any, what: str) -> None:
        """Have two sizes that have to be equal checked when the model runs; raises ModelError that says ``what`` where they never are."""
        a, b = tir.as_index(a), tir.as_index(b)
        if differ(a, b):
            raise self.error(f"{what}: {dim_text(a)} and {dim_text(b)}")
        if not equal(a, b):
            self.importer.check_sizes([(a, b)], f"{self.title}: {what}")

    def constant(self, x: Any, what: str) -> np.ndarray:
        """The content of an operand that has to be known when the model is compiled."""
        if not isinstance(x, graph.Constant):
            raise self.unsupported(f"{what} has to be a constant")
        return x.data.numpy()

    def sizes(self, x: Any, what: str) -> tuple[tir.Expr, ...]:
        """The elements of an operand that are sizes: numbers of a constant, or variables that the run reads from the tensor."""
        if isinstance(x, graph.Constant):
            return tuple(tir.as_index(int(v)) for v in x.data.numpy().reshape(-1))
        (count,) = x.sinfo.shape or (None,)
        if not isinstance(count, tir.IntImm):
            raise self.unsupported(f"the number of elements of {what} has to be known")
        shape = self.make("tensor_to_shape", self.make("astype", x, dtype="int64"))
        found = tuple(tir.Var(f"size_{k}", INT64, True) for k in range(count.value))
        self.importer.bb.match_cast(shape, graph.ShapeInfo(found), "sizes")
        return found


class RelayImporter(ModelImporter):
    """Converts the expressions of one module inside a BlockBuilder's function."""

    def __init__(self, bb: BlockBuilder, module: relay.Module) -> None:
        super().__init__(bb)
        self.module = module
        self.values: dict[relay.Expr, Any] = {}
        self.calls: list[relay.Function] = []
        self.counts: dict[str, int] = {}

    def value(self, root: relay.Expr) -> Any:
        """The value of an expression: a graph expression, a tuple of values, or a closure. Nodes wait on a list for those that they need,
        since long models exceed the recursion of Python."""
        waiting = [root]
        while waiting:
            node = waiting[-1]
            if node in self.values:
                waiting.pop()
            elif missing := [n for n in self.needs(node) if n not in self.values]:
                waiting.extend(reversed(missing))
            else:
                self.values[node] = self.convert(node)
                waiting.pop()
        return self.values[root]

    def needs(self, node: relay.Expr) -> Sequence[relay.Expr]:
        """What has to be there before a node can be converted."""
        if isinstance(node, relay.Call):
            return node.args if isinstance(node.op, str) else (*node.args, node.op)
        if isinstance(node, relay.Tuple):
            return node.fields
        if isinstance(node, relay.Item):
            return (node.value,)
        if isinstance(node, relay.If):
            return (node.condition,)
        if isinstance(node, relay.Let):
            if isinstance(node.value, relay.Function):
                self.values.setdefault(node.var, Closure(node.value, self.values, node.var.name))
            elif node.value not in self.values:
                return (node.value,)
            else:
                self.values.setdefault(node.var, self.values[node.value])
            return (node.body,)
        return ()

    def convert(self, node: relay.Expr) -> Any:
        """The value of a node whose needs are there."""
        if isinstance(node, relay.Call):
            args = [self.values[a] for a in node.args]
            return self.operator(node.op, args, node.attrs) if isinstance(node.op, str) else self.call(self.values[node.op], args)
        if isinstance(node, relay.Constant):
            return graph.Constant.of(node.data)
        if isinstance(node, relay.Tuple):
            return tuple(self.values[f] for f in node.fields)
        if isinstance(node, relay.Item):
            found = self.values[node.value]
            if not isinstance(found, tuple) or not 0 <= node.index < len(found):
                raise ModelError(f"field {node.index} of what is no tuple of so many", where="a projection of the Relay model")
            return found[node.index]
        if isinstance(node, relay.Let):
            return self.values[node.body]
        if isinstance(node, relay.If):
            return self.branch(node)
        if isinstance(node, relay.Function):
            return Closure(node, self.values, "fn")
        if isinstance(node, relay.GlobalVar):
            if node.name not in self.module.functions:
                raise ModelError(f"the Relay module has no function @{node.name}", hint=f"it has {', '.join('@' + n for n in self.module.functions)}")
            return Closure(self.module.functions[node.name], {}, f"@{node.name}")
        if isinstance(node, relay.Var):
            raise ModelError(f"the variable %{node.name} of the Relay model has no value", hint="every variable is a parameter or bound by let")
        raise UnsupportedError(f"the Relay model uses {getattr(node, 'what', type(node).__name__)}", why="a compiled model is made of tensor operators")

    def operator(self, op: str, args: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """The value of a call of an operator."""
        self.counts[op] = self.counts.get(op, 0) + 1
        node = NodeContext(self, op, attrs, f"{op.rsplit('.', 1)[-1]}_{self.counts[op]}")
        convert = find(op)
        assert convert is not None, op  # checked before anything is converted
        with node.converting():
            try:
                out = convert(node, *args)
            except RoundelError:
                raise
            except _INVALID as error:
                raise node.error(f"the operands or attributes are not valid: {error}") from error
        return out

    def call(self, closure: Any, args: Sequence[Any]) -> Any:
        """The value of a call of a function, which is put in place of the call; one that calls itself at its end becomes a loop."""
        if not isinstance(closure, Closure):
            raise ModelError("the Relay model calls what is no function")
        function = closure.function
        if len(args) != len(function.params):
            raise ModelError(f"{closure.name} of the Relay model is called with {len(args)} operands and has {len(function.params)} parameters")
        if function in self.calls:
            raise UnsupportedError(f"{closure.name} of the Relay model calls itself", why="only calls at a function's end, which make it a loop, are supported")
        if len(self.calls) >= _DEEPEST:
            raise UnsupportedError(f"functions of the Relay model are nested more than {_DEEPEST} deep")
        loop = as_loop(function, closure.name)
        outside = self.values
        self.calls.append(function)
        self.values = {**closure.scope, **dict(zip(function.params, args, strict=True))}
        try:
            return self.value(function.body) if loop is None else loop.emitted(self, args)
        finally:
            self.calls.pop()
            self.values = outside

    def branch(self, node: relay.If) -> Any:
        """One of two values, by a condition; a condition that is known leaves one branch."""
        condition = self.values[node.condition]
        if isinstance(condition, graph.Constant) and condition.data.numpy().size == 1:
            return self.inside(node.then if condition.data.numpy().reshape(-1)[0] else node.otherwise)
        flag = self.flag(condition)
        shapes: list[Any] = []
        sequences = [self.bb.sequence(lambda b=b: self.flat(self.inside(b), shapes)) for b in (node.then, node.otherwise)]
        if shapes[0] != shapes[1]:
            raise ModelError("the branches of the Relay model give tuples of different forms")
        infos = [_either(a, b) for a, b in zip(*(s.sinfo.fields for s in sequences), strict=True)]
        out = self.bb.emit(graph.If(flag, *sequences, graph.TupleInfo(tuple(infos))), "if_")
        fields = [self.bb.emit(graph.TupleGetItem(out, k), "if_result") for k in range(len(infos))]
        return nested(shapes[0], iter([self.with_sizes(f) for f in fields]))

    def flag(self, value: Any) -> graph.GraphExpr:
        """A condition as a tensor without dimensions; raises ModelError for what is none."""
        info = getattr(value, "sinfo", None)
        if not isinstance(info, graph.TensorInfo) or info.shape is None or any(not isinstance(d, tir.IntImm) or d.value != 1 for d in info.shape):
            raise ModelError("a condition of the Relay model is not one truth value", why=f"it is {info if info is not None else 'a tuple or a function'}")
        return value if info.ndim == 0 else self.emit(make("reshape", value, graph.ShapeExpr(())))

    def with_sizes(self, value: graph.GraphExpr) -> graph.GraphExpr:
        """A tensor whose sizes depend on data, with variables for them."""
        info = value.sinfo
        if info.shape is not None:
            return value
        sizes = tuple(tir.Var(f"size_{k}", INT64, True) for k in range(info.ndim))
        return self.bb.match_cast(value, graph.TensorInfo(sizes, info.dtype), "sized")

    def inside(self, node: relay.Expr) -> Any:
        """The value of a branch or a body: what it computes is not known outside of it."""
        outside, checked = self.values, set(self.checked)
        self.values = dict(outside)
        try:
            return self.value(node)
        finally:
            self.values, self.checked = outside, checked

    def flat(self, value: Any, shapes: list[Any]) -> graph.Tuple:
        """A value as a tuple of its tensors; how they are nested is appended to ``shapes``."""
        shapes.append(form(value))
        return graph.Tuple(tuple(tensors(value)))


def _either(a: graph.TensorInfo, b: graph.TensorInfo) -> graph.TensorInfo:
    if a.dtype != b.dtype:
        raise ModelError(f"the branches of the Relay model give {a.dtype} and {b.dtype}")
    if a.ndim != b.ndim:
        raise UnsupportedError(f"the branches of the Relay model give tensors of {a.ndim} and {b.ndim} dimensions", why="a value has one number of dimensions")
    return a if a is b else graph.TensorInfo(None, a.dtype, a.ndim)


def dtype_of(name: str) -> DType:
    """A type of elements; raises UnsupportedError for one that no tensor has."""
    try:
        found = DType(name)
        return found if found.lanes == 1 and found.numpy is not None else DType("")
    except (RoundelError, ValueError, TypeError, AttributeError) as error:
        raise UnsupportedError(f"the Relay model has elements of the type {name}",
                               why="tensors hold truth values, integers and floating-point numbers") from error


def tensor_info(type_: Any, name: str) -> graph.TensorInfo:
    """The struct info of a parameter; each ``?`` is a size of its own."""
    if not isinstance(type_, relay.TensorType):
        what = "has no type" if type_ is None else f"is a {type_.text}" if isinstance(type_, relay.OtherType) else "is a tuple"
        raise UnsupportedError(f"the parameter %{name} of the Relay model {what}", hint="parameters are tensors with a type")
    dtype = dtype_of(type_.dtype)
    if any(d is not relay.ANY and (not isinstance(d, int) or d < 0) for d in type_.shape):
        raise ModelError(f"the parameter %{name} of the Relay model has the shape {type_.shape}")
    dims = (tir.Var(f"{_identifier(name)}_{k}", INT64, True) if d is relay.ANY else tir.index_const(d) for k, d in enumerate(type_.shape))
    return graph.TensorInfo(tuple(dims), dtype)


def _identifier(name: str) -> str:
    made = "".join(c if c.isalnum() and c.isascii() else "_" for c in name)
    return made if made[:1].isalpha() or made[:1] == "_" else f"v{made}"


def _operators(module: relay.Module, entry: str) -> dict[str, int]:
    """How often each operator is called in the functions that the entry reaches."""
    counts: dict[str, int] = {}
    seen = set[relay.Expr]()
    waiting: list[relay.Expr] = [module.functions[entry]]
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, relay.Call) and isinstance(node.op, str):
            counts[node.op] = counts.get(node.op, 0) + 1
        if isinstance(node, relay.GlobalVar) and node.name in module.functions:
            waiting.append(module.functions[node.name])
        waiting.extend(relay.parts(node))
    return counts


def convert_module(module: relay.Module, params: Mapping[str, np.ndarray], entry: str = "main") -> IRModule:
    """The function ``entry`` as the graph function ``main``; parameters that ``params`` has become constants, the others are inputs.

    Raises UnsupportedError with every operator that has no converter, ModelError for what is no valid model.
    """
    if entry not in module.functions:
        raise ModelError(f"the Relay module has no function {entry!r}", hint=f"it has {', '.join(module.functions) or 'none'}")
    missing = {op: n for op, n in _operators(module, entry).items() if find(op) is None}
    if missing:
        lines = [f"  {op}, {n} call{'s' if n > 1 else ''}" for op, n in sorted(missing.items())]
        raise UnsupportedError(f"the Relay model uses {len(missing)} operators that Roundel does not support", why="\n".join(lines),
                               hint="supply them with @roundel.relay.operator(name)")
    function = module.functions[entry]
    bb = BlockBuilder()
    importer = RelayImporter(bb, module)
    given = _given(function.params, params)
    inputs = []
    for var in function.params:
        if var in given:
            importer.values[var] = graph.Constant.of(given[var])
        else:
            importer.values[var] = graph.Var(_identifier(var.name), tensor_info(var.type, var.name))
            inputs.append((var.name, importer.values[var]))
    attrs = Attrs(global_symbol="main", input_names=tuple(name for name, _ in inputs))
    importer.calls.append(function)
    with bb.function("main", [v for _, v in inputs], attrs=attrs):
        result = importer.value(function.body)
        fields = tuple(tensors(result))
        if not fields:
            raise ModelError("the Relay model returns nothing")
        bb.emit_func_output(bb.emit(graph.Tuple(fields) if isinstance(result, tuple) else fields[0], "result"))
    return bb.get()


def _given(variables: Sequence[relay.Var], params: Mapping[str, np.ndarray]) -> dict[relay.Var, np.ndarray]:
    """Tensors of parameters by variable. Names in texts have other signs replaced by ``_``. Raises ModelError for names that no parameter
    has and for tensors that do not have their parameter's type."""
    by_name = {name: var for var in reversed(variables) for name in (var.name, _identifier(var.name))}
    found = {}
    for name, data in params.items():
        var = by_name.get(name) or by_name.get(_identifier(name))
        if var is None:
            raise ModelError(f"there is a tensor for the parameter {name!r}, which the Relay model does not have",
                             hint=f"it has {', '.join(v.name for v in variables[:8])}{' ...' if len(variables) > 8 else ''}")
        array = np.asarray(data)
        type_ = var.type
        if isinstance(type_, relay.TensorType):
            fits = len(type_.shape) == array.ndim and all(d is relay.ANY or d == s for d, s in zip(type_.shape, array.shape, strict=True))
            if not fits or (type_.dtype != array.dtype.name):
                raise ModelError(f"the tensor for the parameter {name!r} has the shape {array.shape} and dtype {array.dtype}",
                                 why=f"the Relay model declares {type_.shape} and {type_.dtype}")
        found[var] = array
    return found
