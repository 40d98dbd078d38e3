# SPDX-License-Identifier: Apache-2.0
"""ONNX's backend interface, and a sample of its suite: one case of most families."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.backend.test.loader import load_model_tests

from roundel.embed.onnx import backend
from roundel.embed.onnx.conformance import run

SAMPLE = """
add relu softmax_axis_0 basic_conv_with_padding lstm_with_peepholes gru_bidirectional rnn_seq_length if loop11 loop13_seq scan9_sum
sequence_map_add_2_sequences optional_get_element_sequence attention_4d_gqa layer_normalization_2d_axis0 nonzero_example
unique_sorted_with_axis compress_0 nonmaxsuppression_two_classes reshape_zero_dim slice_neg dft stft roialign_aligned_true
gridsample_bilinear col2im det_nd resize_downsample_scales_cubic_antialias qlinearconv qlinearmatmul_2D_uint8_float32 bernoulli_seed
ai_onnx_ml_tree_ensemble_single_tree adam maxunpool_export_without_output_shape tfidfvectorizer_tf_only_bigrams_skip0
attention_4d_causal_bf16 attention_4d_fp16 einsum_batch_diagonal affine_grid_2d cast_FLOAT_to_FLOAT4E2M1 reversesequence_time tensorscatter_circular hannwindow
""".split()


@pytest.fixture(scope="module")
def cases():
    return {c.name: c for c in load_model_tests(kind="node") if c.name.removeprefix("test_") in SAMPLE}


@pytest.mark.parametrize("name", SAMPLE)
def test_case(cases, name):
    case = cases["test_" + name]
    for inputs, wanted in case.data_sets:
        for got, want in zip(run(case.model, list(inputs)), wanted, strict=True):
            check(got, want, case, values="bernoulli" not in name)


def check(got, want, case, values=True):
    if isinstance(want, list):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            check(g, w, case)
        return
    want = onnx.numpy_helper.to_array(want) if isinstance(want, onnx.TensorProto) else np.asarray(want)
    assert got.dtype == want.dtype and got.shape == want.shape
    if values:
        np.testing.assert_allclose(got.astype("float64"), want.astype("float64"), rtol=case.rtol, atol=max(case.atol, 1e-6))


def test_interface():
    assert backend.supports_device("CPU") and not backend.supports_device("CUDA")
    node = onnx.helper.make_node("Add", ["a", "b"], ["c"])
    (out,) = backend.run_node(node, [np.float32([1, 2]), np.float32([3])])
    np.testing.assert_array_equal(out, [4, 5])
