# SPDX-License-Identifier: Apache-2.0
"""The public functions: compile a model, build or interpret a module, load a file. What kind of input it is decides the rest.

Everything heavy (onnx, torch, llvmlite) is imported when it is needed and not before.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .ir import escape, options
from .ir.errors import CallError, ModelError, OptionError, RoundelError
from .ir.module import IRModule
from .ir.tir import BaseFunc

if TYPE_CHECKING:
    from .build import Built
    from .runtime.executable import Executable
    from .runtime.model import Model

_log = logging.getLogger("roundel.api")
_LARGE = 4 << 20  # bytes


def compile(model: Any, example_inputs: Sequence[Any] | None = None, *, target: Any = None, threads: int | None = None,  # noqa: A001
            pipeline: Sequence[Any] | None = None, dynamic: Mapping[str, Any] | bool | None = None, verify: bool | None = None,
            hot: Sequence[Mapping[str, int]] = (), accuracy: str | None = None, weights: str | None = None, observers: Sequence[Any] = (),
            profile: bool = False) -> Model:
    """Native code for a model.

    ``model``: path or bytes of an ONNX file, ``onnx.ModelProto``, ``torch.nn.Module`` (with ``example_inputs``),
    ``torch.export.ExportedProgram``, or an ``IRModule``. ``dynamic``: for ONNX a mapping that fixes symbolic dimensions
    (``{"batch": 1}``), for PyTorch torch.export's ``dynamic_shapes``. ``threads``: most threads of one run. ``verify``: run the
    interpreter after every pass and name the first that changes results. ``hot``: sizes of symbolic dimensions, such as
    ``[{"batch": 1, "seq": 128}]``, that get code of their own beside that for all sizes. ``accuracy``: ``strict``, ``default``
    or ``fast``. ``weights``: ``float16`` or ``bfloat16`` stores the weights of matrix products so (sums stay float32). Raises
    RoundelError.
    """
    from . import cache
    from .runtime import ForeignModel, Model

    options.check_environment()
    begun = time.perf_counter()
    verify, threads = options.choose("verify", verify), options.choose("threads", threads)
    plain = pipeline is None and not verify and not observers and not profile
    hot = [_checked(sizes) for sizes in ([hot] if isinstance(hot, Mapping) else hot)]
    given = {name: value for name, value in (("accuracy", accuracy), ("weights", weights)) if value is not None}
    if plain and options.get("cache") and isinstance(model, str | Path) and _is_large(Path(model)) and cache.is_new(Path(model)):
        _get_ready(Path(model))
    with options.override(**given):
        key = cache.model_key(model, (str(target), repr(dynamic), repr(hot))) if plain else None

    def compiled(folder: Path | None = None) -> Built:
        if key is not None and _is_large(Path(model)):
            _get_ready(Path(model))
        from concurrent.futures import ThreadPoolExecutor

        from .driver import compile_module
        from .graph.specialize import specialize
        from .passes.garbage import rare_collection

        with rare_collection(), options.override(**given), ThreadPoolExecutor(1, "roundel-source") as thread:
            source = thread.submit(_source, model)
            return compile_module(specialize(import_model(model, example_inputs, dynamic=dynamic), hot), target=target, pipeline=pipeline, verify=verify,
                                  observers=observers, profile=profile, weights_file=folder and folder / "weights",
                                  notes=lambda: {"source": source.result()})

    if key is not None and (path := cache.find(key)) is not None:
        def save(out: Path, **how: Any) -> Path:
            from .build.kept import link_again

            return link_again(path.parent, out, **how) if path.is_file() else compiled().save(out, **how)  # it may have been evicted

        with suppress(RoundelError):  # what cannot be loaded any more is made again
            kept = Model(load(path, threads=threads).executable, saver=save)
            _log.info("loaded %s from the cache in %.3f s", _name(model), time.perf_counter() - begun)
            return kept
    from .passes.progress import shown

    with cache.new_folder(key) as folder:
        with shown(f"compiling {_name(model)}"):
            built = compiled(folder)
        _log.info("compiled %s in %.2f s", _name(model), time.perf_counter() - begun)
        if key is not None and folder is not None:
            from .build.kept import keep

            cache.keep(key, folder, partial(keep, built))
    if key is not None and (path := cache.find(key)) is not None:
        with suppress(RoundelError):  # its weights are mapped, where linking in memory needs a copy of them
            return Model(load(path, threads=threads).executable, saver=built.save)
    try:
        executable = built.load(threads=threads, profile=profile)
    except CallError as error:
        return ForeignModel(built.functions[0].info, built.metadata, built.save, str(error), built.nbytes)
    return Model(executable, saver=built.save)


def _source(model: Any) -> dict[str, str]:
    """What the metadata of a compiled model tells of where it came from."""
    kind = f"{type(model).__module__.split('.')[0]}.{type(model).__name__}"
    if isinstance(model, bytes | bytearray):
        return {"kind": "bytes", "sha256": hashlib.sha256(model).hexdigest()}
    if not isinstance(model, str | Path):
        return {"kind": kind}
    with Path(model).open("rb") as file:
        return {"kind": "file", "file": Path(model).name, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def _is_large(path: Path) -> bool:
    """Whether a model's file is sure to mean much work."""
    return path.is_file() and path.stat().st_size > _LARGE


def _get_ready(model: Path) -> None:
    """Start the processes that will help, and import what compiles, while the model's file is hashed (if it never was)."""
    from concurrent.futures import ThreadPoolExecutor

    from . import cache

    with ThreadPoolExecutor(1) as thread:
        thread.submit(cache.content, model)
        from .build import compiler

        compiler.start()
        import_module(".driver", __package__)


def import_model(model: Any, example_inputs: Sequence[Any] | None = None, *, dynamic: Any = None) -> IRModule:
    """Any kind of model as a module of graph functions."""
    if isinstance(model, IRModule):
        return model
    if isinstance(model, str | Path) and Path(model).suffix in (".so", ".dylib"):
        raise ModelError(f"{model} is compiled already", hint="rd.load, `roundel run` and `roundel bench` take it; this needs the model that it came from")
    kind = type(model).__module__.split(".")[0]
    if isinstance(model, str | Path | bytes | bytearray) or kind == "onnx":
        from .frontend.onnx import from_onnx

        return from_onnx(model, dims=_sizes(dynamic))
    if kind == "torch" or hasattr(model, "forward"):
        from .frontend.torch import from_torch

        return from_torch(model, example_inputs, dynamic_shapes=dynamic)
    raise ModelError(f"this is not a model: {type(model).__name__}", hint="give a path to an ONNX file, an onnx.ModelProto, a torch.nn.Module "
                     "with example_inputs, a torch.export.ExportedProgram or an IRModule")


def _sizes(dynamic: Any) -> Mapping[str, int] | None:
    """What ``dynamic`` says of an ONNX model: sizes of symbolic dimensions that become fixed; raises OptionError."""
    if dynamic is None or dynamic is True:
        return None
    if not isinstance(dynamic, Mapping):
        raise OptionError(f"dynamic cannot be {dynamic!r} for an ONNX model", hint='give sizes to symbolic dimensions, such as {"batch": 1}, or nothing')
    return _checked(dynamic)


def _checked(sizes: Any) -> dict[str, int]:
    """Sizes by the names of dimensions; raises OptionError."""
    if not isinstance(sizes, Mapping):
        raise OptionError(f"sizes cannot be {sizes!r}", hint='give them by name, such as {"batch": 1}')
    for name, size in sizes.items():
        if isinstance(size, bool) or not hasattr(size, "__index__") or size < 0:
            raise OptionError(f"dimension {name!r} cannot have the size {size!r}", hint="a size is a whole number, 0 or more")
    return {name: int(size) for name, size in sizes.items()}


def build(mod: Any, target: Any = None, **options_: Any) -> Executable:
    """Functions of a module (or one function) to call as ``rt["name"](...)``: tensor programs write into the arrays passed for
    their outputs, graph functions return their results."""
    from .driver import build_module

    _must_be_module(mod)
    return build_module(mod, target=target, **options_)


def interpret(mod: Any) -> Any:
    """The same functions, run by the reference interpreter."""
    from .interp import interpret as run

    _must_be_module(mod)
    return run(mod)


def load(path: str | Path, *, threads: int | None = None, verify: bool = False) -> Model:
    """A model saved by ``Model.save`` or ``roundel compile``. Sizes of its files, code and tables are checked before anything is loaded,
    weights of up to 4 MiB too; ``verify`` reads and checks all weights. Raises ModelError for a damaged file, CallError for another CPU's."""
    from .runtime.loader import load as read

    options.check_environment()
    begun = time.perf_counter()
    model = read(path, threads=threads, verify=verify)
    _log.info("loaded %s in %.4f s", _name(path), time.perf_counter() - begun)
    return model


def _must_be_module(mod: Any) -> None:
    if not isinstance(mod, IRModule | BaseFunc):
        raise ModelError(f"this is not a module: {type(mod).__name__}", hint="give an IRModule (rd.import_model makes one of a model) or one of its functions")


def _name(model: Any) -> str:
    return escape.name(Path(model).name) if isinstance(model, str | Path) else type(model).__name__
