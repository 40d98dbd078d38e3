# SPDX-License-Identifier: Apache-2.0
"""FX graphs of ATen operators to graph functions: the walk over nodes. Converters live in ``ops/``, one file per family."""

from __future__ import annotations

import operator as py
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import torch

from ...arith import Analyzer
from ...builder import BlockBuilder
from ...ir import graph, tir
from ...ir.attrs import Attrs
from ...ir.dtype import INT64
from ...ir.errors import TypeInferenceError, UnsupportedError
from ...ir.escape import assertion
from ...ir.module import IRModule
from ...ops import make
from ...ops.dims import assuming
from ..common.importer import ModelImporter, ModelNode
from . import pairs
from .composite import Parts, operands_of
from .dtypes import Sizes, const_data, dtype_of, only_value, real_of
from .floats import comparison, floating, rounded
from .pairs import PADS, Pair
from .registry import find, supplied

_IGNORED = ("aten._assert_tensor_metadata.default", "aten.sym_storage_offset.default", "aten._linalg_check_errors.default")
_ASSERTIONS = ("aten._assert_scalar.default", "aten._assert_async.msg", "aten._assert_async.default")
"""Conditions that PyTorch checks when the program runs: on sizes and numbers read from tensors, on tensors of one truth value."""
_RANGES = ("aten.sym_constrain_range.default", "aten.sym_constrain_range_for_size.default")
_EFFECTS = ("aten._linalg_check_errors.default", "aten._assert_scalar.default", "aten._assert_async.msg")
"""Checks that PyTorch orders by tokens; a matrix without a factor gives NaN or infinities here."""
_SYMBOLIC: dict[Any, Callable[..., Any]] = {
    py.add: lambda a, b: a + b, py.sub: lambda a, b: a - b, py.mul: lambda a, b: a * b, py.floordiv: lambda a, b: a // b, py.mod: lambda a, b: a % b,
    py.neg: lambda a: -a,
    py.ge: lambda a, b: tir.ge(tir.as_index(a), b), py.gt: lambda a, b: tir.gt(tir.as_index(a), b), py.le: lambda a, b: tir.le(tir.as_index(a), b),
    py.lt: lambda a, b: tir.lt(tir.as_index(a), b), py.eq: lambda a, b: tir.eq(tir.as_index(a), b), py.ne: lambda a, b: tir.ne(tir.as_index(a), b),
    py.and_: lambda a, b: tir.logical_and(a, b), py.or_: lambda a, b: tir.logical_or(a, b), torch.sym_not: lambda a: tir.logical_not(a),
    torch.sym_ite: lambda c, a, b: tir.select(c, tir.as_index(a), tir.as_index(b)),
    torch.sym_max: lambda a, b: tir.max_(a, b), torch.sym_min: lambda a, b: tir.min_(a, b),
}
KEEP = ("scaled_dot_product_attention.default", *(f"upsample_{method}2d.vec" for method in ("nearest", "bilinear", "bicubic")),
        *(f"{name}.default" for name in (*PADS, "pad")), *(f"{name}.input" for name in ("lstm", "gru", "rnn_tanh", "rnn_relu")))
"""Composite operators that are imported whole rather than decomposed by PyTorch."""


class NodeContext(ModelNode):
    """One FX node being converted: what its converter builds with."""

    importer: Importer

    def __init__(self, importer: Importer, node: Any) -> None:
        self.node = node
        modules = list((node.meta.get("nn_module_stack") or {}).values())
        place = f" in {modules[-1][0]}" if modules and modules[-1][0] else ""
        super().__init__(importer, node.name, str(node.target), f"{str(node.target).removeprefix('aten.')} {node.name}{place}")

    @property
    def value(self) -> Any:
        """The fake tensor (or symbolic size) that PyTorch found for the node's result."""
        return self.node.meta.get("val")

    def emit(self, value: Any) -> graph.GraphExpr:
        """Bind a call to a variable named like the node."""
        return self.importer.emit(value, self.name)

    def make(self, op: str, *args: Any, **attrs: Any) -> graph.GraphExpr:
        """Emit a call of a Roundel operator."""
        call, notes = self._made(op, args, attrs)
        self.importer.check_sizes(notes, self.title, args)
        return self.emit(call)

    def _made(self, op: str, args: tuple[Any, ...], attrs: Mapping[str, Any]) -> tuple[Any, Any]:
        """A call, and the equalities of sizes that inference assumed. What broadcasts with ``x[:1]`` must know that this is one row."""
        known = self.importer.known
        with assuming() as notes:
            try:
                call = make(op, *args, **attrs)
                if not any(dim in known for note in notes for dim in note):
                    return call, notes
            except TypeInferenceError:
                if not any(dim in known for a in args for dim in sizes_of(a)):
                    raise
        with assuming() as notes:
            return make(op, *map(self.importer.with_known_sizes, args), **attrs), notes

    def shape(self, sizes: Sequence[Any]) -> graph.ShapeExpr:
        """Ints and expressions as a shape."""
        return graph.ShapeExpr(tuple(tir.as_index(self.importer.sizes.get(s)) if not isinstance(s, tir.Expr) else s for s in sizes))

    def out_shape(self) -> graph.ShapeExpr:
        """The shape that PyTorch found for the (first) result."""
        value = self.value[0] if isinstance(self.value, tuple | list) else self.value
        return self.shape(value.shape)

    def out_dtype(self) -> Any:
        """The dtype that PyTorch found for the (first) result; of its parts where it is complex."""
        value = self.value[0] if isinstance(self.value, tuple | list) else self.value
        return dtype_of(real_of(value.dtype))

    @property
    def complex_result(self) -> bool:
        """Whether the (first) result is complex."""
        return _is_complex(self.value)


class Importer(ModelImporter):
    """Converts the nodes of one FX graph inside a BlockBuilder's function."""

    def __init__(self, bb: BlockBuilder, sizes: Sizes, parts: Parts | None = None) -> None:
        super().__init__(bb)
        self.sizes, self.parts = sizes, parts or {}
        self.site = ""  # the node of the program whose parts these are
        self.values: dict[Any, Any] = {}
        self.known: dict[tir.Expr, int] = {}
        self.sizes.find = lambda e: rounded(self.bb, self.emit, self.sizes, e)
        self.python: list[str] = []
        """Operators that run in Python."""

    def operand(self, arg: Any) -> Any:
        """An FX argument: nodes by their values, containers element by element, symbolic sizes as expressions."""
        if isinstance(arg, torch.fx.Node):
            return self.values[arg]
        if isinstance(arg, tuple | list):
            return type(arg)(self.operand(a) for a in arg) if not isinstance(arg, torch.Size) else [self.operand(a) for a in arg]
        if isinstance(arg, torch.SymInt):
            return self.sizes.get(arg)
        return floating(self.emit, self.sizes, arg.node.expr) if isinstance(arg, torch.SymFloat) else arg

    def require(self, condition: Any, message: str = "") -> None:
        """Have what the program asserts, an expression or a tensor of one truth value, checked when it runs; with PyTorch's message."""
        if isinstance(condition, bool):
            condition = tir.const(condition)
        if isinstance(condition, tir.Expr):
            condition = Analyzer().simplify(condition)
            if condition is tir.const(True):
                return
            shown = (condition.a, condition.b) if isinstance(condition, tir.Compare) else ()
            call = make("assert_op", graph.PrimValue(condition), graph.Tuple(tuple(map(graph.PrimValue, shown))), format=assertion(message))
        elif isinstance(condition, graph.GraphExpr):
            flag = self.emit(make("reshape", condition, graph.ShapeExpr(())), "asserted")
            call = make("assert_op", self.emit(make("astype", flag, dtype="bool"), "asserted"), format=assertion(message))
        else:
            return  # about what has no meaning here
        self.bb.emit(call, "asserted")

    def require_range(self, size: Any, least: Any = None, most: Any = None, **limits: Any) -> None:
        """Have the range that the program gives a number checked when it runs."""
        least, most = limits.get("min", least), limits.get("max", most)
        for limit, compare, word in ((least, tir.ge, "at least"), (most, tir.le, "at most")):
            if limit is not None and isinstance(size, int | tir.Expr):
                self.require(compare(tir.as_index(size), limit), f"Invalid value range: a number that the program reads must be {word} {limit}")

    def constants(self, tensors: Mapping[Any, Any]) -> None:
        """Bind nodes to tensors known now; a tensor that occurs twice becomes one constant, sharing its memory."""
        known: dict[int, Any] = {}
        for node, tensor in tensors.items():
            if id(tensor) not in known:
                parts = (tensor.real, tensor.imag) if tensor.is_complex() else (tensor,)
                made = [graph.Constant(data, graph.TensorInfo(data.shape, data.dtype)) for data in map(const_data, parts)]
                known[id(tensor)] = Pair(*made) if tensor.is_complex() else made[0]
            self.values[node] = known[id(tensor)]

    def plain(self, value: Any) -> Any:
        """A value as one tensor: a complex one with its parts along a last axis of 2."""
        return pairs.join(self.emit, value) if isinstance(value, Pair) else value

    def typed(self, value: Any, like: Any) -> Any:
        """The inverse of ``plain``, by the fake tensor."""
        return pairs.split(self.emit, value) if _is_complex(like) else value

    def call(self, node: Any) -> Any:
        """The value of a call_function node."""
        if node in self.parts:
            made = self.inline(self.parts[node], [self.values[n] for n in operands_of(node)], self.site or node.name)
            return tuple(made) if isinstance(node.meta.get("val"), tuple | list) else made[0]
        args = [self.operand(a) for a in node.args]
        kwargs = {k: self.operand(v) for k, v in node.kwargs.items()}
        if (known := self._beside_tensors(node, args, kwargs)) is not None:
            return known[0]
        convert = _converter(node)
        context = NodeContext(self, node)
        with context.converting(self.site):
            out = pairs.convert(context, convert, args, kwargs) if _on_complex(node) and not _on_host(convert) else convert(context, *args, **kwargs)
        out = tuple(self.emit(o, node.name) for o in out) if isinstance(out, tuple | list) else self.emit(out, node.name)
        for o, v in zip(out, node.meta.get("val") or ()) if isinstance(out, tuple) else [(out, node.meta.get("val"))]:
            self.note_sizes(o, v)
        if node.meta.get("unbacked_bindings"):
            self.bind_sizes(node.meta["val"], out)
        return out

    def _beside_tensors(self, node: Any, args: list[Any], kwargs: Mapping[str, Any]) -> tuple[Any] | None:
        """The value of a node that is no operator on tensors, in a tuple: a field, arithmetic on sizes, a condition that the program asserts.
        None for an operator."""
        name = str(node.target)
        if node.target is py.getitem:
            return (args[0][args[1]],)
        if node.target in _SYMBOLIC and any(a is None for a in args):
            return (None,)  # about what has no meaning here, such as an offset into a storage: part of a check
        if node.target in _SYMBOLIC:
            args = [self._truth(node, n, a) for n, a in zip(node.args, args, strict=True)]
            if all(isinstance(a, int | tir.Expr) for a in args):
                return (_SYMBOLIC[node.target](*args),)
        if name == "with_effects":
            if str(node.args[1]) in _ASSERTIONS:
                self.require(*args[2:])
            return ((args[0], None),)  # the token goes on
        if name in _ASSERTIONS or name in _RANGES:
            (self.require if name in _ASSERTIONS else self.require_range)(*args, **kwargs)
            return (None,)
        if name.startswith("aten.sym_size"):
            return (args[0].sinfo.shape[args[1]],)
        value = node.meta.get("val", None)
        if not hasattr(value, "shape") and hasattr(value, "node") and find(name) is None:
            e = value.node.expr
            if isinstance(value, torch.SymFloat):
                return (floating(self.emit, self.sizes, e),)
            return (comparison(self.emit, self.sizes, e) if self.sizes.has_numbers(e) else self.sizes.get(value),)
        return None

    def _truth(self, node: Any, read: Any, value: Any) -> Any:
        """What arithmetic on sizes makes of a truth value that was read from a tensor: an expression; anything else as it is."""
        from .ops.data_dependent import whole_number

        if not hasattr(value, "sinfo") or not value.sinfo.dtype.is_bool:
            return value
        number = whole_number(NodeContext(self, node), value)
        for symbol in read.meta["val"].node.expr.free_symbols:
            self.sizes.variables.setdefault(str(symbol), number)
        return tir.eq(number, tir.index_const(1))

    def note_sizes(self, value: Any, fake: Any) -> None:
        """Remember the dimensions of a value that the ranges of PyTorch's symbols make numbers, where inference left expressions."""
        shape = sizes_of(value)
        if isinstance(fake, torch.Tensor) and len(shape) == fake.ndim:
            for s, d in zip(fake.shape, shape):
                if type(d) is not tir.IntImm and (number := only_value(s)) is not None:
                    self.known[d] = number

    def with_known_sizes(self, value: Any) -> Any:
        """A tensor with the numbers that its dimensions are known to be, which are checked when the model runs."""
        shape = sizes_of(value)
        if not any(d in self.known for d in shape):
            return value
        sizes = tuple(tir.index_const(self.known[d]) if d in self.known else d for d in shape)
        return self.bb.match_cast(value, graph.TensorInfo(sizes, value.sinfo.dtype), "known_size")

    def sequence(self, build: Callable[[], Any]) -> graph.SeqExpr:
        """A branch or a loop's body: what ``build`` emits, and its result."""
        checked, found = set(self.checked), dict(self.sizes.found)
        try:
            return self.bb.sequence(build)
        finally:
            self.checked, self.sizes.found = checked, found

    def inline(self, gm: Any, operands: Sequence[Any], site: str = "") -> list[Any]:
        """The results of a graph within the graph, for these operands; ``site``: of the one node of which it is made, if it is."""
        inner = Importer(self.bb, self.sizes)
        inner.site = site or self.site
        inner.checked, inner.python, inner.known = self.checked, self.python, self.known
        nodes = list(gm.graph.nodes)
        inner.values.update(zip((n for n in nodes if n.op == "placeholder"), operands, strict=True))
        for n, v in inner.values.items():
            if isinstance(v, int | tir.Expr) and hasattr(n.meta.get("val"), "node"):
                self.sizes.variables[str(n.meta["val"].node.expr)] = tir.as_index(v)
        inner.run(nodes)
        results = next(n for n in nodes if n.op == "output").args[0]
        return [inner.operand(r) for r in (results if isinstance(results, tuple | list) else [results])]

    def run(self, nodes: Sequence[Any]) -> None:
        """Convert nodes in order; attributes are graphs within the graph or constants."""
        for n in nodes:
            if n.op == "get_attr" and n not in self.values:
                found = py.attrgetter(n.target)(n.graph.owning_module)
                self.constants({n: found}) if isinstance(found, torch.Tensor) else self.values.update({n: found})
            elif n.op == "call_function":
                self.values[n] = None if str(n.target) in _IGNORED else self.call(n)

    def bind_sizes(self, fake: Any, value: Any) -> None:
        """Symbols that a node brings (sizes that depend on data) stand for the sizes of its value."""
        for f, v in zip(fake, value) if isinstance(fake, tuple | list) else [(fake, value)]:
            for s, dim in zip(getattr(f, "shape", ()), v.sinfo.shape or () if hasattr(v, "sinfo") else ()):
                if hasattr(s, "node") and s.node.expr.is_Symbol:
                    self.sizes.variables.setdefault(str(s.node.expr), dim)


def sizes_of(value: Any) -> tuple[tir.Expr, ...]:
    """The dimensions of a tensor; none of what is no tensor or has an unknown shape."""
    return getattr(getattr(value, "sinfo", None), "shape", None) or ()


def _is_complex(value: Any) -> bool:
    value = value[0] if isinstance(value, tuple | list) and value else value
    return bool(getattr(value, "is_complex", bool)())


def _on_complex(node: Any) -> bool:
    """Whether a node has complex operands or a complex result."""
    return _is_complex(node.meta.get("val")) or any(_is_complex(n.meta.get("val")) for n in node.all_input_nodes)


def _on_host(convert: Any) -> bool:
    from .host import on_host

    return convert is on_host


def _converter(node: Any) -> Any:
    """What converts a node: its own converter; the call of PyTorch for an operator that is not PyTorch's, or that is rare on complex numbers."""
    from .host import can_call, is_foreign, on_host

    known = find(str(node.target))
    if known is None and is_foreign(node.target):
        return on_host
    return on_host if _on_complex(node) and not pairs.supports(str(node.target)) and can_call(node.target) else known


def _supported(node: Any) -> bool:
    name = str(node.target)
    symbolic = hasattr(node.meta.get("val", None), "node") and not hasattr(node.meta.get("val", None), "shape")
    known = _converter(node)
    if name == "with_effects":
        return str(node.args[1]) in _EFFECTS
    if _on_complex(node) and not _on_host(known):
        return pairs.supports(name) or node.target is py.getitem or name in (*_IGNORED, *_ASSERTIONS) or name.startswith("aten.sym_size")
    return node.target is py.getitem or node.target in _SYMBOLIC or name in (*_IGNORED, *_ASSERTIONS, *_RANGES) or name.startswith("aten.sym_size") \
        or symbolic or known is not None


def _with_inner(nodes: Sequence[Any], parts: Parts) -> Iterator[Any]:
    """The nodes of a graph and of the graphs within it; for a composite operator what it consists of."""
    for n in nodes:
        if n in parts:
            yield from parts[n].graph.nodes
            continue
        yield n
        if n.op == "get_attr":
            inner = py.attrgetter(n.target)(n.graph.owning_module)
            yield from _with_inner(inner.graph.nodes, parts) if hasattr(inner, "graph") else ()


def check_program(nodes: Sequence[Any], parts: Parts) -> None:
    """Raises UnsupportedError that lists every unsupported operator with counts and node names."""
    from . import ops  # noqa: F401  (fills the table)

    missing: dict[str, list[str]] = {}
    for n in _with_inner(nodes, parts):
        if n.op == "call_function" and not _supported(n):
            missing.setdefault(str(n.target), []).append(n.name)
    if missing:
        lines = [f"  {k}, {len(v)} node{'s' if len(v) > 1 else ''}: {', '.join(v[:5])}" for k, v in sorted(missing.items())]
        raise UnsupportedError(f"the program uses {len(missing)} operators that Roundel does not support", why="\n".join(lines),
                               hint="supply them with @roundel.torch.operator(name)")


@lru_cache(maxsize=1)
def _of_pytorch(_operators: int) -> dict[Any, Any]:
    """PyTorch's own table, which takes long to collect, while there are that many operators."""
    return dict(torch.export.default_decompositions())


def decompositions() -> dict[Any, Any]:
    """PyTorch's table of operators to take apart, less those that are imported whole."""
    from .decompose import TABLE

    table = _of_pytorch(len(torch._C._dispatch_get_all_op_names())) | TABLE
    for name in KEEP:
        base, overload = name.rsplit(".", 1)
        table.pop(getattr(getattr(torch.ops.aten, base), overload), None)
    return {op: fn for op, fn in table.items() if not supplied(str(op))}


def convert_graph(nodes: Sequence[Any], inputs: Sequence[Any], constants: Mapping[Any, Any], results: Sequence[Any], sizes: Sizes,
                  witnesses: Mapping[str, tir.Var] | None = None, updates: Sequence[tuple[int, int]] = (),
                  ranges: Mapping[str, tuple[int | None, int | None]] | None = None, parts: Parts | None = None) -> IRModule:
    """The nodes of a functional ATen graph as the graph function ``main``.

    ``inputs``: the placeholders that become parameters; ``constants``: placeholders whose tensors are known; ``results``: nodes (or
    numbers) returned. ``witnesses``: size variables that no input's shape tells; each gets a last parameter of shape ``(size, 0)``.
    ``updates``: (result, input) pairs, last among the results: what is written back into inputs that the program changes.
    ``ranges``: least and largest values of symbols, which the run checks.
    ``parts``: graphs that stand for composite operators.
    """
    check_program(nodes, parts or {})
    from .ops.math import scalar

    bb = BlockBuilder()
    importer = Importer(bb, sizes, parts)
    params = [graph.Var(n.name, _input_info(n.meta["val"], sizes)) for n in inputs]
    importer.constants(constants)
    for name, var in (witnesses or {}).items():
        params.append(graph.Var(name, graph.TensorInfo((var, tir.index_const(0)), dtype_of("uint8"))))
    for n in nodes:
        if n.op == "placeholder" and n not in importer.values:
            value = n.meta.get("val")
            importer.values[n] = sizes.get(value) if hasattr(value, "node") else value
    at_boundary = {"complex_inputs": tuple(k for k, n in enumerate(inputs) if _is_complex(n.meta["val"])),
                   "complex_outputs": tuple(k for k, r in enumerate(results) if _is_complex(getattr(r, "meta", {}).get("val"))), "updates": tuple(updates)}
    attrs = Attrs(global_symbol="main", input_names=tuple(p.name for p in params), **{k: v for k, v in at_boundary.items() if v})
    with bb.function("main", params, attrs=attrs):
        for symbol, (least, most) in (ranges or {}).items():
            _require_range(bb, sizes.variable(symbol), least, most)
        importer.values.update((n, _input_value(importer, p, n.meta["val"])) for n, p in zip(inputs, params))
        importer.run(nodes)
        values = [importer.plain(importer.operand(r)) for r in results]
        fields = [importer.emit(scalar(tir.as_index(v), INT64)) if isinstance(v, int | tir.Expr) else v for v in values]
        bb.emit_func_output(bb.emit(fields[0] if len(fields) == 1 else graph.Tuple(tuple(fields)), "result"))
    mod = bb.get()
    if not importer.python:
        return mod
    main = mod["main"]
    return mod.with_functions({"main": main.replace(attrs=main.attrs | {"python": tuple(dict.fromkeys(importer.python))})})


def _require_range(bb: BlockBuilder, size: tir.Var, least: int | None, most: int | None) -> None:
    """Have a size checked when the model runs."""
    allowed = f"{least or 0} to {most}" if most is not None else f"{least} or more"
    for limit, compare in ((least, tir.ge), (most, tir.le)):
        if limit is not None:
            sides = (size, tir.index_const(limit))
            text = f"dimension {size.name!r} is {{0}}, outside of the range that the model was exported for: {allowed}"
            bb.emit(make("assert_op", graph.PrimValue(compare(*sides)), graph.Tuple(tuple(map(graph.PrimValue, sides))), format=text), "in_range")


def _input_info(value: Any, sizes: Sizes) -> graph.StructInfo:
    """The struct info of an input: of a tensor, or of a number, which shapes may be made of or which may be negative."""
    if hasattr(value, "node") and value.node.expr.is_Symbol:
        known = value.node.shape_env.var_to_range.get(value.node.expr)
        sizes.declare(str(value.node.expr), known is not None and known.lower >= 0)
    return tensor_info(value, sizes) if hasattr(value, "shape") else graph.PrimInfo(INT64, sizes.get(value))


def _input_value(importer: Importer, param: graph.Var, value: Any) -> Any:
    return importer.typed(param, value) if hasattr(value, "shape") else importer.sizes.get(value)


def tensor_info(value: Any, sizes: Sizes) -> graph.TensorInfo:
    """The struct info of a (fake) tensor; complex ones have their parts along a last axis of 2."""
    return graph.TensorInfo((*(sizes.get(s) for s in value.shape), *([2] if value.is_complex() else [])), dtype_of(real_of(value.dtype)))
