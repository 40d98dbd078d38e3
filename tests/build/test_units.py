# SPDX-License-Identifier: Apache-2.0
"""Kernels as units: whole, or a unit for each function, of which candidates of a search have most in common."""

import re

import numpy as np
import pytest

from roundel import te
from roundel.build.build import compile_module, lowered, machine_spec
from roundel.build.compiler import compile_again
from roundel.build.units import Units
from roundel.codegen import backend_of
from roundel.ir import IRModule, options, tir
from roundel.schedule import Schedule
from roundel.target import Target


def stages(last, size=203):
    """A kernel of three parallel stages in turn, the last of which is given; the middle one has no vectors."""
    x = te.placeholder((size,), "float32", "X")
    a = te.compute((size,), lambda i: te.exp(x[i]), "A")
    b = te.compute((size,), lambda i: a[size - 1 - i] * 0.5, "B")
    sch = Schedule(te.create_prim_func([x, te.compute((size,), lambda i: last(b[i]), "C")]))
    for name in ("A", "B", "C"):
        loop = sch.get_loops(sch.get_block(name))[0]
        if name == "B":
            sch.parallel(loop)
            continue
        outer, inner = sch.split(loop, [None, 16])
        sch.parallel(outer)
        sch.vectorize(inner)
    return sch.func.with_attr("global_symbol", "kernel")


def module(func):
    return IRModule({"kernel": func}, {"target": Target.host()})


def functions(text, symbol):
    """The lines of each function of an assembly text, without what numbers it within its text."""
    found = re.findall(rf"^({re.escape(symbol)}[\w.]*):[^\n]*\n(.*?)^\.Lfunc_end", text, re.M | re.S)
    return {name.replace(symbol, "K"): re.sub(r"\.L([A-Z]+)\d+_|#.*", r".L\1_", body.replace(symbol, "K")) for name, body in found}


def test_functions_apart_have_the_code_that_they_have_together():
    spec = machine_spec(Target.host())
    backend = backend_of(spec.backend)
    mod = lowered(module(stages(lambda v: tir.max_(v, 0.0) + 1.0)))
    (whole,) = Units(mod, spec).kernels()
    parts = list(Units(mod, spec, numbered=True).kernels())
    together = functions(backend.assembly(whole.text, spec, whole.pipeline), whole.symbol)
    apart = {}
    for part in parts:
        apart |= functions(backend.assembly(part.text, spec, part.pipeline), part.symbol)
    assert len(parts) == 4 and len(apart) == 7 and apart == together  # each task is a function and what takes its arguments apart


@pytest.mark.parametrize("last", [lambda v: v + 3.0, lambda v: tir.max_(v, 0.25), te.exp], ids=["sum", "maximum", "exp"])
def test_what_candidates_have_in_common_is_compiled_once(last, request):
    with options.override(cache=False):
        compile_module(module(stages(lambda v: v * v)), accept=lambda digests: None)
        before = compile_again.cache_info()
        made = compile_module(module(stages(last)), accept=lambda digests: None)
        after = compile_again.cache_info()
    assert after.misses - before.misses <= 2 and after.hits - before.hits >= 3  # its own last stage, and the host functions where they differ
    x, out = np.linspace(-2, 2, 203, dtype="float32"), np.empty(203, "float32")
    made.load(threads=2)["kernel"](x, out)
    value = np.exp(x.astype("float64"))[::-1] * 0.5
    wanted = {"sum": value + 3, "maximum": np.maximum(value, 0.25), "exp": np.exp(value)}
    np.testing.assert_allclose(out, wanted[request.node.callspec.id], rtol=1e-5)
