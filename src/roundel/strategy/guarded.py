# SPDX-License-Identifier: Apache-2.0
"""Several schedules of one program with symbolic sizes behind guards, as one program: which one runs is decided by a size at each call.

    if n <= 40:
        with T.sblock("most_40"): ...      # the schedule for few rows
    else:
        with T.sblock("otherwise"): ...    # the one for many

All compute into the same buffers and read constants in the same layout, so whoever calls the program need not know; parallel loops inside become tasks
as in any other program.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import tir
from ..ir.attrs import Attrs
from ..ir.errors import ScheduleError
from ..ir.visit import substitute


def guarded(variants: Sequence[tuple[tir.Var, int, tir.PrimFunc]], otherwise: tir.PrimFunc) -> tir.PrimFunc:
    """One program of schedules of the same one. Each of ``variants`` is a size of the program, the most that it may be there (the first that fits is
    taken), and the program under a schedule. Raises ScheduleError where two want a parameter in different layouts."""
    body = _named(otherwise, otherwise, "otherwise")
    for size, most, func in reversed(variants):
        body = tir.If(size <= most, _named(func, otherwise, f"most_{most}"), body)
    root = otherwise.body
    assert isinstance(root, tir.BlockRealize)  # it was scheduled
    whole = root.block.replace(body=body, alloc_buffers=(), annotations=Attrs(), name="root", token=None)
    return otherwise.replace(body=root.replace(block=whole))


def _named(func: tir.PrimFunc, like: tir.PrimFunc, name: str) -> tir.BlockRealize:
    """The root block of a program with the parameters of another one."""
    pairs = list(zip(func.buffer_params, like.buffer_params, strict=True))
    if func.params != like.params or any(a.shape != b.shape or a.dtype != b.dtype or a.strides != b.strides for a, b in pairs):
        raise ScheduleError("schedules of one program behind guards want its parameters alike", hint="take those with the same layouts of constants")
    root = substitute(func.body, {}, {a: b for a, b in pairs if a is not b})
    return root.replace(block=root.block.replace(name=name, token=None))
