# SPDX-License-Identifier: Apache-2.0
"""PyTorch's operators with every size symbolic: right at sizes of 0, 1 and odd ones, or an error in words of the model, never in those of Python.

The operators are the cases of the tests of the importer, which has one at least for each, exported with each dimension of each tensor dynamic;
what PyTorch makes fixed stays fixed. How many operators it cannot export so, how many are refused and how many calls it refuses itself is told
on standard error.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from roundel.ir.errors import RoundelError

from .attempts import attempts
from .symbolic import PYTHON

SIZES = (0, 1, 3, 5, 7)


def attack(count: int, seed: int) -> Iterator[str]:
    """So many operators, one after another in a random order, each called with sizes that it was not exported with."""
    rng, counts = np.random.default_rng(seed), Counter[str]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = _cases()
        names = list(cases)
        for k in attempts(rng.permutation(np.arange(count) % len(names))):
            yield from _findings(names[k], cases[names[k]][0], cases[names[k]][1:], rng, counts)
    print(f"symbolic_torch: {count} operators: {', '.join(f'{n} {what}' for what, n in counts.most_common())}", file=sys.stderr, flush=True)


def _cases() -> dict[str, Any]:
    """A function and its arguments, by name."""
    beside = str(Path(__file__).parents[1] / "frontend" / "torch")
    if beside not in sys.path:
        sys.path.insert(0, beside)
    from ..frontend.torch.test_operators import CASES

    return CASES


def _findings(name: str, function: Any, args: Any, rng: np.random.Generator, counts: Counter[str]) -> Iterator[str]:
    import torch

    import roundel as rd

    program = _exported(function, args)
    if program is None:
        counts["operators that PyTorch cannot export so"] += 1
        return
    shapes = [tuple(t.shape) for t in _tensors(args)]
    try:
        model = rd.compile(program)
    except RoundelError as error:
        if PYTHON.search(str(error)):
            yield f"{name} of {shapes}: {' / '.join(str(error).splitlines())[:300]}"
        counts["operators that are refused"] += 1
        return
    except Exception as error:
        yield f"{name} of {shapes}: {type(error).__name__}: {str(error)[:300]}"
        return
    for given in (args, *(_resized(args, rng) for _ in range(3))):
        called = f"{name} of {shapes}, with {[tuple(t.shape) for t in _tensors(given)]}"
        try:
            with torch.no_grad():
                expected = function(*torch.utils._pytree.tree_map(_copy, given))
        except Exception:  # of any kind: what it refuses is not compared, and counted
            counts["calls that PyTorch refuses"] += 1
            continue
        try:
            found = model(*_tensors(given))
        except RoundelError as error:
            counts["calls that are refused where PyTorch has a result"] += 1
            if PYTHON.search(str(error)):
                yield f"{called}: {str(error)[:300]}"
        except Exception as error:
            yield f"{called}: {type(error).__name__}: {str(error)[:300]}"
        else:
            counts["calls that are compared"] += 1
            yield from _differences(called, expected, found)


def _exported(function: Any, args: Any) -> Any:
    """The program with all sizes dynamic; None where PyTorch cannot run or export that."""
    import torch

    free = lambda v: dict.fromkeys(range(v.ndim), torch.export.Dim.AUTO) if isinstance(v, torch.Tensor) else None
    try:
        with torch.no_grad():
            function(*torch.utils._pytree.tree_map(_copy, args))
            dynamic = (torch.utils._pytree.tree_map(free, tuple(args)),)
            return torch.export.export(_module(function), tuple(args), dynamic_shapes=dynamic, strict=False)
    except Exception:  # torch.export raises errors of any kind; the caller counts what cannot be exported
        return None


def _module(function: Any) -> Any:
    """A module of any number of arguments, all in one parameter, as the shapes are given."""
    import torch

    class Module(torch.nn.Module):
        def forward(self, *args: Any) -> Any:
            return function(*args)

    return Module().eval()


def _tensors(args: Any) -> list[Any]:
    import torch

    return [v for v in torch.utils._pytree.tree_leaves(args) if isinstance(v, torch.Tensor)]


def _copy(value: Any) -> Any:
    import torch

    return value.clone() if isinstance(value, torch.Tensor) else value


def _resized(args: Any, rng: np.random.Generator) -> Any:
    """The arguments with other sizes: equal ones stay equal, and 1 stays as it is."""
    import torch

    chosen: dict[int, int] = {1: 1}

    def changed(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        shape = [chosen.setdefault(n, int(rng.choice(SIZES))) for n in value.shape]
        source = value.detach().reshape(-1)
        whole = int(np.prod(shape))
        if not whole or not source.numel():
            return torch.zeros(shape, dtype=value.dtype)
        return source.repeat(-(-whole // source.numel()))[:whole].reshape(shape).contiguous()

    return torch.utils._pytree.tree_map(changed, args)


def _differences(called: str, expected: Any, found: Any) -> Iterator[str]:
    from ..frontend.torch.sweep import difference

    wrong = difference(expected, list(found) if isinstance(found, tuple | list) else found, values=True)
    if wrong:
        yield f"{called}: {' / '.join(wrong.splitlines())[:300]}"
