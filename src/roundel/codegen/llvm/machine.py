# SPDX-License-Identifier: Apache-2.0
"""LLVM itself, through llvmlite: text to object or assembly for a triple, CPU and features.

A kernel with explicit vectors is what it should be already: its accumulators are promoted to registers (``sroa``) and
little else runs. Scalar kernels get the whole pipeline with the loop vectoriser (``loops``: not that for straight code, which makes vectors
of the addresses of single writes and takes them apart again).
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ...ir.errors import BuildError
from ...target.spec import MachineSpec
from .features import of_llvm

PIPELINES = ("light", "full", "loops", "none")
_LONG = 100_000  # characters of a host function from which on registers are allocated fast: allocating them well takes more than linear time
_OPTIONS = ("--lsr-insns-cost=0",)  # addresses in loops: by registers first, as for most targets; a pointer for each load saves instructions, but spills
_PLAIN_ADDRESSES = "--disable-lsr"  # for WebAssembly: pointers that LLVM's loop strength reduction makes lose the offsets that loads and stores can add
_EMITTING = threading.Lock()


@functools.cache
def llvm_version() -> str:
    """LLVM's version and llvmlite's, and the options that LLVM is given."""
    import llvmlite
    import llvmlite.binding as llvm

    return " ".join([".".join(map(str, llvm.llvm_version_info)) + "/" + llvmlite.__version__, *_OPTIONS, _PLAIN_ADDRESSES])


@functools.cache
def _initialize() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    for option in _OPTIONS:
        llvm.set_option("roundel", option)
    return llvm


@functools.cache
def _machine(spec: MachineSpec) -> Any:
    llvm = _initialize()
    placed = ("static", "default") if spec.ending == ".wasm" else ("pic", "small")
    return llvm.Target.from_triple(spec.triple).create_target_machine(
        cpu=spec.cpu,
        features=of_llvm(spec.features),
        opt=spec.level,
        reloc=placed[0],
        codemodel=placed[1],
    )


_IMPORT = "\n; ---- imported text ----\n"
_OWN_MACHINE = re.compile(r'^target (triple|datalayout) = .*$', re.MULTILINE)


def with_imports(text: str, imports: Sequence[str]) -> str:
    """LLVM text with others behind it, whose functions it calls."""
    return _IMPORT.join((text, *imports))


def _link(module: Any, imported: str, head: str) -> None:
    """Take the functions of another text into a module, as its own. Raises BuildError."""
    llvm = _initialize()
    try:
        other = llvm.parse_assembly(head + _OWN_MACHINE.sub("", imported))
        names = [f.name for f in other.functions if not f.is_declaration]
        module.link_in(other)
    except RuntimeError as error:
        raise BuildError("LLVM does not accept the text of import_llvm or pragma_import_llvm", why=str(error).strip(),
                         hint=f"it has to be of LLVM {llvm_version()} or a little older") from error
    for name in names:
        module.get_function(name).linkage = "internal"


def _optimised(text: str, spec: MachineSpec, pipeline: str) -> tuple[Any, Any]:
    llvm, machine = _initialize(), _machine(replace(spec, level=0) if pipeline == "none" and len(text) > _LONG else spec)
    head = f'target triple = "{spec.triple}"\ntarget datalayout = "{machine.target_data}"\n'
    text, *imports = text.split(_IMPORT)
    try:
        module = llvm.parse_assembly(head + text)
    except RuntimeError as error:
        raise BuildError(
            "LLVM does not accept the generated code",
            why=str(error).strip(),
            hint="this is a bug in Roundel; please report it",
        ) from error
    for imported in imports:
        _link(module, imported, head)
    _check_intrinsics(module)
    if pipeline == "light":
        options = llvm.create_pipeline_tuning_options(1)
        builder = llvm.create_pass_builder(machine, options)
        passes = llvm.create_new_function_pass_manager()
        passes.add_sroa_pass()
        passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
        for function in module.functions:
            if not function.is_declaration:
                passes.run(function, builder)
    elif pipeline in ("full", "loops"):
        options = llvm.create_pipeline_tuning_options(2)
        options.loop_vectorization = options.loop_interleaving = True
        options.slp_vectorization = pipeline == "full"
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
    return module, machine


def _check_intrinsics(module: Any) -> None:
    """Raises BuildError for a call of an LLVM intrinsic that there is none of: those that LLVM knows have attributes as soon as they are declared."""
    for function in module.functions:
        if function.is_declaration and function.name.startswith("llvm.") and not any(function.attributes):
            raise BuildError(f"LLVM has no intrinsic {function.name}", why="T.call_llvm_intrin or T.call_llvm_pure_intrin names it",
                             hint="names have the types of their operands at the end: llvm.sqrt.f32, llvm.fma.v8f32")


def _emitted(spec: MachineSpec, emit: Callable[[Any], Any], module: Any) -> Any:
    """What LLVM makes of a module. Its options are the process's, not a machine's."""
    with _EMITTING:
        _initialize().set_option("roundel", f"{_PLAIN_ADDRESSES}={str(spec.ending == '.wasm').lower()}")
        return emit(module)


def to_object(text: str, spec: MachineSpec, pipeline: str = "light") -> bytes:
    """Compile LLVM text. Raises BuildError when LLVM reports an error (its fatal errors end the process)."""
    module, machine = _optimised(text, spec, pipeline)
    return _emitted(spec, machine.emit_object, module)


def to_assembly(text: str, spec: MachineSpec, pipeline: str = "light") -> str:
    """The same as assembly text, for people."""
    module, machine = _optimised(text, spec, pipeline)
    return _emitted(spec, machine.emit_assembly, module)


def optimised_text(text: str, spec: MachineSpec, pipeline: str = "light") -> str:
    """LLVM text after its passes."""
    return str(_optimised(text, spec, pipeline)[0])
