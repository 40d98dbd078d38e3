# SPDX-License-Identifier: Apache-2.0
"""Operators that take positions from data, with random calls of them and what NumPy says: the result, or IndexError."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Inputs = tuple[Any, ...]
Case = tuple[Inputs, Callable[[], Any]]

DTYPES = ("int64", "int32", "uint8", "int8", "int16", "uint16", "uint32", "uint64")
VARIANTS = {*DTYPES, "none", "add", "mul", "max", "min", "0", "1", "linear", "nearest", "cubic", "zeros", "border", "reflection"}
_FAR = (2**31, -(2**31), 2**31 - 1, 2**32, 2**40, -(2**40), 2**63 - 1, -(2**63), 2**62, 2**64 - 1, 1000)


class Unprescribed(Exception):
    """There is no right result: only nothing outside may be touched, and an error is one of Roundel's."""


@dataclass(frozen=True)
class Subject:
    """``compile()`` gives a model for all sizes, ``case`` inputs and a function that gives the right result or raises IndexError (or ``Unprescribed``)."""

    name: str
    compile: Callable[[], Any]
    case: Callable[[np.random.Generator], Case]


# ---- random calls


def sizes(rng: np.random.Generator, count: int, most: int = 9) -> list[int]:
    """Small sizes, sometimes 0."""
    return [0 if rng.random() < 0.03 else int(rng.integers(1, most)) for _ in range(count)]


def many(rng: np.random.Generator) -> int:
    """A number of indices: few, some, or so many that vectors and tails are used."""
    return int(rng.choice([0, 1, 3, 16, 17, 33, 100, 1000]) if rng.random() < 0.5 else rng.integers(1, 70))


def data(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Numbers."""
    return rng.standard_normal(shape).astype(np.float32)


def draw(rng: np.random.Generator, shape: Sequence[int], limit: int, dtype: str = "int64", negative: bool = True) -> np.ndarray:
    """Positions below ``limit``, half of the time with one or some that are not."""
    info = np.iinfo(dtype)
    low, high = max(-limit if negative else 0, info.min), min(limit - 1, info.max)
    out = rng.integers(low, high, shape, np.dtype(dtype), endpoint=True) if low <= high else np.zeros(shape, dtype)
    if out.size and rng.random() < 0.5:
        for _ in range(int(rng.choice([1, 1, 1, 3]))):
            wrong = int(rng.choice(np.array([limit, limit + 1, -limit - 1, -1, 2 * limit, -2 * limit, *_FAR], dtype=object)))
            out.reshape(-1)[rng.integers(out.size)] = np.clip(wrong, info.min, info.max) if wrong < 2**63 or info.max >= 2**63 else info.max
    return out


def inside(i: np.ndarray, limit: int, negative: bool = True) -> np.ndarray:
    """The positions counted from the beginning; IndexError for one out of range."""
    wide = i.astype(object)
    if i.size and not ((wide >= (-limit if negative else 0)) & (wide < limit)).all():
        raise IndexError
    return np.where(wide < 0, wide + limit, wide).astype(np.int64)


# ---- references


def take(x: np.ndarray, i: np.ndarray, axis: int, negative: bool = True) -> np.ndarray:
    """Slices of x."""
    return np.take(x, inside(i, x.shape[axis], negative), axis) if i.size else np.zeros((*x.shape[:axis], *i.shape, *x.shape[axis + 1:]), x.dtype)


def gather_elements(x: np.ndarray, i: np.ndarray, axis: int, negative: bool = True) -> np.ndarray:
    """Elements of x; the other dimensions of the indices may be smaller."""
    if i.size and any(a > b for k, (a, b) in enumerate(zip(i.shape, x.shape, strict=True)) if k != axis):
        raise IndexError
    at = list(np.indices(i.shape, sparse=True))
    at[axis] = inside(i, x.shape[axis], negative)
    return x[tuple(at)] if i.size else np.zeros(i.shape, x.dtype)


def gather_nd(x: np.ndarray, i: np.ndarray, batch: int = 0) -> np.ndarray:
    """Slices at tuples of positions."""
    if any(a > b for a, b in zip(i.shape[:batch], x.shape, strict=False)):
        raise IndexError
    columns = [inside(i[..., k], x.shape[batch + k]) for k in range(i.shape[-1])]
    out = np.zeros((*i.shape[:-1], *x.shape[batch + i.shape[-1]:]), x.dtype)
    for at in np.ndindex(*i.shape[:-1]):
        out[at] = x[(*at[:batch], *(c[at] for c in columns))]
    return out


JOIN: dict[str, Callable[[Any, Any], Any]] = {"none": lambda old, new: new, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def scatter_elements(x: np.ndarray, i: np.ndarray, u: np.ndarray, axis: int, join: str = "none", negative: bool = True) -> np.ndarray:
    """x changed one element after another."""
    if any(a > b for k, (a, b) in enumerate(zip(i.shape, x.shape, strict=True)) if k != axis):
        raise ValueError
    out, at_axis = x.copy(), inside(i, x.shape[axis], negative)
    for at in np.ndindex(*i.shape):
        there = (*at[:axis], at_axis[at], *at[axis + 1:])
        out[there] = JOIN[join](out[there], u[at])
    return out


def scatter_nd(x: np.ndarray, i: np.ndarray, u: np.ndarray, join: str = "none") -> np.ndarray:
    """x changed one slice after another."""
    out, columns = x.copy(), [inside(i[..., k], x.shape[k]) for k in range(i.shape[-1])]
    for at in np.ndindex(*i.shape[:-1]):
        there = tuple(c[at] for c in columns)
        out[there] = JOIN[join](out[there], u[at])
    return out


# ---- Roundel's operators, with indices of every type


def _graph(name: str, infos: Sequence[tuple[tuple[Any, ...], str]], **attrs: Any) -> Callable[[], Any]:
    def build() -> Any:
        import roundel as rd
        from roundel.builder import BlockBuilder
        from roundel.ir import graph, tir
        from roundel.ir.dtype import INT64
        from roundel.ops import make

        known: dict[str, Any] = {}
        dim = lambda d: known.setdefault(d, tir.Var(d, INT64, True)) if isinstance(d, str) else d
        params = [graph.Var(f"x{k}", graph.TensorInfo(tuple(map(dim, shape)), dtype)) for k, (shape, dtype) in enumerate(infos)]
        bb = BlockBuilder()
        with bb.function("main", params):
            bb.emit_func_output(bb.emit(make(name, *params, **attrs)))
        return rd.compile(bb.get())

    return build


def _of_type(dtype: str) -> list[Subject]:
    def take_case(rng: np.random.Generator) -> Case:
        n, d = sizes(rng, 2, 200 if rng.random() < 0.2 else 9)
        x, i = data(rng, n, d), draw(rng, (many(rng),), n, dtype)
        return (x, i), lambda: take(x, i, 0)

    def elements_case(rng: np.random.Generator) -> Case:
        n, m = sizes(rng, 2, 40)
        p, q = (int(rng.integers(0, v + 1)) if rng.random() < 0.9 else v + 1 for v in (n, m))
        x, i = data(rng, n, m), draw(rng, (p, q), m, dtype)
        return (x, i), lambda: gather_elements(x, i, 1)

    def nd_case(rng: np.random.Generator) -> Case:
        n, m, d = sizes(rng, 3)
        k = many(rng)
        x, i = data(rng, n, m, d), np.stack([draw(rng, (k,), v, dtype) for v in (n, m)], 1)
        return (x, i), lambda: gather_nd(x, i)

    def scatter_case(rng: np.random.Generator) -> Case:
        n, m = sizes(rng, 2)
        p, q = int(rng.integers(0, n + 1)), int(rng.integers(0, 30))
        x, i, u = data(rng, n, m), draw(rng, (p, q), m, dtype), data(rng, p, q)
        return (x, i, u), lambda: scatter_elements(x, i, u, 1, "add")

    def scatter_nd_case(rng: np.random.Generator) -> Case:
        n, m, d = sizes(rng, 3)
        k = many(rng)
        x, i, u = data(rng, n, m, d), np.stack([draw(rng, (k,), v, dtype) for v in (n, m)], 1), data(rng, k, d)
        return (x, i, u), lambda: scatter_nd(x, i, u)

    f = "float32"
    return [
        Subject(f"take {dtype}", _graph("take", [(("n", "d"), f), (("k",), dtype)], axis=0), take_case),
        Subject(f"gather_elements {dtype}", _graph("gather_elements", [(("n", "m"), f), (("p", "q"), dtype)], axis=1), elements_case),
        Subject(f"gather_nd {dtype}", _graph("gather_nd", [(("n", "m", "d"), f), (("k", 2), dtype)]), nd_case),
        Subject(f"scatter_elements {dtype}", _graph("scatter_elements", [(("n", "m"), f), (("p", "q"), dtype), (("p", "q"), f)], axis=1, reduction="add"),
                scatter_case),
        Subject(f"scatter_nd {dtype}", _graph("scatter_nd", [(("n", "m", "d"), f), (("k", 2), dtype), (("k", "d"), f)]), scatter_nd_case),
    ]


def subjects() -> list[Subject]:
    """All of them, in an order that stays."""
    from . import index_caches, index_coordinates, index_models

    models = (*index_models.onnx_subjects(), *index_models.torch_subjects(), *index_caches.subjects(), *index_coordinates.subjects())
    return [*(s for dtype in DTYPES for s in _of_type(dtype)), *models]


def fewer_subjects() -> list[Subject]:
    """One variant of each operator, or two where there are many, so that all types of indices and all modes are among them."""
    families: dict[str, list[Subject]] = {}
    for subject in subjects():
        families.setdefault(" ".join(w for w in subject.name.split() if w not in VARIANTS), []).append(subject)
    return [s for k, variants in enumerate(families.values()) for s in variants[min(k % 5, len(variants) - 1) :: 5]]
