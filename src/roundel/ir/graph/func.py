# SPDX-License-Identifier: Apache-2.0
"""Graph functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import above
from ..attrs import EMPTY, Attrs
from ..node import Span, node
from ..tir.func import BaseFunc
from .expr import GraphExpr, SeqExpr, Var
from .struct_info import FuncInfo, StructInfo


@node
class Function(BaseFunc):
    """A graph function. Attributes in use: ``global_symbol``, ``num_input`` (parameters after these are weights), ``primitive``
    (a fused group, to become one tensor program), ``input_names`` and ``output_names`` (as the model calls them).
    """

    params: tuple[Var, ...]
    body: SeqExpr
    ret_sinfo: StructInfo
    is_pure: bool = True
    attrs: Attrs = EMPTY
    span: Span | None = None

    @property
    def sinfo(self) -> FuncInfo:
        """What goes in, what comes out, and whether a call has effects."""
        return FuncInfo(tuple(p.sinfo for p in self.params), self.ret_sinfo, self.is_pure)


    struct_info = sinfo
    """The name in TVM."""

    @property
    def ret_struct_info(self) -> StructInfo:
        """``ret_sinfo``, by TVM's name."""
        return self.ret_sinfo

    def bind_params(self, values: Mapping[Any, Any]) -> Function:
        """The function with parameters given for good, by variable or name: arrays, numbers, constants. Raises RoundelError."""
        return above.builder().bind_params(self, values)

    def bind_sizes(self, values: Mapping[Any, Any]) -> Function:
        """The function with numbers or expressions in place of symbolic sizes, by variable or name. Raises RoundelError."""
        return above.builder().bind_sizes(self, values)

    bind_symbolic_vars = bind_sizes
    """The name in TVM."""


def bind(value: GraphExpr) -> SeqExpr:
    """``value`` as a body."""
    return value if isinstance(value, SeqExpr) else SeqExpr((), value)
