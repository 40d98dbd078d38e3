# SPDX-License-Identifier: Apache-2.0
"""Roundel under TVM's names: ``import roundel.compat.tvm as tvm`` instead of ``import tvm``, and the like for what is in it.

    import roundel.compat.tvm as tvm
    from roundel.compat.tvm import relax
    from roundel.compat.tvm.script import ir as I, relax as R, tir as T

There is no compiler in here: names are those of Roundel's rooms, and what TVM calls otherwise is a line or two. What has no counterpart is an
AttributeError that says so. The page docs/from-tvm.md lists every public name of TVM's.
"""

from __future__ import annotations

from typing import Any

from ... import __version__
from ...ir.errors import RoundelError as TVMError
from . import arith, contrib, error, ir, meta_schedule, relax, rooms, rpc, runtime, s_tir, script, support, target, te, testing, tir, topi, transform
from .functions import get_global_func, register_func, register_object
from .ir import IRModule, instrument
from .rooms import missing
from .running import build, compile, lower  # noqa: A004
from .runtime import DataType, Device, cpu, cuda, device, gpu, nd
from .s_tir import dlight

register_global_func = register_func
tirx = tir
rooms.install(__name__)

__all__ = ["DataType", "Device", "IRModule", "TVMError", "__version__", "arith", "build", "compile", "contrib", "cpu", "cuda", "device", "dlight", "error",
           "get_global_func", "gpu", "instrument", "ir", "lower", "meta_schedule", "nd", "register_func", "register_global_func", "register_object",
           "relax", "rpc", "runtime", "s_tir", "script", "support", "target", "te", "testing", "tir", "tirx", "topi", "transform"]


def __getattr__(name: str) -> Any:
    raise missing(f"tvm.{name}", name)
