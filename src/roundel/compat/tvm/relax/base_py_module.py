# SPDX-License-Identifier: Apache-2.0
"""``tvm.relax.base_py_module``: modules whose tensor programs, graph functions and Python functions are methods on tensors of PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ....arith import Analyzer
from ....ir import graph, tir
from ....ir.module import IRModule
from ....ir.visit import substitute
from ..functions import get_global_func
from ..running import build
from ..runtime import Device, Tensor, tensor


def to_torch(value: Any) -> Any:
    """A tensor of PyTorch over the same memory; tuples and lists one by one, other things as they are."""
    import torch

    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.view(np.ndarray))
    return type(value)(map(to_torch, value)) if isinstance(value, tuple | list) else value


def to_array(value: Any) -> Any:
    """An array with TVM's names over the memory of a tensor; tuples and lists one by one, other things as they are."""
    if hasattr(value, "detach"):
        return value.detach().numpy().view(Tensor)
    if isinstance(value, np.ndarray):
        return value.view(Tensor)
    return type(value)(map(to_array, value)) if isinstance(value, tuple | list) else value


class BasePyModule:
    """Base of a class under ``@I.ir_module``; its objects hold the functions of the module, compiled."""

    ir_mod: IRModule
    pyfuncs: Mapping[str, Callable[..., Any]]

    @classmethod
    def of_ir_module(cls, mod: IRModule, python: Any) -> type[BasePyModule]:
        """The class for a module that was read, and its Python functions: `I.ir_module` calls this."""
        functions = {name: f for name, (f, _) in python.functions.items()}
        return type(cls.__name__, cls.__bases__, {"ir_mod": mod, "pyfuncs": functions, "_python": python})

    def __init__(self, device: Device | None = None, target: Any = None) -> None:
        self.device = device
        self._built = build(self.ir_mod, target or "llvm")
        for name, function in self.pyfuncs.items():
            method = self._python.functions[name][1]  # type: ignore[attr-defined]
            self._python.functions[name] = self._on_arrays(function, method), False  # type: ignore[attr-defined]

    def _on_arrays(self, function: Callable[..., Any], method: bool) -> Callable[..., Any]:
        return lambda *arrays: to_array(function(*([self] if method else []), *map(to_torch, arrays)))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in {*self.ir_mod, *self.pyfuncs}:
            raise AttributeError(f"the module has no function {name}")
        if name in self.pyfuncs:
            return lambda *args: self.call_py_func(name, args)
        if isinstance(self.ir_mod[name], tir.PrimFunc):
            return graph.GlobalVar(name)
        return lambda *args: to_torch(self._built[name](*map(to_array, args)))

    def call_tir(self, tir_func: Any, args: Sequence[Any], out_sinfo: Any = None, *, out_ty: Any = None) -> Any:
        """What a tensor program computes of these operands; symbolic sizes of the results are those of its parameters."""
        name = getattr(tir_func, "name", tir_func)
        infos = out_ty if out_sinfo is None else out_sinfo
        arrays = [to_array(a) for a in args]
        outs = _results(self.ir_mod[name], arrays, infos if isinstance(infos, tuple | list) else [infos])
        self._built[name](*arrays, *outs)
        return to_torch(outs if isinstance(infos, tuple | list) else outs[0])

    def call_dps_packed(self, func_name: str, args: Sequence[Any], out_sinfo: Any = None, *, out_ty: Any = None) -> Any:
        """What a function known by name computes of these operands."""
        infos = out_ty if out_sinfo is None else out_sinfo
        outs = [tensor(np.empty(tuple(map(int, o.shape)), o.dtype.numpy)) for o in (infos if isinstance(infos, tuple | list) else [infos])]
        get_global_func(func_name)(*map(to_array, args), *outs)
        return to_torch(outs if isinstance(infos, tuple | list) else outs[0])

    def call_py_func(self, func_name: str, args: Sequence[Any]) -> Any:
        """What a Python function of the module computes of these tensors of PyTorch."""
        method = list(self.pyfuncs[func_name].__code__.co_varnames[:1]) == ["self"]
        return self.pyfuncs[func_name](*([self] if method else []), *map(to_torch, args))

    def list_functions(self) -> dict[str, list[str]]:
        """The names of all functions, by kind."""
        kinds = {"tir": tir.PrimFunc, "relax": graph.Function}
        return {kind: [n for n, f in self.ir_mod.items() if isinstance(f, cls)] for kind, cls in kinds.items()} | {"python": list(self.pyfuncs)}

    def script(self, **options: Any) -> str:
        """The module as script."""
        return self.ir_mod.script(**options)

    def show(self, **options: Any) -> None:
        """Print the module as script."""
        self.ir_mod.show(**options)

    _convert_pytorch_to_tvm = staticmethod(to_array)
    _convert_tvm_to_pytorch = staticmethod(to_torch)


def _results(func: Any, arrays: Sequence[Any], infos: Sequence[Any]) -> list[Any]:
    """Arrays for the results of a tensor program: sizes that it leaves open are those of its operands."""
    buffers = func.buffer_params
    known = {dim: tir.index_const(size) for b, a in zip(buffers, arrays, strict=False) for dim, size in zip(b.shape, a.shape, strict=True)
             if isinstance(dim, tir.Var)}
    outs = []
    for buffer, info in zip(buffers[len(arrays):], infos, strict=True):
        shape = [Analyzer().simplify(substitute(d, known)) for d in buffer.shape]
        outs.append(tensor(np.empty(tuple(map(int, shape)), info.dtype.numpy)))
    return outs


__all__ = ["BasePyModule"]
