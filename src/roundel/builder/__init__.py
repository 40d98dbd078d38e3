# SPDX-License-Identifier: Apache-2.0
"""Building graph functions: BlockBuilder, and tensor programs from tensor expressions."""

from .block_builder import BlockBuilder, as_graph, infer
from .emit_te import Program, make_program, program_attrs

__all__ = ["BlockBuilder", "Program", "as_graph", "infer", "make_program", "program_attrs"]
