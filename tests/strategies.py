# SPDX-License-Identifier: Apache-2.0
"""Hypothesis strategies for programs: expressions, tensor programs (well formed, in bounds) and graph functions.

``tensor_programs()`` covers every statement and expression node; ``runnable_programs()`` only what terminates with a
result that does not depend on order or representation (no external calls), for comparing executions.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from roundel.ir import graph, tir
from roundel.ir.attrs import Attrs
from roundel.ir.dtype import BOOL, FLOAT32, HANDLE, INT32, INT64, DType
from roundel.ir.op import get_op
from roundel.ir.tir import Buffer, Expr, ForKind, IntImm, IterKind, Range, Stmt, Var

NAMES = st.sampled_from(["i", "j", "k", "x", "A", "lv", "i_1", "class", "T", "0x", "a.b", "n"])
DTYPES = st.sampled_from(
    [DType(n) for n in ("float32", "int32", "int64", "float16", "uint8", "int8", "bool", "bfloat16")]
)
_INT_OPS = (tir.Add, tir.Sub, tir.Mul, tir.FloorDiv, tir.FloorMod, tir.Div, tir.Mod, tir.Min, tir.Max)
_FLOAT_OPS = (tir.Add, tir.Sub, tir.Mul, tir.Div, tir.Min, tir.Max)
_COMPARE = (tir.EQ, tir.NE, tir.LT, tir.LE, tir.GT, tir.GE)
_FLOATS = st.sampled_from([0.0, -0.0, 1.0, -1.5, 0.1, 1e30, float("inf"), float("-inf"), float("nan")])


def constants(dtype: DType) -> st.SearchStrategy[Expr]:
    """Constants of a type; floats with NaN and infinities."""
    if dtype.is_float:
        return _FLOATS.map(lambda v: tir.FloatImm(v, dtype))
    if dtype.is_bool:
        return st.booleans().map(lambda v: IntImm(v, dtype))
    low, high = (0, 100) if dtype.kind == "uint" else (-100, 100)
    return st.integers(low, high).map(lambda v: IntImm(v, dtype))


class Scope:
    """What a generated expression may use."""

    def __init__(self, draw: Any, variables: list[Var], buffers: list[Buffer], runnable: bool = False) -> None:
        self.draw, self.variables, self.buffers, self.runnable = draw, variables, buffers, runnable

    def pick(self, *choices: Any) -> Any:
        """One of the choices."""
        return self.draw(st.sampled_from(choices))

    def inside(self, *variables: Var) -> Scope:
        """The scope with more variables."""
        return Scope(self.draw, [*self.variables, *variables], self.buffers, self.runnable)

    # ---- expressions

    def expr(self, dtype: DType, depth: int = 3) -> Expr:
        """An expression of a type."""
        if depth == 0 or self.draw(st.integers(0, 3)) == 0:
            return self.leaf(dtype)
        if dtype.is_bool:
            return self._bool(depth - 1)
        kinds = ["binary", "choice", "cast", "binary", "call"] if not dtype.is_handle else ["leaf"]
        return getattr(self, "_" + self.pick(*kinds))(dtype, depth - 1)

    def leaf(self, dtype: DType) -> Expr:
        """A variable, a constant or a load."""
        variables = [v for v in self.variables if v.dtype is dtype]
        buffers = [b for b in self.buffers if b.dtype is dtype]
        kind = self.pick(*(["var"] * bool(variables)), *(["load"] * bool(buffers)), "const")
        if kind == "var":
            return self.pick(*variables)
        return self.load(self.pick(*buffers)) if kind == "load" else self.draw(constants(dtype))

    def index(self, extent: Expr, depth: int = 2) -> Expr:
        """An index below ``extent``."""
        loops = [v for v in self.variables if v.dtype is INT64]
        base = self.pick(*loops) if loops and self.draw(st.booleans()) else self.draw(constants(INT64))
        if depth and self.draw(st.booleans()):
            base = self.pick(tir.Add, tir.Sub, tir.Mul)(
                base, self.pick(*loops) if loops else self.draw(constants(INT64))
            )
        return tir.FloorMod(base, extent)

    def load(self, buffer: Buffer) -> Expr:
        """A load inside the buffer's bounds."""
        return tir.BufferLoad(buffer, tuple(self.index(n) for n in buffer.shape))

    def _binary(self, dtype: DType, depth: int) -> Expr:
        op = self.pick(*(_FLOAT_OPS if dtype.is_float else _INT_OPS))
        b = self.expr(dtype, depth)
        if op in (tir.FloorDiv, tir.FloorMod, tir.Div, tir.Mod) and dtype.is_int:
            b = self.draw(st.integers(1, 7).map(lambda v: IntImm(v, dtype)))
        return op(self.expr(dtype, depth), b)

    def _bool(self, depth: int) -> Expr:
        kind = self.pick("compare", "compare", "and", "not")
        if kind == "compare":
            dtype = self.pick(INT64, FLOAT32, INT32)
            return self.pick(*_COMPARE)(self.expr(dtype, depth), self.expr(dtype, depth))
        if kind == "not":
            return tir.Not(self.expr(BOOL, depth))
        return self.pick(tir.And, tir.Or)(self.expr(BOOL, depth), self.expr(BOOL, depth))

    def _choice(self, dtype: DType, depth: int) -> Expr:
        cls = self.pick(tir.Select, tir.IfThenElse)
        return cls(self.expr(BOOL, depth), self.expr(dtype, depth), self.expr(dtype, depth))

    def _cast(self, dtype: DType, depth: int) -> Expr:
        return tir.Cast(dtype, self.expr(self.pick(INT32, FLOAT32, INT64, BOOL), depth))

    def _call(self, dtype: DType, depth: int) -> Expr:
        if dtype.is_float:
            name = self.pick("exp", "tanh", "sqrt", "abs", "floor", "fma")
            return tir.call(name, *(self.expr(dtype, depth) for _ in range(3 if name == "fma" else 1)))
        if self.runnable:
            return tir.call(
                self.pick("bitwise_and", "bitwise_or", "bitwise_xor"), self.expr(dtype, depth), self.expr(dtype, depth)
            )
        return self.pick(
            lambda: tir.call("call_extern", "f.g", self.expr(FLOAT32, depth), dtype=dtype),
            lambda: tir.call("shift_left", self.expr(dtype, depth), self.expr(dtype, depth)),
            lambda: tir.call("call_packed", "p", self.expr(BOOL, depth), dtype=dtype),
            lambda: tir.call("reinterpret", self.expr(dtype, depth), dtype=dtype),
            lambda: tir.call("odd.name", self.expr(dtype, depth), dtype=dtype),
        )()

    # ---- statements

    def stmt(self, depth: int) -> Stmt:
        """A statement."""
        kinds = ["store", "store", "vector", "if", "for", "let", "seq", "block"]
        kinds += [] if self.runnable else ["while", "assert", "evaluate", "allocate", "decl", "attr"]
        return getattr(self, "_stmt_" + (self.pick(*kinds) if depth else "store"))(depth - 1)

    def _stmt_store(self, depth: int) -> Stmt:
        buffer = self.pick(*self.buffers)
        return tir.BufferStore(buffer, self.expr(buffer.dtype), tuple(self.index(n) for n in buffer.shape))

    def _stmt_vector(self, depth: int) -> Stmt:
        buffers = [b for b in self.buffers if b.ndim and isinstance(b.shape[-1], IntImm) and b.shape[-1].value >= 4]
        if not buffers:
            return self._stmt_store(depth)
        buffer, stride = self.pick(*buffers), self.pick(1, 1, 1, 1)
        indices = (*(self.index(n) for n in buffer.shape[:-1]), tir.Ramp(IntImm(0, INT64), IntImm(stride, INT64), 4))
        value: Expr = tir.Broadcast(self.expr(buffer.dtype, 1), 4)
        if self.draw(st.booleans()):
            load = tir.BufferLoad(buffer, indices)
            value = self.pick(tir.Add, tir.Max)(load, value) if buffer.dtype.is_float else load
        predicate = tir.Broadcast(self.expr(BOOL, 1), 4) if self.draw(st.booleans()) else None
        return tir.BufferStore(buffer, value, indices, predicate)

    def _stmt_if(self, depth: int) -> Stmt:
        return tir.If(self.expr(BOOL), self.stmt(depth), self.stmt(depth) if self.draw(st.booleans()) else None)

    def _stmt_while(self, depth: int) -> Stmt:
        return tir.While(self.expr(BOOL), self.stmt(depth))

    def _stmt_seq(self, depth: int) -> Stmt:
        parts = [self.stmt(depth) for _ in range(self.draw(st.integers(0 if not self.runnable else 1, 3)))]
        return tir.Seq(tuple(parts)) if self.draw(st.booleans()) else tir.seq(*parts)

    def _stmt_for(self, depth: int) -> Stmt:
        dtype = INT64 if self.runnable else self.pick(INT64, INT64, INT32)
        var = Var(self.draw(NAMES), dtype)
        kind = ForKind.SERIAL if self.runnable else self.pick(*ForKind)
        extent: Expr = IntImm(self.draw(st.integers(1, 4)), dtype)
        if not self.runnable and dtype is INT64 and self.variables and self.draw(st.booleans()):
            extent = self.expr(INT64, 1)
        low = IntImm(self.pick(0, 0, 2), dtype)
        thread = "threadIdx.x" if kind is ForKind.THREAD_BINDING else None
        annotations = (
            Attrs({"k": 1, "v": (1.5, "s", None, True)}) if self.pick(0, 0, 1) and not self.runnable else Attrs()
        )
        step = IntImm(2, dtype) if self.pick(0, 0, 0, 1) and not self.runnable else None
        return tir.For(var, low, extent, kind, self.inside(var).stmt(depth), thread, annotations, step)

    def _stmt_let(self, depth: int) -> Stmt:
        dtype = self.pick(INT64, FLOAT32, INT32, BOOL)
        var = Var(self.draw(NAMES), dtype)
        return tir.Let(var, self.expr(dtype), self.inside(var).stmt(depth))

    def _stmt_assert(self, depth: int) -> Stmt:
        return tir.Assert(self.expr(BOOL), self.pick("plain", 'it\'s "quoted"\n', ""))

    def _stmt_evaluate(self, depth: int) -> Stmt:
        return tir.Evaluate(self.expr(self.pick(INT32, FLOAT32)))

    def _with_buffer(self, buffer: Buffer) -> Scope:
        return Scope(self.draw, self.variables, [*self.buffers, buffer], self.runnable)

    def _stmt_allocate(self, depth: int) -> Stmt:
        buffer = self.draw(buffers())
        return tir.Allocate(
            buffer,
            self._with_buffer(buffer).stmt(depth),
            Attrs({"arena": True}) if self.draw(st.booleans()) else Attrs(),
        )

    def _stmt_decl(self, depth: int) -> Stmt:
        buffer = self.draw(buffers()).replace(data=self.pick(*self.buffers).data)
        return tir.DeclBuffer(buffer, self._with_buffer(buffer).stmt(depth))

    def _stmt_attr(self, depth: int) -> Stmt:
        subject = self.pick(None, "text", *self.variables, *self.buffers)
        return tir.AttrStmt(subject, "pragma", self.pick(IntImm(1, INT32), tir.StringImm("x")), self.stmt(depth))

    def _stmt_block(self, depth: int) -> Stmt:
        kind = IterKind.OPAQUE if self.runnable else self.pick(*IterKind)
        count = self.draw(st.integers(1, 2))
        loops = [Var(self.draw(NAMES), INT64) for _ in range(count)]
        extents = [IntImm(self.draw(st.integers(1, 4)), INT64) for _ in loops]
        ivs = [tir.IterVar(Var("v" + v.name, INT64), Range(IntImm(0, INT64), n), kind) for v, n in zip(loops, extents)]
        inner = self.inside(*loops)
        values = tuple(v if self.draw(st.booleans()) else tir.FloorMod(v + 1, n) for v, n in zip(loops, extents))
        predicate = inner.expr(BOOL, 1) if self.draw(st.booleans()) else IntImm(1, BOOL)
        body = self.inside(*(iv.var for iv in ivs)).stmt(depth)
        region = tuple(tir.BufferRegion.full(b) for b in self.buffers)
        block = tir.Block(
            tuple(ivs),
            region,
            region,
            self.draw(NAMES),
            body,
            annotations=Attrs({"a": 1}) if self.draw(st.booleans()) else Attrs(),
        )
        stmt: Stmt = tir.BlockRealize(values, predicate, block)
        for v, n in reversed(list(zip(loops, extents))):
            stmt = tir.For(v, IntImm(0, INT64), n, ForKind.SERIAL, stmt)
        return stmt


@st.composite
def buffers(draw: Any, runnable: bool = False, symbols: tuple[Var, ...] = ()) -> Buffer:
    """A buffer of up to three dimensions."""
    dims: list[Any] = [1, 3, 4, 8, *symbols]
    shape = draw(st.lists(st.sampled_from(dims), min_size=1 if runnable else 0, max_size=3))
    dtype = draw(st.sampled_from([FLOAT32, INT32, INT64]) if runnable else DTYPES)
    more = (
        {}
        if runnable
        else {
            "scope": draw(st.sampled_from(["global", "global", "local"])),
            "align": draw(st.sampled_from([64, 64, 16])),
            "offset_factor": draw(st.sampled_from([1, 1, 8])),
            "elem_offset": draw(st.sampled_from([None, None, 0, 5])),
        }
    )
    if not runnable and shape and draw(st.booleans()):
        more["strides"] = tuple(range(len(shape), 0, -1))
    return tir.decl_buffer(tuple(shape), dtype, draw(NAMES), **more)


@st.composite
def tensor_programs(draw: Any, runnable: bool = False) -> tir.PrimFunc:
    """A tensor program with buffer and scalar parameters, symbolic shapes among them."""
    symbols = () if runnable else tuple(Var(n, INT64, True) for n in draw(st.sampled_from([(), ("n",), ("n", "m")])))
    params: list[Var] = []
    pairs = []
    for b in draw(st.lists(buffers(runnable, symbols), min_size=1, max_size=3)):
        params.append(Var(b.name, HANDLE))
        pairs.append((params[-1], b))
    scalars = (
        []
        if runnable
        else [Var(draw(NAMES), d) for d in draw(st.lists(st.sampled_from([INT32, INT64, FLOAT32, HANDLE]), max_size=2))]
    )
    scope = Scope(draw, [*(s for s in scalars if s.dtype is not HANDLE), *symbols], [b for _, b in pairs], runnable)
    body = tir.seq(*(scope.stmt(3) for _ in range(draw(st.integers(1, 3)))))
    blocks = any(isinstance(n, tir.BlockRealize) for n in graph_walk(body))
    if blocks and (runnable or draw(st.booleans())):
        body = tir.BlockRealize((), IntImm(1, BOOL), tir.Block((), (), (), "root", body))
    attrs = Attrs(
        {"global_symbol": "main", **({} if runnable else draw(st.sampled_from([{}, {"k": (1, {"a": None})}])))}
    )
    return tir.PrimFunc((*params, *scalars), body, tuple(pairs), attrs)


def runnable_programs() -> st.SearchStrategy[tir.PrimFunc]:
    """Programs with static shapes that run and whose result is determined."""
    return tensor_programs(runnable=True)


def graph_walk(node: Any) -> Any:
    """All nodes of a tree."""
    from roundel.ir import walk

    return walk(node)


# ---- graphs

_UNARY = ("nn.relu", "exp", "tanh", "negative", "sqrt")
_BINARY = ("add", "multiply", "subtract", "maximum")


@st.composite
def struct_infos(draw: Any, symbols: tuple[Var, ...] = (), depth: int = 2) -> graph.StructInfo:
    """Any struct info."""
    kind = draw(st.sampled_from(["tensor", "tensor", "shape", "prim", "object"] + (["tuple", "func"] if depth else [])))
    dims = st.lists(
        st.one_of(
            st.integers(0, 8), *([st.sampled_from([*symbols, symbols[0] * 4, symbols[0] + 1])] if symbols else [])
        ),
        max_size=3,
    ).map(tuple)
    if kind == "tensor":
        if draw(st.booleans()):
            return graph.TensorInfo(draw(dims), draw(st.one_of(st.none(), DTYPES)))
        return graph.TensorInfo(None, draw(st.one_of(st.none(), DTYPES)), draw(st.integers(-1, 4)))
    if kind == "shape":
        return graph.ShapeInfo(draw(dims)) if draw(st.booleans()) else graph.ShapeInfo(None, draw(st.integers(-1, 4)))
    if kind == "prim":
        return (
            graph.PrimInfo(INT64, draw(st.sampled_from(symbols)))
            if symbols and draw(st.booleans())
            else graph.PrimInfo(draw(DTYPES))
        )
    inner = struct_infos(symbols, depth - 1) if depth else st.just(graph.ObjectInfo())
    if kind == "tuple":
        return graph.TupleInfo(tuple(draw(st.lists(inner, max_size=3))))
    return (
        graph.FuncInfo(tuple(draw(st.lists(inner, max_size=2))), draw(inner), draw(st.booleans()))
        if kind == "func"
        else graph.ObjectInfo()
    )


class GraphScope:
    """Builds a function in A-normal form."""

    def __init__(self, draw: Any, symbols: tuple[Var, ...], values: list[graph.Var]) -> None:
        self.draw, self.symbols, self.values = draw, symbols, values

    def pick(self, *choices: Any) -> Any:
        """One of the choices."""
        return self.draw(st.sampled_from(choices))

    def leaf(self) -> graph.GraphExpr:
        """An operand."""
        return self.pick(
            lambda: self.pick(*self.values),
            lambda: graph.Constant.of(self.pick(1.5, 2, True)),
            lambda: graph.ShapeExpr(
                tuple(self.draw(st.lists(st.sampled_from([tir.index_const(2), *self.symbols]), max_size=2)))
            ),
            lambda: graph.PrimValue(self.pick(tir.index_const(3), *self.symbols)),
            lambda: graph.StringValue("s"),
            lambda: graph.DTypeValue(FLOAT32),
            lambda: graph.Tuple(()),
        )()

    def tensor(self) -> graph.Var:
        """A variable that is a float32 tensor."""
        return self.pick(
            *(
                v
                for v in self.values
                if isinstance(v.sinfo, graph.TensorInfo) and v.sinfo.dtype == "float32" and v.sinfo.shape is not None
            )
        )

    def value(self, depth: int) -> graph.GraphExpr:
        """What a binding may hold."""
        x = self.tensor()
        out = self.draw(struct_infos(self.symbols, 1).filter(lambda i: isinstance(i, graph.TensorInfo)))
        kinds = [
            lambda: graph.make_call(get_op(self.pick(*_UNARY)), (x,)),
            lambda: graph.make_call(get_op(self.pick(*_BINARY)), (x, x)),
            lambda: graph.make_call(get_op("sum"), (x,), {"keepdims": True}),
            self.leaf,
            lambda: graph.Tuple((self.leaf(), self.leaf())),
            lambda: graph.Call(
                get_op("call_tir"), (graph.GlobalVar("k"), graph.Tuple((x,))), sinfo_args=(out,), sinfo=out
            ),
            lambda: graph.Call(graph.ExternFunc("e.f"), (x, self.leaf()), Attrs({"mode": "x"}), (out,), out),
            lambda: graph.Call(
                get_op("call_dps_packed"), (graph.ExternFunc("e"), graph.Tuple((x, x))), sinfo_args=(out,), sinfo=out
            ),
            lambda: graph.Call(graph.GlobalVar("other"), (x,), sinfo=out),
        ]
        if depth:
            kinds.append(lambda: self._if(depth - 1))
        return self.pick(*kinds)()

    def _if(self, depth: int) -> graph.If:
        condition = graph.Constant.of(True)
        branches = []
        for _ in range(2):
            inner = GraphScope(self.draw, self.symbols, list(self.values))
            blocks = inner.blocks(depth)
            branches.append(graph.SeqExpr(blocks, inner.tensor()))
        sinfo = self.draw(struct_infos(self.symbols, 1))
        return graph.If(condition, branches[0], branches[1], sinfo)

    def binding(self, depth: int, dataflow: bool, kept: bool) -> graph.Binding:
        """One binding; its variable may be used afterwards."""
        value = self.value(0 if dataflow else depth)
        cls = graph.DataflowVar if dataflow and not kept else graph.Var
        if self.pick(0, 0, 0, 1):
            info = self.draw(struct_infos(self.symbols, 1))
            made: graph.Binding = graph.MatchCast(cls(self.draw(NAMES), info), self.pick(*self.values), info)
        else:
            made = graph.VarBinding(cls(self.draw(NAMES), value.sinfo), value)
        self.values.append(made.var)
        return made

    def blocks(self, depth: int) -> tuple[graph.BindingBlock, ...]:
        """Some blocks; variables of dataflow blocks that do not leave them are forgotten."""
        out = []
        for _ in range(self.draw(st.integers(0, 2))):
            dataflow = self.draw(st.booleans())
            bindings = tuple(
                self.binding(depth, dataflow, self.draw(st.booleans())) for _ in range(self.draw(st.integers(0, 3)))
            )
            self.values = [v for v in self.values if not isinstance(v, graph.DataflowVar)]
            out.append((graph.DataflowBlock if dataflow else graph.BindingBlock)(bindings))
        return tuple(out)


@st.composite
def graph_functions(draw: Any) -> graph.Function:
    """A graph function with symbolic shapes, dataflow blocks, conditionals and calls of every kind."""
    symbols = tuple(Var(n, INT64, True) for n in draw(st.sampled_from([(), ("n",), ("n", "m")])))
    first = graph.Var("x", graph.TensorInfo((2, *symbols), "float32"))
    params = [first, *(graph.Var(draw(NAMES), i) for i in draw(st.lists(struct_infos(symbols), max_size=2)))]
    scope = GraphScope(draw, symbols, list(params))
    blocks = scope.blocks(2)
    body = scope.pick(*scope.values) if draw(st.booleans()) else scope.leaf()
    attrs = draw(
        st.sampled_from(
            [
                Attrs(),
                Attrs({"global_symbol": "main"}),
                Attrs({"global_symbol": "f", "input_names": ("a", "b"), "num_input": 1}),
            ]
        )
    )
    return graph.Function(
        tuple(params), graph.SeqExpr(blocks, body), draw(struct_infos(symbols)), draw(st.booleans()), attrs
    )
