# SPDX-License-Identifier: Apache-2.0
"""Graph functions from syntax: bindings, dataflow blocks, conditionals and loops of ``@R.function``."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ...arith.struct_infos import contradiction, deduce, dimensions_of, erase, join, matched
from ...builder import make_program
from ...ir import graph, tir
from ...ir.attrs import Attrs
from ...ir.errors import RoundelError
from ...ir.graph import (
    BindingBlock,
    DataflowBlock,
    DataflowVar,
    GlobalVar,
    GraphExpr,
    ObjectInfo,
    SeqExpr,
    StructInfo,
    TupleInfo,
    Var,
)
from ...ir.graph.make_call import as_operand, make_call
from ...ir.op import get_op
from ...ir.visit import walk
from .. import marks
from ..relax import Object, Shape, Tensor, call_packed
from .core import Scope, handles
from .macros import Macro
from .symbols import Symbols

if TYPE_CHECKING:
    from .module import ModuleParser

_LEAVES = (
    graph.Var,
    DataflowVar,
    graph.Constant,
    graph.ShapeExpr,
    graph.PrimValue,
    graph.StringValue,
    graph.DTypeValue,
    graph.ExternFunc,
)


_BARE = {"Tensor": Tensor, "Object": Object, "Shape": Shape}  # the spelling of 2022: x: Tensor((1, 784), "float32")


class LocalFunction:
    """A function inside a graph function: condition or body of a loop."""

    def __init__(self, node: ast.FunctionDef) -> None:
        self.node = node


class GraphParser(Symbols):
    """Reads one graph function."""

    def __init__(self, module: ModuleParser) -> None:
        super().__init__(module.source, Scope({**_BARE, **module.captured}))
        self.module = module
        self.attrs: dict[str, Any] = {}
        self.blocks: list[BindingBlock] = []
        self.bindings: list[graph.Binding] = []
        self.outputs: set[str] | None = None  # names that leave the dataflow block being read
        self.has_output = False  # whether R.output was met in it
        self.result: GraphExpr | None = None
        self.ended: set[str] = set()  # names of dataflow blocks before
        self.inside = 0  # functions that are being read in place

    # ---- function

    def function(self, node: ast.FunctionDef, private: bool, name: str, pure: bool) -> graph.Function:
        """The function; ``name`` becomes ``global_symbol`` unless it is private or the script says otherwise."""
        made = self._read(node, *self.signature(node), pure)
        if private and "global_symbol" in self.attrs:
            raise self.error(node, f"function {name} is private and has a global_symbol", "leave one of them out")
        return made if private else made.replace(attrs=Attrs({"global_symbol": name, **self.attrs}))

    def _read(self, node: ast.FunctionDef, params: list[Var], declared: StructInfo | None, pure: bool) -> graph.Function:
        for n in node.body:
            self.visit(n)
        if self.result is None:
            raise self.error(node, f"graph function {node.name} does not return a value", "end it with: return y")
        body = SeqExpr(self._finish_blocks(), self.result)
        bare = isinstance(node.returns, ast.Attribute | ast.Name)  # -> R.Tensor: of a shape and type that follow from the value
        inferred = erase(self.result.sinfo, [p.sinfo for p in params])
        ret = inferred if declared is None or (bare and type(declared) is type(inferred) is graph.TensorInfo) else declared
        return graph.Function(tuple(params), body, ret, pure, Attrs(self.attrs), self.source.span(node))

    def signature(self, node: ast.FunctionDef) -> tuple[list[Var], StructInfo | None]:
        """Parameters, and what the function returns where that is annotated."""
        self.declare_symbols(node.body)
        params = []
        for arg in node.args.args:
            if arg.annotation is None:
                raise self.error(
                    arg,
                    f"parameter {arg.arg} has no annotation",
                    'write its type, e.g. x: R.Tensor((1, 10), "float32")',
                )
            params.append(Var(arg.arg, self.struct_info(arg.annotation)))
            self.scope.define(arg.arg, params[-1])
        unknown = self.dimensions - dimensions_of([p.sinfo for p in params])
        if unknown and params:
            names = ", ".join(sorted(v.name for v in unknown))
            raise self.error(
                node,
                f"the value of {names} does not follow from the arguments: it is no dimension by itself",
                f"give some argument a dimension that is {min(v.name for v in unknown)} alone, or the argument a dimension of its own name",
            )
        return params, None if node.returns is None else self.struct_info(node.returns)

    def _finish_blocks(self) -> tuple[BindingBlock, ...]:
        self._flush()
        done, self.blocks = tuple(self.blocks), []
        return done

    def _flush(self, kind: type = BindingBlock, always: bool = False) -> None:
        if self.bindings or always:
            self.blocks.append(kind(tuple(self.bindings)))
        self.bindings = []

    # ---- statements

    @handles(ast.Name)
    def _name(self, node: ast.Name) -> Any:
        if node.id in self.ended and not self.scope.has(node.id):
            raise self.error(node, f"{node.id} ended with its dataflow block", f"what is used behind it leaves by R.output({node.id})")
        return super()._name(node)

    @handles(ast.Pass)
    def _pass(self, node: ast.Pass) -> None:
        pass

    @handles(ast.FunctionDef)
    def _local_function(self, node: ast.FunctionDef) -> None:
        """With ``@R.function`` a value, which sees the variables around it; else what a loop or a call puts in place."""
        made: Any = LocalFunction(node)
        if node.decorator_list:
            kind, options = self.module._decorator(node)
            if kind != "graph":
                raise self.error(node, "a tensor program cannot stand inside of a graph function", "write it beside the function, in the class")
            func = self._function_inside(node, bool(options.get("pure", True)))
            made = self._emit(node.name, func, func.sinfo, node)
        self.scope.define(node.name, made)

    def _function_inside(self, node: ast.FunctionDef, pure: bool) -> graph.Function:
        saved = self.blocks, self.bindings, self.outputs, self.result, self.attrs, self.symbols, self.dimensions
        self.blocks, self.bindings, self.attrs, self.symbols, self.dimensions = [], [], {}, dict(self.symbols), set()
        self.outputs = self.result = None
        with self.scope.frame():
            own = graph.Var(node.name, graph.FuncInfo(None, ObjectInfo(), pure))
            self.scope.define(node.name, own)
            made = self._read(node, *self.signature(node), pure)
        self.blocks, self.bindings, self.outputs, self.result, self.attrs, self.symbols, self.dimensions = saved
        if any(n is own for n in walk(made)):
            raise self.error(node, f"function {node.name} calls itself", "write the repetition as R.while_loop")
        return made

    @handles(ast.Return)
    def _return(self, node: ast.Return) -> None:
        if self.result is not None:
            raise self.error(node, "a graph function returns once, at its end")
        if node.value is None:
            raise self.error(node, "a graph function returns a value", "return R.tuple() where there is none")
        self.result = self.leaf(self._bindable(self.visit(node.value), node), node, "gv")

    @handles(ast.Expr)
    def _expression(self, node: ast.Expr) -> None:
        value = self.visit(node.value)
        if isinstance(value, marks.AttrsOf):
            self.attrs.update(value.attrs)
        elif isinstance(value, marks.Output):
            self._output(value, node)
        elif isinstance(value, GraphExpr | marks.MatchCasting | marks.Typed | marks.Looping | marks.EmitTe):
            if isinstance(value, graph.Call) and isinstance(value.sinfo, graph.TensorInfo | graph.ShapeInfo | graph.PrimInfo):
                raise self.error(node, f"the value of {ast.unparse(node.value)} is not used", "assign it to a name")
            self.bind("_", value, node)
        elif value is not None and not isinstance(value, str):
            raise self.error(node, f"{ast.unparse(node.value)} is not a statement of a graph function")

    @handles(ast.Assign)
    def _assign(self, node: ast.Assign) -> None:
        if len(node.targets) != 1:
            raise self.error(node, "one assignment at a time, please: a = b = c is not part of the script")
        self._assign_to(node.targets[0], self.visit(node.value), node)

    def _assign_to(self, target: ast.expr, value: Any, node: ast.stmt) -> None:
        if isinstance(target, ast.Name):
            self.scope.define(target.id, self.bind(target.id, value, node))
            return
        if not isinstance(target, ast.Tuple | ast.List):
            raise self.error(target, "cannot assign here", "targets are names")
        value = self._bindable(value, node)
        if isinstance(value, GraphExpr):
            whole = value if isinstance(value, graph.Tuple) else self.leaf(value, node)
            if not isinstance(whole.sinfo, TupleInfo):
                raise self.error(node, f"the value is not a tuple of {len(target.elts)}")
            value = (
                whole.fields
                if isinstance(whole, graph.Tuple)
                else [graph.TupleGetItem(whole, k) for k in range(len(whole.sinfo.fields))]
            )
        if len(value) != len(target.elts):
            raise self.error(target, f"{len(target.elts)} names for {len(value)} values")
        for t, v in zip(target.elts, value):
            self._assign_to(t, v, node)

    @handles(ast.AnnAssign)
    def _annotated(self, node: ast.AnnAssign) -> None:
        if not isinstance(node.target, ast.Name):
            raise self.error(node.target, "a variable is a plain name")
        if node.value is None:
            made = self.visit(node.annotation)
            if isinstance(made := made() if callable(made) else made, marks.NewVar):
                self.scope.define(node.target.id, self.symbol(node.target.id, made))
                return
            raise self.error(node, f"variable {node.target.id} has no value")
        value = self.visit(node.value)
        self.scope.define(node.target.id, self.bind(node.target.id, value, node, self.struct_info(node.annotation)))

    @handles(ast.With)
    def _with(self, node: ast.With) -> None:
        head = self.visit(node.items[0].context_expr) if len(node.items) == 1 else None
        if not isinstance(head, marks.DataflowHead | marks.BindingBlockHead):
            raise self.error(node, "a graph function has with R.dataflow() only")
        if self.outputs is not None and self.inside:  # of a function that is read in place: part of the block around
            for n in node.body:
                self.visit(n)
            return
        if self.outputs is not None:
            raise self.error(node, "dataflow blocks do not nest")
        self._flush()
        if isinstance(head, marks.DataflowHead):
            self.outputs, self.has_output = _outputs(node.body), False
        for n in node.body:
            if self.has_output and not isinstance(n, ast.Return | ast.Pass):
                raise self.error(n, "R.output ends a dataflow block", "bind before it, or after the block")
            self.visit(n)
        self.outputs, self.has_output = None, False
        for frame in self.scope.frames:
            for name in [name for name, value in frame.items() if type(value) is DataflowVar]:
                del frame[name]
                self.ended.add(name)
        self._flush(DataflowBlock if isinstance(head, marks.DataflowHead) else BindingBlock, always=True)

    def _output(self, mark: marks.Output, node: ast.Expr) -> None:
        """``R.output(y)``: once, at the end of a dataflow block, of variables that are bound in it."""
        if self.inside:
            return
        if self.outputs is None:
            raise self.error(node, "R.output stands outside of a dataflow block")
        self.has_output = True
        bound = {b.var for b in self.bindings}
        for value in mark.variables:
            if value not in bound:
                raise self.error(node, f"{getattr(value, 'name', 'a value')} leaves the dataflow block, but is not bound in it")

    @handles(ast.For, ast.While)
    def _python_loop(self, node: ast.stmt) -> None:
        raise self.error(node, "a graph function has no loops of Python", "R.while_loop repeats when the model runs; a BlockBuilder emits n layers")

    @handles(ast.If)
    def _if(self, node: ast.If) -> None:
        test = self.visit(node.test)
        if isinstance(test, tir.Expr):
            test = graph.PrimValue(test)
        if not isinstance(test, GraphExpr):
            for n in node.body if test else node.orelse:
                self.visit(n)
            return
        if self.outputs is not None:
            raise self.error(node, "a dataflow block has no control flow", "put the if after the block")
        if not node.orelse:
            raise self.error(node, "the if has no else", "both branches give the result: if c: y = a  else: y = b")
        condition = self.leaf(test, node)
        name, then, annotated = self._branch(node, node.body)
        other, orelse, _ = self._branch(node, node.orelse)
        if name != other:
            raise self.error(
                node,
                f"the branches end with different variables, {name} and {other}",
                "end both with an assignment to the variable that holds the result",
            )
        sinfo = annotated or join(then.sinfo, orelse.sinfo)
        self.scope.define(name, self._emit(name, graph.If(condition, then, orelse, sinfo), sinfo, node))

    def _branch(self, node: ast.If, body: list[ast.stmt]) -> tuple[str, SeqExpr, StructInfo | None]:
        """The name that a branch assigns last, its value, and the annotation of that assignment."""
        last, target = _last_target(body)
        if isinstance(last, ast.Expr):  # a call for its effect: the branch has no result
            target = ast.copy_location(ast.Name("_", ast.Store()), last)
            last = ast.copy_location(ast.Assign([target], last.value), last)
        if not isinstance(target, ast.Name):
            raise self.error(
                last or node,
                "a branch ends with an assignment to the variable that holds the result",
                "both branches are needed, e.g. if c: y = a  else: y = b",
            )
        saved, self.blocks, self.bindings = (self.blocks, self.bindings), [], []
        sinfo = None
        with self.scope.frame():
            for n in body[:-1]:
                self.visit(n)
            if isinstance(last, ast.Assign | ast.AnnAssign) and last.value is not None:
                sinfo = self.struct_info(last.annotation) if isinstance(last, ast.AnnAssign) else None
                value = self._bindable(self.visit(last.value), last)
                if not (isinstance(value, GraphExpr) and self._is_leaf(value)):
                    value = self.bind(target.id, value, last, sinfo)
            else:
                self.visit(last)
                value = self.scope.lookup(target.id)
            made = SeqExpr(self._finish_blocks(), value)
        self.blocks, self.bindings = saved
        return target.id, made, sinfo

    # ---- bindings

    def bind(self, name: str, value: Any, node: ast.AST, sinfo: StructInfo | None = None) -> Any:
        """What ``name`` stands for after ``name = value``; graph values make a binding."""
        if isinstance(value, marks.NewVar):
            known = self.scope.frames[-1].get(name) if self.inside else None  # what the arguments have there
            return known if isinstance(known, tir.Expr) else self.symbol(value.name or name, value)
        value = self._bindable(value, node)
        if isinstance(value, marks.MatchCasting):
            source = self.leaf(self._bindable(value.value, node), node)
            return self._append(
                graph.MatchCast(self._variable(name, sinfo or value.sinfo), source, value.sinfo, self.source.span(node))
            )
        if isinstance(value, marks.Typed):
            return self._emit(name, self.normal(value.value, node), sinfo or value.value.sinfo, node)
        if isinstance(value, marks.Looping):
            value = self._loop(value, node)
        if isinstance(value, marks.EmitTe):
            value = self._tensor_program(value, node)
        if not isinstance(value, GraphExpr):
            return value
        value = self.normal(value, node)
        if sinfo is not None:
            wrong = contradiction(sinfo, value.sinfo)
            if wrong:
                raise self.error(node, f"{name} is annotated otherwise than its value is inferred", wrong)
            if isinstance(value, graph.Call | graph.While):
                value = value.replace(sinfo=sinfo)
        return self._emit(name, value, sinfo or value.sinfo, node)

    def _bindable(self, value: Any, node: ast.AST) -> Any:
        """Python tuples with graph values inside are graph tuples."""
        if isinstance(value, tuple | list) and (
            not value or any(isinstance(v, GraphExpr | tuple | list | marks.Typed) for v in value)
        ):
            return graph.Tuple(tuple(self.leaf(self._bindable(v, node), node) for v in value))
        return value

    def _emit(self, name: str, value: GraphExpr, sinfo: StructInfo, node: ast.AST) -> Var:
        return self._append(graph.VarBinding(self._variable(name, sinfo), value, self.source.span(node)))

    def _append(self, binding: graph.Binding) -> Var:
        self.bindings.append(binding)
        return binding.var

    def _variable(self, name: str, sinfo: StructInfo) -> Var:
        inside = self.outputs is not None and name not in self.outputs
        return DataflowVar(name, sinfo) if inside else Var(name, sinfo)

    def leaf(self, value: Any, node: ast.AST, hint: str = "lv") -> GraphExpr:
        """A value as an operand: anything that is not a variable, constant or tuple of them is bound first."""
        if isinstance(value, marks.MatchCasting | marks.Looping | marks.Typed | marks.EmitTe):
            return self.bind(hint, value, node)
        if not isinstance(value, GraphExpr):
            return as_operand(value)
        if isinstance(value, graph.Tuple):
            fields = tuple(self.leaf(f, node, hint) for f in value.fields)
            return value if all(a is b for a, b in zip(fields, value.fields)) else graph.Tuple(fields)
        return value if self._is_leaf(value) else self._emit(hint, self.normal(value, node), value.sinfo, node)

    def _is_leaf(self, value: GraphExpr) -> bool:
        return type(value) in _LEAVES or (isinstance(value, graph.Tuple) and all(map(self._is_leaf, value.fields)))

    def normal(self, value: GraphExpr, node: ast.AST) -> GraphExpr:
        """A value whose operands are leaves."""
        if isinstance(value, graph.Call):
            args = tuple(a if isinstance(a, GlobalVar) else self.leaf(a, node) for a in value.args)
            return value if all(a is b for a, b in zip(args, value.args)) else value.replace(args=args)
        if isinstance(value, graph.TupleGetItem):
            return value.replace(tuple_value=self.leaf(value.tuple_value, node))
        return self.leaf(value, node) if isinstance(value, graph.Tuple) else value

    def _loop(self, mark: marks.Looping, node: ast.AST) -> graph.While:
        if not isinstance(mark.condition, LocalFunction) or not isinstance(mark.body, LocalFunction):
            raise self.error(node, "R.while_loop takes two functions that are defined above in this function")
        init = tuple(self.leaf(self._bindable(v, node), node) for v in mark.init)
        args = mark.condition.node.args.args
        if len(args) != len(init) or len(mark.body.node.args.args) != len(init):
            raise self.error(
                node,
                f"{len(init)} initial values, but the functions take {len(args)} and {len(mark.body.node.args.args)}",
            )
        loop_vars = tuple(
            Var(a.arg, i.sinfo if a.annotation is None else self.struct_info(a.annotation)) for a, i in zip(args, init)
        )
        condition, body = self._inner(mark.condition.node, loop_vars), self._inner(mark.body.node, loop_vars)
        return graph.While(loop_vars, init, condition, body, TupleInfo(tuple(v.sinfo for v in loop_vars)))

    def _inner(self, node: ast.FunctionDef, variables: tuple[Var, ...]) -> SeqExpr:
        saved, self.blocks, self.bindings = (self.blocks, self.bindings, self.outputs, self.result), [], []
        self.outputs = self.result = None
        with self.scope.frame({a.arg: v for a, v in zip(node.args.args, variables)}):
            for n in node.body:
                self.visit(n)
        if self.result is None:
            raise self.error(node, f"{node.name} does not return a value")
        made = SeqExpr(self._finish_blocks(), self.result)
        self.blocks, self.bindings, self.outputs, self.result = saved
        return made

    def _read_in_place(self, function: ast.FunctionDef, args: list[Any], node: ast.AST) -> GraphExpr:
        """The result of a function inside this one, its bindings read where it is called."""
        names = [a.arg for a in function.args.args]
        if len(names) != len(args):
            raise self.error(node, f"{function.name} takes {len(names)} arguments, {len(args)} were given")
        outer_symbols, self.symbols = self.symbols, dict(self.symbols)
        saved, self.result = self.result, None
        with self.scope.frame():
            self.declare_symbols(function.body)
            infos = [None if a.annotation is None else self.struct_info(a.annotation) for a in function.args.args]
            self._bind_symbols([i for i in infos if i is not None], [a.sinfo for a, i in zip(args, infos) if i is not None], outer_symbols)
            self.scope.frames[-1].update(zip(names, args))
            self.inside += 1
            for n in function.body:
                self.visit(n)
            self.inside -= 1
        value, self.result, self.symbols = self.result, saved, outer_symbols
        if value is None:
            raise self.error(function, f"{function.name} does not return a value")
        return value

    def _expand(self, macro: Macro, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """The value that a macro returns, its bindings read where it is called."""
        saved, self.result = self.result, None
        self.inside += 1
        macro.expand(self, args, kwargs)
        self.inside -= 1
        value, self.result = self.result, saved
        return value

    def _bind_symbols(self, params: list[StructInfo], args: list[StructInfo], known: dict[str, tir.Var]) -> None:
        """Names of dimensions that a function inside this one introduces stand for those of its arguments."""
        table = matched(params, args)
        for name, var in self.symbols.items():
            if var in table and name not in known:
                self.scope.frames[-1][name] = table[var]

    def _tensor_program(self, mark: marks.EmitTe, node: ast.AST) -> graph.Call:
        """``R.emit_te``: the program joins the module, its call stands here."""
        if self.module.alone:
            raise self.error(node, "R.emit_te adds a function to the module, and this function is in none", "write a class under @I.ir_module")
        program = make_program(mark.function, mark.args, mark.kwargs)
        hint = mark.name_hint or getattr(mark.function, "__name__", "compute").replace("<lambda>", "compute")
        return program.call(self.module.add(program.func, hint))

    # ---- expressions

    def graph_op(self, node: ast.AST, name: str, *args: Any) -> Any:
        """Python's operators between graph values."""
        if name == "?":
            raise self.error(node, f"there is no graph operator for {ast.unparse(node)}")
        return make_call(get_op(name), [self._argument(a, node) for a in args])

    def subscript(self, node: ast.Subscript, value: Any, index: Any) -> Any:
        """Fields of tuples."""
        if not isinstance(value, GraphExpr):
            return super().subscript(node, value, index)
        if not isinstance(value.sinfo, TupleInfo) and not isinstance(value.sinfo, ObjectInfo):
            raise self.error(
                node, f"{ast.unparse(node.value)} is not a tuple", "slice tensors with R.strided_slice or R.take"
            )
        index = index.value if isinstance(index, tir.IntImm) else index
        if isinstance(value.sinfo, TupleInfo) and not -len(value.sinfo.fields) <= index < len(value.sinfo.fields):
            raise self.error(node, f"the tuple has {len(value.sinfo.fields)} fields, index {index} is out of range")
        return graph.TupleGetItem(value, index + len(value.sinfo.fields) if index < 0 else index)

    def call(self, node: ast.Call, fn: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Calls of operators and functions; operands that are calls are bound first."""
        keep = getattr(fn, "__name__", "") in ("typed", "emit")  # these take the call itself
        args = [self._argument(a, node, keep) for a in args]
        kwargs = {k: self._argument(v, node) for k, v in kwargs.items()}
        if getattr(fn, "__name__", "") == "call_py_func" and args and args[0] in self.module.python.functions:
            made = fn(*args, **kwargs)
            results = len(made.sinfo.fields) if isinstance(made.sinfo, TupleInfo) else 1
            symbol = self.module.python.symbol(args[0], results)
            return made.replace(args=(graph.ExternFunc(symbol), *made.args[1:]))
        if isinstance(fn, LocalFunction):
            return self._read_in_place(fn.node, args, node)
        if isinstance(fn, Macro):
            return self._expand(fn, args, kwargs)
        if isinstance(fn, marks.Closure):
            fn, args = fn.function, [*fn.args, *args]
        if isinstance(fn, GlobalVar):
            operands = tuple(as_operand(a) for a in args)
            return graph.Call(fn, operands, Attrs(kwargs), (), self._result_info(fn, operands))
        if isinstance(fn, graph.ExternFunc | graph.Var):
            made = call_packed(fn, *args, **kwargs)
            known = fn.sinfo
            if not isinstance(known, graph.FuncInfo):
                return made
            if known.params is not None and len(known.params) != len(args):
                raise self.error(node, f"{ast.unparse(node.func)} takes {len(known.params)} arguments, {len(args)} were given")
            return made.replace(sinfo=deduce(known.params or (), known.ret, [a.sinfo for a in made.args]))
        return super().call(node, fn, args, kwargs)

    def _argument(self, value: Any, node: ast.AST, keep: bool = False) -> Any:
        """An argument: operands bound unless ``keep``, textual dimensions read."""
        if isinstance(value, list | tuple):
            return type(value)(self._argument(v, node) for v in value)
        if isinstance(value, GraphExpr | marks.MatchCasting | marks.Typed | marks.Looping | marks.EmitTe):
            return value if keep else self.leaf(value, node)
        return self.resolve(value)

    def _result_info(self, fn: GlobalVar, args: tuple[GraphExpr, ...]) -> StructInfo:
        node = self.module.nodes.get(fn.name)
        if node is None:
            return ObjectInfo()
        if self.module._decorator(node)[0] != "graph":
            if len(args) == len(node.args.args):  # results among them: the form after lowering
                return TupleInfo(())
            hint = f'R.call_tir(cls.{fn.name}, (x, ...), out_sinfo=R.Tensor(...)); what it writes comes from there'
            raise RoundelError(f"{fn.name} is a tensor program, it is called like a graph function", hint=hint)
        if node.returns is not None:
            params, ret = GraphParser(self.module).signature(node)
        else:
            callee: Any = self.module.function(fn.name)
            params, ret = list(callee.params), callee.ret_sinfo
        return deduce([p.sinfo for p in params], ret or ObjectInfo(), [a.sinfo for a in args])


def _outputs(body: list[ast.stmt]) -> set[str]:
    """Names in the ``R.output(...)`` of a dataflow block, and those that it returns."""
    found: set[str] = set()
    for n in body:
        if (
            isinstance(n, ast.Expr)
            and isinstance(n.value, ast.Call)
            and isinstance(n.value.func, ast.Attribute)
            and n.value.func.attr == "output"
        ):
            found.update(a.id for a in n.value.args if isinstance(a, ast.Name))
        elif isinstance(n, ast.Return) and n.value is not None:
            found.update(("gv", *(a.id for a in ast.walk(n.value) if isinstance(a, ast.Name))))
    return found


def _last_target(body: list[ast.stmt]) -> tuple[ast.stmt | None, ast.expr | None]:
    """The last statement of a branch and what it assigns; a conditional assigns what its branches do."""
    last = body[-1] if body else None
    if isinstance(last, ast.If):
        return last, _last_target(last.body)[1]
    return last, last.targets[0] if isinstance(last, ast.Assign) else getattr(last, "target", None)
