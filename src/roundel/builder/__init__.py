# SPDX-License-Identifier: Apache-2.0
"""Building graph functions: BlockBuilder, and tensor programs from tensor expressions."""

from typing import Any

from roundel.ir import above

from .bind import bind_params, bind_sizes
from .block_builder import BlockBuilder, as_graph, infer
from .emit_te import Program, make_program, program_attrs
from .operator_programs import call_signature, operator_program, shared_programs

__all__ = ["BlockBuilder", "Program", "as_graph", "bind_params", "bind_sizes", "call_signature", "infer", "make_program", "operator_program",
           "program_attrs", "shared_programs"]


def __getattr__(name: str) -> Any:
    if name == "relax":
        return above.relax()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
