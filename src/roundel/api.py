# SPDX-License-Identifier: Apache-2.0
"""The public functions: compile a model, build or interpret a module, load a file. What kind of input it is decides the rest.

Everything heavy (onnx, torch, llvmlite) is imported when it is needed and not before.
"""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .ir import escape, options
from .ir.errors import MachineError, ModelError, OptionError, RoundelError
from .ir.garbage import rare_collection
from .ir.signatures import readable

if TYPE_CHECKING:
    from .build import Built
    from .ir.cache_entry import Entry
    from .ir.module import IRModule
    from .ir.tir import BaseFunc
    from .model_files import ModelFiles
    from .quantizer import Quantized
    from .runtime.executable import Executable
    from .runtime.model import Model
    from .target import TargetLike
    from .target.levels import Level
    from .tune import Result, Task
    from .tune.measured import Measured

_log = logging.getLogger("roundel.api")
_LARGE = 4 << 20  # bytes
_MOST_SIZE = 1 << 46  # of a dimension: what processors of today can address


@readable
@rare_collection()
def compile(model: Any, example_inputs: Sequence[Any] | None = None, *, target: TargetLike | Sequence[TargetLike] | None = None,  # noqa: A001
            threads: int | None = None,
            pipeline: Sequence[Any] | None = None, dynamic: Mapping[str, Any] | Sequence[Any] | bool | None = None,
            verify: bool | None = None, hot: Sequence[Mapping[str, int]] = (), accuracy: str | None = None, precision: str | None = None,
            weights: str | None = None, bounds_checks: bool | None = None, libraries: str | None = None, choices: Mapping[str, Any] | None = None,
            records: Any = None, observers: Sequence[Any] = (), profile: bool = False) -> Model:
    """Native code for a model: a `Model` to call, profile, explain and save.

        model = rd.compile("model.onnx")
        scores = model(x)                      # arrays in, arrays out; sizes may change from call to call
        model.save("model.so")

        rd.compile(module.eval(), (example,), dynamic=({0: torch.export.Dim("batch")},))

    What is compiled:

    - ``model``: the path or bytes of an ONNX file, an ``onnx.ModelProto``, the path of a GGUF file
      (of the llama architecture), a ``torch.nn.Module``, a ``torch.export.ExportedProgram``, or an
      `IRModule`.
    - ``example_inputs``: of a ``torch.nn.Module``, as many tensors as it takes; their types
      count, and their sizes where ``dynamic`` does not open them.
    - ``dynamic``: which sizes are open. An ONNX file says so itself, and a mapping fixes some
      of them: ``{"batch": 1}``. For PyTorch it is the ``dynamic_shapes`` of torch.export, or
      True for all sizes that can be open.
    - ``hot``: sizes that get code of their own beside the code for all sizes: ``[{"batch": 1,
      "seq": 128}]``.

    Where it runs:

    - ``target``: a name of ``roundel targets``, or such as ``"llvm -mcpu=znver3"``. Default:
      this machine. A list of machines, or ``"x86-64-any"`` and ``"aarch64-any"``, gives one file
      for all of them, of which the best that the processor can run is chosen when it is opened.
    - ``threads``: the most threads of one call. Default: all cores that the process may use.

    Numbers:

    - ``accuracy``: ``"strict"``, ``"default"`` or ``"fast"``. Strict leaves out algorithms that
      trade a digit for speed.
    - ``precision``: ``"bfloat16"``, ``"float16"`` or ``"auto"`` rounds the factors of matrix
      products and convolutions to 16 bits where the machine has instructions for that. Sums
      stay float32.
    - ``weights``: ``"float16"`` or ``"bfloat16"`` stores the weights of matrix products in 16
      bits. Sums stay float32.
    - ``bounds_checks``: whether indices that are data are checked at run time. Default: yes.
      Without, a wrong index reads or writes foreign memory.

    How it is chosen:

    - ``choices``: what is not left to the models of the machine, by names of nodes or patterns
      of names: algorithms, ``{"/layer1/*": "direct"}``, and decisions of kernels,
      ``{"/fc/MatMul": {"sketch": "contraction", "rows": 6}}``. What cannot be had is an error.
    - ``libraries``: backends, such as ``"openblas"``, whose kernels are used where they are
      expected, or were measured, to be faster.
    - ``records``: a database of measurements, or its path; kernels that were measured get the
      fastest schedule. Default: the user's own; False: none.

    To look inside:

    - ``verify``: run the interpreter after every pass, and name the first pass that changes
      results.
    - ``pipeline``: the passes to run in place of ``driver.DEFAULT``.
    - ``observers``: are told of every pass (`roundel.passes`).
    - ``profile``: build timers into the code, for ``Model.profile``.

    Returns a `Model`. It is kept on disk, so that the same call takes a fraction of a second the
    next time.

    Raises ModelError for what is no sound model, UnsupportedError (which lists all unsupported
    operators), OptionError for an option that cannot be, and BuildError where no code can be made;
    all are `RoundelError`.
    """
    from . import cache
    from .ir.choice import Choices
    from .origin import origin
    from .target import Target
    from .target.host import target_for
    from .target.levels import levels_of
    from .tune.measured import measured_for

    options.check_environment()
    begun = time.perf_counter()
    verify, threads = options.choose("verify", verify), options.choose("threads", threads)
    hot = [sizes_of_dimensions(sizes) for sizes in ([hot] if isinstance(hot, Mapping) else hot)]
    given = {name: value for name, value in (("accuracy", accuracy), ("precision", precision), ("weights", weights), ("bounds_checks", bounds_checks),
                                            ("libraries", libraries)) if value is not None}
    files, levels = _files(model), levels_of(target)
    is_library = target is None or bool(levels) or not Target(target).ending  # the cache keeps no others
    pipeline = _pipeline_of(target) if pipeline is None and not levels else pipeline
    kept = is_library and pipeline is None and not (verify or observers or profile) and files is not None
    if kept and files is not None and options.get("cache") and _is_large(files) and not files.known:
        _get_ready(files)
    machine = levels or (target if files is None else target_for(target, files.nbytes))  # else the module tells whether it is worth measuring
    arguments = {"target": target, "threads": threads, "dynamic": dynamic, "choices": choices, "records": records, "options": given}
    with options.override(**given):
        measured = None if levels else measured_for(records, machine, threads)
        asked = Choices.of(choices)
        known = (str(machine), repr(dynamic), repr(hot), repr(asked), *([] if measured is None else [measured.digest]))
        key = cache.model_key(files, (*known, *_library_versions(measured, [name for _, name in asked.asked]))) if kept else None
    if (found := _from_cache(key, threads)) is not None:
        _log.info("loaded %s from the cache in %.3f s", _name(model), time.perf_counter() - begun)
        found.origin = origin(model, example_inputs, arguments | _running(levels, found), found.metadata)
        return found
    if key is not None and files is not None and _is_large(files):
        _get_ready(files)

    def module() -> IRModule:
        from .host.specialize import specialize

        return specialize(import_model(model, example_inputs, dynamic=dynamic), hot, dynamic)

    settings = {"target": machine, "pipeline": pipeline, "verify": verify, "observers": observers, "choices": choices,
                "records": measured}
    with options.override(**given):
        built, entry = _built(model, files, key, module, settings)
    _log.info("compiled %s in %.2f s%s", _name(model), time.perf_counter() - begun, f", {measured}" if measured is not None else "")
    loaded = _of_entry(entry, threads)  # its weights are mapped, where linking in memory needs a copy of them
    loaded = loaded if loaded is not None else _in_memory(built, files, threads, profile)
    loaded.origin = origin(model, example_inputs, arguments | _running(levels, loaded), loaded.metadata)
    return loaded


def _running(levels: Sequence[Level], model: Model) -> dict[str, Any]:
    """The target that a model of several was opened for, as an argument."""
    found = next((level.target for level in levels if level.name == model.metadata["level"]), None)
    return {} if found is None else {"target": found}


def _pipeline_of(target: TargetLike | None) -> Sequence[Any] | None:
    """The pipeline that was registered for a target (None: this machine); None for the default one."""
    from .target.pipelines import are_registered, registered_pipeline

    if not are_registered():
        return None
    from .target import Target

    machine = Target(target) if target is not None else Target.host()
    return registered_pipeline(machine.cpu, machine.kind)


def _library_versions(measured: Measured | None, asked: Sequence[str]) -> list[str]:
    """What a model may become by libraries: the versions of those that may be called; ``asked`` are the names that choices ask for."""
    names = options.get("libraries")
    if names is None and measured is not None and measured.backends:
        names = ",".join(measured.backends)
    if not names and not asked:
        return []
    from .backends import known

    here = known.available()
    return [repr({name: known.find(name).current_version for name in dict.fromkeys([*known.wanted(names), *asked]) if name in here})]


def _from_cache(key: str | None, threads: int | None) -> Model | None:
    """What was compiled for this key before."""
    from . import cache

    return _of_entry(cache.find(key), threads) if key is not None else None


def _of_entry(entry: Entry | None, threads: int | None) -> Model | None:
    """The model of an entry of the cache; None where there is none, or where it cannot be loaded any more and has to be made again."""
    with suppress(RoundelError):
        return None if entry is None else _kept_model(entry, threads)
    return None


def _built(model: Any, files: ModelFiles | None, key: str | None, module: Callable[[], IRModule], settings: Mapping[str, Any]) -> tuple[Built, Entry | None]:
    """What ``module`` gives, compiled, and its entry in the cache where it has a ``key``. The model's source is hashed meanwhile."""
    from concurrent.futures import ThreadPoolExecutor

    from . import cache
    from .driver import compile_levels, compile_module
    from .ir import cache_folder
    from .passes.progress import shown
    from .passes.registry import flatten, name_of

    asked, measured = {"choices": dict(settings["choices"])} if settings["choices"] else {}, settings["records"]
    if settings["pipeline"] is not None:
        asked["pipeline"] = [name_of(p) for p in flatten(settings["pipeline"])]

    def notes() -> dict[str, Any]:
        return {"source": source.result(), **asked, **({"records": measured.summary()} if measured is not None else {})}

    with cache_folder.new_folder() if key is not None else nullcontext() as folder:
        with shown(f"compiling {_name(model)}"), ThreadPoolExecutor(1, "roundel-source") as thread:
            source = thread.submit(_source, model, files)
            made = compile_levels if isinstance(settings["target"], tuple) else compile_module
            built = made(module(), weights_file=folder and folder / "weights", notes=notes, **settings)
        if key is None or folder is None or files is None:
            return built, None
        from .build.kept import keep

        return built, cache.keep(key, folder, partial(keep, built), files.check_unchanged)


def _in_memory(built: Built, files: ModelFiles | None, threads: int | None, profile: bool) -> Model:
    """A model linked in memory, with a copy of its weights; one for another CPU can only be saved."""
    from .runtime import ForeignModel, Model

    built.capture()
    if files is not None:
        files.check_unchanged()
    try:
        executable = built.load(threads=threads, profile=profile)
    except MachineError as error:
        return ForeignModel(built.functions[0].info, built.metadata, built.save, str(error), built.nbytes)
    return Model(executable, saver=built.save)


def _source(model: Any, files: ModelFiles | None) -> dict[str, str]:
    """What the metadata of a compiled model tells of where it came from."""
    if isinstance(model, bytes | bytearray):
        return {"kind": "bytes", "sha256": hashlib.sha256(model).hexdigest()}
    if files is None:
        return {"kind": f"{type(model).__module__.split('.')[0]}.{type(model).__name__}"}
    return {"kind": "file", "file": Path(model).name, "sha256": files.digest()}


def _files(model: Any) -> ModelFiles | None:
    """The files of a model that is given by its path."""
    if not isinstance(model, str | Path) or not os.path.isfile(model):  # False also for what cannot be a name
        return None
    from .model_files import ModelFiles

    try:
        return ModelFiles(Path(model))
    except OSError as error:
        raise ModelError(f"{model} cannot be read", why=error.strerror or str(error)) from None


def _kept_model(entry: Entry, threads: int | None) -> Model:
    """A model of the cache, saved from there too: whatever becomes of the entry, it stays open. One for another CPU can only be saved."""
    from .runtime import ForeignModel, Model

    def save(out: Path, **how: Any) -> Path:
        from .build.bare_metal import is_no_board
        from .build.kept import link_again

        if how.pop("ram", None) is not None:
            raise is_no_board("this machine")
        return link_again(entry, out, **how)

    try:
        return Model(load(entry.path / "model.so", threads=threads).executable, saver=save)
    except MachineError as error:
        from .build.kept import described

        info, notes, nbytes = described(entry)
        return ForeignModel(info, notes, save, error.why or f"it {error.what.removeprefix('model.so ')}", nbytes)


def _is_large(files: ModelFiles) -> bool:
    """Whether a model is sure to mean much work."""
    return files.nbytes > _LARGE


def _get_ready(files: ModelFiles) -> None:
    """Start the processes that will help, and import what compiles, while the model's files are hashed (if they never were)."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as thread:
        hashed = thread.submit(lambda: files.content)
        from .build import compiler

        compiler.start()
        from . import driver  # noqa: F401 (what takes long to import)

        hashed.result()


def import_model(model: Any, example_inputs: Sequence[Any] | None = None, *, dynamic: Any = None) -> IRModule:
    """Any kind of model as a module of graph functions."""
    from .ir import IRModule

    if isinstance(model, IRModule):
        return model
    if type(model).__module__.startswith("roundel.quantizer"):
        return model.module
    if isinstance(model, str | Path) and Path(model).suffix in (".so", ".dylib"):
        raise ModelError(f"{model} is compiled already", hint="rd.load, `roundel run` and `roundel bench` take it; this needs the model that it came from")
    kind = type(model).__module__.split(".")[0]
    if isinstance(model, str | Path) and Path(model).suffix == ".gguf":
        from .frontend.gguf import from_gguf

        return from_gguf(model, dims=_sizes(dynamic))
    if isinstance(model, str | Path | bytes | bytearray) or kind == "onnx":
        from .frontend.onnx import from_onnx

        return from_onnx(model, dims=_sizes(dynamic))
    if kind == "torch" or hasattr(model, "forward"):
        from .frontend.torch import from_torch

        return from_torch(model, example_inputs, dynamic_shapes=dynamic)
    raise ModelError(f"this is not a model: {type(model).__name__}", hint="give a path to an ONNX file, an onnx.ModelProto, a torch.nn.Module "
                     "with example_inputs, a torch.export.ExportedProgram or an IRModule")


def import_relay(model: Any, params: Any = None, *, entry: str = "main") -> IRModule:
    """A Relay model of TVM 0.8 to 0.14, text or JSON, as a module of graph functions: to compile, build, interpret or print.

    ``model``: what ``mod.astext()`` or ``tvm.ir.save_json(mod)`` gave, or the path of a file with it. ``params``: arrays by name, what
    ``relay.save_param_dict`` gave, or the path of a file with it; they become constants, the other parameters of ``entry`` are inputs.
    Raises ModelError and UnsupportedError.
    """
    from .frontend.relay import from_relay

    return from_relay(model, params, entry=entry)


def _sizes(dynamic: Any) -> Mapping[str, int] | None:
    """What ``dynamic`` says of an ONNX model: sizes of symbolic dimensions that become fixed; raises OptionError."""
    if dynamic is None or dynamic is True:
        return None
    if not isinstance(dynamic, Mapping):
        raise OptionError(f"dynamic cannot be {escape.value(dynamic)} for an ONNX model",
                          hint='give sizes to symbolic dimensions, such as {"batch": 1}, or nothing')
    return sizes_of_dimensions(dynamic)


def sizes_of_dimensions(sizes: Any) -> dict[str, int]:
    """Sizes by the names of dimensions; raises OptionError."""
    if not isinstance(sizes, Mapping):
        raise OptionError(f"sizes cannot be {escape.value(sizes)}", hint='give them by name, such as {"batch": 1}')
    for name, size in sizes.items():
        if isinstance(size, bool) or not hasattr(size, "__index__") or not 0 <= size <= _MOST_SIZE:
            raise OptionError(f"dimension {escape.value(name)} cannot have the size {escape.value(size)}",
                              hint=f"a size is a whole number from 0 to {_MOST_SIZE}")
    return {name: int(size) for name, size in sizes.items()}


@readable
def quantize(model: Any, data: Any = None, example_inputs: Sequence[Any] | None = None, *, mode: str | None = None, bits: int = 8, group: int | None = None,
             symmetric: bool = True, per_channel: bool = True, ranges: str = "min-max", percentile: float = 99.99, exclude: Sequence[str] = (),
             dynamic: Mapping[str, Any] | Sequence[Any] | bool | None = None) -> Quantized:
    """A model whose products with constant weights are products of integers, without training.

        small = rd.quantize("model.onnx", pictures)
        print(small)                       # what each layer loses, the worst first
        model = rd.compile(small)
        small.save("model.int8.onnx")      # for other tools, where the model was ONNX

    - ``model``, ``example_inputs``, ``dynamic``: as of `compile`. Of a ``torch.nn.Module``, the first
      of ``data`` is its example unless one is given.
    - ``data``: calibration data, some inputs of the kind that the model will see: an iterable of
      mappings from input names to arrays, of sequences of arrays, or of arrays where the model
      has one input.
    - ``mode``: ``"static"`` rounds what goes into matrix products and convolutions to uint8 within
      the range that it had in the calibration data; ``"dynamic"`` finds the range in each run;
      ``"weights"`` rounds the weights of matrix products alone. Default: static with data,
      dynamic without.
    - ``bits``: of weights, 8, or 4 with mode ``"weights"``.
    - ``group``: so many weights of a column share a scale (16 to 256), with mode ``"weights"``.
      Default: 32 for 4 bits, else a whole column.
    - ``symmetric``: whether weights have no zero point of their own.
    - ``per_channel``: whether each channel of a weight has a scale of its own.
    - ``ranges``: ``"min-max"``, or ``"percentile"``, which leaves out what is rare, so that so
      many percent (``percentile``) of the numbers are inside.
    - ``exclude``: what stays as it is: names of nodes, patterns of names (``"/head/*"``), or kinds
      (``"conv"``, ``"matmul"``).

    Returns a `Quantized`, with the error of each layer. Raises OptionError for settings that do not fit
    together or leave nothing to quantise, CallError for data that does not fit the inputs, and what
    `import_model` raises.
    """
    from .quantizer import Settings, example_of
    from .quantizer import quantize as quantized

    settings = Settings(mode or ("dynamic" if data is None else "static"), bits, group, symmetric, per_channel, ranges, percentile,
                        (exclude,) if isinstance(exclude, str) else tuple(exclude))
    is_onnx = isinstance(model, bytes | bytearray) or type(model).__module__.split(".")[0] == "onnx"
    is_onnx |= isinstance(model, str | Path) and Path(model).suffix != ".gguf"
    if example_inputs is None and data is not None and hasattr(model, "forward"):
        example_inputs, data = example_of(data)
    return quantized(import_model(model, example_inputs, dynamic=dynamic), data, settings=settings, source=model if is_onnx else None)


@readable
def build(mod: Any, target: TargetLike | None = None, **options_: Any) -> Executable:
    """Functions of a module, or one function, to call by name.

        rt = rd.build(program)
        rt["main"](a, b, out)

    - ``mod``: an `IRModule` or one of its functions. A tensor program writes into the arrays
      that are passed for its outputs, and runs by its schedule as it stands (`rd.auto_schedule`
      gives it one); a graph function returns its results.
    - ``target``: as for `rd.compile`; ``options_``: those of ``driver.build_module``, such as
      ``threads``.

    Returns an `Executable`. Raises RoundelError.
    """
    from .driver import build_module
    from .strategy.advice import warn_of_plain_loops

    _must_be_module(mod)
    warn_of_plain_loops(mod)
    return build_module(mod, target=target, **options_)


def auto_schedule(program: IRModule | BaseFunc, target: TargetLike | None = None) -> Any:
    """Tensor programs as the compiler would schedule them: a function or a whole module, of which those that have a schedule stay as they are.

    What comes back is of the kind that was given, to print, change further, interpret or build. Raises ModelError for what is neither.
    """
    from . import driver
    from .ir import IRModule
    from .ir.tir import PrimFunc
    from .strategy import is_unscheduled, schedule_program

    _must_be_module(program)
    machine = driver.target_of(target)

    def scheduled(name: str, func: BaseFunc) -> BaseFunc:
        return schedule_program(func, machine, name=name)[0] if isinstance(func, PrimFunc) and is_unscheduled(func) else func

    if isinstance(program, IRModule):
        return program.with_functions({name: scheduled(name, func) for name, func in program.items()})
    return scheduled(str(program.attrs.get("global_symbol", "main")), program)


class _Tune:
    """``rd.tune``: a function that has the names of the room ``roundel.tune`` too."""

    @readable
    def __call__(self, model: Any, example_inputs: Sequence[Any] | None = None, *, target: TargetLike | None = None, dynamic: Any = None, sizes: Any = None,
                 threads: int | None = None, seconds: float | None = None, trials: int | None = None, space: Any = "all", search: Any = "evolutionary",
                 db: Any = None, builder: Any = None, runner: Any = None, seed: int = 0, watch: Callable[[Any], None] = lambda session: None,
                 postprocessors: Sequence[Any] = (), mutators: Sequence[Any] = (), libraries: str | None = None,
                 graphs: int | None = None) -> Result:
        """Measure schedules of a model's kernels; the fastest go into a database that ``rd.compile`` reads.

            rd.tune("model.onnx", seconds=600)
            model = rd.compile("model.onnx")       # with what was found

        What is tuned:

        - ``model``: what ``rd.compile`` takes (also ``example_inputs``, ``target``, ``dynamic``), a
          tensor program, a tensor expression, or a list of tasks of `tasks`.
        - ``sizes``: values of symbolic dimensions to tune for, as for `tasks`; ``threads``: of a
          call.

        For how long (what is reached first ends the search, as Ctrl-C does; without either there
        are 64 trials for each task):

        - ``seconds``, import of the model and the last comparisons counted, and ``trials``:
          candidates in all, those of earlier sessions in the same database counted.

        How it is searched:

        - ``space``: ``"all"`` sketches, those of hand-written ``"rules"``, ``"generic"`` ones, or a
          list of rules, also of your own.
        - ``search``: ``"evolutionary"``, ``"random"``, ``"exhaustive"``, ``"replay"``, or a class
          derived from ``Search``; ``seed``: of its random numbers.
        - ``postprocessors``, ``mutators``: functions behind and beside all sketches of the space,
          as for ``strategy.refine.refined``.
        - ``libraries``: backends such as ``"openblas"``, or your own (`roundel.backends`), whose
          kernels are measured beside generated code for the parts of a model that they can compute;
          where one is surely faster and right, later compiles use it. Default: the option
          ``libraries``. ``trials=0`` measures libraries alone.
        - ``graphs``: whole models with other choices of the graph (algorithms, layouts, boundaries
          of kernels, packing) that are measured first; the fastest is tuned further. 0: none.
          Default: 8, less for few ``trials``.

        How it is measured:

        - ``builder``, ``runner``: who builds and who measures. Default: child processes on this
          machine.
        - ``db``: a database or its path. Default: the user's own.
        - ``watch``: is called with the session whenever something was measured.

        A schedule that is not surely faster than the untuned compiler's by one part in a hundred
        is not used. Raises RoundelError.
        """
        from .backends import known
        from .tune.api import tune as tune_tasks

        begun, is_list = time.monotonic(), isinstance(model, list)
        given = None if is_list else _as_tuned(model, example_inputs, dynamic)
        names = known.wanted(options.choose("libraries", libraries))
        with options.override(libraries="off"):
            return tune_tasks(model if is_list else None, threads=threads, seconds=seconds, trials=trials, space=space, search=search, db=db,
                              builder=builder, runner=runner, seed=seed, watch=watch, mod=given, sizes=sizes, postprocessors=postprocessors,
                              mutators=mutators, libraries=names, target=target, begun=begun, graphs=graphs)

    def tasks(self, model: Any, example_inputs: Sequence[Any] | None = None, *, target: TargetLike | None = None, dynamic: Any = None,
              sizes: Any = None) -> list[Task]:
        """What there is to tune: the tensor programs of a model, equal ones once, with ``weight``, the calls of them in a run.

        ``sizes``: values of symbolic dimensions, ``{"seq": [17, 128]}``, or a list of such mappings, each with one value for a dimension, or of pairs
        of a mapping and its weight. Programs that have a schedule, or a pinned sketch, are left out. Raises RoundelError.
        """
        from .tune.task import tasks

        return tasks(_as_tuned(model, example_inputs, dynamic), target=target, sizes=sizes)

    def __getattr__(self, name: str) -> Any:
        from .tune import __getattr__ as named

        return named(name)

    def __dir__(self) -> list[str]:
        from .tune import __all__ as names

        return [*super().__dir__(), *names]


tune = _Tune()


def _as_tuned(model: Any, example_inputs: Sequence[Any] | None, dynamic: Any) -> Any:
    """A tensor program or expression as it is, anything else as a module."""
    from . import te
    from .ir import BaseFunc

    return model if isinstance(model, BaseFunc | te.Tensor) else import_model(model, example_inputs, dynamic=dynamic)


def interpret(mod: Any) -> Any:
    """The same functions, run by the reference interpreter."""
    from .interp import interpret as run

    _must_be_module(mod)
    return run(mod)


@readable
def load(path: str | Path, *, threads: int | None = None, verify: bool = False) -> Model:
    """A model saved by ``Model.save`` or ``roundel compile``.

    - ``path``: of the library; a file of weights, if it has one, lies beside it.
    - ``threads``: the most threads of one call. Default: all cores that the process may use.
    - ``verify``: read and check all weights. Without, the sizes of the files, code and tables
      are checked before anything is loaded, and weights of up to 4 MiB.

    Raises ModelError for a damaged file, MachineError (a CallError) for one that is for another CPU.
    """
    from .runtime.loader import load as read

    options.check_environment()
    if not isinstance(path, str | os.PathLike):
        raise ModelError(f"this is not the path of a file: {type(path).__name__}", hint='give it as text or pathlib.Path, such as "model.so"')
    begun = time.perf_counter()
    model = read(path, threads=threads, verify=verify)
    _log.info("loaded %s in %.4f s", _name(path), time.perf_counter() - begun)
    return model


def _must_be_module(mod: Any) -> None:
    from .ir import BaseFunc, IRModule

    if not isinstance(mod, IRModule | BaseFunc):
        raise ModelError(f"this is not a module: {type(mod).__name__}", hint="give an IRModule (rd.import_model makes one of a model) or one of its functions")


def _name(model: Any) -> str:
    return escape.name(Path(model).name) if isinstance(model, str | Path) else type(model).__name__
