# SPDX-License-Identifier: Apache-2.0
"""Random graphs partitioned by patterns, merged, and put back: regions are convex, no two wait for each other, nothing is lost, and results are the
same with every backend on: kernels in C, functions of Python, OpenBLAS and oneDNN where they are installed."""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator
from typing import Any

import numpy as np

import roundel as rd
from roundel import backends, driver
from roundel.backends import onednn, openblas
from roundel.builder import BlockBuilder
from roundel.driver import libraries
from roundel.graph.partition.inline_composites import inline_composites
from roundel.ir import graph, options, structural_equal
from roundel.ir.module import IRModule
from roundel.relax.dpl import is_const, is_op, wildcard
from roundel.relax.fuse_by_pattern import fuse_by_pattern
from roundel.relax.merge_composites import Partition, codegen_of, merge_composites
from roundel.script import parse
from roundel.script import relax as R

_UNARY = ("nn.relu", "tanh", "negative", "abs", "exp", "sigmoid")
_BINARY = ("add", "subtract", "multiply", "maximum")
_VALUE_EVERY = 8  # graphs, whose results are compared too
_COMPILE_EVERY = 10  # graphs, which are compiled with every backend on
_C_NAMES = {"nn.relu": "v > 0 ? v : 0", "tanh": "tanhf(v)", "negative": "-v", "abs": "fabsf(v)", "add": "v + w[i % m]", "multiply": "v * w[i % m]"}
_C = "#include <math.h>\n#include <stdint.h>\n" + "\n".join(
    f"void c_{name.replace('.', '_')}(const float *x, const float *w, float *y, int64_t n, int64_t m) "
    f"{{ for (int64_t i = 0; i < n; i++) {{ float v = x[i]; y[i] = {body}; }} }}" for name, body in _C_NAMES.items())


def attack(count: int, seed: int) -> Iterator[str]:
    """``count`` random graphs under random patterns for three code generators."""
    for number in range(count):
        source = random.Random(f"{seed} {number}")
        mod, patterns = random_graph(source), random_patterns(source)
        for wrong in problems(mod, patterns, values=number % _VALUE_EVERY == 0):
            yield f"graph {number} of seed {seed}: {wrong}\n{mod.script()}"
        if number % _COMPILE_EVERY == 0:
            for wrong in _wrong_with_backends(mod, source):
                yield f"graph {number} of seed {seed}: {wrong}\n{mod.script()}"


def _wrong_with_backends(mod: IRModule, source: random.Random) -> Iterator[str]:
    """Differences of what a model returns whose parts are computed by backends, from what the interpreter says of it."""
    mine = [_in_c(), _in_python()]
    names = [b.name for b in mine] + [kit.BACKEND.name for kit in (openblas, onednn) if not kit.LIBRARY.missing]
    source.shuffle(names)
    for backend in mine:
        backends.register(backend)
    try:
        with options.override(libraries=",".join(names)):
            made = [c for c in driver.prepare(mod, pipeline=driver.OPTIMIZE + [libraries]).choices.made if c.kind == "library"]
        names = [n for n in names if any(n in c.possible for c in made)]
        model = rd.compile(mod, choices={c.site: next(n for n in names if n in c.possible) for c in made if len(c.possible) > 1})
    except rd.RoundelError as error:
        if "takes a part of it" not in str(error):  # two backends were asked for at parts that share an operator
            yield f"it does not compile: {error}"
        return
    finally:
        for backend in mine:
            backends.unregister(backend)
    x = np.random.default_rng(0).standard_normal((4, 4), dtype=np.float32)
    for flag in (np.array(True), np.array(False)):
        for got, expected in zip(_several(model(x, flag)), _several(rd.interpret(mod)["main"](x, flag)), strict=True):
            if not np.allclose(got, expected, rtol=1e-4, atol=1e-4, equal_nan=True):
                yield f"with {', '.join(names)} the results differ by {np.nanmax(np.abs(got - expected))}"


def _several(results: Any) -> tuple[Any, ...]:
    return tuple(results) if isinstance(results, list | tuple) else (results,)


def _in_c() -> backends.Backend:
    """Kernels in C for operators of tensors of one shape, or of a tensor and a row."""

    def implement(c: backends.Composite) -> Any:
        count, second = 1, c.operands[-1].shape
        for d in c.result.shape:
            count = count * d
        if c.operands[0].shape != c.result.shape or (second != c.result.shape and second != c.result.shape[-1:]):
            return "it repeats neither columns nor the first operand"
        (name,) = c.calls
        repeated = second[0] if len(second) == 1 else count
        return backends.native(c, f"c_{name.replace('.', '_')}", count, repeated, operands=(0, len(c.operands) - 1), source=_C)

    unary = [(f"c.{n}", is_op(f"relax.{n}")(wildcard())) for n in _C_NAMES if n in _UNARY]
    return backends.Backend("in_c", [*unary, *((f"c.{n}", is_op(f"relax.{n}")(wildcard(), wildcard())) for n in _C_NAMES if n in _BINARY)], implement)


def _in_python() -> backends.Backend:
    """Functions of NumPy for one operator, and for an operator of the result of another."""

    def implement(c: backends.Composite) -> Any:
        def compute(*arrays: np.ndarray) -> None:
            arrays[-1][...] = rd.interpret(IRModule({"main": c.function.with_attr("global_symbol", "main")}))["main"](*arrays[:-1])

        return backends.python(compute)

    chain = is_op("relax.exp")(is_op("relax.negative")(wildcard()))
    patterns = [("py.chain", chain), ("py.subtract", is_op("relax.subtract")(wildcard(), wildcard())), ("py.exp", is_op("relax.exp")(wildcard()))]
    return backends.Backend("in_python", patterns, implement)


def random_graph(source: random.Random) -> IRModule:
    """A function of elementwise operators, splits, tuples and branches; the rows of its tensors may be symbolic."""
    rows = rd.te.size_var("n") if source.random() < 0.5 else 4
    x, flag = graph.Var("x", graph.TensorInfo((rows, 4), "float32")), graph.Var("flag", graph.TensorInfo((), "bool"))
    bb = BlockBuilder()
    with bb.function("main", [x, flag]):
        known = [x]
        for _ in range(source.randint(1, 3)):
            with bb.dataflow():
                inner = list(known)
                for _ in range(source.randint(2, 9)):
                    inner += _random_values(source, bb, inner)
                outputs = [bb.emit_output(v) for v in source.sample(inner, source.randint(1, min(3, len(inner))))]
            known += outputs
            if source.random() < 0.3:
                known.append(_branch(source, bb, flag, known))
        bb.emit_func_output(graph.Tuple(tuple(source.sample(known, source.randint(1, min(3, len(known)))))))
    return bb.get()


def _random_values(source: random.Random, bb: Any, known: list[Any]) -> list[Any]:
    a, b = source.choice(known[-6:]), source.choice(known)
    kind = source.random()
    if kind < 0.36:
        return [bb.emit(operator(source.choice(_UNARY))(a))]
    if kind < 0.4:
        return [bb.emit(R.matmul(a, R.const(np.full((4, 4), source.random(), np.float32))))]
    if kind < 0.8:
        second = R.const(np.full(4, source.random(), np.float32)) if source.random() < 0.2 else b
        return [bb.emit(operator(source.choice(_BINARY))(a, second))]
    if kind < 0.9:
        parts = bb.emit(R.split(a, 2, axis=1))
        return [bb.emit(R.concat([bb.emit(graph.TupleGetItem(parts, k)) for k in (1, 0)], axis=1))]
    pair = bb.emit(graph.Tuple((a, b)))
    return [bb.emit(graph.TupleGetItem(pair, source.randrange(2)))]


def _branch(source: random.Random, bb: Any, flag: graph.Var, known: list[Any]) -> graph.Var:
    def side(op: str) -> graph.SeqExpr:
        var = graph.Var("side", known[0].sinfo)
        return graph.SeqExpr((graph.BindingBlock((graph.VarBinding(var, operator(op)(source.choice(known))),)),), var)

    return bb.emit(graph.If(flag, side("tanh"), side("nn.relu"), known[0].sinfo))


def operator(name: str) -> Any:
    """What makes a call of an operator."""
    return functools.reduce(getattr, name.split("."), R)


def random_patterns(source: random.Random) -> list[tuple[Any, ...]]:
    """Patterns of one to three operators, of a constant operand or not."""
    out = []
    for _ in range(source.randint(4, 16)):
        codegen = source.choice("AAB")
        pattern: Any = wildcard()
        for _ in range(source.choice((1, 1, 1, 2, 3))):
            if source.random() < 0.5:
                pattern = is_op(f"relax.{source.choice(_UNARY)}")(pattern)
            else:
                pattern = is_op(f"relax.{source.choice(_BINARY)}")(pattern, is_const() if source.random() < 0.2 else wildcard())
        if source.random() < 0.1:
            pattern = is_op("relax.split")(wildcard())
        out.append((f"{codegen}.p{len(out)}", pattern))
    return out


def problems(mod: IRModule, patterns: list[tuple[Any, ...]], values: bool = False) -> Iterator[str]:
    """What is wrong with the partition of a module; nothing is asserted of how much is merged."""
    fused = fuse_by_pattern(mod, patterns)
    merged = merge_composites(fused)
    if wrong := list(_wrong_regions(fused, merged)):
        yield from wrong
        return
    if not structural_equal(parse(merged.script()), merged):
        yield "what was merged is not what its script says"
    want = canonical(mod)
    for name, stage in (("fused", fused), ("merged", merged)):
        back = inline_composites(stage)
        if list(back) != list(mod):
            yield f"{name} and put back, there are functions {list(back)}"
        elif canonical(back) != want:
            yield f"{name} and put back, it is another graph:\n{back.script()}"
    if values:
        x = np.random.default_rng(0).standard_normal((4, 4), dtype=np.float32)
        for flag in (np.array(True), np.array(False)):
            for got, expected in zip(rd.interpret(merged)["main"](x, flag), rd.interpret(mod)["main"](x, flag), strict=True):
                if not np.array_equal(got, expected, equal_nan=True):
                    yield "the results differ"


def _wrong_regions(fused: IRModule, merged: IRModule) -> Iterator[str]:
    """Regions whose values leave them and come back: by the reachability of every pair of bindings."""
    owners = {}  # the region of what a variable of the function before is bound to
    for block in merged["main"].body.blocks:
        for b in block.bindings:
            callee = merged.functions.get(b.value.op.name) if isinstance(b.value, graph.Call) and isinstance(b.value.op, graph.GlobalVar) else None
            if callee is not None and "Codegen" in callee.attrs:
                codes = {str(inner.value.attrs["Composite"])[0] for inner in callee.body.bindings if isinstance(inner.value, graph.Function)}
                if codes != {callee.attrs["Codegen"]}:
                    yield f"{b.value.op.name} holds {codes}"
                owners[b.var] = b.value.op.name
    calls = sum(codegen_of(fused, b.value) is not None for b in fused["main"].body.bindings)
    held = sum(isinstance(inner.value, graph.Call) and isinstance(inner.value.op, graph.Var) for b in merged["main"].body.bindings if b.var in owners
               for inner in merged[owners[b.var]].body.bindings)
    if calls != held:
        yield f"{calls} calls of composite functions became {held} in regions"
    for block in fused["main"].body.blocks:
        found = Partition(fused, block)
        if sorted(k for members in found.in_order() for k in members) != list(range(len(block.bindings))):
            yield "regions wait for each other"
        for members in found.members.values():
            if not convex(found.needs, set(members)):
                yield f"region {[block.bindings[k].var.name for k in members]} is not convex"


def convex(needs: list[set[int]], members: set[int]) -> bool:
    """Whether no path between two members leaves them: by the reachability of all pairs."""
    reach = [set(n) for n in needs]
    for found in reach:
        for j in sorted(found):
            found |= reach[j]
    others = [k for k in range(len(needs)) if k not in members]
    return not any(reach[k] & members and any(k in reach[m] for m in members) for k in others)


def canonical(mod: IRModule) -> str:
    """The values of ``main`` as nested expressions, whatever the order and the names of bindings: equal for graphs that compute the same by the
    same operators."""
    func = mod["main"]
    texts: dict[Any, str] = {p: f"%{k}" for k, p in enumerate(func.params)}
    short: dict[str, str] = {}

    def text(value: Any) -> str:
        if isinstance(value, graph.Var):
            return texts[value]
        if isinstance(value, graph.Tuple):
            made = f"({','.join(map(text, value.fields))})"
        elif isinstance(value, graph.TupleGetItem):
            return value_of_field(value)
        elif isinstance(value, graph.Constant):
            made = str(value.data.numpy().tolist())
        elif isinstance(value, graph.If):
            made = f"if {text(value.condition)} then {sequence(value.true_branch)} else {sequence(value.false_branch)}"
        elif isinstance(value, graph.Call):
            made = f"{value.op.name}({','.join(map(text, value.args))}){dict(value.attrs)}"
        else:
            made = str(value)
        return short.setdefault(made, f"<{len(made)}:{hash(made)}>")

    fields: dict[str, list[str]] = {}

    def value_of_field(value: graph.TupleGetItem) -> str:
        whole = text(value.tuple_value)
        return fields[whole][value.index] if whole in fields else f"{whole}[{value.index}]"

    def sequence(seq: graph.SeqExpr) -> str:
        for b in seq.bindings:
            texts[b.var] = text(b.value)
            if isinstance(b.value, graph.Tuple):
                fields[texts[b.var]] = [text(f) for f in b.value.fields]
        return text(seq.body)

    return sequence(func.body)
