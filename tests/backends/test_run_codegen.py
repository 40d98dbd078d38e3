# SPDX-License-Identifier: Apache-2.0
"""The cells of TVM's tutorial "Bring Your Own Codegen", its imports changed: patterns, partition, code generator, build and run.

The tutorial's code generator is a library in C++ that is compiled into TVM; here it is a backend in Python with the kernels in C.
"""

import numpy as np
import pytest
from roundel.compat.tvm.relax.dpl.pattern import is_op, wildcard

import roundel as rd
import roundel.compat.tvm as tvm
from roundel import backends
from roundel.compat.tvm import relax
from roundel.compat.tvm.relax.backend.pattern_registry import get_pattern, get_patterns_with_prefix, register_patterns
from roundel.compat.tvm.relax.backend.patterns import make_matmul_pattern
from roundel.compat.tvm.relax.transform import FuseOpsByPattern, MergeCompositeFunctions, PatternCheckContext, RunCodegen
from roundel.compat.tvm.script import relax as R

KERNELS = """
#include <stdint.h>
static void npu_conv(const float *x, const float *w, float *y, int64_t in, int64_t out, int64_t rows, int64_t columns, int64_t least) {
  int64_t height = rows + 2, width = columns + 2;
  for (int64_t o = 0; o < out; o++)
    for (int64_t r = 0; r < rows; r++)
      for (int64_t c = 0; c < columns; c++) {
        float sum = 0;
        for (int64_t i = 0; i < in; i++)
          for (int a = 0; a < 3; a++)
            for (int b = 0; b < 3; b++) sum += x[(i * height + r + a) * width + c + b] * w[((o * in + i) * 3 + a) * 3 + b];
        y[(o * rows + r) * columns + c] = least && sum < 0 ? 0 : sum;
      }
}
void npu_conv2d(const float *x, const float *w, float *y, int64_t i, int64_t o, int64_t r, int64_t c) { npu_conv(x, w, y, i, o, r, c, 0); }
void npu_conv2d_relu(const float *x, const float *w, float *y, int64_t i, int64_t o, int64_t r, int64_t c) { npu_conv(x, w, y, i, o, r, c, 1); }
"""
asked = []


def conv2d_relu_fused_pattern():
    input_tensor, weight = wildcard(), wildcard()
    conv = is_op("relax.nn.conv2d")(input_tensor, weight)
    relu = is_op("relax.nn.relu")(conv)
    annotations = {"input": input_tensor, "weight": weight, "conv": conv, "root": relu}

    def check(context: PatternCheckContext) -> bool:
        asked.append(sorted(context.annotated_expr))
        return True

    return "example_npu.conv2d_relu_fused", relu, annotations, check


def conv2d_pattern():
    return "example_npu.conv2d", is_op("relax.nn.conv2d")(wildcard(), wildcard()), {}


register_patterns([conv2d_pattern(), conv2d_relu_fused_pattern()])


def implement(c):
    """The code generator: what the tutorial has in C++."""
    if np.any(c.calls["nn.conv2d"].attrs["padding"]):
        return "it knows no padding"
    _, channels, rows, columns = c.result.shape
    symbol = "npu_conv2d_relu" if "nn.relu" in c.calls else "npu_conv2d"
    return backends.native(c, symbol, c.operands[0].shape[1], channels, rows, columns, source=KERNELS)


@pytest.fixture
def npu():
    backend = backends.register(backends.Backend("example_npu", [], implement))
    yield backend
    backends.unregister(backend)


@tvm.script.ir_module
class ConvReLU:
    @R.function
    def main(
        data: R.Tensor((1, 3, 32, 32), "float32"),
        weight: R.Tensor((16, 3, 3, 3), "float32"),
    ) -> R.Tensor((1, 16, 30, 30), "float32"):
        with R.dataflow():
            conv = relax.op.nn.conv2d(data, weight)
            out = relax.op.nn.relu(conv)
            R.output(out)
        return out


data_np = np.random.default_rng(0).standard_normal((1, 3, 32, 32), dtype="float32")
weight_np = np.random.default_rng(1).standard_normal((16, 3, 3, 3), dtype="float32")


def partitioned(mod=ConvReLU):
    npu_patterns = get_patterns_with_prefix("example_npu")
    npu_mod = FuseOpsByPattern(npu_patterns, bind_constants=False, annotate_codegen=True)(mod)
    return MergeCompositeFunctions()(npu_mod)


def test_the_pattern_that_was_registered_last_goes_first():
    assert [p.name for p in get_patterns_with_prefix("example_npu")] == ["example_npu.conv2d_relu_fused", "example_npu.conv2d"]
    assert get_pattern("example_npu.conv2d").name == "example_npu.conv2d" and get_pattern("example_npu.pool") is None
    text = partitioned().script()
    assert "example_npu.conv2d_relu_fused" in text and '"Codegen": "example_npu"' in text
    assert ["conv", "input", "root", "weight"] in asked
    with pytest.raises(rd.RoundelError, match="a pattern cannot be a str"):
        register_patterns(["conv2d"])


def test_patterns_of_backends_are_found_too():
    assert {p.name for p in get_patterns_with_prefix("openblas")} == {"openblas.matmul"}


def test_codegen_build_and_run(npu):
    npu_mod = RunCodegen()(partitioned())
    with tvm.transform.PassContext(opt_level=3):
        npu_exec = relax.build(npu_mod, tvm.target.Target("llvm"))
    npu_vm = relax.VirtualMachine(npu_exec, tvm.cpu())
    npu_out = npu_vm["main"](tvm.runtime.tensor(data_np, tvm.cpu()), tvm.runtime.tensor(weight_np, tvm.cpu()))
    assert npu_out.numpy().shape == (1, 16, 30, 30)
    np.testing.assert_allclose(npu_out.numpy(), rd.interpret(ConvReLU)["main"](data_np, weight_np), rtol=1e-4, atol=1e-4)
    assert "npu_conv2d_relu" in npu_mod.script(), "it is the backend's kernel that runs"


def test_parameters_that_are_bound_go_to_the_kernel(npu, tmp_path):
    bound = relax.transform.BindParams("main", {"weight": weight_np})(ConvReLU)
    mod = RunCodegen()(MergeCompositeFunctions()(FuseOpsByPattern(get_patterns_with_prefix("example_npu"), bind_constants=True)(bound)))
    model = rd.compile(mod, verify=True)
    expected = rd.interpret(ConvReLU)["main"](data_np, weight_np)
    np.testing.assert_allclose(model(data_np), expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(rd.load(model.save(tmp_path / "deployed.so"))(data_np), expected, rtol=1e-4, atol=1e-4)


def test_what_the_code_generator_cannot_compute_is_an_error_with_the_reason(npu):
    @tvm.script.ir_module
    class Padded:
        @R.function
        def main(data: R.Tensor((1, 3, 32, 32), "float32"), weight: R.Tensor((16, 3, 3, 3), "float32")):
            with R.dataflow():
                out = R.nn.conv2d(data, weight, padding=1)
                R.output(out)
            return out

    with pytest.raises(rd.RoundelError, match="example_npu cannot compute example_npu.conv2d\nit knows no padding"):
        RunCodegen()(partitioned(Padded))


def test_without_a_code_generator_of_that_name_it_says_which_there_are():
    with pytest.raises(rd.RoundelError, match="there is no backend 'example_npu'"):
        RunCodegen()(partitioned())


def test_a_partitioned_module_runs_without_its_code_generator():
    model = rd.compile(partitioned())
    np.testing.assert_allclose(model(data_np, weight_np), rd.interpret(ConvReLU)["main"](data_np, weight_np), rtol=1e-4, atol=1e-4)


def test_patterns_of_products():
    pattern, parts = make_matmul_pattern(with_bias=True, activation="relax.nn.relu", transposed_rhs=True)
    assert sorted(parts) == ["bias", "lhs", "rhs", "root"]

    @tvm.script.ir_module
    class Dense:
        @R.function
        def main(x: R.Tensor((4, 8), "float32"), w: R.Tensor((6, 8), "float32"), b: R.Tensor((6,), "float32")):
            with R.dataflow():
                out = R.nn.relu(R.add(R.matmul(x, R.permute_dims(w)), b))
                R.output(out)
            return out

    assert '"Composite": "kit.dense"' in FuseOpsByPattern([("kit.dense", pattern, parts)])(Dense).script()
