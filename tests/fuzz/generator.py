# SPDX-License-Identifier: Apache-2.0
"""Random valid ONNX graphs: values grow one operator at a time, each computed by ONNX's reference as it is added."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes  # noqa: F401  (names of narrow types for NumPy)
import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

OPSET = 21
DIMS = (0, 1, 1, 2, 3, 4, 5, 7, 11, 13)
DTYPES = ("float32",) * 8 + ("float64", "float64", "float16", "int32", "int64", "int64", "int8", "uint8", "bool")
MOST = 4096
"""Elements of the largest value, and the magnitude that values stay below."""

Step = Callable[["Generator"], Any]
STEPS: list[Step] = []
"""What may be done to a graph; each adds an operator to it, or does nothing where nothing fits."""


def step(times: int = 1) -> Callable[[Step], Step]:
    """Register a step; ``times``: how often relative to others."""
    def add(fn: Step) -> Step:
        STEPS.extend([fn] * times)
        return fn

    return add


class Generator:
    """One graph of a seed: values by name with the arrays that they are on the example inputs.

    ``exact`` names the values that do not depend on how something was rounded: what jumps (rounding, comparing, sorting) is applied
    to others only where they keep a distance from the jump.
    """

    def __init__(self, seed: int, opset: int = OPSET) -> None:
        self.rng = np.random.default_rng(seed)
        self.opset = opset
        self.nodes: list[onnx.NodeProto] = []
        self.known: dict[str, np.ndarray] = {}
        self.constants: dict[str, np.ndarray] = {}
        self.inputs: dict[str, np.ndarray] = {}
        self.values: dict[str, np.ndarray] = {}
        for k in range(self.integer(1, 4)):
            self.inputs[f"x{k}"] = self.array(self.shape(0, 5), self.choose(DTYPES))
        self.values.update(self.inputs)
        self.exact = set(self.inputs)

    # ------------------------------------------------------------ choices

    def choose(self, items: Sequence[Any]) -> Any:
        return items[int(self.rng.integers(0, len(items)))]

    def integer(self, low: int, high: int) -> int:
        """An integer of ``low`` to ``high - 1``."""
        return int(self.rng.integers(low, high))

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def shape(self, least: int, most: int) -> tuple[int, ...]:
        """Sizes of at least ``least`` and fewer than ``most`` dimensions; few of them are large."""
        out: list[int] = []
        for _ in range(self.integer(least, most)):
            d = self.choose(DIMS)
            out.append(d if np.prod([max(v, 1) for v in out], initial=1) * d <= MOST // 4 else 1)
        return tuple(out)

    def array(self, shape: Sequence[int], dtype: str) -> np.ndarray:
        """Random content; floats are multiples of 1/8, so that simple sums of them are exact."""
        if dtype == "bool":
            return self.rng.random(tuple(shape)) < 0.5
        if dtype.startswith("float"):
            return (np.round(self.rng.normal(size=tuple(shape)) * 16) / 8).astype(dtype)
        return self.rng.integers(0 if dtype.startswith("u") else -5, 6, size=tuple(shape)).astype(dtype)

    def pick(self, test: Callable[[np.ndarray], bool] = lambda v: True, jumps: bool = False) -> str | None:
        """A value that passes the test, recent ones preferred; with ``jumps`` only exact ones and those with a distance from integers."""
        names = [n for n, v in self.values.items() if test(v) and (not jumps or n in self.exact or _distant(v))]
        if not names:
            return None
        return names[-1 - min(int(self.rng.exponential(4)), len(names) - 1)] if self.chance(0.7) else self.choose(names)

    def axis(self, name: str, signed: bool = True) -> int:
        n = self.values[name].ndim
        return self.integer(-n if signed else 0, n)

    # ------------------------------------------------------------ nodes

    def constant(self, value: Any, dtype: Any = None) -> str:
        """The name of a new constant."""
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(value, dtype)
        return name

    def emit(self, op: str, inputs: Sequence[str], outputs: int = 1, exact: bool = False, **attributes: Any) -> tuple[str, ...]:
        """Append a node if the reference can compute it and its values are finite and small; the names of its outputs, () if not.
        ``exact``: the operator rounds nothing."""
        names = tuple(f"v{len(self.nodes)}_{k}" for k in range(outputs))
        node = helper.make_node(op, list(inputs), list(names), **attributes)
        feeds = {n: self.values[n] if n in self.values else self.constants[n] for n in inputs if n}
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                results = [np.asarray(v) for v in ReferenceEvaluator(node, opsets={"": self.opset}).run(None, feeds)]
            except Exception:  # the reference refuses this combination, so it is no valid graph
                return ()
        if not all(_moderate(v) for v in results):
            return ()
        self.nodes.append(node)
        self.values.update(zip(names, results, strict=True))
        if exact and all(n in self.exact or n in self.constants or not n for n in inputs):
            self.exact.update(names)
        return names

    def model(self) -> onnx.ModelProto:
        """A model of 5 to 30 operators whose outputs are all values that nothing uses."""
        for _ in range(self.integer(5, 31)):
            self.choose(STEPS)(self)
        used = {i for n in self.nodes for i in n.input}
        outputs = [o for n in self.nodes for o in n.output if o not in used]
        constants = [numpy_helper.from_array(v, n) for n, v in self.constants.items() if n in used]
        graph = helper.make_graph(self.nodes, "fuzz", [self._info(n) for n in self.inputs], [self._info(n) for n in outputs], constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])

    def _info(self, name: str) -> onnx.ValueInfoProto:
        v = self.values[name]
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)


def _distant(v: np.ndarray) -> bool:
    """Whether all elements are away from multiples of 1/2, and from each other."""
    if v.dtype.kind != "f":
        return v.dtype.kind in "iub"
    wide = v.astype(np.float64).reshape(-1)
    gaps = np.diff(np.sort(wide))
    return bool((np.abs(wide * 2 - np.round(wide * 2)) > 0.02).all() and (gaps > 1e-2).all())


def _moderate(v: np.ndarray) -> bool:
    if v.size > MOST or v.dtype.kind not in "fiub":
        return False
    return v.dtype.kind == "b" or bool(np.isfinite(v).all() and np.abs(v.astype(np.float64)).max(initial=0) < MOST)
