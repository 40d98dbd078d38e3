# SPDX-License-Identifier: Apache-2.0
"""How exact results are: the error of each model of the zoo, and PyTorch's own, against the same module in double precision.

The error is relative, in the L2 norm, over all elements of an output. Of a model's floating-point outputs the one with the largest ratio counts.
"""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .results import machine, merge
from .zoo import ZOO, load

ROUNDING = 2.0**-25
"""What rounding an exact result to float32 costs at least, about: no smaller error of PyTorch counts in a ratio."""


def errors(module: Any, inputs: Sequence[np.ndarray], model: Any = None, **options: Any) -> list[tuple[float, float]]:
    """For each floating-point output the relative L2 errors of PyTorch and of Roundel, both in single precision.

    ``model`` is the compiled module where there is one already; else ``options`` are passed to ``rd.compile``. The module is in double
    precision afterwards.
    """
    import torch

    import roundel as rd

    arguments = tuple(map(torch.from_numpy, inputs))
    theirs = _arrays(_run(module, arguments))
    model = model or rd.compile(module, arguments, **options)
    ours = _arrays(model(*inputs))
    with everything_in_double():
        exact = _arrays(_run(module.double(), tuple(t.double() if t.is_floating_point() else t for t in arguments)))
    return [(_relative(t, e), _relative(o, e)) for t, o, e in zip(theirs, ours, exact, strict=True) if e.dtype == np.float64]


def every_length(inputs: Sequence[np.ndarray]) -> tuple[Any, ...]:
    """``dynamic_shapes`` of torch.export for inputs [batch, length]."""
    import torch

    return (tuple({0: torch.export.Dim.STATIC, 1: torch.export.Dim("length", min=2, max=512)} for _ in inputs),)


def _products_by_groups(rows: Any, weights: Any, offs: Any, bias: Any = None, out_dtype: Any = None) -> Any:
    """``torch._grouped_mm`` of a mixture of experts: rows up to the first of ``offs`` [groups] by the first of ``weights`` [groups, k, n], and so on."""
    import torch

    ends = [0, *offs.tolist()]
    made = torch.cat([rows[a:b] @ w for a, b, w in zip(ends, ends[1:], weights, strict=False)])
    return made if bias is None else made + bias


@contextlib.contextmanager
def everything_in_double() -> Iterator[None]:
    """PyTorch code that asks for float32 gets float64: many modules normalise and rotate in float32 whatever their own precision is."""
    import torch

    class Double(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            def wide(value: Any) -> Any:
                return torch.float64 if value is torch.float32 else value

            func = torch.Tensor.double if func is torch.Tensor.float else func
            if getattr(func, "__name__", "") in ("grouped_mm", "_grouped_mm"):  # which PyTorch does not have for float64
                return _products_by_groups(*args, **(kwargs or {}))
            return func(*map(wide, args), **{k: wide(v) for k, v in (kwargs or {}).items()})

    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with Double():
            yield
    finally:
        torch.set_default_dtype(before)


def _run(module: Any, arguments: Sequence[Any]) -> Any:
    import torch

    with torch.no_grad():
        return module(*arguments)


def _arrays(out: Any) -> list[np.ndarray]:
    outputs = out if isinstance(out, tuple | list) else (out,)
    return [np.asarray(o.numpy() if hasattr(o, "numpy") else o) for o in outputs]


def _relative(got: np.ndarray, exact: np.ndarray) -> float:
    return float(np.linalg.norm((got.astype(np.float64) - exact).ravel()) / max(np.linalg.norm(exact.ravel()), 1e-300))


def ratio(theirs: float, ours: float) -> float:
    """Roundel's error in PyTorch's."""
    return ours / max(theirs, ROUNDING)


def run_accuracy(names: Sequence[str], limit: float, threads: int, **options: Any) -> int:
    """Print the table, the largest ratio of each kind; keep the results. How many models fail or are beyond the limit."""
    import torch

    torch.set_num_threads(threads)
    shared = {"threads": threads, "options": options, "machine": machine()}
    found: dict[str, dict[str, Any]] = {}
    print(f"{'model':28}{'PyTorch':>11}{'Roundel':>11}{'ratio':>8}  kind", flush=True)
    for name in names:
        start = time.perf_counter()
        try:
            module, inputs = load(name)
            sizes = {"dynamic": every_length(inputs)} if ZOO[name].any_length else {}
            theirs, ours = max(errors(module, inputs, threads=threads, **sizes, **options), key=lambda pair: ratio(*pair))
            found[name] = {"kind": ZOO[name].kind, "pytorch": theirs, "roundel": ours, "ratio": ratio(theirs, ours)}
            print(f"{name:28}{theirs:11.2e}{ours:11.2e}{ratio(theirs, ours):8.2f}  {ZOO[name].kind}, {time.perf_counter() - start:.0f} s", flush=True)
        except Exception as e:  # the report is the purpose
            found[name] = {"kind": ZOO[name].kind, "failed": f"{type(e).__name__}: {' '.join(str(e).split())[:400]}"}
            print(f"{name:28}  {found[name]['failed']}", flush=True)
        merge("accuracy", [{"model": name, **found[name], **shared}], ["model", "threads", "options"])
        gc.collect()
    measured = {n: f for n, f in found.items() if "ratio" in f}
    for kind in dict.fromkeys(f["kind"] for f in measured.values()):
        worst = max((n for n, f in measured.items() if f["kind"] == kind), key=lambda n: measured[n]["ratio"])
        print(f"largest ratio, {kind}: {measured[worst]['ratio']:.2f} ({worst})")
    return sum(not f.get("ratio", np.inf) <= limit for f in found.values())
