# SPDX-License-Identifier: Apache-2.0
"""``tvm.runtime`` and ``tvm.nd``: arrays, devices, modules that are built."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ...ir.dataclass import dataclass
from ...ir.dtype import DType as DataType
from ...ir.tir import as_index
from .running import Module, load_module


@dataclass(frozen=True)
class Device:
    """A device; programs run on the processor."""

    device_type: str
    device_id: int = 0

    @property
    def exist(self) -> bool:
        """Whether programs can run there."""
        return self.device_type == "cpu"

    def sync(self) -> None:
        """Nothing runs beside the caller."""


def device(device_type: str = "cpu", device_id: int = 0) -> Device:
    """A device by name: ``cpu``, ``llvm`` and ``c`` are the processor."""
    name = device_type.split(":")[0]
    return Device("cpu" if name in ("cpu", "llvm", "c") else name, device_id)


def cpu(device_id: int = 0) -> Device:
    """The processor."""
    return Device("cpu", device_id)


def cuda(device_id: int = 0) -> Device:
    """A device that Roundel has no programs for: it does not exist."""
    return Device("cuda", device_id)


gpu = cuda


class Tensor(np.ndarray):
    """A NumPy array with TVM's names: programs read it and write into it."""

    @property
    def device(self) -> Device:  # type: ignore[override]
        """Where it is."""
        return cpu()

    def numpy(self) -> np.ndarray:
        """A copy as a plain array."""
        return np.array(self)

    asnumpy = numpy

    def copyfrom(self, source: Any) -> Tensor:
        """The content of another array of the same shape."""
        np.copyto(self, np.asarray(source))
        return self

    def copyto(self, target: Any) -> Any:
        """The content as that of ``target``, an array, or as a new array, if it is a device."""
        if isinstance(target, Device):
            return self.copy()
        np.copyto(target, self)
        return target


NDArray = Tensor


def tensor(arr: Any, device: Device | None = None, mem_scope: str | None = None) -> Tensor:
    """A copy of an array."""
    _on_processor(device)
    return np.array(arr.numpy() if hasattr(arr, "numpy") else arr).view(Tensor)


def empty(shape: Sequence[int], dtype: str = "float32", device: Device | None = None, mem_scope: str | None = None) -> Tensor:
    """An array of undefined content."""
    _on_processor(device)
    return np.empty(tuple(int(n) for n in shape), DataType(dtype).numpy).view(Tensor)


def convert(value: Any, span: Any = None) -> Any:
    """A number as an expression, a list as a tuple; functions and texts stay what they are."""
    if isinstance(value, list | tuple):
        return tuple(map(convert, value))
    return as_index(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _on_processor(where: Device | None) -> None:
    if where is not None and not where.exist:
        raise ValueError(f"there are no arrays on {where.device_type}: Roundel's programs run on the processor, tvm.cpu()")


def from_dlpack(source: Any) -> Tensor:
    """The memory of another library's tensor."""
    return np.from_dlpack(source).view(Tensor)


class ShapeTuple(tuple):
    """A shape: a tuple of numbers."""

    __slots__ = ()

    def __new__(cls, values: Sequence[int] = ()) -> ShapeTuple:
        return super().__new__(cls, map(int, values))


Shape = ShapeTuple
nd = SimpleNamespace(array=tensor, empty=empty, NDArray=Tensor, cpu=cpu, cuda=cuda, device=device, from_dlpack=from_dlpack)

__all__ = ["DataType", "Device", "Module", "NDArray", "Shape", "ShapeTuple", "Tensor", "convert", "cpu", "cuda", "device", "empty", "from_dlpack",
           "load_module", "nd", "tensor"]
