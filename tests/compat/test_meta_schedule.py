# SPDX-License-Identifier: Apache-2.0
"""Tuning by TVM's names."""

import numpy as np
import pytest
from roundel.compat.tvm.s_tir.meta_schedule.relax_integration import extract_tasks

import roundel.compat.tvm as tvm
from roundel.compat.tvm import meta_schedule as ms
from roundel.compat.tvm import relax
from roundel.compat.tvm.relax.frontend import nn
from roundel.compat.tvm.script import ir as I
from roundel.compat.tvm.script import tir as T


@I.ir_module
class Product:
    @T.prim_func
    def main(A: T.Buffer((32, 16), "float32"), B: T.Buffer((16, 24), "float32"), C: T.Buffer((32, 24), "float32")):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i, j, k in T.grid(32, 24, 16):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = 0.0
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


tried = []


def tiled(sch: tvm.tir.Schedule):
    block = sch.get_block("C", "main")
    i, j, k = sch.get_loops(block=block)
    outer, inner = sch.split(loop=j, factors=sch.sample_perfect_tile(loop=j, n=2))
    sch.reorder(i, outer, k, inner)
    sch.decompose_reduction(block, k)
    tried.append(sch)


@pytest.mark.parametrize("space", [ms.space_generator.ScheduleFn(tiled), "post-order-apply"], ids=["function", "rules"])
def test_a_tensor_program(space, tmp_path):
    tried.clear()
    database = ms.tune_tir(mod=Product, target="llvm --num-cores=1", max_trials_global=3, num_trials_per_iter=3, space=space, work_dir=str(tmp_path))
    assert bool(tried) == (space != "post-order-apply") and database.path.exists()
    sch = ms.tir_integration.compile_tir(database, Product, "llvm --num-cores=1")
    assert sch.trace is not None
    rng = np.random.default_rng(0)
    a, b = (tvm.nd.array(rng.standard_normal(s, dtype=np.float32)) for s in ((32, 16), (16, 24)))
    tvm.build(sch.mod, target="llvm")["main"](a, b, c := tvm.nd.empty((32, 24)))
    np.testing.assert_allclose(c.numpy(), a.numpy() @ b.numpy(), rtol=1e-4, atol=1e-5)


def test_a_model(tmp_path):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(16, 8)

        def forward(self, x):
            return nn.op.relu(self.linear(x))

    mod, _ = Model().export_tvm({"forward": {"x": nn.spec.Tensor((4, 16), "float32")}})
    tasks = extract_tasks(relax.get_pipeline("zero")(mod), "llvm")
    assert tasks and all(t.task_name and t.weight == 1 and t.mod["main"] for t in tasks)
    tuned = relax.get_pipeline("static_shape_tuning", target="llvm", work_dir=str(tmp_path), total_trials=3)(mod)
    rng = np.random.default_rng(0)
    x, w, b = (rng.standard_normal(s, dtype=np.float32) for s in ((4, 16), (8, 16), (8,)))
    built = tvm.compile(tuned, target="llvm")
    np.testing.assert_allclose(relax.VirtualMachine(built, tvm.cpu())["forward"](x, w, b).numpy(), np.maximum(x @ w.T + b, 0), rtol=1e-4, atol=1e-5)
    built.export_library(tmp_path / "tuned.so")
    np.testing.assert_allclose(tvm.runtime.load_module(tmp_path / "tuned.so")["forward"](x, w, b), np.maximum(x @ w.T + b, 0), rtol=1e-4, atol=1e-5)
