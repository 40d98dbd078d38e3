# SPDX-License-Identifier: Apache-2.0
"""Inputs of a model where nobody gave any: symbolic dimensions at given sizes, random content."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..ir.dtype import DType
from ..ir.errors import CallError, OptionError, RunError

MOST_SIZE = 1 << 46  # of a dimension, and bytes of a random input: what processors of today can address


def known_dims(names: Iterable[str], sizes: Mapping[str, int]) -> None:
    """Raises OptionError for sizes of dimensions that are not among those of the inputs."""
    names = sorted(set(names))
    if unknown := [n for n in sizes if n not in names]:
        hint = f"they are {', '.join(names)}" if names else "all its dimensions are numbers"
        raise OptionError(f"the model has no symbolic dimension {unknown[0]!r}", hint=hint)


def shape_at(info: Any, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The shape of an input with symbolic dimensions given sizes (1 where none was given)."""
    out = []
    for d in info.shape:
        if isinstance(d, int):
            out.append(d)
        elif d.isidentifier():
            out.append(sizes.get(d, 1))
        else:
            out.append(int(eval(d, {"__builtins__": {}}, _Sizes(sizes))))  # an expression that the compiler wrote, such as "4 * m"
    return tuple(out)


class _Sizes(dict):
    def __init__(self, sizes: Mapping[str, int]) -> None:
        super().__init__(sizes)

    def __missing__(self, name: str) -> int:
        return 1


@contextmanager
def with_sizes(infos: Iterable[Any], sizes: Mapping[str, int], given: Any = None) -> Iterator[None]:
    """For a run on random inputs: an error tells which sizes nobody gave, which may be the reason. ``given``: inputs that somebody gave."""
    try:
        yield
    except (CallError, RunError) as error:
        made_up = [] if given else [d for d in dims_of_inputs(infos) if d not in sizes]
        if error.hint or not made_up:
            raise
        shown = ", ".join(f"{d}=1" for d in dict.fromkeys(made_up))
        raise type(error)(error.what, where=error.where, why=error.why, hint=f"this run was made up with {shown}: give sizes that the model can have, "
                          f"--dim {made_up[0]}=32 or sizes={{\"{made_up[0]}\": 32}}") from None


def random_input(info: Any, sizes: Mapping[str, int], seed: int = 0) -> np.ndarray:
    """Random content of the right shape and type: normal floats, small non-negative integers, zeros and ones. Raises CallError for a shape
    that no memory holds."""
    rng = np.random.default_rng(seed)
    shape, dtype = shape_at(info, sizes), DType(info.dtype)
    if any(n < 0 for n in shape) or dtype.nbytes(math.prod(shape)) > MOST_SIZE:
        raise CallError(f"{info.name} would be of shape {list(shape)}, which no memory holds", hint="--dim gives sizes of symbolic dimensions")
    if dtype.is_float:
        return rng.standard_normal(shape).astype(dtype.numpy)
    return rng.integers(0, 2 if dtype.is_bool else 8, shape).astype(dtype.numpy)


def dims_of_inputs(infos: Iterable[Any]) -> list[str]:
    """The names of the symbolic dimensions in the inputs' shapes."""
    return [name for info in infos for d in info.shape if isinstance(d, str) for name in re.findall(r"[A-Za-z_]\w*", d)]
