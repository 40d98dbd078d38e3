# SPDX-License-Identifier: Apache-2.0
"""Views of a tensor program on its way to machine code, for people."""

from __future__ import annotations

from ..codegen import backend_of
from ..ir import IRModule, tir
from ..ir.dataclass import dataclass
from ..target import TargetLike
from .build import as_module, lowered, machine_spec
from .units import Units


@dataclass(frozen=True)
class Inspection:
    """``program`` before and ``lowered`` after lowering, LLVM text as generated and after its passes, assembly."""

    program: tir.PrimFunc
    lowered: tuple[tir.PrimFunc, ...]
    llvm: str
    optimised: str
    assembly: str

    @property
    def script(self) -> str:
        """The lowered program and its tasks in script."""
        return "\n\n".join(f.script() for f in self.lowered)


def inspect(mod: IRModule | tir.PrimFunc, name: str | None = None, target: TargetLike | None = None) -> Inspection:
    """What becomes of one tensor program (default: the only one, or ``main``)."""
    mod = as_module(mod)
    name = name or ("main" if "main" in mod else next(iter(mod)))
    target = target if target is not None else mod.attrs.get("target")
    flat = lowered(mod)
    spec = machine_spec(target)
    backend = backend_of(spec.backend)
    units = Units(flat, spec)
    unit = [*units.unit(name)][-1]
    tasks = [
        f
        for n, f in flat.items()
        if isinstance(f, tir.PrimFunc) and f.attrs.get("kind") == "task" and n.startswith(name + "_task")
    ]
    return Inspection(
        mod[name],
        (flat[name], *tasks),
        unit.text,
        backend.optimised(unit.text, spec, unit.pipeline),
        backend.assembly(unit.text, spec, unit.pipeline),
    )
