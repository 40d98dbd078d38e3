# SPDX-License-Identifier: Apache-2.0
"""Random graphs compared with ONNX's reference: as the sizes are, and with sizes known only when the model runs."""

from __future__ import annotations

import numpy as np
import onnx

from roundel.driver import compile_module
from roundel.embed.onnx.conformance import run
from roundel.frontend.onnx import from_onnx
from roundel.ir.errors import RoundelError

from . import operators  # noqa: F401  (fills the table of steps)
from .generator import Generator

TOLERANCE = {"float16": 2e-2}


def check_graph(seed: int) -> str:
    """"right", or "empty" where nothing fitted; raises AssertionError when a result differs from the reference."""
    made = Generator(seed)
    model = made.model()
    if not model.graph.output:
        return "empty"
    compare(seed, made, model, run(model, list(made.inputs.values())))
    return "right"


def check_symbolic(seed: int) -> str:
    """The same with every dimension of the inputs symbolic: right, or refused (sizes that have to be known)."""
    made = Generator(seed)
    model = made.model()
    if not model.graph.output:
        return "empty"
    open_ = onnx.ModelProto()
    open_.CopyFrom(model)
    for info in open_.graph.input:
        for k, dim in enumerate(info.type.tensor_type.shape.dim):
            dim.dim_param = f"{info.name}_{k}"
    del open_.graph.output[:]
    open_.graph.output.extend(onnx.helper.make_empty_tensor_value_info(o.name) for o in model.graph.output)
    try:
        main = compile_module(from_onnx(open_)).load()["main"]
    except RoundelError:
        return "refused"
    try:
        out = main(*made.inputs.values())
    except RuntimeError as error:  # sizes that broadcast here but were taken to be equal: an error says so
        if any(text in str(error) for text in ("is not", "must be", "match_cast")):
            return "refused"
        raise
    compare(seed, made, model, [out] if len(model.graph.output) == 1 else list(out))
    return "right"


def compare(seed: int, made: Generator, model: onnx.ModelProto, results: list[np.ndarray]) -> None:
    """Raises AssertionError that names the first output that differs."""
    narrow = any(v.dtype == np.float16 for v in made.values.values())
    for got, info in zip(results, model.graph.output, strict=True):
        want = made.values[info.name]
        label = f"seed {seed}: {info.name}"
        assert got.dtype == want.dtype and got.shape == want.shape, f"{label} is {got.dtype}{got.shape}, not {want.dtype}{want.shape}"
        if want.dtype.kind != "f":
            np.testing.assert_array_equal(got, want, err_msg=label)
            continue
        tolerance = 2e-2 if narrow else 5e-4
        np.testing.assert_allclose(got.astype("f8"), want.astype("f8"), rtol=tolerance, atol=tolerance * max(1.0, float(np.abs(want).max(initial=0)) / 100),
                                   err_msg=label)
