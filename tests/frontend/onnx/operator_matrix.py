# SPDX-License-Identifier: Apache-2.0
"""The operator tester: operators x element types x sizes (fixed, symbolic, none at all) x paths (interpreted, compiled) against
ONNX's reference implementation, special values among the inputs.

    python -m tests.frontend.onnx.operator_matrix [--compiled] [--time] [Operator ...]

runs everything and prints a table of operators and types; ``--time`` adds microseconds per call of the compiled operator.
The tests run it interpreted, and a sample compiled.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator

from roundel import api
from roundel.frontend.onnx import from_onnx
from roundel.ir.errors import UnsupportedError

OPSET = 25
FLOATS = ("float16", "bfloat16", "float32", "float64")
INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NUMBERS = (*FLOATS, *INTS)
TOLERANCE = {"float16": 4e-3, "bfloat16": 2e-2, "float32": 3e-5, "float64": 1e-9}


@dataclass(frozen=True)
class Case:
    """``operands`` are shapes (symbolic sizes by name), or arrays that every type has; ``fixed`` says which of them are constants."""

    types: Sequence[str]
    operands: Sequence[Any] = (("n", 5),)
    attrs: dict[str, Any] = field(default_factory=dict)
    low: float = -4.0
    special: bool = True
    fixed: Sequence[int] = ()


def _cases() -> dict[str, Case]:
    pair = (("n", 5), (5,))
    axes = np.array([1], np.int64)
    out = {op: Case(FLOATS, low=-1.0 if op in ("Acos", "Asin", "Atanh") else 1.0 if op == "Acosh" else -4.0) for op in (
        "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cos", "Cosh", "Elu", "Exp", "LeakyRelu", "Log", "Mish",
        "Reciprocal", "Selu", "Sigmoid", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Tan", "Tanh", "Ceil", "Floor", "Round", "IsNaN")}
    out |= {op: Case(FLOATS[:3]) for op in ("Erf", "Gelu", "HardSigmoid", "HardSwish")}  # the reference is not exact in float64
    out |= {op: Case(NUMBERS) for op in ("Abs", "Neg", "Sign", "Relu", "Identity")}
    out |= {op: Case(NUMBERS, pair) for op in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")}
    out |= {op: Case(INTS, pair) for op in ("Mod", "BitwiseAnd", "BitwiseOr", "BitwiseXor")}
    out |= {op: Case(("bool",), pair) for op in ("And", "Or", "Xor")}
    out |= {op: Case(NUMBERS, (("n", 5), axes), special=False, fixed=(1,)) for op in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd")}
    out |= {op: Case(FLOATS, (("n", 5), axes), special=False, fixed=(1,)) for op in (
        "ReduceMean", "ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare")}
    out |= {
        "BitwiseNot": Case(INTS), "Not": Case(("bool",)), "IsInf": Case(("float16", "float32", "float64")),
        "Pow": Case(("float32", "float64", "int32", "int64"), pair, low=0.0),
        "BitShift": Case(("uint8", "uint16", "uint32", "uint64"), pair, {"direction": "LEFT"}, special=False),
        "Clip": Case(NUMBERS, (("n", 5), (), ()), special=False), "Where": Case(NUMBERS, (np.array([True, False, True, True, False]), ("n", 5), (5,))),
        "MatMul": Case(("float16", "bfloat16", "float32", "float64", "int32", "int64"), (("n", 3, 5), (5, 7)), special=False),
        "Gemm": Case(("float32", "float64"), (("n", 5), (7, 5), (7,)), {"transB": 1, "alpha": 0.5}, special=False),
        "Softmax": Case(FLOATS, special=False), "LogSoftmax": Case(("float16", "float32", "float64"), special=False), "Hardmax": Case(FLOATS, special=False),
        "CumSum": Case(("float32", "float64", "int32", "int64"), (("n", 5), np.array(1, np.int64)), special=False, fixed=(1,)),
        "ArgMax": Case(("float32", "float64", "int32", "uint8", "int64"), (("n", 5),), {"axis": 1, "keepdims": 0}, special=False),
        "Transpose": Case((*NUMBERS, "bool"), (("n", 5, 3),), {"perm": [2, 0, 1]}), "Concat": Case((*NUMBERS, "bool"), (("n", 5), ("n", 3)), {"axis": 1}),
        "Slice": Case((*NUMBERS, "bool"), (("n", 7), np.array([5]), np.array([0]), np.array([1]), np.array([-2])), fixed=(1, 2, 3, 4)),
        "Gather": Case((*NUMBERS, "bool"), (("n", 5), np.array([4, 0, -1])), {"axis": 1}), "Flatten": Case((*NUMBERS, "bool"), (("n", 5, 3),)),
        "Expand": Case((*NUMBERS, "bool"), ((1, 5), np.array([3, 5])), fixed=(1,)), "Tile": Case((*NUMBERS, "bool"), (("n", 5), np.array([2, 1])), fixed=(1,)),
        "Pad": Case(NUMBERS, (("n", 5), np.array([0, 1, 0, 2])), fixed=(1,)), "Trilu": Case((*NUMBERS, "bool"), ((4, 5),)),
        "Unsqueeze": Case((*NUMBERS, "bool"), (("n", 5), np.array([1])), fixed=(1,)), "ReverseSequence": Case(NUMBERS, ((5, 3), np.array([1, 5, 3]))),
    }
    return out


CASES = _cases()
CASTS = (*NUMBERS, "bool", "float8_e4m3fn", "float8_e5m2", "int4", "uint4")


def numpy_type(name: str) -> np.dtype:
    """The NumPy (or ml_dtypes) type of this name."""
    return np.dtype(getattr(ml_dtypes, name, None) or name)


def array(shape: tuple[int, ...], dtype: str, low: float, special: bool, seed: int) -> np.ndarray:
    """Random elements; with ``special`` infinities, NaN and zeros among floats, the ends of the range and zeros among integers."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    kind = numpy_type(dtype)
    if dtype in INTS:
        ends = np.iinfo(kind)
        x = rng.integers(max(ends.min, -9), 10, shape).astype(kind)
        odd = [0, ends.min, ends.max]
    else:
        x = rng.uniform(low, max(4.0, low) if low > -1 else -low, shape).astype(kind)
        odd = [0.0, -0.0, np.inf, -np.inf, np.nan]
    if special and x.size >= 5:
        flat = x.reshape(-1)
        flat[rng.choice(x.size, len(odd), replace=False)] = np.asarray(odd, kind)
    return x


def _shape(dims: Sequence[Any], n: int) -> tuple[int, ...]:
    return tuple(n if d == "n" else d for d in dims)


def build(op: str, case: Case, dtype: str, n: int, symbolic: bool, **attrs: Any) -> tuple[onnx.ModelProto, list[np.ndarray]]:
    """A model of one node, and its inputs."""
    infos, weights, inputs = [], [], []
    names = [f"x{k}" for k in range(len(case.operands))]
    for k, (name, operand) in enumerate(zip(names, case.operands, strict=True)):
        given = isinstance(operand, np.ndarray)
        value = operand if given else array(_shape(operand, n), dtype, case.low, case.special, k)
        if k in case.fixed:
            weights.append(onnx.numpy_helper.from_array(value, name))
            continue
        dims = value.shape if given or not symbolic else tuple(operand)
        infos.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), dims))
        inputs.append(value)
    node = helper.make_node(op, names, ["y"], **case.attrs, **attrs)
    graph = helper.make_graph([node], op, infos, [helper.make_empty_tensor_value_info("y")], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=11)
    return onnx.shape_inference.infer_shapes(model), inputs


def reference(model: onnx.ModelProto, inputs: Sequence[np.ndarray]) -> np.ndarray | None:
    """What ONNX's reference gives, None where it cannot."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return ReferenceEvaluator(model).run(None, {i.name: v for i, v in zip(model.graph.input, inputs, strict=True)})[0]
        except Exception:  # its own limits
            return None


def agrees(got: Any, want: np.ndarray) -> bool:
    """Equal in type and shape, and in value up to the type's rounding."""
    got = np.asarray(got)
    if got.dtype != want.dtype or got.shape != want.shape:
        return False
    tolerance = TOLERANCE.get(str(want.dtype), 0.0)
    wide = (lambda a: a.astype(np.float64)) if want.dtype.kind not in "iub" else (lambda a: a)
    with np.errstate(all="ignore"):
        return bool(np.allclose(wide(got), wide(want), tolerance, tolerance, equal_nan=True)) if tolerance else bool(np.array_equal(got, want))


def check(op: str, case: Case, dtype: str, *, compiled: bool, **attrs: Any) -> str:
    """``ok``, ``refused``, ``wrong: how``, or ``-`` where the standard or its reference has no such case."""
    symbolic = any(not isinstance(o, np.ndarray) and "n" in o for o in case.operands)
    kept: Callable[..., Any] | None = None
    verdict = "-"
    for n in (3, 1, 0) if symbolic else (3,):
        model, inputs = build(op, case, dtype, n, symbolic, **attrs)
        want = reference(model, inputs)
        if want is None:
            continue
        try:
            if kept is None:
                kept = api.compile(model) if compiled else api.interpret(from_onnx(model))["main"]
            got = kept(*inputs)
        except UnsupportedError:
            return "refused"
        if not agrees(got, want):
            return f"wrong: {op} {dtype} n={n}: {np.asarray(got).reshape(-1)[:8]} for {want.reshape(-1)[:8]} of {[v.reshape(-1)[:8] for v in inputs]}"
        verdict = "ok"
    return verdict


def casts(compiled: bool) -> dict[tuple[str, str], str]:
    """Cast from every type to every other."""
    found = {}
    for source in (*NUMBERS, "bool"):
        for target in CASTS:
            special = source not in FLOATS or target in (*FLOATS, "bool")  # what a NaN is as an integer is not defined
            case = Case((source,), low=0.0 if target.startswith("u") else -4.0, special=special)
            found[source, target] = check("Cast", case, source, compiled=compiled, to=helper.np_dtype_to_tensor_dtype(numpy_type(target)))
    return found


def main(arguments: list[str]) -> int:
    """Print the table; returns 1 when something is wrong."""
    compiled, timed = "--compiled" in arguments, "--time" in arguments
    chosen = [a for a in arguments if not a.startswith("-")] or list(CASES)
    wrong = 0
    print(f"{'operator':18}" + "".join(f"{t:>9}" for t in (*NUMBERS, "bool")))
    for op in chosen:
        row = {t: check(op, CASES[op], t, compiled=compiled) for t in CASES[op].types}
        line = "".join(f"{row.get(t, '').split(':')[0]:>9}" for t in (*NUMBERS, "bool"))
        print(f"{op:18}{line}", f"{_microseconds(op):9.1f} us" if timed else "", flush=True)
        for verdict in row.values():
            if verdict.startswith("wrong"):
                wrong += 1
                print("   ", verdict)
    if "Cast" in chosen or chosen == list(CASES):
        bad = {k: v for k, v in casts(compiled).items() if v not in ("ok", "-")}
        wrong += len(bad)
        print(f"Cast: {len(bad)} of {len(CASTS) * (len(NUMBERS) + 1)} pairs of types differ", *bad.items(), sep="\n    ")
    return int(wrong > 0)


def _microseconds(op: str) -> float:
    """Time of one call on about 2**16 elements."""
    model, inputs = build(op, CASES[op], CASES[op].types[0], 13107, True)
    run = api.compile(model)
    run(*inputs)
    start = time.perf_counter()
    for _ in range(20):
        run(*inputs)
    return (time.perf_counter() - start) / 20 * 1e6


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
