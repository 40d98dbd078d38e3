# SPDX-License-Identifier: Apache-2.0
"""``build``: tensor programs and host functions to code that can be called."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, field
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from ..codegen import Function, backend_of
from ..ir import ConstData, IRModule, Rewriter, constants, graph, on, options, tir
from ..ir.dataclass import dataclass
from ..ir.dtype import VOID
from ..ir.errors import BuildError, OptionError
from ..ir.garbage import rare_collection
from ..ir.visit import statements, walk
from ..lower.facts import facts_of
from ..runtime import Executable, library, metadata, tensors, toolchain
from ..target import Target, TargetLike
from ..target.spec import MachineSpec, library_ending
from .compiler import compile_again, compile_units
from .descriptors import host_module
from .imported_c import imported_objects
from .interface import Interface, describe, exported, told_apart, with_sizes
from .jit import link_in_memory
from .kernels import compile_kernels, worth_sharing
from .link import link
from .units import Unit, Units
from .weights import Pieces, write_side_file

LIBRARY = "roundel_library"


@dataclass(frozen=True)
class Beside:
    """What a model is compiled beside, to be linked into one file with it. ``label`` tells its symbols from those of the others, whose weights (offset
    and bytes by key) take the first ``nbytes``: it uses what it needs of them, and its others lie behind."""

    label: str = ""
    offsets: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    nbytes: int = 0


ALONE = Beside()


class Built:
    """Compiled objects with what is needed to link them: in memory (``load``) or to a file (``save``). ``symbols``: of the kernels that the first
    objects are; ``library``: of the structure that describes the functions."""

    def __init__(
        self,
        objects: list[bytes],
        functions: list[Interface],
        weights: dict[str, ConstData],
        offsets: dict[str, tuple[int, int]],
        nbytes: int,
        target: TargetLike | None,
        metadata: dict[str, Any],
        spec: MachineSpec,
        written: Path | None = None,
        symbols: Sequence[str] = (),
        library: str = LIBRARY,
    ) -> None:
        self.symbols, self.library = symbols, library
        self.objects, self.functions, self.weights, self.offsets = objects, functions, weights, offsets
        self.nbytes, self.target, self.metadata, self.written = nbytes, target, metadata, written
        self.spec = spec
        self.captured: dict[str, np.ndarray] = {}
        self.levels: list[tuple[str, str]] = []

    def capture(self) -> None:
        """Hold the weights in memory of our own. Until then they may lie in the model's file or in tensors of the user's, or be made from
        such: afterwards the model stays what was compiled, whatever happens to those. They lie as in a file, in one block, which the system
        gives in huge pages where it has such; kernels that walk over small arrays here and there wait for addresses to be translated."""
        block = tensors.aligned_memory(self.nbytes if self.weights else 0)
        while self.weights:
            key = next(iter(self.weights))
            data, start = np.frombuffer(constant_bytes(self.weights[key]), np.uint8), self.offsets[key][0]
            self.captured[key] = block[start : start + data.size]
            self.captured[key][:] = data
            del self.weights[key]

    def load(self, *, threads: int | None = None, profile: bool = False) -> Executable:
        """Link in this process and open."""
        (address,), keep = link_in_memory(backend_of(self.spec.backend).linkable(self.objects, self.spec), library.symbols(), self.library)
        made = self.opened(address, keep, threads, profile)
        made.built, made.code = self, self.object_of
        made.save = self.save
        return made

    def opened(self, address: int, keep: Any, threads: int | None, profile: bool) -> Executable:
        """What is at an address of this process, which ``keep`` holds in memory, with these weights."""
        self.capture()
        arrays = [self.captured[key] for f in self.functions for key in f.constants]
        return Executable.from_address(address, constants=arrays, threads=threads, profile=profile, keep=(keep, self))

    def object_of(self, symbol: str) -> bytes:
        """The object that defines a symbol."""
        return next(content for content in self.objects if symbol.encode() + b"\0" in content)

    def save(self, path: str | Path, *, header: bool = False, **options: Any) -> Path:
        """Write a shared library, an object (``.o``), or of what was compiled for a target of kind ``c`` its source (``.c``), for WebAssembly a module
        (``.wasm``), and with ``header`` what its users include beside it; ``options`` are those of ``link``, ``write_source`` and ``write_module``.
        Of a machine without a system ``ram`` says how many bytes the model may take, and ``metadata["board"]`` afterwards how many it does. Raises
        BuildError, also for a model that needs Python, OptionError for another ending."""
        python = sorted({op for f in self.functions for op in f.info.extra.get("python", ())})
        if python:
            raise BuildError("the model cannot be shipped without Python", why=f"these operators are Python functions of this process: {', '.join(python)}",
                             hint="run it where it was compiled, or compute what they do outside of the model")
        if options.get("ram") is not None and not self.spec.is_bare:
            from .bare_metal import is_no_board

            raise is_no_board(self.spec.cpu)
        path, weights = Path(path), self.blob() if self.nbytes else None
        if options.get("max_size") is not None and self.spec.ending:
            raise OptionError(f"max_size is for libraries and objects, and {path.name} is neither", hint="leave it out")
        if path.suffix == self.spec.ending == ".c" or (self.spec.is_bare and path.suffix == ".o"):
            return self._save_source(weights, path, header=header, **options)
        if self.spec.is_bare:
            raise OptionError(f"{path.name}: a model for {self.spec.cpu} cannot be saved as {path.suffix or 'a file without an ending'}",
                              hint="a name that ends in .o gives an object to link into the board's program, one that ends in .c its source")
        if self.spec.ending == ".wasm":
            from .wasm import write_module

            return write_module(self.objects, self.functions, weights, path, triple=self.spec.triple, features=self.spec.features, header=header, **options)
        toolchain.check_output(path, ending=library_ending(self.spec.triple))
        return link(
            backend_of(self.spec.backend).linkable(self.objects, self.spec),
            weights,
            path,
            self.target,
            functions=[f.name for f in self.functions],
            header=[f.info for f in self.functions] if header else (),
            levels=self.levels,
            **options,
        )

    def _save_source(self, weights: Pieces | None, path: Path, *, ram: str | int | None = None, **options: Any) -> Path:
        from .source import memory_bytes, text_of, write_source

        write = functools.partial(write_source, self.objects, self.functions, weights, spec=self.spec, **options)
        if not self.spec.is_bare:
            return write(path)
        from .bare_metal import save_for_board

        is_sized = memory_bytes(text_of(self.objects, self.functions, self.spec), self.functions) is not None
        sizes = dict.fromkeys(d for f in self.functions for d in f.symbol_names)
        needs = save_for_board(write, path, self.spec.cpu, ram, is_sized=is_sized, sizes=list(sizes))
        if needs is not None:
            self.metadata["board"] = asdict(needs)
        return path

    def blob(self) -> Pieces:
        """The weights, each at its offset."""
        sources = {k: functools.partial(memoryview, a) for k, a in self.captured.items()}
        sources |= {k: functools.partial(constant_bytes, c) for k, c in self.weights.items()}
        return _pieces(sources, self.offsets, self.nbytes, self.written)


def _pieces(sources: Mapping[str, Callable[[], memoryview]], offsets: Mapping[str, tuple[int, int]], nbytes: int, written: Path | None = None) -> Pieces:
    return Pieces(nbytes, [(offset, sources[key]) for key, (offset, _) in offsets.items()], written=written)


def constant_bytes(constant: ConstData) -> memoryview:
    """The content of a constant as it lies in memory."""
    array = constant.numpy()
    if constant.dtype.storage_bits < 8:
        array = pack_bits(array, constant.dtype.storage_bits)
    return memoryview(array.reshape(-1).view(np.uint8))


def pack_bits(array: np.ndarray, bits: int) -> np.ndarray:
    """Elements narrower than a byte, packed, the lowest bits first."""
    flat = array.reshape(-1).view(np.uint8) & ((1 << bits) - 1)
    per = 8 // bits
    padded = np.zeros(-(-flat.size // per) * per, np.uint8)
    padded[: flat.size] = flat
    return functools.reduce(np.bitwise_or, [padded[k::per] << (k * bits) for k in range(per)])


def machine_spec(target: TargetLike | None) -> MachineSpec:
    """What a code generator is told of a target: a Target or what makes one; None is this machine. Raises BuildError for a kind without one, OptionError
    for a processor unknown to it."""
    if target is None:
        return MachineSpec.host()
    target = Target(target)
    backend = backend_of(target.kind)
    host = MachineSpec.host()
    if target.kind == host.backend and (target.triple, target.cpu, target.features) == _host_key():
        return host  # with what this machine lacks spelled out
    known = _named_processors().get((target.triple, target.cpu))
    spec = MachineSpec(target.triple, target.cpu, target.llvm_features, backend=target.kind)
    if known is None or not known.issuperset(target.features):
        backend.check(spec)
    return spec


@functools.cache
def _named_processors() -> dict[tuple[str, str], set[str]]:
    """The features of processors that LLVM is known to know."""
    return {(t.triple, t.cpu): set(t.features) for t in map(Target, Target.named())}


@functools.cache
def _host_key() -> tuple:
    host = Target.host()
    return host.triple, host.cpu, host.features


def lowered(mod: IRModule, pipeline: Sequence[Callable[[IRModule], IRModule]] | None = None) -> IRModule:
    """The module in flat form (``pipeline``: the passes to get there, default ``roundel.lower.PIPELINE``)."""
    if pipeline is None:
        from ..lower import PIPELINE

        pipeline = PIPELINE
    for step in pipeline:
        mod = step(mod)
    return mod


def _called(mod: IRModule) -> set[str]:
    """The names of instructions that the module's programs call as LLVM's intrinsics, for what they do."""
    calls = [s.value for _, f in mod.items() if isinstance(f, tir.PrimFunc) for s in statements(f.body) if type(s) is tir.Evaluate]
    return {c.args[0].value for c in calls if isinstance(c, tir.Call) and c.op == "call_llvm_intrin" and isinstance(c.args[0], tir.StringImm)}


@rare_collection()
def compile_module(
    mod: IRModule, target: TargetLike | None = None, *, pipeline: Sequence[Callable] | None = None, weights_file: Path | None = None,
    notes: Callable[[], Mapping[str, Any]] = dict, accept: Callable[[Mapping[str, str]], None] | None = None, beside: Beside = ALONE,
) -> Built:
    """Lower what is not lowered, generate, compile. ``weights_file``: where weights may be written to while others compile kernels, for
    ``save`` to have them. ``notes``: what the metadata is to tell besides, asked for at the end. ``beside``: with what it will share a file.

    ``accept`` is for candidates, which are many and alike, in a process that may end: it hears digests of the kernels' code by name before machine code is
    made, and may raise what ends it. All is compiled here then, and what several of them have in common once. Raises BuildError."""
    target, mod = target if target is not None else mod.attrs.get("target"), told_apart(mod)
    left = [n for n, f in mod.items() if isinstance(f, graph.Function)]
    if left:
        raise BuildError(
            f"graph function {left[0]} is not lowered",
            hint="compile the module with rd.compile, or run the default pipeline of roundel.driver first",
        )
    spec = machine_spec(target)
    made: list[Unit] = []
    done: dict[str, bytes] = {}
    keys, written = _host_constants(mod), None
    if pipeline is None and accept is None and worth_sharing(mod):
        def write_weights() -> None:
            nonlocal written
            written = weights_file and _written({key: _constant(mod, key) for key in keys}, weights_file)

        units, done = compile_kernels(mod, spec, write_weights)
    else:
        mod = lowered(mod, pipeline)
        units = Units(mod, spec, numbered=accept is not None)
        made += units.kernels()
        if accept is not None:
            accept(units.digests)
    functions, hosts = _hosts(mod, units, beside.label, is_timed=spec.backend != "c")  # C source is for where nothing tells the time
    weights = {key: _constant(mod, key) for key in dict.fromkeys([*keys, *(key for f in functions for key in f.constants)])}
    offsets, nbytes = layout(weights, beside)
    features = backend_of(spec.backend).features(spec, functools.partial(_called, mod))
    facts = {"version": __version__, "target": str(Target.host() if target is None else Target(target)), "triple": spec.triple, "cpu": spec.cpu,
             "features": features, "options": dict(options.shaping_code()), "kernels": _kernels(mod, functions, units),
             **notes(), **_extra(mod)}
    text = metadata.dump([f.info for f in functions], **facts)
    emitted = host_module(functions, hosts, spec, features, offsets, nbytes, text, beside.label)
    host = Unit("host functions", "host", emitted.text, emitted.pipeline, emitted.risky)
    if accept is not None:
        objects = [compile_again(unit, spec) for unit in (*made, host)]
    else:
        isolated = spec.triple.split("-")[0] != MachineSpec.host().triple.split("-")[0]
        objects = [*done.values(), *compile_units([*made, host], spec, isolated=isolated)]
    objects += imported_objects(mod, spec)
    return Built(objects, functions, weights, offsets, nbytes, target, facts, spec, written if len(weights) == len(keys) else None,
                 [*done, *(unit.symbol for unit in made)], LIBRARY + beside.label)


def _host_constants(mod: IRModule) -> list[str]:
    """Keys of the constants that host functions refer to."""
    hosts = (mod[name] for name in exported(mod) if mod[name].attrs.get("kind") == "host")
    calls = (n for func in hosts for n in walk(func.body) if type(n) is tir.Call and n.op == "constant_ptr")
    return list(dict.fromkeys(call.args[0].value for call in calls))


def _written(weights: Mapping[str, ConstData], path: Path) -> Path | None:
    """The side file of weights, unless the disk refuses: whoever saves them will be told."""
    offsets, nbytes = layout(weights)
    try:
        write_side_file(_pieces({k: functools.partial(constant_bytes, c) for k, c in weights.items()}, offsets, nbytes), path)
    except OSError:
        return None
    return path


def _kernels(mod: IRModule, functions: Sequence[Interface], units: Units) -> dict[str, Any]:
    """What the file tells of each kernel: the symbol of its code, and what the passes said of it."""
    return {name: {"symbol": units.symbols[name], **mod.choices.kernels.get(name, {})} for f in functions for name in f.kernels if name in units.symbols}


def _extra(mod: IRModule) -> dict[str, Any]:
    found = mod.attrs.get("metadata")
    return json.loads(json.dumps(dict(found))) if found else {}


def _hosts(mod: IRModule, units: Units, label: str, is_timed: bool) -> tuple[list[Interface], list[Function]]:
    functions: list[Interface] = []
    hosts: list[Function] = []
    has_host = any(isinstance(f, tir.PrimFunc) and f.attrs.get("kind") == "host" for _, f in mod.items())
    for name in exported(mod):
        func = units.func(name)
        if func.attrs.get("kind") != "host":
            try:
                functions.append(describe(mod, name, units.symbols[name], func))
            except BuildError:
                if not has_host:  # beside a model, a kernel that cannot be called from outside is just a kernel
                    raise
                continue
            functions[-1].constants = list(units.constants[name])
            functions[-1].kernels = [name]
            continue
        symbol = f"rd{label}.host.{len(functions)}"
        func, kernels = with_sizes(func), facts_of(func).callees
        if is_timed:
            func = _Timed(kernels).rewrite(func)
        hosts.append(Function(symbol, func, units.symbols.__getitem__))
        functions.append(describe(mod, name, symbol, func))
        functions[-1].constants = list(hosts[-1].facts.constants)
        functions[-1].kernels = kernels
    return functions, hosts


class _Timed(Rewriter):
    """A host function that takes the time of each kernel call where its library was opened to do so."""

    def __init__(self, kernels: list[str]) -> None:
        self.kernels = kernels

    @on(tir.Evaluate)
    def _evaluate(self, s: tir.Evaluate) -> tir.Stmt:
        if type(s.value) is not tir.Call or isinstance(s.value.op, str):
            return s
        index = tir.const(self.kernels.index(s.value.op.name), "int32")
        begin, end = (tir.Evaluate(tir.Call(n, (index,), VOID)) for n in ("start_profile", "stop_profile"))
        return tir.seq(begin, s, end)


def _constant(mod: IRModule, key: str) -> ConstData:
    if mod.constants and key in mod.constants:
        return mod.constants[key]
    try:
        return constants.lookup(key)
    except KeyError:
        raise BuildError(
            f"the constant {key} is gone",
            why="no module of this process holds it any more",
            hint="keep the module that it came from alive",
        ) from None


def layout(weights: Mapping[str, ConstData], beside: Beside = ALONE) -> tuple[dict[str, tuple[int, int]], int]:
    """Offset and bytes of each constant in the weights, 64-byte aligned, and the total; with those of others ``beside`` it, which come first."""
    offsets, end = dict(beside.offsets), beside.nbytes
    for key, constant in weights.items():
        if key in offsets:
            continue
        start = (end + 63) // 64 * 64
        offsets[key] = start, constant.nbytes
        end = start + constant.nbytes
    return offsets, end


def build(
    mod: IRModule | tir.PrimFunc,
    target: TargetLike | None = None,
    *,
    threads: int | None = None,
    profile: bool = False,
    pipeline: Sequence[Callable] | None = None,
) -> Executable:
    """Compile a module (or one tensor program) for ``target`` (default: the module's, else this machine) and load it.

    The result maps names to functions: a tensor program writes into the arrays it is given, a graph function returns
    its results. ``result.save(path)`` writes a shared library. Raises BuildError.
    """
    return compile_module(as_module(mod), target, pipeline=pipeline).load(
        threads=threads, profile=profile
    )


def as_module(mod: IRModule | tir.BaseFunc) -> IRModule:
    """A single function as a module, under its ``global_symbol`` or ``main``."""
    if isinstance(mod, tir.BaseFunc):
        return IRModule({str(mod.attrs.get("global_symbol") or "main"): mod})
    return mod.without_externs()
