# SPDX-License-Identifier: Apache-2.0
"""Stages: ``compute`` gives elements by an expression, ``extern`` by a statement, ``extern_primfunc`` by a program."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from roundel.ir import tir
from roundel.ir.attrs import Attrs
from roundel.ir.errors import RoundelError
from roundel.ir.visit import children, substitute

from ..ir import escape
from .reduce import Reduce
from .tag import current_tag
from .tensor import Compute, Extern, Literal, Tensor, make_tensor


def compute(
    shape: Sequence[Any],
    fcompute: Callable[..., Any],
    name: str = "compute",
    attrs: Mapping[str, Any] | None = None,
    *,
    tag: str = "",
) -> Any:
    """A tensor of ``shape`` whose element at ``i, j, ...`` is ``fcompute(i, j, ...)``; a tuple of them gives a tuple.

    A reduction may stand only at the top of the body; several outputs that reduce share one reduction over a tuple. ``tag`` is kept as the
    attribute ``tag``.
    """
    shape = shape if isinstance(shape, tuple | list) else (shape,)
    if not callable(fcompute):
        raise TypeError(f"the element of a tensor cannot be {escape.value(fcompute)}: it is a function of indices, such as lambda i, j: a[i, j] + 1")
    axes = tuple(_axis(n, s) for n, s in zip(_axis_names(fcompute, len(shape)), shape))
    made = fcompute(*(a.var for a in axes))
    bodies = tuple(_element(b) for b in (made if isinstance(made, tuple | list) else (made,)))
    _check(bodies, name)
    stage = Compute(
        axes,
        bodies,
        Attrs({**(attrs or {}), **({"tag": tag or current_tag()} if tag or current_tag() else {})}),
        tuple(dict.fromkeys(t for b in bodies for e in (b, *_of_combiner(b)) for t in _tensors(e))),
    )
    outs = tuple(
        make_tensor(stage, shape, b.dtype, name if len(bodies) == 1 else f"{name}_v{k}", k)
        for k, b in enumerate(bodies)
    )
    return outs if isinstance(made, tuple | list) else outs[0]


def _axis(name: str, size: Any) -> tir.IterVar:
    extent = tir.as_index(size)
    return tir.IterVar(tir.Var(name, extent.dtype), tir.Range(tir.const(0, extent.dtype), extent), tir.IterKind.SPATIAL)


def _axis_names(fcompute: Callable[..., Any], ndim: int) -> list[str]:
    given = inspect.signature(fcompute).parameters.values()
    params = [p for p in given if p.default is inspect.Parameter.empty]
    if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in params):
        names = [p.name for p in params if p.kind is not inspect.Parameter.VAR_POSITIONAL]
        return names + [f"i{k}" for k in range(len(names), ndim)]
    if len(params) != ndim:
        raise RoundelError(f"te.compute over {ndim} dimensions was given a function of {len(params)} indices")
    return [p.name for p in params]


def _element(value: Any) -> tir.Expr:
    return value.asexpr() if hasattr(value, "asexpr") else tir.const(value)


def _check(bodies: tuple[tir.Expr, ...], name: str) -> None:
    tops = [b for b in bodies if type(b) is Reduce]
    for body in bodies:
        below = [c for s in body.sources for c in _walk(s)] if type(body) is Reduce else list(_walk(body))
        if any(type(e) is Reduce for e in below):
            raise RoundelError(
                f"te.compute {name!r} has a reduction inside an expression",
                hint="give the reduction a te.compute of its own",
            )
    if tops and (
        len(tops) < len(bodies) or any(t.sources is not tops[0].sources and t.sources != tops[0].sources for t in tops)
    ):
        raise RoundelError(
            f"the outputs of te.compute {name!r} are not parts of one reduction",
            hint="reduce a tuple with te.comm_reducer",
        )


def _walk(expr: tir.Expr) -> Iterator[Any]:
    """Every distinct node of an expression."""
    seen, stack = {expr}, [expr]
    while stack:
        n = stack.pop()
        yield n
        for c in children(n):
            if c not in seen:
                seen.add(c)
                stack.append(c)


def _of_combiner(body: tir.Expr) -> tuple[tir.Expr, ...]:
    """The identity of a reduction and what its combiner makes of any two values: both may read tensors."""
    if type(body) is not Reduce:
        return ()
    dtypes = tuple(s.dtype for s in body.sources)
    values = tuple(tir.Var("x", d) for d in dtypes)
    return (*body.combiner.identity(dtypes), *body.combiner.combine(values, body.sources))


def _tensors(expr: tir.Expr) -> Iterator[Tensor]:
    for n in _walk(expr):
        if type(n) is tir.BufferLoad and isinstance(n.buffer, Tensor):
            yield n.buffer


def extern(
    outputs: Sequence[Any],
    inputs: Sequence[Tensor],
    build: Callable[..., Any],
    name: str = "extern",
    *,
    dtype: Any = None,
    over: Sequence[Any] = (),
    scratch: Sequence[tuple[Sequence[Any], Any]] = (),
    attrs: Mapping[str, Any] | None = None,
) -> Any:
    """Tensors written by a statement: ``build(inputs, outputs, scratch, *point)`` for every point of ``over``.

    Points run in any order. ``outputs`` and ``scratch`` are (shape, dtype) pairs; scratch is private to a point. One output gives a tensor,
    several a tuple. ``outputs`` may also be one shape or a list of shapes, of ``dtype`` or the first input's type: then ``build`` is given
    inputs and outputs only, and may return an expression.
    """
    if (shapes := _shapes(outputs)) is not None:
        kind = dtype or (inputs[0].dtype if inputs else "float32")
        kinds = kind if isinstance(kind, tuple | list) else [kind] * len(shapes)
        outputs, made = list(zip(shapes, kinds, strict=True)), build
        build = lambda ins, outs, scratch: _statement(made(ins, outs))
    axes = tuple(
        _axis(f"i{k}", s) for k, s in enumerate(over)
    )
    buffers = tuple(tir.decl_buffer(tuple(s), d, f"{name}_scratch{k}") for k, (s, d) in enumerate(scratch))
    stage = Extern(axes, build, buffers, Attrs(attrs), tuple(map(_in_memory, inputs)))
    outs = stage.outputs = tuple(
        make_tensor(stage, s, d, name if len(outputs) == 1 else f"{name}_v{k}", k) for k, (s, d) in enumerate(outputs)
    )
    return outs[0] if len(outs) == 1 else outs


def _shapes(outputs: Sequence[Any]) -> list[tuple[Any, ...]] | None:
    """The shapes of outputs that are given without types, None of (shape, dtype) pairs."""
    if all(isinstance(o, int | tir.Expr) for o in outputs):
        return [tuple(outputs)]
    if all(isinstance(o, tuple | list) and all(isinstance(n, int | tir.Expr) for n in o) for o in outputs):
        return [tuple(o) for o in outputs]
    return None


def _statement(made: Any) -> tir.Stmt:
    return tir.Evaluate(made) if isinstance(made, tir.Expr) else made


def _in_memory(t: Tensor) -> Tensor:
    """A statement reads buffers, so a literal becomes one."""
    return compute(t.shape, lambda *i: t(*i), t.name) if isinstance(t.definition, Literal) else t


def extern_primfunc(inputs: Sequence[Tensor], func: tir.PrimFunc, name: str = "extern") -> Any:
    """The outputs of a tensor program applied to ``inputs``: its leading buffers are inputs, the rest outputs."""
    buffers = func.buffer_params
    if len(buffers) <= len(inputs) or len(buffers) != len(func.params):
        raise RoundelError(
            f"a tensor program of {len(func.params)} parameters does not take {len(inputs)} inputs and give outputs"
        )
    sizes: dict[Any, Any] = {}
    for b, t in zip(buffers, inputs):
        sizes |= {d: s for d, s in zip(b.shape, t.shape, strict=True) if isinstance(d, tir.Var)}
    root = func.root_block
    body = func.body if root is None else root.body
    scratch = () if root is None else root.alloc_buffers

    def build(ins: Sequence[Any], outs: Sequence[Any], temps: Sequence[Any]) -> tir.Stmt:
        table = dict(zip(buffers, (*ins, *outs), strict=True)) | dict(zip(scratch, temps, strict=True))
        return tir.seq(substitute(body, sizes, table))

    out_specs = [([substitute(d, sizes) for d in b.shape], b.dtype) for b in buffers[len(inputs) :]]
    return extern(
        out_specs, inputs, build, name, scratch=[([substitute(d, sizes) for d in b.shape], b.dtype) for b in scratch]
    )
