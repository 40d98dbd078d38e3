# SPDX-License-Identifier: Apache-2.0
"""Operands whose sizes do not agree: an error, and no byte outside of any tensor; where they agree, the result of ONNX's reference.

All dimensions of the models are symbolic and distinct, so only the run can tell; in half of the attempts one of them is another than the
others ask for. Memory and processes are those of ``indices``. ``size_calls`` does the same to every operator, with sizes of any kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .index_subjects import Case, Subject
from .indices import in_processes, main

OPERANDS = {
    "MatMul": ("m,k k,n", {}), "Gemm": ("m,k k,n m,n", {}), "Add": ("m,n m,n", {}), "Det": ("b,n,n", {}), "com.microsoft.Inverse": ("n,n", {}),
    "Conv": ("b,c,h,w o,c,3,3 o", {}), "ConvTranspose": ("b,c,h,w c,o,2,2 o", {}), "GridSample": ("b,c,h,w b,p,q,2", {}),
    "DeformConv": ("b,c,h,w o,c,3,3 b,18,h,w o b,9,h,w", {"pads": [1, 1, 1, 1]}),
    "DepthToSpace": ("b,4c,h,w", {"blocksize": 2}), "SpaceToDepth": ("b,c,2h,2w", {"blocksize": 2}),
    "LayerNormalization": ("m,n n n", {}), "BatchNormalization": ("b,c,h c c c c", {}), "InstanceNormalization": ("b,c,h c c", {}),
    "RNN": ("t,b,i 1,h,i 1,h,h 1,2h - 1,b,h", {}), "GRU": ("t,b,i 1,3h,i 1,3h,h 1,6h - 1,b,h", {}),
    "LSTM": ("t,b,i 1,4h,i 1,4h,h 1,8h - 1,b,h 1,b,h 1,3h", {}),
}
"""Operators, the sizes of their operands (a letter is a size, 4h is four times h, a number is fixed, - is no operand), attributes."""
EQUATIONS = {"i,i->": "i i", "ij,ij->": "i,j i,j", "ii->": "i,i", "ii,i->": "i,i i", "ij,j->": "i,j j", "bij,bjk->": "b,i,j b,j,k",
             "ij,jk,kl->": "i,j j,k k,l", "ij,jk->ik": "i,j j,k", "ii->i": "i,i", "bi,bj,b->ij": "b,i b,j b"}


def attack(count: int, seed: int) -> Iterator[str]:
    """``count`` attempts, most of them over all operators and a few over those of which the reference says which sizes are wrong."""
    yield from in_processes(__name__, count // 4, seed)
    yield from in_processes(f"{__package__}.size_calls", count - count // 4, seed)


def subjects() -> list[Subject]:
    """Every operator."""
    found = [_subject(name, name, *what) for name, what in OPERANDS.items()]
    return found + [_subject(f"Einsum {e}", "Einsum", operands, {"equation": e}) for e, operands in EQUATIONS.items()]


def _subject(name: str, operator: str, operands: str, attrs: dict[str, Any]) -> Subject:
    dims = [None if o == "-" else o.split(",") for o in operands.split()]
    proto = _model(operator, dims, attrs)

    def build() -> Any:
        import roundel as rd

        return rd.compile(proto, threads=1)

    return Subject(name, build, _cases(proto, operator, [d for d in dims if d is not None]))


def _model(operator: str, dims: list[list[str] | None], attrs: dict[str, Any]) -> Any:
    from onnx import helper

    domain, _, kind = operator.rpartition(".")
    shapes = {f"i{k}": [int(d) if d.isdigit() else f"d{k}_{axis}" for axis, d in enumerate(ds)] for k, ds in enumerate(dims) if ds is not None}
    sizes = {"hidden_size": 4} if kind in ("RNN", "GRU", "LSTM") else {}
    out = "y" if kind not in ("RNN", "GRU", "LSTM") else ""
    node = helper.make_node(kind, [f"i{k}" if d is not None else "" for k, d in enumerate(dims)], [out] if out else ["", "y"], "node", domain=domain,
                            **attrs, **sizes)
    result = helper.make_empty_tensor_value_info("y")
    result.type.tensor_type.elem_type = 1
    inputs = [helper.make_tensor_value_info(name, 1, shape) for name, shape in shapes.items()]
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(helper.make_graph([node], "g", inputs, [result]), opset_imports=opsets, ir_version=10)


def _cases(proto: Any, operator: str, dims: list[list[str]]) -> Callable[[np.random.Generator], Case]:
    letters = sorted({d.lstrip("0123456789") for ds in dims for d in ds} - {""})

    def case(rng: np.random.Generator) -> Case:
        sizes = {c: int(rng.integers(3, 9)) for c in letters} | ({"h": 4} if operator in ("RNN", "GRU", "LSTM") else {})
        shapes = [[_size(d, sizes) for d in ds] for ds in dims]
        wrong = False
        if rng.random() < 0.5:
            places = [(k, axis) for k, ds in enumerate(dims) for axis, d in enumerate(ds) if _is_bound(d, dims)]
            k, axis = places[rng.integers(len(places))]
            other = int(rng.choice([1, shapes[k][axis] - 1, shapes[k][axis] + 1, shapes[k][axis] + 7, 59]))
            wrong = other != shapes[k][axis] and not (operator in ("Add", "Gemm") and 1 in (other, shapes[k][axis]))
            shapes[k][axis] = other if wrong else shapes[k][axis]
        inputs = tuple(rng.standard_normal(s).astype(np.float32) for s in shapes)
        inputs = tuple(np.abs(a) + 1 for a in inputs) if operator == "BatchNormalization" else inputs

        def reference() -> Any:
            if wrong:
                raise ValueError("the sizes do not agree")
            if operator == "com.microsoft.Inverse":
                return np.linalg.inv(inputs[0].astype(np.float64))
            from onnx.reference import ReferenceEvaluator

            return ReferenceEvaluator(proto).run(None, {i.name: a for i, a in zip(proto.graph.input, inputs, strict=True)})[0]

        return inputs, reference

    return case


def _size(dim: str, sizes: dict[str, int]) -> int:
    letter = dim.lstrip("0123456789")
    return int(dim) if not letter else int(dim[: -len(letter)] or 1) * sizes[letter]


def _is_bound(dim: str, dims: list[list[str]]) -> bool:
    """Whether a size is not free: its letter occurs more than once, or it is a multiple."""
    letter = dim.lstrip("0123456789")
    return bool(letter) and (dim != letter or sum(d.endswith(letter) for ds in dims for d in ds) > 1)


if __name__ == "__main__":
    main(subjects())
