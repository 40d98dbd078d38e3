# SPDX-License-Identifier: Apache-2.0
"""Names in scripts: a module with hostile names prints as Python that parses back to an equal module and does nothing else."""

from __future__ import annotations

import builtins
import random
from collections.abc import Iterator
from typing import Any

from roundel import te
from roundel.builder import BlockBuilder
from roundel.ir import IRModule, graph, structural_equal
from roundel.ir.errors import RoundelError
from roundel.script import parse

from .attempts import attempts
from .names import hostile_name


def attack(count: int, seed: int) -> Iterator[str]:
    """``count`` modules, each with some fifteen names."""
    source = random.Random(seed)
    before = set(dir(builtins))
    for k in attempts(range(count)):
        mod = random_module(source)
        text = ""
        try:
            text = mod.script()
            text.encode()
            again = parse(text)
        except (RoundelError, SyntaxError, UnicodeError, NameError) as error:
            yield f"module {k}: {type(error).__name__}: {error}"
            continue
        if not structural_equal(mod, again):
            yield f"module {k} reads back as another module"
        for finding in fragments(mod):
            yield f"module {k}: {finding}"
        if changed := set(dir(builtins)) - before:
            yield f"module {k}: its script ran code that made {changed}"


def random_module(source: random.Random) -> IRModule:
    """A graph function that calls tensor programs and an external function; every name and text of it is hostile."""
    n = te.size_var(hostile_name(source))
    x = graph.Var(hostile_name(source), graph.TensorInfo((n, 4), "float32"))
    y = graph.Var(hostile_name(source), graph.TensorInfo((n, 4), "float32"))
    builder = BlockBuilder()
    with builder.function(hostile_name(source) or "main", [x, y], attrs={"note": hostile_name(source), hostile_name(source): [hostile_name(source)]}):
        value: Any = x
        with builder.dataflow():
            for _ in range(2):
                name = hostile_name(source)
                value = builder.emit_te(lambda a, name=name: te.compute(a.shape, lambda *i: a(*i) + 1.0, name), value, primfunc_name_hint=hostile_name(source))
            value = builder.emit(graph.Call(graph.ExternFunc(hostile_name(source)), (value, y), sinfo_args=(x.sinfo,)), hostile_name(source))
            out = builder.emit_output(value)
        builder.emit_func_output(out)
    return builder.finalize()


def fragments(mod: IRModule) -> Iterator[str]:
    """Parts print without what they belong to; each must be Python, too."""
    for func in mod.functions.values():
        for part in (func, *getattr(func, "params", ()), *getattr(getattr(func, "body", None), "blocks", ())):
            try:
                compile(part.script(), "script", "exec")
            except (SyntaxError, ValueError) as error:
                yield f"{type(part).__name__} prints as what is not Python: {error}"
