# SPDX-License-Identifier: Apache-2.0
"""``tvm.relax.backend.contrib.example_npu``: the patterns of the accelerator of TVM's tutorial, registered. It has no code generator here."""

from __future__ import annotations

from ......relax.patterns import is_op, wildcard
from ..operators import patterns_of
from ..pattern_registry import register_patterns

_SINGLE = {"batch_norm": ("nn.batch_norm", 5), "softmax": ("nn.softmax", 1), "max_pool2d": ("nn.max_pool2d", 1), "avg_pool2d": ("nn.avg_pool2d", 1),
           "add": ("add", 2), "multiply": ("multiply", 2), "relu": ("nn.relu", 1), "relu6": ("nn.relu6", 1), "sigmoid": ("sigmoid", 1), "tanh": ("tanh", 1),
           "gelu": ("nn.gelu", 1), "conv1d": ("nn.conv1d", 2), "conv2d": ("nn.conv2d", 2), "dense": ("matmul", 2), "matmul": ("matmul", 2)}
register_patterns([*patterns_of("example_npu", _SINGLE),
                   *((f"example_npu.{op.rpartition('.')[2]}_relu_fused", is_op("relax.nn.relu")(is_op(f"relax.{op}")(wildcard(), wildcard())), {})
                     for op in ("matmul", "nn.conv2d"))])
