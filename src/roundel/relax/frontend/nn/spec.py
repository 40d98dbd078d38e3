# SPDX-License-Identifier: Apache-2.0
"""What the methods of a module are exported for: tensors with numbers, expressions or names as dimensions; whole numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ....ir.dataclass import dataclass


@dataclass(frozen=True)
class Tensor:
    """A tensor; a dimension that is text is symbolic, and one variable wherever a method's specification has that text."""

    shape: Sequence[Any]
    dtype: str = "float32"


@dataclass(frozen=True)
class Int:
    """A whole number that is known when the model runs; dimensions may be made of it."""


@dataclass(frozen=True)
class Object:
    """An object, such as a cache; the method gets it as one of this type, a class derived from `nn.Object`."""

    object_type: Any


class ModuleSpec(dict):
    """The specification of methods by name, as `Module.export_tvm` takes it."""

    @staticmethod
    def from_raw(spec: Mapping[str, Mapping[str, Any]], module: Any = None) -> ModuleSpec:
        """Of a dictionary; ``module`` is whose methods they are."""
        return ModuleSpec(spec)


__all__ = ["Int", "ModuleSpec", "Object", "Tensor"]
