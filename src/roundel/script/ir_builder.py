# SPDX-License-Identifier: Apache-2.0
"""Tensor programs built by Python statements as they run, in the words of the script:

    with IRBuilder() as ib:
        with T.prim_func():
            T.func_name("fill")
            A = T.match_buffer(T.arg("a", T.handle()), (128,), name="A")
            with T.serial(128) as i:
                ib.name("i", i)
                T.buffer_store(A, 0.0, [i])
    func = ib.get()

with ``from roundel.script.ir_builder import IRBuilder, tir as T, ir as I``. What opens a body in a script is a ``with`` statement here; what makes a
variable or buffer gives it back, and ``ib.name`` names it. Rules and errors are the script's: this drives the same reader.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import SimpleNamespace, TracebackType
from typing import Any

from ..ir import tir as nodes
from ..ir.attrs import Attrs
from ..ir.dtype import VOID, DType
from ..ir.errors import BuilderError, ScriptError
from ..ir.module import IRModule
from ..ir.tir import Buffer, Stmt, Var
from . import marks
from . import tir as script
from .parser.core import Scope
from .parser.frames import BlockParts, Body, FunctionParts
from .parser.loops import loop_parts
from .parser.tensor import _ACTIONS, TensorParser
from .tir.types import ScalarType

_NOWHERE = ast.Pass()  # where a statement stands: nowhere in a text


class _NoSource:
    """In place of a text: statements have no places."""

    file = "<builder>"

    def span(self, node: ast.AST) -> None:
        """None."""

    def error(self, node: ast.AST, what: str, hint: str = "") -> ScriptError:
        """The error without a place."""
        return ScriptError(what, hint=hint)


class _Reader(TensorParser):
    """The reader of tensor programs, told what to do instead of reading it."""

    def __init__(self) -> None:
        super().__init__(_NoSource(), Scope({}))  # type: ignore[arg-type]
        self.returns, self.threads, self.loops, self.around = {}, {}, {}, []
        self.begin("main")

    def begin(self, name: str) -> None:
        """A new function."""
        self.parts, self.body = FunctionParts(name), Body()
        self.blocks = [self.parts.root]

    def error(self, node: ast.AST, what: str, hint: str = "") -> ScriptError:
        return ScriptError(what, hint=hint)


class _Finished:
    """The body of a ``with`` statement, once that has ended."""

    stmt: Stmt


class IRBuilder:
    """What is built inside of ``with IRBuilder() as ib`` by the functions of ``T`` and ``I``; ``get`` is the statement, function or module."""

    _open: list[IRBuilder] = []

    def __init__(self) -> None:
        self.reader = _Reader()
        self.functions: dict[str, nodes.PrimFunc] | None = None
        self.result: Any = None

    @staticmethod
    def current() -> IRBuilder:
        """The innermost builder; raises BuilderError outside of all."""
        if not IRBuilder._open:
            raise BuilderError("no IRBuilder is open", hint="with IRBuilder() as ib:")
        return IRBuilder._open[-1]

    @staticmethod
    def is_in_scope() -> bool:
        """Whether a builder is open."""
        return bool(IRBuilder._open)

    def __enter__(self) -> IRBuilder:
        IRBuilder._open.append(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        IRBuilder._open.remove(self)
        if kind is None and self.result is None:
            self.result = self.reader.body.finish()

    def get(self) -> Any:
        """What was built; raises BuilderError before the ``with`` statement has ended."""
        if self.result is None:
            raise BuilderError("nothing is built yet", hint="call get() behind the with statement of the builder")
        return self.result

    def name(self, name: str, value: Any) -> Any:
        """Calls a variable or buffer ``name``, and gives it back. A name is a hint, and here nobody else holds the value yet."""
        if isinstance(value, Var | Buffer):
            value.name = name
        if isinstance(value, Buffer) and value.data.name.endswith("_data"):
            value.data.name = f"{name}_data"
        return value

    def name_many(self, names: Sequence[str], values: Sequence[Any]) -> list[Any]:
        """``name`` for several."""
        return [self.name(n, v) for n, v in zip(names, values, strict=True)]

    # ---- bodies

    @contextmanager
    def body(self) -> Iterator[_Finished]:
        """Statements that belong together; ``stmt`` of what it gives is they, at the end."""
        made = _Finished()
        outer, self.reader.body = self.reader.body, Body()
        try:
            with self.reader.scope.frame():
                yield made
            made.stmt = self.reader.body.finish()
        finally:
            self.reader.body = outer

    @contextmanager
    def loops(self, spec: marks.Loops) -> Iterator[Any]:
        """A nest of loops; gives its variable or variables."""
        read = self.reader
        made = [loop_parts("i", loop) for loop in spec.loops]
        for var, low, extent, _ in made:
            read.loops[var] = nodes.Range(low, extent)
        outside, read.around = read.around, [*read.around, *(m[0] for m in made)]
        with self.body() as inner:
            yield made[0][0] if len(made) == 1 else tuple(m[0] for m in made)
        read.around = outside
        body = inner.stmt
        for (var, low, extent, step), loop in reversed(list(zip(made, spec.loops))):
            body = nodes.For(var, low, extent, loop.kind, body, loop.thread, Attrs(loop.annotations), step)
        read.body.add(body)

    @contextmanager
    def block(self, head: marks.BlockHead) -> Iterator[None]:
        """A block."""
        read = self.reader
        parts = BlockParts(head.name, head.no_realize)
        read.blocks.append(parts)
        outside, read.around = read.around, []
        try:
            with self.body() as inner:
                yield
        finally:
            read.blocks.pop()
            read.around = outside
        read.body.add(read._realize(parts, inner.stmt, _NOWHERE))

    @contextmanager
    def init(self, head: marks.InitHead) -> Iterator[None]:
        """The init of the block around."""
        with self.body() as inner:
            yield
        self.reader.blocks[-1].init = inner.stmt

    @contextmanager
    def scoped(self, head: Any) -> Iterator[Any]:
        """A let, an allocation, an attribute, an assertion: what follows is its body."""
        with self.body() as inner:
            if isinstance(head, marks.BufferSpec):
                value = self.reader.bind_buffer("buffer" if head.role == "decl" else "v", head, _NOWHERE)
            elif isinstance(head, marks.LetHead):
                value = self.reader._bind_let("v", head, _NOWHERE)
            elif isinstance(head, marks.Launch):
                value = self.reader._bind_launch("v", head, _NOWHERE)
            else:
                value = _ACTIONS[type(head)](self.reader, head, _NOWHERE)
            yield value
        self.reader.body.add(inner.stmt)

    @contextmanager
    def while_(self, condition: Any) -> Iterator[None]:
        """``T.While``: what is built inside runs as long as the condition holds."""
        with self.body() as inner:
            yield
        self.reader.body.add(nodes.While(nodes.const(condition), inner.stmt))

    @contextmanager
    def if_(self, condition: Any) -> Iterator[None]:
        """``T.If``, around ``T.Then`` and ``T.Else``."""
        outer, self.cases = getattr(self, "cases", {}), dict[str, Stmt]()
        try:
            yield
            if "then" not in self.cases:
                raise BuilderError("T.If has no branch", hint="with T.Then(): inside of it")
            self.reader.body.add(nodes.If(nodes.const(condition), self.cases["then"], self.cases.get("else")))
        finally:
            self.cases = outer

    @contextmanager
    def case(self, which: str) -> Iterator[None]:
        """A branch of the ``T.If`` around."""
        with self.body() as inner:
            yield
        self.cases[which] = inner.stmt

    # ---- functions

    @contextmanager
    def function(self, is_private: bool = False) -> Iterator[None]:
        """``T.prim_func``: what is built inside is its body; outside of `module` it is the result."""
        read, named = self.reader, "main"
        read.begin(named)
        self.returns = VOID
        yield
        parts = read.parts
        attrs = parts.attrs if is_private else {"global_symbol": parts.name, **parts.attrs}
        pairs = tuple((p, parts.buffer_map[p]) for p in parts.params if p in parts.buffer_map)
        func = nodes.PrimFunc(tuple(parts.params), read.with_root(read.body.finish()), pairs, Attrs(attrs), self.returns)
        if self.functions is None:
            self.result = func
        else:
            self.functions[parts.name] = func

    @contextmanager
    def module(self) -> Iterator[None]:
        """``I.ir_module``: the functions that are built inside are its functions."""
        self.functions = {}
        yield
        self.result = IRModule(self.functions)

    def argument(self, name: str, kind: Any) -> Any:
        """A parameter: the variable, or the buffer of ``T.Buffer``."""
        read = self.reader
        if isinstance(kind, Buffer):
            param = Var(name, DType("handle"))
            read.parts.buffer_map[param] = self.name(name, kind)
        else:
            param = self.name(name, nodes.const(kind))
        read.parts.params.append(param)
        return read.parts.buffer_map.get(param, param)

    # ---- what the functions of T give

    def emit(self, value: Any, name: str | None = None) -> Any:
        """What a function of the script gave, done: statements are added, bodies opened, variables and buffers made."""
        make = _EMIT.get(type(value))
        if make is not None:
            return make(self, value)
        if isinstance(value, marks.BufferSpec):
            return self.scoped(value) if value.role in ("allocate", "decl", "const") else self._buffer(value, name)
        if isinstance(value, marks.NewVar):
            return self.name(value.name or "v", Var("v", value.dtype, value.size and value.name is not None))
        return value

    def _buffer(self, spec: marks.BufferSpec, name: str | None) -> Buffer:
        return self.reader.bind_buffer(name or "buffer", spec, _NOWHERE)

    def act(self, mark: Any) -> None:
        """A statement, or something said of the block around."""
        _ACTIONS[type(mark)](self.reader, mark, _NOWHERE)

    def axes(self, mark: marks.Axes) -> Any:
        """Iteration variables."""
        known = self.reader.blocks[-1].iter_vars
        found = [self.reader.bind_axis(f"v{len(known)}", axis, _NOWHERE) for axis in self.reader.split_axes(mark)]
        return found[0] if len(found) == 1 else found


_EMIT: dict[type, Callable[[IRBuilder, Any], Any]] = {
    marks.Loops: IRBuilder.loops,
    marks.BlockHead: IRBuilder.block,
    marks.InitHead: IRBuilder.init,
    marks.Axes: IRBuilder.axes,
    **{t: IRBuilder.scoped for t in (marks.LetHead, marks.AttrHead, marks.AssertHead, marks.Realize, marks.Launch)},
    **{t: IRBuilder.act for t in (marks.Regions, marks.Where, marks.AttrsOf, marks.Store, marks.Evaluated)},
}


class _Words:
    """The functions of a namespace of the script, done as they are called."""

    def __init__(self, space: Any, own: dict[str, Callable[..., Any]]) -> None:
        self._space, self._own = space, own

    def __getattr__(self, name: str) -> Any:
        if name in self._own:
            return self._own[name]
        found = getattr(self._space, name)
        if not callable(found):
            return _Words(found, {})

        def call(*args: Any, **kwargs: Any) -> Any:
            named = kwargs.pop("name", None) if name in ("alloc_buffer", "match_buffer", "Buffer") else None
            value = found(*args, **kwargs)
            return IRBuilder.current().emit(value, named) if IRBuilder.is_in_scope() or isinstance(value, marks.NewVar) else value

        call.__name__, call.__doc__ = name, getattr(found, "__doc__", None)
        if isinstance(found, ScalarType):
            call.dtype = found.dtype  # type: ignore[attr-defined]  # T.int32 is also the type
        return call


def _buffer_store(buffer: Buffer, value: Any, indices: Sequence[Any], predicate: Any = None) -> None:
    """Stores an element."""
    places = tuple(map(nodes.as_index, indices))
    IRBuilder.current().act(marks.Store(buffer, places, value, predicate))


def _func_name(name: str) -> None:
    """Names the function around."""
    IRBuilder.current().reader.parts.name = name


def _func_ret(dtype: Any) -> None:
    """The type of what the function around returns."""
    IRBuilder.current().returns = DType(getattr(dtype, "dtype", dtype))


def _branch(which: str) -> Callable[[], AbstractContextManager[None]]:
    return lambda: IRBuilder.current().case(which)




tir = _Words(
    script,
    {
        "prim_func": lambda is_private=False: IRBuilder.current().function(is_private),
        "func_name": _func_name,
        "func_ret": _func_ret,
        "arg": lambda name, kind: IRBuilder.current().argument(name, kind),
        "While": lambda condition: IRBuilder.current().while_(condition),
        "If": lambda condition: IRBuilder.current().if_(condition),
        "Then": _branch("then"),
        "Else": _branch("else"),
        "buffer_store": _buffer_store,
        "comm_reducer": script.comm_reducer,
        "axis": _Words(script.axis, {}),
    },
)
ir = SimpleNamespace(ir_module=lambda: IRBuilder.current().module())
