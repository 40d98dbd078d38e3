# SPDX-License-Identifier: Apache-2.0
"""Functions known by name to compiled modules: apache-tvm-ffi's global registry, shared with C, C++ and Rust."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..ir import above, escape
from ..ir.errors import OptionError, RoundelError
from . import ffi, native

_BUILTIN = "vm.builtin."
_python: dict[str, tuple[Any, Any]] = {}  # name -> what the registry holds, and the function that it wraps


class UnknownFunctionError(RoundelError, KeyError):
    """No function is registered under that name."""

    __str__ = Exception.__str__


def register_func(name: str, function: Callable | int | None = None, *, override: bool = False) -> Any:
    """Make a function callable from compiled modules (``R.call_dps_packed(name, ...)``). A decorator too.

    A Python function gets tensors as NumPy arrays that share the module's memory, valid during the call: outputs are
    written in place (``out[:] = ...``). A C function with the FFI's signature ``int(void*, const TVMFFIAny*, int32_t,
    TVMFFIAny*)`` is given as its address or as a ctypes function. Exceptions reach the caller of the compiled module.
    """
    _must_be_name(name)
    if function is None:
        return functools.partial(_decorate, name, override)
    tvm_ffi = ffi.load()

    if isinstance(function, ctypes._CFuncPtr):
        address = ctypes.cast(function, ctypes.c_void_p).value
        target: Any = tvm_ffi.Function.__from_extern_c__(address, keep_alive_object=function)
    elif isinstance(function, int):
        target = tvm_ffi.Function.__from_extern_c__(function)
    elif isinstance(function, tvm_ffi.Function):
        target = function
    else:
        target = _with_arrays(function, tvm_ffi.Tensor)
    try:
        registered = tvm_ffi.register_global_func(name, target, override=override)
    except (ValueError, RuntimeError) as error:
        raise RoundelError(
            f"function {name!r} is registered already", hint="pass override=True to replace it"
        ) from error
    _python[name] = (registered, function)
    return function


def _decorate(name: str, override: bool, function: Callable) -> Callable:
    return register_func(name, function, override=override)


def _with_arrays(function: Callable, tensor_type: type) -> Callable:
    @functools.wraps(function)
    def call(*args: Any) -> Any:
        return function(*(as_array(a) if isinstance(a, tensor_type) else a for a in args))

    return call


def as_array(tensor: Any) -> Any:
    """A tensor of the FFI as a NumPy array over the same memory (of an ml_dtypes type where NumPy has none)."""
    if tensor.device.dlpack_device_type() != 1:
        return tensor
    name = str(tensor.dtype)
    try:
        return np.from_dlpack(tensor)
    except (BufferError, TypeError, RuntimeError):
        element = native.DType(name).numpy
        flat = native.view(tensor.data_ptr(), int(np.prod(tensor.shape, dtype=np.int64)) * element.itemsize)
        return flat.view(element).reshape(tuple(tensor.shape))


def _must_be_name(name: Any) -> None:
    if not isinstance(name, str):
        raise OptionError(f"the name of a function cannot be {escape.value(name)}", hint='give a text, such as "my.function"')


def get_func(name: str) -> Callable:
    """The registered function, callable with arrays and numbers; raises UnknownFunctionError.

    A Python function comes back as it was given, so calling it from Python converts nothing.
    """
    _must_be_name(name)
    found = _found(name)
    if found is None:
        raise UnknownFunctionError(
            f"no function is registered as {name!r}", hint=f"rd.register_func({name!r}, function)"
        )
    registered, function = _python.get(name, (None, found))
    return function if callable(function) and (registered is None or found.same_as(registered)) else found


def _found(name: str) -> Any:
    table = ffi.load()
    found = table.get_global_func(name, allow_missing=True)
    if found is None and name.startswith(_BUILTIN):
        above.builtin_functions()
        found = table.get_global_func(name, allow_missing=True)
    return found


def remove_func(name: str) -> None:
    """Forget a registered function; nothing happens if there is none."""
    tvm_ffi = ffi.load()

    tvm_ffi.registry.remove_global_func(name)


def has_func(name: str) -> bool:
    """Is a function registered under that name?"""
    return _found(name) is not None
