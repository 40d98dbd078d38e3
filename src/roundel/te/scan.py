# SPDX-License-Identifier: Apache-2.0
"""``scan``: tensors whose rows are made one after another, each from the rows before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from roundel.ir.errors import RoundelError

from .reduce import Reduce
from .tensor import Compute, Placeholder, Scan, Tensor, make_tensor


def scan(init: Any, update: Any, state: Any, inputs: Sequence[Tensor] | None = None, name: str = "scan") -> Any:
    """A tensor of the shape of ``state``: its first rows are ``init``, row t of the rest is row t of ``update``.

        x, s = te.placeholder((m, n)), te.placeholder((m, n))
        te.scan(te.compute((1, n), lambda _, i: x[0, i]), te.compute((m, n), lambda t, i: s[t - 1, i] + x[t, i]), s)      # sums of columns

    ``update`` is a ``te.compute`` that reads the placeholder ``state`` in rows before t. Lists of all three give a list of tensors that may
    read one another. Raises RoundelError where shapes do not go together. ``inputs`` is found, and accepted as in TVM.
    """
    many = isinstance(state, list | tuple)
    inits, updates, states = (tuple(x) if isinstance(x, list | tuple) else (x,) for x in (init, update, state))
    if not len(inits) == len(updates) == len(states) or not states:
        raise RoundelError(f"te.scan {name!r} has {len(inits)} inits, {len(updates)} updates and {len(states)} states")
    for i, u, s in zip(inits, updates, states):
        _check(i, u, s, name)
    read = dict.fromkeys(t for u in updates for t in u.definition.inputs if t not in states)
    stage = Scan(inits, updates, states, tuple(dict.fromkeys((*inits, *read))))
    outs = [make_tensor(stage, s.shape, s.dtype, name if len(states) == 1 else f"{name}_v{k}", k) for k, s in enumerate(states)]
    return outs if many else outs[0]


def _check(init: Tensor, update: Tensor, state: Tensor, name: str) -> None:
    if not isinstance(state.definition, Placeholder):
        raise RoundelError(f"the state of te.scan {name!r} is no placeholder")
    if not isinstance(update.definition, Compute) or any(type(b) is Reduce for b in update.definition.bodies):
        raise RoundelError(f"the update of te.scan {name!r} is no te.compute of single elements", hint="reduce in a te.compute that it does not depend on")
    if update.shape != state.shape or init.shape[1:] != state.shape[1:]:
        raise RoundelError(f"the parts of te.scan {name!r} have shapes {init.shape}, {update.shape} and {state.shape}")
    if not update.dtype is init.dtype is state.dtype:
        raise RoundelError(f"the parts of te.scan {name!r} are of types {init.dtype}, {update.dtype} and {state.dtype}")
