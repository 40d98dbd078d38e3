# SPDX-License-Identifier: Apache-2.0
"""Tensor programs from syntax: the statements of ``@T.prim_func``, by type of syntax node."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

from ...ir import tir
from ...ir.attrs import Attrs
from ...ir.dtype import INT64, VOID, DType
from ...ir.graph import GlobalVar
from ...ir.jumps import BREAK, CONTINUE
from ...ir.tir import Buffer, BufferRegion, Expr, ForKind, Stmt, Var
from .. import marks
from ..regions import as_value, extent_between, index_of, operand
from .blocks import Blocks
from .buffer_methods import METHODS
from .core import BINARY, handles
from .domains import warn_of_domains
from .frames import BlockParts, Body, FunctionParts
from .loops import loop_parts
from .macros import Macro, is_macro


class TensorParser(Blocks):
    """Reads one tensor program. ``returns`` maps functions of the module to their result dtype."""

    returns: dict[str, DType]
    threads: dict[Var, str]  # axes named by T.env_thread
    pointers: set[Buffer] = set()  # what T.allocate gave
    inside_loops = 0  # how many loops are around, as far as break and continue reach

    # ---- function

    def function(self, node: ast.FunctionDef, private: bool, name: str, root: bool = True) -> tir.PrimFunc:
        """The function; ``name`` becomes ``global_symbol`` unless it is private or the script says otherwise; ``root``
        adds the root block where there are blocks.
        """
        self.parts = FunctionParts(name)
        self.blocks, self.body, self.loops, self.around, self.threads = [self.parts.root], Body(), {}, [], {}
        ret = VOID
        with self.scope.frame():
            for arg in node.args.args:
                self._parameter(arg)
            if node.returns is not None:
                found = self.annotation(node.returns)
                ret = VOID if found is None else DType(getattr(found, "dtype", found))
            body = self.statements(_without_docstring(node.body))
        if private and "global_symbol" in self.parts.attrs:
            raise self.error(node, f"function {name} is private and has a global_symbol", "leave one of them out")
        attrs = self.parts.attrs if private else {"global_symbol": name, **self.parts.attrs}
        pairs = tuple((p, self.parts.buffer_map[p]) for p in self.parts.params if p in self.parts.buffer_map)
        body = self.with_root(body) if root else body
        func = tir.PrimFunc(tuple(self.parts.params), body, pairs, Attrs(attrs), ret, self.source.span(node))
        warn_of_domains(func)
        return func

    def _parameter(self, arg: ast.arg) -> None:
        if arg.annotation is None:
            raise self.error(
                arg,
                f"parameter {arg.arg} has no annotation",
                'write its type, e.g. A: T.Buffer((128, 128), "float32") or n: T.int64',
            )
        kind = self.annotation(arg.annotation)
        kind = kind if isinstance(kind, marks.BufferSpec) or not callable(kind) else kind()
        if isinstance(kind, marks.BufferSpec):
            param = Var(arg.arg, DType("handle"))
            self.parts.buffer_map[param] = buffer = self.buffer(arg.arg, kind)
            self.scope.define(arg.arg, buffer)
        elif isinstance(kind, marks.NewVar):
            param = Var(arg.arg, kind.dtype, (kind.size and kind.name is not None) or _is_size(arg.annotation))
            self.scope.define(arg.arg, param)
        else:
            raise self.error(
                arg.annotation,
                f"{ast.unparse(arg.annotation)} is not the type of a parameter of a tensor program",
                'use T.Buffer((128, 128), "float32"), T.handle or a scalar such as T.int64',
            )
        self.parts.params.append(param)

    # ---- statements

    def statements(self, nodes: list[ast.stmt]) -> Stmt:
        """A body in a frame of its own."""
        outer, self.body = self.body, Body()
        try:
            with self.scope.frame():
                for n in nodes:
                    self.visit(n)
            return self.body.finish()
        finally:
            self.body = outer

    @handles(ast.Pass)
    def _pass(self, node: ast.Pass) -> None:
        pass

    @handles(ast.Expr)
    def _expression(self, node: ast.Expr) -> None:
        value = self.visit(node.value)
        if value is None or isinstance(value, str):
            return
        if isinstance(value, Expr | BufferRegion):
            self.body.add(tir.Evaluate(self.operand(value), self.source.span(node)))
            return
        act = _ACTIONS.get(type(value))
        if act is None:
            raise self.error(node, f"{ast.unparse(node.value)} is not a statement", "assign it to a name, or use T.evaluate(...)")
        act(self, value, node)

    @handles(ast.Return)
    def _return(self, node: ast.Return) -> None:
        if node.value is None:
            return
        value = self.operand(self.visit(node.value))
        if isinstance(value, tir.Buffer | tuple | list):
            raise self.error(node, "a tensor program returns nothing, or one number", "it writes its results into buffers that are its parameters")
        if value is not None:
            self.body.add(tir.Evaluate(tir.call("ret", tir.const(value)), self.source.span(node)))

    @handles(ast.Assert)
    def _assert(self, node: ast.Assert) -> None:
        condition = self.operand(self.visit(node.test))
        message = "" if node.msg is None else self.visit(node.msg)
        message, *values = message if isinstance(message, tuple) else (message,)
        shown = tuple(tir.const(self.operand(v)) for v in values)
        self.body.add(tir.Assert(tir.ops._truth(condition), _text(message), self.source.span(node), shown))

    @handles(ast.If)
    def _if(self, node: ast.If) -> None:
        test = self.operand(self.visit(node.test))
        if not isinstance(test, Expr):
            for n in node.body if test else node.orelse:
                self.visit(n)
            return
        otherwise = self.statements(node.orelse) if node.orelse else None
        self.body.add(tir.If(tir.ops._truth(test), self.statements(node.body), otherwise, self.source.span(node)))

    @handles(ast.While)
    def _while(self, node: ast.While) -> None:
        test = tir.ops._truth(self.operand(self.visit(node.test)))
        self.body.add(tir.While(test, self._iteration(node.body), self.source.span(node)))

    def _iteration(self, body: list[ast.stmt]) -> Stmt:
        """The body of a loop, which break and continue may leave."""
        self.inside_loops += 1
        made = self.statements(body)
        self.inside_loops -= 1
        return made

    @handles(ast.Break, ast.Continue)
    def _jump(self, node: ast.Break | ast.Continue) -> None:
        word = "break" if isinstance(node, ast.Break) else "continue"
        if not self.inside_loops:
            raise self.error(node, f"{word} stands outside of a loop", "loops that are unrolled while the script is read have no iterations to leave")
        self.body.add(tir.Evaluate(tir.call(BREAK if word == "break" else CONTINUE), self.source.span(node)))

    @handles(ast.For)
    def _for(self, node: ast.For) -> None:
        loops = self._iterations(node.iter)
        if isinstance(loops, marks.Loops):
            self.body.add(self._nest(node, loops.loops))
            return
        outer, self.inside_loops = self.inside_loops, 0
        for value in loops:
            with self.scope.frame():
                self.assign_names(node.target, value)
                for n in node.body:
                    self.visit(n)
        self.inside_loops = outer

    def _iterations(self, node: ast.expr) -> Any:
        """What a loop runs over: loops, or Python values that are known now (then it is unrolled)."""
        if isinstance(node, ast.Call) and self.visit(node.func) is builtins.range:
            args = [self.operand(self.visit(a)) for a in node.args]
            start, stop = (0, args[0]) if len(args) == 1 else args[:2]
            return marks.Loops(
                [marks.Loop(start, extent_between(start, stop), step=args[2] if len(args) == 3 else None)]
            )
        value = self.visit(node)
        if not isinstance(
            value, marks.Loops | list | tuple | dict | set | builtins.zip | builtins.enumerate | builtins.range
        ):
            raise self.error(
                node,
                f"cannot loop over {ast.unparse(node)}",
                "use range(n), T.grid(n, m), T.serial, T.parallel, T.vectorized, T.unroll or T.thread_binding",
            )
        return value

    def _nest(self, node: ast.For, loops: list[marks.Loop]) -> Stmt:
        names = self._loop_names(node.target, len(loops))
        hints = [f"{n}_{k}" if several else n for n, count, several in names for k in range(count)]
        made = [loop_parts(hint, spec) for hint, spec in zip(hints, loops)]
        variables = tuple(m[0] for m in made)
        rest = iter(variables)
        held: dict[str, Any] = {n: tuple(islice(rest, count)) if several else next(rest) for n, count, several in names}
        with self.scope.frame(held):
            for var, low, extent, _ in made:
                self.loops[var] = tir.Range(low, extent)
            outside, self.around = self.around, [*self.around, *variables]
            body = self._iteration(node.body)
            self.around = outside
        for (var, low, extent, step), spec in reversed(list(zip(made, loops))):
            body = tir.For(
                var,
                low,
                extent,
                spec.kind,
                body,
                spec.thread,
                Attrs(spec.annotations),
                step,
                None,
                self.source.span(node),
            )
        return body

    def _loop_names(self, target: ast.expr, loops: int) -> list[tuple[str, int, bool]]:
        """The names of a loop nest, each with the number of loops that it stands for and whether as a tuple: one alone for all, a starred
        one for those left over."""
        parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
        inner = [t.value if isinstance(t, ast.Starred) else t for t in parts]
        starred = [isinstance(t, ast.Starred) for t in parts]
        if sum(starred) > 1 or not all(isinstance(t, ast.Name) for t in inner):
            raise self.error(target, "loop variables are plain names, one of them starred at most")
        names = [t.id for t in inner if isinstance(t, ast.Name)]
        alone = len(names) == 1 and loops != 1 and not isinstance(target, ast.Tuple | ast.List)
        left_over = loops - len(names) + 1
        if any(starred) and left_over >= 0:
            return [(n, left_over if s else 1, bool(s)) for n, s in zip(names, starred)]
        if len(names) != loops and not alone:
            raise self.error(target, f"{len(names)} loop variables for {loops} loops")
        return [(names[0], loops, True)] if alone else [(n, 1, False) for n in names]

    # ---- assignment

    @handles(ast.Assign)
    def _assign(self, node: ast.Assign) -> None:
        if len(node.targets) == 1:
            self._assign_to(node.targets[0], self.visit(node.value), node)
            return
        raise self.error(node, "one assignment at a time, please: a = b = c is not part of the script")

    @handles(ast.AnnAssign)
    def _annotated(self, node: ast.AnnAssign) -> None:
        kind = self.annotation(node.annotation)
        if node.value is None:
            if not isinstance(node.target, ast.Name):
                raise self.error(node.target, "a variable is a plain name")
            self.scope.define(node.target.id, self.bind(node.target.id, kind() if callable(kind) else kind, node))
            return
        value = self.visit(node.value)
        if isinstance(value, marks.LetHead):
            value = value.value
        if not isinstance(node.target, ast.Name) or not _is_scalar(self.operand(value)):
            self._assign_to(node.target, value, node)
            return
        dtype = getattr(kind, "dtype", None) or getattr(kind() if callable(kind) else kind, "dtype", None)
        if dtype is None:
            raise self.error(node.annotation, "the annotation of a scalar is its type, e.g. T.int32")
        var = Var(node.target.id, dtype, _is_size(node.annotation))
        self._let(node.target.id, self.operand(value), node, var)

    @handles(ast.AugAssign)
    def _augmented(self, node: ast.AugAssign) -> None:
        load = ast.copy_location(_as_load(node.target), node.target)
        value = BINARY[type(node.op)](*(self.number(node, self.visit(v)) for v in (load, node.value)))
        self._assign_to(node.target, value, node)

    def _assign_to(self, target: ast.expr, value: Any, node: ast.stmt) -> None:
        if isinstance(value, marks.Meta) and not isinstance(target, ast.Name):
            value = [marks.Meta(v) for v in value.value] if isinstance(target, ast.Tuple | ast.List) else value.value
        if isinstance(target, ast.Subscript):
            self._store(target, value, node)
        elif isinstance(target, ast.Name):
            self.scope.define(target.id, self.bind(target.id, value, node))
        elif isinstance(target, ast.Tuple | ast.List):
            values = self.split_axes(value) if isinstance(value, marks.Axes) else list(value)
            if len(values) != len(target.elts):
                raise self.error(target, f"{len(target.elts)} names for {len(values)} values")
            for t, v in zip(target.elts, values):
                self._assign_to(t, v, node)
        else:
            raise self.error(target, "cannot assign here", "targets are names and elements of buffers")

    def _store(self, target: ast.Subscript, value: Any, node: ast.stmt) -> None:
        buffer = self.visit(target.value)
        if not isinstance(buffer, Buffer):
            raise self.error(target.value, f"{ast.unparse(target.value)} is not a buffer")
        place = self.subscript(target, buffer, self.visit(target.slice))
        load = as_value(place) if isinstance(place, BufferRegion) else place
        self.body.add(self.stored(marks.Store(buffer, load.indices, value), node))

    def stored(self, store: marks.Store, node: ast.AST) -> Stmt:
        """A store, the value converted to the buffer's element type and number of lanes."""
        dtype = tir.BufferLoad(store.buffer, store.indices).dtype
        value = self.operand(store.value)
        if not _is_scalar(value):
            given = ast.unparse(getattr(node, "value", node))
            raise self.error(node, f"{given} cannot be stored into buffer {store.buffer.name}: it is no number and no expression")
        value = value if isinstance(value, Expr) else tir.const(value, dtype.element)
        value = tir.cast(value, dtype.element)
        if value.dtype.lanes not in (1, dtype.lanes):
            raise self.error(node, f"{value.dtype.lanes} values are stored into {dtype.lanes} elements of buffer {store.buffer.name}")
        if value.dtype.lanes == 1 and dtype.lanes > 1:
            value = tir.Broadcast(value, dtype.lanes)
        return tir.BufferStore(store.buffer, value, store.indices, store.predicate, self.source.span(node))

    def bind(self, name: str, value: Any, node: ast.AST) -> Any:
        """What ``name`` stands for after ``name = value``."""
        how = _BINDINGS.get(type(value))
        if how is not None:
            return how(self, name, value, node)
        if _is_scalar(self.operand(value)):
            return self._let(name, self.operand(value), node)
        return value

    def _let(self, name: str, value: Any, node: ast.AST, var: Var | None = None) -> Var:
        expr = tir.const(value)
        var = Var(name, expr.dtype) if var is None else var
        expr, span = expr if var.dtype.is_handle else tir.cast(expr, var.dtype), self.source.span(node)
        self.body.wrap(lambda rest: tir.Let(var, expr, rest, span))
        self.scope.define(name, var)
        return var

    def _bind_let(self, name: str, head: marks.LetHead, node: ast.AST) -> Var:
        return self._let(name, self.operand(head.value), node, head.var)

    def _bind_var(self, name: str, new: marks.NewVar, node: ast.AST) -> Var:
        return Var(new.name or name, new.dtype, new.size)

    def _bind_launch(self, name: str, launch: marks.Launch, node: ast.AST) -> Var:
        if isinstance(launch.thread, Var):
            return self.launch(launch.thread, self.threads[launch.thread], launch.extent, node)
        return self.launch(Var(name, INT64), launch.thread, launch.extent, node)

    def launch(self, var: Var, thread: str, extent: Any, node: ast.AST) -> Var:
        """The rest of the body runs once per thread of an axis."""
        size, low, span = tir.cast(tir.as_index(extent), var.dtype), tir.IntImm(0, var.dtype), self.source.span(node)
        self.loops[var] = tir.Range(low, size)
        self.around = [*self.around, var]
        self.body.wrap(lambda rest: tir.For(var, low, size, ForKind.THREAD_BINDING, rest, thread, span=span))
        return var

    def _bind_env_thread(self, name: str, env: marks.EnvThread, node: ast.AST) -> Var:
        var = Var(name, INT64)
        self.threads[var] = env.thread
        return var

    @handles(ast.FunctionDef)
    def _inner_macro(self, node: ast.FunctionDef) -> None:
        """``@T.inline`` inside of a function: it sees the function's names."""
        if not is_macro(node):
            raise self.error(node, f"function {node.name} stands inside of a tensor program", "decorate it with @T.inline")
        self.scope.define(node.name, Macro(self.source, node, {}, False))

    # ---- with

    @handles(ast.With)
    def _with(self, node: ast.With) -> None:
        self._enter(node, list(node.items))

    def _enter(self, node: ast.With, items: list[ast.withitem]) -> None:
        item, rest = items[0], items[1:]
        head = self.visit(item.context_expr)
        enter = _HEADS.get(type(head))
        if enter is None:
            raise self.error(
                item.context_expr,
                f"{ast.unparse(item.context_expr)} does not open a block of a tensor program",
                "with takes T.sblock(name), T.init(), T.attr, T.allocate, T.decl_buffer, T.LetStmt, T.launch_thread",
            )
        inner = ast.copy_location(ast.With(rest, node.body), node) if rest else None
        enter(self, head, item.optional_vars, [inner] if inner else node.body, node)

    def enter_init(self, head: Any, target: Any, body: list[ast.stmt], node: ast.With) -> None:
        """``with T.init():``"""
        block = self.blocks[-1]
        if len(self.blocks) == 1:
            raise self.error(node, "T.init() stands outside of a block")
        if block.init is not None:
            raise self.error(node, f"block {block.name} has T.init() twice")
        block.init = self.statements(body)

    def enter_seq(self, head: Any, target: Any, body: list[ast.stmt], node: ast.With) -> None:
        """``with T.seq():``"""
        outer, self.body = self.body, Body()
        with self.scope.frame():
            for n in body:
                self.visit(n)
        made, self.body = self.body, outer
        inner = made.finish()
        first_wrapper = next((k + 1 for k, i in enumerate(made.items) if not isinstance(i, Stmt)), len(made.items))
        self.body.add(tir.Seq((inner,)) if first_wrapper == 1 else inner)

    def enter_scoped(self, head: Any, target: Any, body: list[ast.stmt], node: ast.With) -> None:
        """A head that also works without ``with``: its body is the with statement's."""
        outer, self.body = self.body, Body()
        try:
            with self.scope.frame():
                if target is not None and not isinstance(target, ast.Name):
                    raise self.error(target, f"{ast.unparse(node.items[0].context_expr)} makes one value, as a plain name")
                if type(head) in _BINDINGS:
                    name = target.id if isinstance(target, ast.Name) else "_"
                    if isinstance(head, marks.LetHead) and isinstance(head.var, marks.NewVar):
                        head.var = self._bind_var(name, head.var, node)
                    self.scope.define(name, self.bind(name, head, node))
                else:
                    _ACTIONS[type(head)](self, head, node)
                for n in body:
                    self.visit(n)
            inner = self.body.finish()
        finally:
            self.body = outer
        self.body.add(inner)

    def signature_of(self, what: str, node: ast.AST) -> BlockParts:
        """The block being read, of which ``what`` speaks; the root that is there without being written has no signature."""
        if len(self.blocks) == 1:
            raise self.error(node, f"{what} stands outside of a block", 'open one: with T.sblock("name"):')
        return self.blocks[-1]

    # ---- expressions

    def operand(self, value: Any) -> Any:
        """Slices of buffers are vectors."""
        return operand(value)

    def subscript(self, node: ast.Subscript, value: Any, index: Any) -> Any:
        """Elements and regions of buffers."""
        if isinstance(value, Buffer):
            return index_of(value, index if isinstance(index, tuple) else (index,))
        return super().subscript(node, value, index)

    def attribute(self, node: ast.Attribute, value: Any) -> Any:
        """Attributes; those of buffers are also in the script's own table."""
        if isinstance(value, Buffer) and node.attr in METHODS:
            return METHODS[node.attr](value)
        return super().attribute(node, value)

    def _with_buffers(self, made: Any, node: ast.AST) -> Any:
        """An object whose making declared buffers: they are allocated here."""
        for name, value in vars(made).items() if hasattr(made, "__dict__") and not isinstance(made, marks.BufferSpec) else ():
            if isinstance(value, marks.BufferSpec) and value.role == "alloc":
                setattr(made, name, self.bind_buffer(name, value, node))
        return made

    def call(self, node: ast.Call, fn: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Calls; a function of the module makes a Call, a macro is read in place."""
        if isinstance(fn, GlobalVar):
            exprs = tuple(tir.const(a.data if isinstance(a, Buffer) else self.operand(a)) for a in args)
            return tir.Call(fn, exprs, self.returns.get(fn.name, VOID))
        if hasattr(fn, "expand"):
            fn.expand(self, args, kwargs)
            return None
        if isinstance(fn, type):
            return self._with_buffers(super().call(node, fn, args, kwargs), node)
        if isinstance(getattr(fn, "__self__", None), Expr):
            args = [self.operand(getattr(a, "dtype", a)) if fn.__name__ == "astype" else a for a in args]
        return super().call(node, fn, args, kwargs)


def _is_size(annotation: ast.expr) -> bool:
    return "SizeVar" in ast.unparse(annotation)


def _is_scalar(value: Any) -> bool:
    return isinstance(value, Expr | bool | int | float) or (
        hasattr(value, "item") and getattr(value, "shape", None) == ()
    )


def _text(message: Any) -> str:
    return message.value if isinstance(message, tir.StringImm) else str(message)


def _as_load(target: ast.expr) -> ast.expr:
    if isinstance(target, ast.Subscript):
        return ast.Subscript(target.value, target.slice, ast.Load())
    return ast.Name(target.id, ast.Load()) if isinstance(target, ast.Name) else target


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0]
    return (
        body[1:]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
        else body
    )


def _act_regions(p: TensorParser, mark: marks.Regions, node: ast.AST) -> None:
    block = p.signature_of(f"T.{mark.which}", node)
    if getattr(block, mark.which) is not None:
        raise p.error(node, f"block {block.name} has T.{mark.which} twice", f"name all regions in one: T.{mark.which}(A[...], B[...])")
    setattr(block, mark.which, mark.regions)


def _act_where(p: TensorParser, mark: marks.Where, node: ast.AST) -> None:
    block = p.signature_of("T.where", node)
    if block.has_predicate:
        raise p.error(node, f"block {block.name} has T.where twice", "join the conditions: T.where(a and b)")
    block.predicate, block.has_predicate = tir.ops._truth(p.operand(mark.predicate)), True


def _act_attrs(p: TensorParser, mark: marks.AttrsOf, node: ast.AST) -> None:
    _merge(p, p.parts.attrs if mark.of == "func" else p.signature_of("T.sblock_attr", node).annotations, mark.attrs, node)


def _merge(p: TensorParser, known: dict[str, Any], more: Mapping[str, Any], node: ast.AST) -> None:
    """Attributes join those that are there, nested ones key by key; a key has one value."""
    for key, value in more.items():
        if isinstance(value, Mapping) and isinstance(known.get(key), Mapping):
            known[key] = dict(known[key])
            _merge(p, known[key], value, node)
        elif key in known and not (type(known[key]) is type(value) and (known[key] is value or known[key] == value)):
            raise p.error(node, f"attribute {key} has two values")
        else:
            known[key] = value


def _act_attr(p: TensorParser, mark: marks.AttrHead, node: ast.AST) -> None:
    value, span = tir.const(p.operand(mark.value)), p.source.span(node)
    subject = tuple(mark.subject) if isinstance(mark.subject, list) else mark.subject
    if isinstance(subject, marks.ThreadVar):
        var = Var(subject.var.name, subject.var.dtype)  # a loop variable, whatever it was declared as
        p.scope.replace(subject.var, var)
        p.launch(var, subject.thread, value, node)
        return
    if mark.key == "thread_extent" and subject in p.threads:
        p.launch(subject, p.threads[subject], value, node)
        return
    p.body.wrap(lambda rest: tir.AttrStmt(subject, mark.key, value, rest, span))


def _act_assert(p: TensorParser, mark: marks.AssertHead, node: ast.AST) -> None:
    p.body.add(tir.Assert(tir.ops._truth(p.operand(mark.condition)), _text(mark.message), p.source.span(node)))


def _evaluated(p: TensorParser, value: Any) -> Expr:
    """What is evaluated; of memory from ``T.allocate``, which is a pointer too, that."""
    return value.data if isinstance(value, Buffer) and value in p.pointers else tir.const(p.operand(value))


def _act_bind(p: TensorParser, mark: marks.LetHead, node: ast.AST) -> None:
    if not (isinstance(mark.value, Var) and mark.var is not None and p.rebind(mark.value, mark.var)):
        p._bind_let("_", mark, node)


def _act_realize(p: TensorParser, mark: marks.Realize, node: ast.AST) -> None:
    span, condition = p.source.span(node), p.operand(mark.condition)
    p.body.wrap(lambda rest: tir.AttrStmt(mark.region, "realize_scope", tir.StringImm(mark.scope), rest, span))
    if isinstance(condition, Expr):
        p.body.wrap(lambda rest: tir.AttrStmt(mark.region, "realize_condition", condition, rest, span))


_ACTIONS: dict[type, Callable[[TensorParser, Any, ast.AST], Any]] = {
    marks.Regions: _act_regions,
    marks.Where: _act_where,
    marks.AttrsOf: _act_attrs,
    marks.AttrHead: _act_attr,
    marks.AssertHead: _act_assert,
    marks.Store: lambda p, m, n: p.body.add(p.stored(m, n)),
    marks.Evaluated: lambda p, m, n: p.body.add(tir.Evaluate(_evaluated(p, m.value), p.source.span(n))),
    marks.LetHead: _act_bind,
    marks.Realize: _act_realize,
    marks.Launch: lambda p, m, n: p._bind_launch("tx", m, n),
}
_BINDINGS: dict[type, Callable[[TensorParser, str, Any, ast.AST], Any]] = {
    marks.BufferSpec: lambda p, name, m, n: p.bind_buffer(name, m, n),
    marks.NewVar: TensorParser._bind_var,
    marks.LetHead: TensorParser._bind_let,
    marks.Launch: TensorParser._bind_launch,
    marks.EnvThread: TensorParser._bind_env_thread,
    marks.Meta: lambda p, name, m, n: m.value,
    marks.Axes: lambda p, name, m, n: p.bind_axis(name, m, n),
}
_HEADS: dict[type, Callable[..., None]] = {
    marks.BlockHead: TensorParser.enter_block,
    marks.InitHead: TensorParser.enter_init,
    marks.SeqHead: TensorParser.enter_seq,
    **{
        t: TensorParser.enter_scoped
        for t in (marks.BufferSpec, marks.LetHead, marks.Launch, marks.AttrHead, marks.AssertHead, marks.Realize)
    },
}
