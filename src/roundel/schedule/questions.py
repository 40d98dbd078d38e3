# SPDX-License-Identifier: Apache-2.0
"""Which questions a primitive asks of a program before it changes it, by primitive; a test compares the table with what the primitives call.

To see why a primitive is refused, or to give one more safety, begin at the modules that ``WHERE`` names for the question.
"""

from __future__ import annotations

WHERE: dict[str, tuple[str, ...]] = {
    "order": ("ordering", "dependence", "distance"),
    "memory": ("sharing",),
    "results": ("inits",),
    "elements": ("limits", "stored", "copyable", "handed_on", "stages"),
}
"""The modules that answer a question: may instances or iterations come in another order (order); who else touches the memory, under which name (memory);
is each result of a reduction started and finished in time (results); which elements are touched, all of them, and told by what (elements).
What a question asks further of others is its own matter."""

QUESTIONS: dict[str, tuple[str, ...]] = {
    "bind": ("order",),
    "blockize": ("order", "memory", "results", "elements"),
    "cache_index": ("elements",),
    "cache_inplace": ("order", "memory", "elements"),
    "cache_read": ("order", "memory", "elements"),
    "cache_write": ("order", "memory", "results", "elements"),
    "compute_at": ("order", "memory", "results", "elements"),
    "compute_inline": ("order", "memory", "elements"),
    "decompose_padding": ("order", "memory", "elements"),
    "decompose_reduction": ("order", "results", "elements"),
    "fuse": ("order", "results"),
    "fuse_reduction_epilogue": ("order", "memory", "results", "elements"),
    "loop_partition": ("order",),
    "merge": ("order",),
    "merge_online": ("order",),
    "only_where_chosen": ("order", "memory"),
    "pad_einsum": ("order", "memory", "results", "elements"),
    "parallel": ("order",),
    "read_at": ("memory", "results", "elements"),
    "reindex": ("order", "memory", "elements"),
    "reindex_cache_read": ("order", "memory", "elements"),
    "reindex_cache_write": ("order", "memory", "results", "elements"),
    "reorder": ("order",),
    "reverse_compute_at": ("order", "memory", "results", "elements"),
    "reverse_compute_inline": ("order", "memory", "elements"),
    "rfactor": ("order", "results", "elements"),
    "rolling_buffer": ("order", "memory", "elements"),
    "run_once": ("order", "memory"),
    "sample_compute_location": ("order", "memory", "results", "elements"),
    "set_scope": ("order",),
    "slide_einsum": ("order", "memory"),
    "split": ("order",),
    "tensorize": ("order", "memory", "results", "elements"),
    "tile_einsum": ("order", "memory"),
    "transform_block_layout": ("order", "results"),
    "transform_layout": ("elements",),
    "vectorize": ("order",),
    "write_at": ("memory", "results", "elements"),
}
"""The primitives that ask any of these, and which. Others look, sample, or change annotations, names and loops of one iteration; ``drop_neutral``,
``drop_unused`` and ``skip_zeros`` ask of the form of blocks only; ``unsafe_set_dtype`` and its like are taken at their word."""
