# SPDX-License-Identifier: Apache-2.0
"""Small graph functions that the tests of passes share, and the check that a pass keeps results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from roundel.builder import BlockBuilder
from roundel.interp import interpret
from roundel.ir import IRModule, graph


def function(infos: Sequence[graph.TensorInfo], body: Callable[..., Any]) -> IRModule:
    """A module with ``main(x0, x1, ...)``; ``body(bb, *params)`` emits and returns the result."""
    bb = BlockBuilder()
    params = [graph.Var(f"x{k}", info) for k, info in enumerate(infos)]
    with bb.function("main", params):
        with bb.dataflow():
            result = bb.emit_output(body(bb, *params))
        bb.emit_func_output(result)
    return bb.get()


def same_results(before: IRModule, after: IRModule, *arrays: np.ndarray, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    """Both modules compute the same on these arrays; ``after`` may be a host function."""
    want = _flat(interpret(before)["main"](*arrays))
    main = after["main"]
    if main.attrs.get("kind") == "host":
        got = [np.full_like(w, np.nan) if w.dtype.kind == "f" else np.zeros_like(w) for w in want]
        interpret(after)["main"](*arrays, *got)
    else:
        got = _flat(interpret(after)["main"](*arrays))
    for w, g in zip(want, got, strict=True):
        np.testing.assert_allclose(g, w, rtol=rtol, atol=atol)


def _flat(value: Any) -> list[np.ndarray]:
    return [a for v in value for a in _flat(v)] if isinstance(value, tuple | list) else [np.asarray(value)]


def calls(mod: IRModule) -> list[str]:
    """Names of what ``main`` calls, in order."""
    out = []
    for binding in mod["main"].body.bindings:
        if isinstance(binding.value, graph.Call):
            op = binding.value.op
            name = getattr(op, "name", str(op))
            out.append(binding.value.args[0].name if name == "call_tir" else name)
    return out
