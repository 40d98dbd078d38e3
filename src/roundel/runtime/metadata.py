# SPDX-License-Identifier: Apache-2.0
"""What a built module says about its functions, for people: names, types, symbolic shapes, how results are composed.

It travels as JSON inside the built file. A *template* is an index of a flat list (inputs or outputs), or a list of
templates: ``[0, [1, 2]]`` is a pair whose second part is a pair.
"""

from __future__ import annotations

import json
from dataclasses import field
from typing import Any

from ..ir.dataclass import dataclass
from .native import COMPUTED, SCALAR, RdFunction, dtype_of

Template = int | list
BEGIN = b'{"functions":['  # of the text


@dataclass(frozen=True)
class TensorInfo:
    """A parameter or result: each dimension a number or an expression in the symbols, as ``"n"`` or ``"4 * m"``."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]
    scalar: bool = False

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}" + ("" if self.scalar else f"[{', '.join(map(str, self.shape))}]")


@dataclass(frozen=True)
class FunctionInfo:
    """One function: ``kind`` is ``graph`` (returns its results) or ``tensor`` (writes into the arrays it is given).

    ``arguments`` has one template for each positional argument. For a graph function it counts in ``inputs``; for a
    tensor program in inputs followed by outputs. ``result`` is the template of what a graph function returns.
    ``caches`` has (input, output, axis) where an output is an input with more behind it, in whose memory it can lie.
    """

    name: str
    kind: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    arguments: tuple[Template, ...]
    result: Template = 0
    names: tuple[str, ...] = ()  # of the arguments, when they are not those of the inputs
    kernels: tuple[str, ...] = ()
    caches: tuple[tuple[int, int, int], ...] = ()
    extra: dict = field(default_factory=dict, compare=False)

    def to_json(self) -> dict[str, Any]:
        """A dictionary that JSON can hold; `from_json` reads it."""

        def tensor(t: TensorInfo) -> dict[str, Any]:
            return {"name": t.name, "dtype": t.dtype, "shape": list(t.shape), **({"scalar": True} if t.scalar else {})}

        return {
            "name": self.name,
            "kind": self.kind,
            "inputs": [tensor(t) for t in self.inputs],
            "outputs": [tensor(t) for t in self.outputs],
            "arguments": list(self.arguments),
            "result": self.result,
            "names": list(self.names),
            "kernels": list(self.kernels),
            "caches": [list(c) for c in self.caches],
            "extra": self.extra,
        }

    @staticmethod
    def from_json(data: dict[str, Any]) -> FunctionInfo:
        """The inverse of `to_json`."""

        def tensor(t: dict[str, Any]) -> TensorInfo:
            return TensorInfo(t["name"], t["dtype"], tuple(t["shape"]), t.get("scalar", False))

        return FunctionInfo(
            data["name"],
            data["kind"],
            tuple(map(tensor, data["inputs"])),
            tuple(map(tensor, data["outputs"])),
            tuple(data["arguments"]),
            data["result"],
            tuple(data["names"]),
            tuple(data["kernels"]),
            tuple(tuple(c) for c in data.get("caches", ())),
            data.get("extra", {}),
        )


def dump(functions: list[FunctionInfo], **extra: Any) -> str:
    """The JSON text for ``RdLibrary.metadata``; ``extra`` (target, version, ...) is kept as it is."""
    return json.dumps({"functions": [f.to_json() for f in functions], **extra}, separators=(",", ":"))


def read(text: str) -> tuple[dict[str, FunctionInfo], dict[str, Any]]:
    """The functions by name and the rest."""
    data = json.loads(text)
    return {f["name"]: FunctionInfo.from_json(f) for f in data.pop("functions", [])}, data


def describe(native: RdFunction) -> FunctionInfo:
    """What the descriptor alone tells: a tensor program whose arguments are its inputs, then its outputs."""
    symbols = [native.symbols[i].decode() for i in range(native.num_symbols)]

    def tensor(index: int) -> TensorInfo:
        param = native.params[index]
        dims = tuple(
            d if (d := param.dims[i]) >= 0 else "?" if d == COMPUTED else symbols[-1 - d]
            for i in range(max(param.ndim, 0))
        )
        return TensorInfo(
            (param.name or b"").decode() or f"arg{index}",
            str(dtype_of(param.code, param.bits, param.lanes)),
            dims,
            param.ndim == SCALAR,
        )

    n, m = native.num_inputs, native.num_outputs
    kernels = tuple(native.kernels[i].decode() for i in range(native.num_kernels)) if native.kernels else ()
    return FunctionInfo(
        native.name.decode(),
        "tensor",
        tuple(tensor(i) for i in range(n)),
        tuple(tensor(n + i) for i in range(m)),
        tuple(range(n + m)),
        kernels=kernels,
    )
