# SPDX-License-Identifier: Apache-2.0
"""The names of tensor programs: ``from roundel.script import tir as T``.

Also here by ``__getattr__``: every data type (``T.float32``, ``T.int32x4``) and every intrinsic (``T.exp``, ``T.fma``).
"""

from __future__ import annotations

from functools import cache
from typing import Any

from ...ir.scalable import vscale
from ...ir.tir import StringImm, intrin
from ..parser.entry import inline, macro, prim_func
from . import axis
from .buffers import (
    Buffer,
    alloc_buffer,
    allocate,
    allocate_const,
    buffer_decl,
    decl_buffer,
    match_buffer,
    preflattened_buffer,
    sblock_alloc_buffer,
)
from .calls import (
    FOREIGN,
    address_of,
    assume,
    call,
    call_engine,
    call_extern,
    call_intrin,
    call_llvm_intrin,
    call_llvm_pure_intrin,
    call_packed,
    call_pure_extern,
    call_tir,
    foreign,
    intrinsic,
    likely,
    llvm_lookup_intrinsic_id,
    reinterpret,
    ret,
    string,
    target,
    tvm_access_ptr,
    tvm_call_packed,
    type_annotation,
)
from .expressions import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Broadcast,
    Cast,
    Div,
    FloorDiv,
    FloorMod,
    Let,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    Ramp,
    Range,
    Select,
    Shuffle,
    Sub,
    all,  # noqa: A004
    any,  # noqa: A004
    broadcast,
    cast,
    ceildiv,
    comm_reducer,
    div,
    floordiv,
    floormod,
    get_active_lane_mask,
    if_then_else,
    index_map,
    infinity,
    max,  # noqa: A004
    max_value,
    min,  # noqa: A004
    min_value,
    ramp,
    truncdiv,
    truncmod,
    vectorcombine,
    vectorhigh,
    vectorlow,
)
from .statements import (
    Assert,
    LetStmt,
    attr,
    bind,
    block,
    block_attr,
    buffer_store,
    env_thread,
    evaluate,
    func_attr,
    grid,
    init,
    iter_var,
    launch_thread,
    let,
    meta_var,
    opaque_axis,
    parallel,
    reads,
    realize,
    reduce_axis,
    sblock,
    sblock_attr,
    scan_axis,
    seq,
    serial,
    thread_binding,
    unroll,
    unrolled,
    vectorized,
    where,
    writes,
)
from .types import Ptr, ScalarType, SizeVar, Var, boolean, buffer_var, handle, ptr, var

buffer = Buffer  # TVM has both spellings
_ALIASES = {"power": "pow", "left_shift": "shift_left", "right_shift": "shift_right", "nearby_int": "nearbyint", "fabs": "abs"}
# families of device intrinsics, kept as opaque calls
_FOREIGN = ("tvm_", "ptx_", "mma_", "simdgroup_", "cuda_", "dma_", "metal_")


@cache  # not into globals(): T.bool and T.abs must not hide Python's in this file
def __getattr__(name: str) -> Any:
    name = _ALIASES.get(name, name)
    if name in intrin.REGISTRY:
        made: Any = intrinsic(name)
    elif name.startswith(_FOREIGN) or name in FOREIGN:
        made = foreign(name)
    else:
        try:
            made = ScalarType(name)
        except ValueError:
            from difflib import get_close_matches

            near = get_close_matches(name, [*globals(), *intrin.REGISTRY], 3)
            raise AttributeError(
                f"T has no {name!r}" + (f"; did you mean {', '.join('T.' + n for n in near)}?" if near else "")
            ) from None
    return made


__all__ = [n for n in dir() if not n.startswith("_")]
