# SPDX-License-Identifier: Apache-2.0
"""Models written in Python: ``from roundel.relax.frontend import nn``; parameters that an importer kept as inputs."""

from __future__ import annotations

import numpy as np

from roundel.ir import IRModule

from . import nn


def detach_params(mod: IRModule) -> tuple[IRModule, dict[str, list[np.ndarray]]]:
    """The module without the values of the parameters that its functions take, and those values by function, in the order of the parameters
    (``from_exported_program(program, keep_params_as_input=True)`` attaches them)."""
    values = {name: [c.data.numpy() for c in f.attrs["params"]] for name, f in mod.items() if "params" in f.attrs}
    return mod.with_functions({name: mod[name].without_attr("params") for name in values}), values


__all__ = ["detach_params", "nn"]
