# SPDX-License-Identifier: Apache-2.0
"""Converters of ONNX operators, one file per family; importing this package fills the table."""

from . import (
    control,
    data_dependent,
    elements,
    index,
    math,
    microsoft,
    microsoft_attention,
    microsoft_quantize,
    ml,
    ml_models,
    ml_trees,
    nn,
    normalization,
    quantize,
    random,
    recurrent,
    reduce,
    sequence,
    shape,
    signal,
    strings,
    tensor,
    training,
    vision,
)
