# SPDX-License-Identifier: Apache-2.0
"""``tvm.relax.frontend.torch.exported_program_translator``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ......builder import BlockBuilder
from ......ir.module import IRModule


class ExportedProgramImporter:
    """What a converter of one's own gets beside the node: its operands as graph values, and the builder."""

    def __init__(self, context: Any) -> None:
        self._context = context

    @property
    def block_builder(self) -> BlockBuilder:
        """The builder of the graph function."""
        return self._context.importer.bb

    @property
    def env(self) -> Mapping[Any, Any]:
        """The values of the nodes so far."""
        return self._context.importer.values

    def retrieve_args(self, node: Any) -> Any:
        """The operands of a node as graph values."""
        return [self._context.importer.operand(a) for a in node.args]


def from_exported_program(program: Any, *, custom_convert_map: Mapping[str, Callable[[Any, ExportedProgramImporter], Any]] | None = None,
                          **options: Any) -> IRModule:
    """The module of a program that `torch.export` made; converters of one's own by the overload's name, `sigmoid.default`"""
    from ......frontend.torch import from_exported_program as convert
    from ......frontend.torch.registry import supplying

    def own(function: Callable[[Any, ExportedProgramImporter], Any]) -> Callable[..., Any]:
        return lambda context, *_, **__: function(context.node, ExportedProgramImporter(context))

    with supplying({name: own(f) for name, f in (custom_convert_map or {}).items()}):
        return convert(program, **options)


__all__ = ["ExportedProgramImporter", "from_exported_program"]
