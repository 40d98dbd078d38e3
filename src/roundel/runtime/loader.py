# SPDX-License-Identifier: Apache-2.0
"""``load("model.so")``: a shipped file back into Python; what it needs is in the file (and its weights beside it)."""

from __future__ import annotations

import ctypes
import os
import shutil
from pathlib import Path
from typing import Any

from ..ir import options
from ..ir.errors import CallError, ModelError, OptionError
from . import library, metadata, native, toolchain
from .executable import Executable
from .model import Model


def load_executable(path: str | Path, *, threads: int | None = None, profile: bool = False) -> Executable:
    """All functions of a shipped file. Raises ModelError if it is none, CallError if it is for another CPU."""
    path = Path(path).resolve()
    if not path.is_file():
        raise ModelError(f"there is no file {path}")
    if path.suffix == ".onnx":
        raise ModelError(f"{path.name} is not a compiled model", hint="rd.compile reads ONNX files, rd.load what Model.save wrote")
    threads = options.choose("threads", threads)
    try:
        shared = ctypes.CDLL(str(path), mode=os.RTLD_NOW | os.RTLD_LOCAL)
    except OSError as error:
        raise ModelError(f"{path.name} cannot be loaded", why=str(error), hint="is it for this machine and system, and complete?") from error
    try:
        package = native.RdPackage.in_dll(shared, "roundel_package")
    except ValueError:
        raise ModelError(
            f"{path.name} is a shared library, but not one of Roundel's", hint="make it with `roundel compile`"
        ) from None
    described = package.library.contents
    if described.abi != native.ABI:
        raise ModelError(
            f"{path.name} was built for version {described.abi} of the runtime's interface, this is {native.ABI}",
            hint="compile it again",
        )
    library.declare(shared)
    settings = native.RdOptions(num_threads=threads or 0, profile=int(profile))
    handle = ctypes.c_void_p()
    if shared.rd_package_open(ctypes.byref(package), ctypes.byref(settings), ctypes.byref(handle)):
        raise CallError(f"{path.name} cannot be opened", why=shared.roundel_last_error().decode())
    text = (described.metadata or b"").decode()
    functions, extra = metadata.read(text) if text else ({}, {})
    assert handle.value is not None
    return Executable(shared, handle.value, described, functions, extra, shared)


def load(path: str | Path, *, threads: int | None = None, profile: bool = False) -> Model:
    """A saved model; ``threads`` is the most that a run uses (default: all cores this process may use)."""
    executable = load_executable(path, threads=threads, profile=profile)
    name = "main" if "main" in executable else next(iter(executable))

    def copy_to(target: Path, **changes: Any) -> Path:
        if changes:
            raise OptionError(f"{Path(path).name} is copied as it is, {' and '.join(changes)} would change it", hint="give it where the model is compiled")
        return _copy(Path(path).resolve(), target)

    return Model(executable, name, copy_to)


def _copy(source: Path, target: Path) -> Path:
    side = native.RdPackage.in_dll(ctypes.CDLL(str(source)), "roundel_package").weights_file
    if side is not None and target.parent.resolve() != source.parent:
        with toolchain.atomic_output(target.parent / side.decode()) as temporary:
            shutil.copyfile(source.parent / side.decode(), temporary)
    with toolchain.atomic_output(target) as temporary:
        shutil.copyfile(source, temporary)
    return target
