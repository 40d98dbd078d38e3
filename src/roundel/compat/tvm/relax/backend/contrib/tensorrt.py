# SPDX-License-Identifier: Apache-2.0
"""``tvm.relax.backend.contrib.tensorrt``: the parts of a graph that TensorRT computes, as functions of their own. It has no code generator here."""

from __future__ import annotations

from ......ir.module import IRModule
from ......relax.fuse_by_pattern import fuse_by_pattern
from ......relax.merge_composites import merge_composites
from ..operators import patterns_of
from ..pattern_registry import get_patterns_with_prefix, register_patterns

_UNARY = ("nn.relu sigmoid nn.silu tanh exp log sqrt abs negative sin cos atan ceil floor erf nn.softmax expand_dims squeeze layout_transform nn.max_pool2d "
          "nn.avg_pool2d nn.max_pool3d nn.avg_pool3d nn.adaptive_avg_pool2d sum prod max min mean split").split()
_BINARY = "add subtract multiply divide power maximum minimum nn.conv1d nn.conv2d nn.conv3d nn.conv2d_transpose nn.conv3d_transpose reshape".split()
register_patterns(patterns_of("tensorrt", {
    **{name: (name, 1) for name in _UNARY}, "transpose": ("permute_dims", 1), "concatenate": ("concat", 1),
    **{name: (name, 2) for name in _BINARY}, "nn.batch_matmul": ("matmul", 2), "nn.layer_norm": ("nn.layer_norm", 3), "clip": ("clip", 3)}))


def partition_for_tensorrt(mod: IRModule) -> IRModule:
    """Neighbours that TensorRT computes become a function with ``Codegen: "tensorrt"``, their weights in it."""
    return merge_composites(fuse_by_pattern(mod, get_patterns_with_prefix("tensorrt"), True, False))


__all__ = ["partition_for_tensorrt"]
