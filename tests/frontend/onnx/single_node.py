# SPDX-License-Identifier: Apache-2.0
"""Models of one node, run by Roundel (interpreted, and compiled where sizes are symbolic) and by ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

from roundel import api
from roundel.frontend.onnx import from_onnx
from roundel.runtime import boundary

DOMAINS = {"": 21, "com.microsoft": 1, "ai.onnx.ml": 5}


Names = Mapping[int, Sequence[str | None]]


def model(op: str, arrays: Sequence[Any], outputs: int | Sequence[int] = 1, *, domain: str = "", symbolic: Names | None = None,
          version: int | None = None, out_types: Sequence[int] | None = None, constant: Sequence[int] = (), **attrs: Any) -> onnx.ModelProto:
    """One node on these arrays (None: an absent input); those at ``constant`` are initializers.

    ``outputs`` is how many results it has, or the indices of those that are wanted; ``symbolic`` maps inputs to the names of
    their open dimensions.
    """
    names = ["" if a is None else f"x{i}" for i, a in enumerate(arrays)]
    infos, weights = [], []
    for i, (name, a) in enumerate(zip(names, arrays, strict=True)):
        if a is None:
            continue
        kind = onnx.TensorProto.STRING if a.dtype.kind in "OU" else helper.np_dtype_to_tensor_dtype(a.dtype)
        if i in constant:
            weights.append(onnx.numpy_helper.from_array(a, name))
            continue
        shape = [n if d is None else d for n, d in zip(a.shape, (symbolic or {}).get(i, a.ndim * [None]), strict=True)]
        infos.append(helper.make_tensor_value_info(name, kind, shape))
    wanted = range(outputs) if isinstance(outputs, int) else outputs
    outs = [f"y{i}" if i in wanted else "" for i in range(max(wanted) + 1)]
    named = [n for n in outs if n]
    out_infos = [helper.make_empty_tensor_value_info(n) for n in named] if out_types is None else [
        helper.make_tensor_value_info(n, t, None) for n, t in zip(named, out_types, strict=True)]
    node = helper.make_node(op, names, outs, domain=domain, **attrs)
    imports = [helper.make_opsetid(d, version if version and d == domain else v) for d, v in DOMAINS.items()]
    return helper.make_model(helper.make_graph([node], "one", infos, out_infos, weights), opset_imports=imports, ir_version=10)


def expected(proto: onnx.ModelProto, arrays: Sequence[Any]) -> list[Any]:
    """What ONNX Runtime gives, without rewriting the graph."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip([i.name for i in session.get_inputs()], arrays, strict=True)))


def check(op: str, *arrays: Any, outputs: int | Sequence[int] = 1, tolerance: float = 2e-5, constant: Sequence[int] = (),
          rows: Any = None, symbolic: Names | None = None, **attrs: Any) -> list[Any]:
    """Roundel's results are those of ONNX Runtime; ``rows`` picks what is compared of each result."""
    given = [a for i, a in enumerate(arrays) if a is not None and i not in constant]
    proto = model(op, arrays, outputs, constant=constant, symbolic=symbolic, **attrs)
    want = expected(proto, given)
    mod = from_onnx(proto)
    notes = mod["main"].attrs
    got = api.interpret(mod)["main"](*boundary.take(given, notes))
    results = boundary.give(list(got) if isinstance(got, tuple) else [got], given, notes)
    _compare(op, results, want, tolerance, rows)
    if symbolic:
        got = api.compile(proto)(*given)
        _compare(op, list(got) if isinstance(got, tuple) else [got], want, tolerance, rows)
    return results


def _compare(op: str, got: Sequence[Any], want: Sequence[Any], tolerance: float, rows: Any) -> None:
    assert len(got) == len(want)
    for k, (g, w) in enumerate(zip(map(np.asarray, got), map(np.asarray, want), strict=True)):
        assert g.dtype == w.dtype and g.shape == w.shape, f"{op} result {k}: {g.dtype}{g.shape}, not {w.dtype}{w.shape}"
        g, w = (g, w) if rows is None else (rows(k, g), rows(k, w))
        if w.dtype.kind in "OU":
            assert g.tolist() == w.tolist()
        else:
            np.testing.assert_allclose(g.astype(np.float64), w.astype(np.float64), tolerance, tolerance, err_msg=f"{op} result {k}")
