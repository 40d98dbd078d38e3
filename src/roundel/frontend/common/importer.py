# SPDX-License-Identifier: Apache-2.0
"""The walk over the nodes of a model, as far as it is the same for every format.

An importer holds what was made so far; a node is what a converter of one operator gets: it names the node in errors, emits operators and
tensor expressions, and has checked what only the run can tell. What a format calls attributes and sizes, its own classes add.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ... import te
from ...builder import BlockBuilder, program_attrs
from ...ir import graph, structural_equal, tir
from ...ir.errors import ModelError, RoundelError, UnsupportedError
from ...ir.node import Span
from ...ir.op import CALL_TIR, FuseKind
from .agreement import require_equal


class ModelImporter:
    """Converts the nodes of one graph of a model inside a BlockBuilder's function."""

    def __init__(self, bb: BlockBuilder) -> None:
        self.bb = bb
        self.checked: set[frozenset[tir.Expr]] = set()
        """Pairs of sizes whose equality the run checks already."""

    def emit(self, value: Any, hint: str = "lv") -> graph.GraphExpr:
        """Bind a call to a variable; atoms are returned as they are."""
        return self.bb.emit(value, hint) if isinstance(value, graph.Call | graph.If | graph.While | graph.TupleGetItem) else value

    def check_sizes(self, pairs: Sequence[tuple[tir.Expr, tir.Expr]], what: str, operands: Sequence[Any] = ()) -> None:
        """Have equalities of sizes that inference assumed checked when the model runs; the error says ``what`` needs them."""
        for a, b in pairs:
            key = frozenset((a, b))
            if key not in self.checked:
                self.checked.add(key)
                require_equal(self.bb, a, b, what, operands)


class ModelNode:
    """One node being converted. ``name`` is the model's name of it, ``kind`` its operator's, ``title`` what it is called in errors of a run."""

    def __init__(self, importer: ModelImporter, name: str, kind: str, title: str) -> None:
        self.importer, self.name, self.kind, self.title = importer, name, kind, title

    @property
    def where(self) -> str:
        """The node's place, as errors of the import tell it."""
        return f"node {self.name!r} ({self.kind})"

    def te(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> graph.GraphExpr:
        """Emit a tensor expression ``fn(*tensors)`` as a tensor program."""
        return self.importer.bb.emit_te(fn, *args, **kwargs)

    def elementwise(self, fn: Callable[[tir.Expr], tir.Expr], x: graph.GraphExpr, name: str) -> graph.GraphExpr:
        """Emit a tensor program of each element by itself, which is fused with what stands before and after it."""
        return self.te(lambda v: te.compute(v.shape, lambda *i: fn(v(*i)), name), x, primfunc_attrs=program_attrs(FuseKind.ELEMENTWISE))

    def program(self, program: tir.PrimFunc, *args: graph.GraphExpr) -> graph.GraphExpr:
        """Emit a call of a tensor program of constant sizes, scheduled or not: its first buffers are the arguments, the others its results. Raises
        ModelError where the arguments are not what it takes."""
        wanted = [graph.TensorInfo(b.shape, b.dtype) for b in map(program.buffers.get, program.params) if b is not None]
        for k, (arg, info) in enumerate(zip(args, wanted)):
            if not structural_equal(arg.sinfo, info):
                raise ModelError(f"operand {k} is {arg.sinfo}, and the program takes {info}", where=self.where,
                                 hint="node.te makes a program for the sizes that the operands have")
        results = wanted[len(args) :]
        if not results or len(wanted) != len(program.params):
            raise ModelError(f"a program with {len(program.params)} parameters is called with {len(args)} operands", where=self.where,
                             hint="its parameters are buffers: first the operands, then the results")
        out = results[0] if len(results) == 1 else graph.TupleInfo(tuple(results))
        name = self.importer.bb.add_func(program, str(program.attrs.get("global_symbol", "program")))
        return self.importer.emit(graph.Call(CALL_TIR, (name, graph.Tuple(tuple(args))), sinfo_args=(out,), sinfo=out))

    def make(self, op: str, *args: Any, **attrs: Any) -> graph.GraphExpr:
        """Emit a call of a Roundel operator."""
        raise NotImplementedError

    def positions(self, indices: Any, *limits: Any, negative: bool = False) -> graph.GraphExpr:
        """``indices``, checked when the model runs: each at least 0 (with ``negative`` minus the limit) and below the limit."""
        return self.make("check_indices", indices, graph.ShapeExpr(tuple(map(tir.as_index, limits))), negative=negative, node=self.title)

    @contextmanager
    def converting(self, span: str = "") -> Iterator[None]:
        """What is emitted inside comes from this node (``span``: from another of that name), and so do errors that tell no place."""
        self.importer.bb.span = Span(self.title, name=span or self.name)
        try:
            yield
        except RoundelError as e:
            if e.where is None:
                raise type(e)(e.what, where=self.where, why=e.why, hint=e.hint) from e
            raise

    def error(self, what: str) -> ModelError:
        """An error about this node."""
        return ModelError(what, where=self.where)

    def unsupported(self, what: str) -> UnsupportedError:
        """A refusal of this node."""
        return UnsupportedError(what, where=self.where)


def is_tiny(call: graph.Call, largest: int) -> bool:
    """Whether a call is on constants and has a result of at most ``largest`` elements."""
    if not any(isinstance(a, graph.Constant) for a in call.args) or any(isinstance(a, graph.Var) for a in call.args):
        return False
    if any(a.data.dtype in ("int8", "uint8") and len(a.data.shape) > 1 for a in call.args if isinstance(a, graph.Constant)):
        return False  # quantised weights, which passes look for
    infos = call.sinfo.fields if isinstance(call.sinfo, graph.TupleInfo) else (call.sinfo,)
    return all(_elements(i.shape) <= largest for i in infos if isinstance(i, graph.TensorInfo))


def _elements(shape: Sequence[tir.Expr] | None) -> float:
    """The number of elements; infinite where it is not known."""
    known = [d.value for d in shape or () if isinstance(d, tir.IntImm)]
    return math.prod(known) if shape is not None and len(known) == len(shape) else math.inf
