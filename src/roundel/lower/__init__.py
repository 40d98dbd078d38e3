# SPDX-License-Identifier: Apache-2.0
"""From scheduled tensor programs to flat loops: what code generation for processors takes.

``lower(mod)`` runs ``PIPELINE``, a plain list of passes in the order in which they are read here:

- programs that compute with complex numbers are refused (``complex_elements``)
- scalable vectors get the machine's length, jumps become conditions, returned scalars stores (``fixed_vectors``,
  ``returned_values``)
- indices become int64, shapes parameters, blocks loops and stores (``widen_indices``, ``explicit_shape_params``,
  ``lower_blocks``)
- conditions on data are asked where the rest of the condition holds (``guarded_loads``)
- the last tile of a symbolic number of rows gets the height that it needs, and its rows no conditions (``short_tiles``, ``whole_rows``)
- memory moves to where it is used and shrinks to what is used there (``place_allocations``)
- boundary conditions leave the main loops (``split_vectors``, ``partition_loops``, ``hoist_conditions``), and counts that become floats have 32 bits
  (``narrow_counts``)
- vectorized loops become vector statements, unrolled loops are written out (``vectorize``, ``unroll``)
- buffers in the memories of an accelerator get their places, and its engines wait for each other (``engines``)
- register tiles consist of whole vectors, buffers that can live in registers do, parallel loops become tasks, and tiles get the registers that
  the processor has for them (``whole_vectors``, ``register_tiles``, ``outline_tasks``, ``tile_registers``)
- loops that may take long get places where the run can be ended (``checkpoints``)
- in C source indices of 32 bits where that is enough (``narrow_indices``)
"""

from __future__ import annotations

from roundel.ir import IRModule

from .checkpoints import checkpoints
from .complex_elements import complex_elements
from .engines import engines
from .explicit_shape_params import explicit_shape_params, shape_params
from .finish import mark_kernels
from .fixed_vectors import fixed_vectors
from .flat import check_flat
from .flatten_accesses import flatten_accesses
from .guarded_loads import guarded_loads
from .hoist_conditions import hoist_conditions
from .hoist_values import hoist_values
from .kernel_pass import is_kernel, kernel_pass
from .lower_blocks import lower_blocks
from .narrow_counts import narrow_counts
from .narrow_indices import narrow_indices
from .outline_tasks import outline_tasks
from .partition_loops import partition_loops
from .place_allocations import place_allocations
from .prefetch import prefetch
from .register_tiles import register_tiles
from .returned_values import returned_values
from .serial_threads import serial_threads
from .shared_vectors import shared_vectors
from .short_tiles import short_tiles
from .simplify import simplify
from .split_vectors import split_vectors
from .tile_registers import tile_registers
from .unroll import unroll
from .vectorize import vectorize
from .whole_rows import whole_rows
from .whole_vectors import unmask_registers, whole_vectors
from .widen_indices import widen_indices

PIPELINE = [
    complex_elements,
    fixed_vectors,
    returned_values,
    widen_indices,
    explicit_shape_params,
    lower_blocks,
    serial_threads,
    simplify,
    guarded_loads,
    whole_vectors,
    short_tiles,
    whole_rows,
    place_allocations,
    flatten_accesses,
    prefetch,
    split_vectors,
    partition_loops,
    hoist_conditions,
    simplify,
    narrow_counts,
    vectorize,
    unroll,
    engines,
    simplify,
    shared_vectors,
    hoist_values,
    register_tiles,
    unmask_registers,
    outline_tasks,
    tile_registers,
    checkpoints,
    narrow_indices,
    mark_kernels,
]


def lower(mod: IRModule) -> IRModule:
    """Every tensor program of the module in flat form (see ``flat``); host functions and tasks are left alone."""
    for step in PIPELINE:
        mod = step(mod)
    return mod


__all__ = [
    "PIPELINE",
    "check_flat",
    "checkpoints",
    "explicit_shape_params",
    "flatten_accesses",
    "guarded_loads",
    "hoist_conditions",
    "hoist_values",
    "is_kernel",
    "kernel_pass",
    "lower",
    "lower_blocks",
    "mark_kernels",
    "outline_tasks",
    "partition_loops",
    "place_allocations",
    "prefetch",
    "register_tiles",
    "serial_threads",
    "shape_params",
    "shared_vectors",
    "short_tiles",
    "simplify",
    "split_vectors",
    "unroll",
    "vectorize",
    "widen_indices",
]
