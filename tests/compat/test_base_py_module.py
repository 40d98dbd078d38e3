# SPDX-License-Identifier: Apache-2.0
"""Modules whose functions are methods on tensors of PyTorch: tensor programs, graph functions, Python functions, functions by name."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import roundel.compat.tvm as tvm  # noqa: E402
from roundel.compat.tvm import relax  # noqa: E402
from roundel.compat.tvm.relax.base_py_module import BasePyModule  # noqa: E402
from roundel.compat.tvm.relax.relax_to_pyfunc_converter import RelaxToPyFuncConverter  # noqa: E402
from roundel.compat.tvm.script import ir as I  # noqa: E402
from roundel.compat.tvm.script import relax as R  # noqa: E402
from roundel.compat.tvm.script import tirx as T  # noqa: E402


@I.ir_module
class Mixed(BasePyModule):
    @T.prim_func(s_tir=True)
    def outer_sum(x: T.handle, y: T.handle, z: T.handle):
        n, m = T.int64(), T.int64()
        X = T.match_buffer(x, (n,), "float32")
        Y = T.match_buffer(y, (m,), "float32")
        Z = T.match_buffer(z, (n, m + 1), "float32")
        for i, j in T.grid(n, m + 1):
            with T.sblock("sum"):
                vi, vj = T.axis.remap("SS", [i, j])
                Z[vi, vj] = X[vi] + T.if_then_else(vj < m, Y[vj], T.float32(0))

    @I.pyfunc
    def swish(self, x):
        return torch.sigmoid(x) * x

    @I.pyfunc
    def through(self, x, y):
        total = self.call_tir(self.outer_sum, [x, y], out_ty=R.Tensor((2, 4), "float32"))
        doubled = self.call_dps_packed("compat.modules.double", [self._convert_tvm_to_pytorch(total)], out_ty=R.Tensor((2, 4), "float32"))
        return self.swish(doubled)

    @R.function
    def add(x: R.Tensor(("n",), "float32"), y: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        return R.add(x, y)

    @R.function
    def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
        h = R.call_py_func("swish", (x,), out_ty=R.Tensor((2, 3), "float32"))
        return R.negative(h)


@tvm.register_func("compat.modules.double", override=True)
def double(x, out):
    out[:] = x.numpy() * 2


def _tensor(*shape):
    return torch.from_numpy(np.random.default_rng(1).standard_normal(shape, dtype=np.float32))


def test_functions_of_every_kind_call_each_other():
    mod = Mixed(device=tvm.cpu(0), target="llvm")
    x, y = _tensor(2), _tensor(3)
    total = 2 * (x[:, None] + torch.cat([y, torch.zeros(1)])[None])
    torch.testing.assert_close(mod.through(x, y), torch.sigmoid(total) * total)
    torch.testing.assert_close(mod.add(x, x), 2 * x)
    z = _tensor(2, 3)
    torch.testing.assert_close(mod.main(z), -torch.sigmoid(z) * z)
    torch.testing.assert_close(mod.call_py_func("swish", [z]), torch.sigmoid(z) * z)
    assert mod.list_functions() == {"tir": ["outer_sum"], "relax": ["add", "main"], "python": ["swish", "through"]}
    with pytest.raises(AttributeError, match="missing"):
        mod.missing


def test_symbolic_sizes_of_a_result_are_those_of_the_operands():
    n, m = T.int64(), T.int64()
    mod = Mixed()
    for sizes in ((2, 3), (5, 1)):
        made = mod.call_tir("outer_sum", [_tensor(sizes[0]), _tensor(sizes[1])], relax.TensorType((n, m), "float32"))
        assert made.shape == (sizes[0], sizes[1] + 1)


def test_a_graph_function_as_one_on_tensors_before_and_after_passes():
    @I.ir_module
    class Dense:
        @R.function
        def main(x: R.Tensor((2, 4), "float32"), w: R.Tensor((4, 3), "float32")) -> R.Tensor((2, 3), "float32"):
            return R.nn.relu(R.matmul(x, w))

    x, w = _tensor(2, 4), _tensor(4, 3)
    for mod in (Dense, relax.transform.CanonicalizeBindings()(Dense), relax.transform.LegalizeOps()(Dense)):
        torch.testing.assert_close(RelaxToPyFuncConverter(mod).convert("main").pyfuncs["main"](x, w), torch.relu(x @ w))
