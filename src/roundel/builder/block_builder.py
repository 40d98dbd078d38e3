# SPDX-License-Identifier: Apache-2.0
"""BlockBuilder: makes graph functions binding by binding, in A-normal form and with struct info inferred.

    bb = BlockBuilder()
    with bb.function("main", [x, w]), bb.dataflow():
        h = bb.emit(make("matmul", x, w))
        bb.emit_func_output(bb.emit_output(bb.emit_te(relu, h)))
    mod = bb.finalize()
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from itertools import count
from typing import Any

from roundel.arith.struct_infos import deduce, erase
from roundel.ir import IRModule, graph, tir
from roundel.ir.attrs import Attrs
from roundel.ir.dataclass import dataclass
from roundel.ir.dtype import INT64
from roundel.ir.equal import StructuralMap
from roundel.ir.errors import BuilderError, RoundelError
from roundel.ir.node import Span
from roundel.ir.op import OpDef
from roundel.ir.visit import walk

from .emit_te import make_program

_ATOMS = (graph.Var, graph.DataflowVar, graph.Constant, graph.ShapeExpr, graph.PrimValue, graph.StringValue,
          graph.DTypeValue, graph.ExternFunc, graph.GlobalVar)


@dataclass
class _Frame:
    """The function under construction."""

    name: str
    params: tuple[graph.Var, ...] | None
    attrs: Attrs
    pure: bool
    blocks: list[graph.BindingBlock] = field(default_factory=list)
    current: list[graph.Binding] = field(default_factory=list)
    dataflow: bool = False
    names: dict[str, int] = field(default_factory=dict)  # those taken, with the number to try next where one is wanted again
    output: graph.GraphExpr | None = None
    parted: bool = False  # whether a sequence that was emitted has parted a dataflow block

    def close(self) -> None:
        """End the current block."""
        if self.current:
            self.blocks.append(self.take())

    def take(self) -> graph.BindingBlock:
        """What was bound since the last block, as a block."""
        kind = graph.DataflowBlock if self.dataflow else graph.BindingBlock
        made, self.current = kind(tuple(self.current)), []
        return made


_building: list[BlockBuilder] = []  # with a function open, the innermost last


class BlockBuilder:
    """Builds an IRModule; ``mod`` to start from an existing one."""

    def __init__(self, mod: IRModule | None = None) -> None:
        self._mod = mod or IRModule({})
        self._frames: list[_Frame] = []
        self._programs = StructuralMap()  # names of tensor programs
        self._bound: dict[graph.Var, graph.GraphExpr] = {}
        self.span: Span | None = None

    # -- functions and blocks
    @contextmanager
    def function(self, name: str, params: Sequence[graph.Var] | graph.Var | None = None, attrs: Mapping[str, Any] | None = None, *,
                 pure: bool = True, private: bool = False) -> Iterator[None]:
        """A graph function; inside, ``emit_func_output`` gives its result, and the parameters where they are not given here. Exported under
        its name unless private. Raises BuilderError where the parameters or the result are missing or given twice."""
        params = None if params is None else _variables(params)
        symbol = {} if private else {"global_symbol": name}
        frame = _Frame(name, params, Attrs({**symbol, **(attrs or {})}), pure, names={p.name: 1 for p in params or ()})
        self._frames.append(frame)
        _building.append(self)
        try:
            yield
            if frame.output is None:
                raise BuilderError(f"function {name} has no result", hint="call emit_func_output before its end")
            if frame.params is None:
                raise BuilderError(f"function {name} was given no parameters", hint="bb.function(name, [x, y]), or [] for none")
            frame.close()
            body = graph.SeqExpr(tuple(frame.blocks), frame.output)
            result = erase(frame.output.sinfo, [p.sinfo for p in frame.params])
            func = graph.Function(frame.params, body, result, pure, frame.attrs)
            self.update_func(name, func)
        finally:
            self._frames.pop()
            _building.pop()

    @staticmethod
    def current() -> BlockBuilder | None:
        """The builder whose function is open, None where there is none."""
        return _building[-1] if _building else None

    @contextmanager
    def testing_scope(self, def_vars: Sequence[tir.Var] = ()) -> Iterator[None]:
        """Bindings without a function around them, to look at what is emitted; nothing of it joins the module. ``def_vars`` are the
        symbolic variables that count as known."""
        self._frames.append(_Frame("", (), Attrs(), True))
        try:
            yield
        finally:
            self._frames.pop()

    @contextmanager
    def dataflow(self) -> Iterator[None]:
        """A dataflow block; its values leave it by ``emit_output``."""
        frame = self._frame()
        if frame.dataflow:
            raise RoundelError("dataflow blocks do not nest")
        frame.close()
        frame.dataflow = True
        try:
            yield
            frame.close()
        finally:
            frame.dataflow = False

    def begin_scope(self, params: Sequence[graph.Var] = (), dataflow: bool = False) -> None:
        """Open a block of bindings outside of a function, or within the one that is open; ``end_scope`` gives it."""
        outer = self._frames[-1] if self._frames else _Frame("", tuple(params), Attrs(), True)
        if outer.dataflow:
            raise RoundelError("dataflow blocks do not nest")
        self._frames.append(_Frame(outer.name, outer.params, outer.attrs, outer.pure, dataflow=dataflow, names=outer.names))

    def end_scope(self) -> graph.BindingBlock:
        """The block that ``begin_scope`` opened."""
        self._frame()
        return self._frames.pop().take()

    def _begin_binding_block(self) -> None:  # the names by which mutators written for TVM call these
        self.begin_scope()

    def _begin_dataflow_block(self) -> None:
        self.begin_scope(dataflow=True)

    def _end_block(self) -> graph.BindingBlock:
        return self.end_scope()

    def body(self, build: Callable[[], Any], params: Sequence[graph.Var] = ()) -> graph.SeqExpr:
        """What ``build`` emits, in blocks and with names of its own, and its result: a body for a function of these parameters."""
        frame = _Frame("", tuple(params), Attrs(), True, names={p.name: 1 for p in params})
        self._frames.append(frame)
        try:
            frame.output = self._atom(self.normalize(build()))
            frame.close()
            return graph.SeqExpr(tuple(frame.blocks), frame.output)
        finally:
            self._frames.pop()

    def sequence(self, build: Callable[[], Any]) -> graph.SeqExpr:
        """What ``build`` emits, and its result, as a nested sequence: a branch, or the body of a loop."""
        frame = self._frame()
        if frame.dataflow:
            raise RoundelError("a dataflow block holds no control flow", hint="emit branches and loops outside of it")
        saved = frame.blocks, frame.current
        frame.blocks, frame.current = [], []
        try:
            result = self._atom(self.normalize(build()))
            frame.close()
            return graph.SeqExpr(tuple(frame.blocks), result)
        finally:
            frame.blocks, frame.current = saved

    def _frame(self) -> _Frame:
        if not self._frames:
            raise BuilderError("there is no function to emit into", hint="use `with bb.function(name, params):`")
        return self._frames[-1]

    # -- emitting
    def emit(self, value: Any, name_hint: str = "") -> graph.Var:
        """Bind a value to a fresh variable and return it; without a hint it is called ``lv``, outside of dataflow blocks ``gv``.

        A binding is appended as it is, and the bindings of a sequence before its value."""
        if isinstance(value, graph.Binding):
            return self.emit_normalized(value)
        name_hint = name_hint or ("lv" if self._frame().dataflow else "gv")
        return self._bind(self.normalize(value), name_hint, graph.DataflowVar if self._frame().dataflow else graph.Var)

    def emit_output(self, value: Any, name_hint: str = "gv") -> graph.Var:
        """Bind a value that is used after the dataflow block (a tuple gives a variable for the tuple)."""
        return self._bind(self.normalize(value), name_hint, graph.Var)

    def match_cast(self, value: Any, sinfo: graph.StructInfo, name_hint: str = "lv") -> graph.Var:
        """Bind ``value`` as one of ``sinfo``, checked at run time; defines the new variables in it."""
        value = self.normalize(value)
        kind = graph.DataflowVar if self._frame().dataflow else graph.Var
        var = kind(self._name(name_hint), sinfo)
        self._frame().current.append(graph.MatchCast(var, self._atom(value), sinfo, self.span))
        return var

    def emit_named(self, value: Any, name_hint: str = "lv") -> graph.Var:
        """Bind a tensor; a variable stands for each of its dimensions where the shape is not known."""
        var = self.emit(value, name_hint)
        info = var.sinfo
        if info.shape is not None:
            return var
        dims = tuple(tir.Var(f"d{k}", INT64, True) for k in range(info.ndim))
        return self.match_cast(var, graph.TensorInfo(dims, info.dtype), name_hint)

    def emit_te(self, fn: Callable[..., Any], *args: Any, name_hint: str = "lv", primfunc_name_hint: str | None = None,
                primfunc_attrs: Mapping[str, Any] | None = None, **kwargs: Any) -> graph.Var:
        """Bind the call of the tensor program that ``fn`` describes in tensor expressions (see ``make_program``)."""
        call = self.call_te(fn, *args, primfunc_name_hint=primfunc_name_hint, primfunc_attrs=primfunc_attrs, **kwargs)
        return self.emit(call, name_hint)

    def call_te(self, fn: Callable[..., Any], *args: Any, primfunc_name_hint: str | None = None,
                primfunc_attrs: Mapping[str, Any] | None = None, **kwargs: Any) -> graph.Call:
        """The ``call_tir`` that ``emit_te`` would bind; the program is added to the module."""
        args = tuple(self._operand(a) for a in args)
        program = make_program(fn, args, {k: self._operand(v) for k, v in kwargs.items()}, attrs=primfunc_attrs)
        hint = primfunc_name_hint or getattr(fn, "__name__", "compute")
        return program.call(self.add_func(program.func, hint.replace("<lambda>", "compute")))

    def emit_func_output(self, value: Any, params: Sequence[graph.Var] | graph.Var | None = None) -> graph.GlobalVar:
        """Make ``value`` the function's result; returns the reference by which the module knows the function."""
        frame = self._frame()
        if frame.dataflow:
            raise RoundelError("a function's result is given outside its dataflow block", hint="use emit_output inside")
        if frame.output is not None:
            raise BuilderError(f"function {frame.name} has a result already")
        if params is not None:
            if frame.params is not None:
                raise BuilderError(f"the parameters of function {frame.name} were given twice")
            frame.params = _variables(params)
        frame.output = self._atom(self.normalize(value))
        if frame.parted:
            _require_visible([*frame.blocks, graph.BindingBlock(tuple(frame.current))])
        return graph.GlobalVar(frame.name)

    # -- the module
    def add_func(self, func: tir.BaseFunc, name_hint: str) -> graph.GlobalVar:
        """Add a function under a free name; a structurally equal tensor program made here is shared."""
        name = self._programs.setdefault(func, lambda: next(n for n in (f"{name_hint}{k or ''}" for k in count()) if n not in self._mod))
        if name not in self._mod:
            self._mod = self._mod.with_functions({name: func})
        return graph.GlobalVar(name)

    def update_func(self, name: graph.GlobalVar | str, func: tir.BaseFunc) -> None:
        """Put a function under a name, in place of the one that had it."""
        name = getattr(name, "name", name)
        if name in self._mod:
            self._programs = StructuralMap()  # which may hold the one that goes
        self._mod = self._mod.with_functions({name: func})

    def emit_normalized(self, binding: graph.Binding) -> graph.Var:
        """Append a binding as it is."""
        self._frame().current.append(binding)
        if isinstance(binding, graph.VarBinding):
            self._bound[binding.var] = binding.value
        return binding.var

    def get_unique_name(self, name_prefix: str) -> str:
        """A name that no variable of the function has."""
        return self._name(name_prefix)

    def current_block_is_dataflow(self) -> bool:
        """Whether a dataflow block is open."""
        return self._frame().dataflow

    def get(self) -> IRModule:
        """The module as it is now."""
        return self._mod

    def finalize(self) -> IRModule:
        """The finished module."""
        if self._frames:
            raise RoundelError(f"function {self._frames[-1].name} is still under construction")
        return self._mod

    emit_match_cast = match_cast  # the name that TVM had first

    @property
    def bound(self) -> Mapping[graph.Var, graph.GraphExpr]:
        """What the variables that were emitted are bound to."""
        return self._bound

    def lookup_binding(self, var: graph.Var) -> graph.GraphExpr | None:
        """What ``var`` is bound to, or None when it was not emitted here."""
        return self._bound.get(var)

    # -- normal form
    def normalize(self, value: Any) -> graph.GraphExpr:
        """The value with struct info, its operands bound where they are not atoms; of a sequence its value, after its bindings."""
        value = as_graph(value)
        if isinstance(value, graph.SeqExpr):
            for block in value.blocks:
                self._splice(block)
            return self.normalize(value.body)
        if isinstance(value, graph.Call):
            args = tuple(self._atom(self.normalize(a)) if not isinstance(a, graph.GlobalVar) else a for a in value.args)
            if any(a is not b for a, b in zip(args, value.args)):
                value = value.replace(args=args)
            return self._known_result(infer(value))
        if isinstance(value, graph.Tuple):
            fields = tuple(self._atom(self.normalize(f)) for f in value.fields)
            return value if all(a is b for a, b in zip(fields, value.fields)) else graph.Tuple(fields)
        if isinstance(value, graph.TupleGetItem) and not isinstance(value.tuple_value, graph.Var):
            return graph.TupleGetItem(self._atom(self.normalize(value.tuple_value)), value.index)
        return value

    def _splice(self, block: graph.BindingBlock) -> None:
        """The bindings of a block. In a dataflow block, one with effects ends it and begins another behind; else a dataflow block stays one."""
        frame = self._frame()
        apart = frame.dataflow != isinstance(block, graph.DataflowBlock)
        if apart:
            frame.close()
            frame.parted |= frame.dataflow
            frame.dataflow = not frame.dataflow
        for binding in block.bindings:
            self.emit_normalized(binding)
        if apart:
            frame.close()
            frame.dataflow = not frame.dataflow

    def _known_result(self, call: graph.Call) -> graph.Call:
        """The call with the struct info that its function in the module, or its variable, gives."""
        if not isinstance(call.sinfo, graph.ObjectInfo):
            return call
        known: Any = call.op.sinfo if isinstance(call.op, graph.Var) else None
        if isinstance(call.op, graph.GlobalVar):
            callee = self._mod.functions.get(call.op.name)
            if isinstance(callee, tir.PrimFunc):
                raise BuilderError(f"{call.op.name} is a tensor program, it is called like a graph function",
                                   hint=f'call_tir(relax.GlobalVar("{call.op.name}"), (x, ...), out_sinfo), what it writes comes from there')
            known = callee.sinfo if isinstance(callee, graph.Function) else None
        if not isinstance(known, graph.FuncInfo):
            return call
        if known.params is not None and len(known.params) != len(call.args):
            raise BuilderError(f"{call.op.name} takes {len(known.params)} arguments, {len(call.args)} were given")  # type: ignore[union-attr]
        return call.replace(sinfo=deduce(known.params or (), known.ret, [a.sinfo for a in call.args]))

    def _operand(self, value: Any) -> Any:
        if isinstance(value, tuple | list):
            return type(value)(self._operand(v) for v in value)
        return self._atom(self.normalize(value)) if isinstance(value, graph.Call) else value

    def _atom(self, value: graph.GraphExpr) -> graph.GraphExpr:
        if isinstance(value, _ATOMS) or isinstance(value, graph.Tuple):
            return value
        return self.emit(value)

    def _bind(self, value: graph.GraphExpr, hint: str, kind: type) -> graph.Var:
        var = kind(self._name(hint), value.sinfo)
        self._frame().current.append(graph.VarBinding(var, value, self.span))
        self._bound[var] = value
        return var

    def _name(self, hint: str) -> str:
        names, name = self._frame().names, hint
        while name in names:
            name = f"{hint}{names[hint]}"
            names[hint] += 1
        names[name] = 1
        return name


def _require_visible(blocks: Sequence[graph.BindingBlock]) -> None:
    """Raises BuilderError for a variable of a dataflow block that is used outside of one."""
    for block in blocks:
        for b in block.bindings if not isinstance(block, graph.DataflowBlock) else ():
            hidden = next((v for v in walk(b.value) if type(v) is graph.DataflowVar), None)  # type: ignore[attr-defined]
            if hidden is not None:
                raise BuilderError(f"Malformed AST: {b.var.name} uses {hidden.name}, which ends with its dataflow block",
                                   why="a sequence with a block of its own was emitted between the two", hint="bind it by emit_output")


def _variables(params: Sequence[graph.Var] | graph.Var) -> tuple[graph.Var, ...]:
    return (params,) if isinstance(params, graph.Var) else tuple(params)


def as_graph(value: Any) -> graph.GraphExpr:
    """Python values as graph values: tuples and lists of graph values are tuples, expressions and numbers scalars."""
    if isinstance(value, tuple | list):
        return graph.Tuple(tuple(map(as_graph, value)))
    if isinstance(value, tir.Expr):
        return graph.PrimValue(value)
    if isinstance(value, bool | int | float):
        return graph.PrimValue(tir.const(value))
    return value


def infer(call: graph.Call) -> graph.Call:
    """The call with struct info from its operator, where it has none yet."""
    if not isinstance(call.sinfo, graph.ObjectInfo):
        return call
    if call.sinfo_args:
        return call.replace(sinfo=call.sinfo_args[0])
    if not isinstance(call.op, OpDef):
        return call
    found = call.op.infer(tuple(a.sinfo for a in call.args), call.attrs)
    return call if found is None else call.replace(sinfo=found)
