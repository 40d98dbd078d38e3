# SPDX-License-Identifier: Apache-2.0
"""Names as TVM's documentation of several years has them: rooms that moved, arguments that were renamed, objects that change in place."""

import numpy as np
import pytest
from roundel.compat.tvm.relax.expr_functor import PyExprMutator, mutator

import roundel as rd
import roundel.compat.tvm as tvm
from roundel.compat import tvm_ffi
from roundel.compat.tvm import IRModule, relax, rpc, te, tirx, topi
from roundel.compat.tvm.relax.frontend import nn
from roundel.compat.tvm.relax.frontend.torch import from_exported_program
from roundel.compat.tvm.s_tir import Schedule
from roundel.compat.tvm.script import ir as I
from roundel.compat.tvm.script import relax as R
from roundel.compat.tvm.script import tirx as T
from roundel.compat.tvm.support import utils

RNG = np.random.default_rng(3)


def _array(*shape):
    return RNG.standard_normal(shape, dtype=np.float32)


@T.prim_func(s_tir=True)
def halve(x: T.handle, y: T.handle):
    n = T.int64()
    X = T.match_buffer(x, (n, 4), "float32")
    Y = T.match_buffer(y, (n, 4), "float32")
    for i, j in T.grid(n, 4):
        with T.sblock("half"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vi, vj] * T.float32(0.5)


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.act = nn.Linear(8, 4), nn.ReLU()

    def forward(self, x):
        return self.act(self.first(x))


def _perceptron():
    return Perceptron().export_tvm({"forward": {"x": nn.spec.Tensor(("n", 8), "float32")}})


def _run(mod, name, *arrays):
    vm = relax.VirtualMachine(tvm.compile(mod, target="llvm"), tvm.cpu())
    return vm[name](*map(tvm.runtime.tensor, arrays)).numpy()


def test_rooms_of_every_version_are_the_same_things():
    assert tirx is tvm.tir and Schedule is tvm.tir.Schedule and tvm.s_tir.Schedule is Schedule
    assert tvm.script.tirx is tvm.script.tir and relax.frontend.nn is nn
    assert tvm_ffi.structural_equal(IRModule({"f": halve}), IRModule({"f": halve}))


def test_struct_info_by_its_newer_name():
    n = T.int64()
    info = relax.TensorType((n, 4), "float32")
    x = relax.Var("x", info)
    assert x.ty is x.struct_info is info and isinstance(info, relax.TensorType) and isinstance(info, relax.TensorStructInfo)
    assert relax.TensorType(2, "int8").ndim == 2 and relax.TensorType(ndim=3).ndim == 3
    assert relax.ShapeType([n, 4]).ndim == relax.ShapeType(2).ndim == 2
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        program = bb.add_func(halve, "halve")
        assert program.name_hint == "halve"
        bb.emit_func_output(bb.emit(relax.call_tir(program, [x], out_ty=relax.TensorType((n, 4), "float32"))))

    @I.ir_module
    class Module:
        @T.prim_func(private=True, s_tir=True)
        def halve(x: T.handle, y: T.handle):
            n = T.int64()
            X = T.match_buffer(x, (n, 4), "float32")
            Y = T.match_buffer(y, (n, 4), "float32")
            for i, j in T.grid(n, 4):
                with T.sblock("half"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    Y[vi, vj] = X[vi, vj] * T.float32(0.5)

        @R.function
        def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
            n = T.int64()
            cls = Module
            return R.call_tir(cls.halve, (x,), out_ty=R.Tensor((n, 4), "float32"))

    data = _array(3, 4)
    for mod in (bb.get(), Module):
        np.testing.assert_array_equal(_run(mod, "main", data), data / 2)


def test_a_pipeline_by_name_gives_what_the_model_gives():
    mod, _ = _perceptron()
    lowered = relax.get_pipeline("zero")(mod)
    assert "call_tir" in lowered["forward"].script() and "R.linear" not in lowered.script()
    assert all("fused" in g.name_hint or "permute" in g.name_hint or g.name_hint == "forward" for g in lowered.get_global_vars()), "what was merged is gone"
    x, w, b = _array(5, 8), _array(4, 8), _array(4)
    np.testing.assert_allclose(_run(lowered, "forward", x, w, b), np.maximum(x @ w.T + b, 0), rtol=1e-5, atol=1e-6)

    @relax.register_pipeline("of a test")
    def steps(times=1):
        return tvm.transform.Sequential([relax.transform.LegalizeOps()] * times)

    assert "call_tir" in relax.get_pipeline("of a test", times=2)(mod).script()
    with pytest.raises(ValueError, match="already"):
        relax.register_pipeline("zero")
    with pytest.raises(tvm.TVMError, match="zero"):
        relax.get_pipeline("none")


def test_operators_are_known_by_their_names_in_tvm_too():
    @mutator
    class Rewriter(PyExprMutator):
        def visit_call_(self, call):
            if call.op.name == "relax.nn.relu":
                return relax.op.nn.gelu(call.args[0])
            return super().visit_call_(call)

    @tvm.transform.module_pass(opt_level=0)
    class ToGelu:
        def transform_module(self, mod, ctx):
            rewriter = Rewriter(mod)
            for var, func in mod.functions_items():
                rewriter.builder_.update_func(var, rewriter.visit_expr(func))
            return rewriter.builder_.get()

    changed = ToGelu()(_perceptron()[0]).script()
    assert "gelu" in changed and "relu" not in changed
    add = tvm.ir.Op.get("relax.add")
    assert add.name == "add" and add.name == "relax.add" and add.name != "relax.subtract" and add.name in ("relax.multiply", "relax.add")


def test_a_module_that_is_changed_in_place_leaves_others_alone():
    mod = IRModule({"main": halve})
    copy = mod.with_functions({"other": halve})
    twice = te.create_prim_func([a := te.placeholder((4,), name="a"), te.compute((4,), lambda i: a[i] * 2)])
    mod.update_func(mod.get_global_var("main"), twice)
    mod.update(IRModule({"more": halve}))
    assert mod["main"] is twice and mod["more"] is halve and copy["main"] is halve and list(mod) == ["main", "more"]


def test_functions_of_others_in_models_that_are_modules():
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(8, 4)

        def forward(self, x):
            n = x.shape[0]
            y = nn.extern("compat.rooms.linear", [x, self.linear.weight, self.linear.bias], out=nn.Tensor.placeholder((n, 4), "float32"))
            y = nn.tensor_expr_op(topi.nn.relu, "relu", [y])
            return nn.op.tensor_ir_op(halve, "halve", [y], out=nn.Tensor.placeholder((n, 4), "float32"))

    @tvm.register_global_func("compat.rooms.linear", override=True)
    def linear(x, w, b, out):
        out[:] = x @ w.T + b

    mod, _ = Mixed().export_tvm({"forward": {"x": nn.spec.Tensor(("n", 8), "float32")}})
    x, w, b = _array(3, 8), _array(4, 8), _array(4)
    np.testing.assert_allclose(_run(mod, "forward", x, w, b), np.maximum(x @ w.T + b, 0) / 2, rtol=1e-5, atol=1e-6)


def test_parameters_of_a_program_of_pytorch_come_with_names_of_tvm():
    torch = pytest.importorskip("torch")
    program = torch.export.export(torch.nn.Linear(4, 2).eval(), (torch.ones(1, 4),))
    mod, params = relax.frontend.detach_params(from_exported_program(program, keep_params_as_input=True, unwrap_unit_return_tuple=True))
    weight, bias = (p.numpy() for p in params["main"])
    x = _array(1, 4)
    np.testing.assert_allclose(_run(mod, "main", x, weight, bias), x @ weight.T + bias, rtol=1e-5)


def test_the_target_of_a_block_is_that_of_build():
    assert tvm.target.Target.current() is None
    with tvm.target.Target("cuda") as target:
        assert tvm.target.Target.current() is target
        with pytest.raises(tvm.TVMError, match="processor"):
            tvm.build(IRModule({"main": halve}))
    assert tvm.target.Target.current() is None
    assert tvm.target.Target.from_device(tvm.cpu()).kind == "llvm"
    with pytest.raises(tvm.TVMError, match="cuda"):
        tvm.target.Target.from_device(tvm.cuda(0))


@tvm_ffi.register_object("test.Layer")
class Layer:
    """Of a program of one's own."""

    name: str
    sizes: tuple


def test_objects_of_registered_classes_are_saved_with_programs():
    mod = tvm.ir.load_json(tvm.ir.save_json(IRModule({"main": halve.with_attr("layer", Layer("first", (2, 3)))})))
    assert mod["main"].attrs["layer"] == Layer("first", (2, 3)) and tvm.register_object is tvm_ffi.register_object


def test_attributes_of_targets_by_their_names():
    Target = tvm.target.Target
    target = Target("llvm -mcpu=znver3 -num-cores=4 -libs=dnnl -model=x")
    assert (target.mcpu, target.attrs["mcpu"], target.attrs.get("num-cores"), target.libs, target.model) == ("znver3", "znver3", 4, ["dnnl"], "x")
    assert "+avx2" in target.mattr and target.mtriple.startswith("x86_64") and target.device_name == "" and target.host is None
    assert Target(str(target)) == target and Target(target.export()) == target and hash(Target(target)) == hash(target)
    gpu = Target({"kind": "cuda", "arch": "sm_80", "max_num_threads": 512, "keys": ["cuda", "gpu"]}, host="llvm -mcpu=skylake")
    assert (gpu.arch, gpu.max_num_threads, gpu.keys, gpu.host.mcpu, gpu.mcpu) == ("sm_80", 512, ["cuda", "gpu"], "skylake", "")
    assert "arch" in gpu.attrs and dict(gpu.attrs)["arch"] == "sm_80" and gpu.attrs.get("thread_warp_size") is None
    with pytest.raises(AttributeError, match="thread_warp_size"):
        gpu.thread_warp_size


@pytest.mark.parametrize("suffix", [".so", ".tar"])
def test_a_file_goes_to_a_session_and_runs_there(suffix):
    n = tvm.runtime.convert(16)
    a = te.placeholder((n,), name="a")
    mod = IRModule.from_expr(te.create_prim_func([a, te.compute((n,), lambda i: a[i] + 1.0)]).with_attr("global_symbol", "add_one"))
    folder = utils.tempdir()
    tvm.compile(mod, target="llvm").export_library(path := folder.relpath(f"lib{suffix}"))
    remote = rpc.LocalSession()
    remote.upload(path)
    function, device = remote.load_module(f"lib{suffix}"), remote.cpu()
    x, y = tvm.runtime.tensor(_array(16), device), tvm.runtime.tensor(np.zeros(16, np.float32), device)
    function(x, y)
    np.testing.assert_array_equal(y.numpy(), x.numpy() + 1)
    assert function.time_evaluator("add_one", device, number=2)(x, y).mean > 0


def test_converters_of_ones_own_hold_for_one_program():
    torch = pytest.importorskip("torch")
    from roundel.compat.tvm.relax.frontend.torch.exported_program_translator import ExportedProgramImporter

    class Model(torch.nn.Module):
        def forward(self, x):
            return torch.sigmoid(x) + x

    def as_tanh(node, importer: ExportedProgramImporter):
        (x,) = importer.retrieve_args(node)
        return importer.block_builder.emit(relax.op.tanh(x))

    program, x = torch.export.export(Model(), (torch.ones(2, 3),)), _array(2, 3)
    np.testing.assert_allclose(_run(from_exported_program(program, custom_convert_map={"sigmoid.default": as_tanh}), "main", x), np.tanh(x) + x, rtol=1e-5)
    np.testing.assert_allclose(_run(from_exported_program(program), "main", x), 1 / (1 + np.exp(-x)) + x, rtol=1e-5)


def test_pointers_and_numbers_are_types_of_variables():
    from roundel.compat.tvm import ir, te, tir

    pointer = ir.PointerType(ir.PrimType("float32"), "shared")
    assert tir.Var("A", pointer).dtype == te.var("A", pointer).dtype == "handle"
    assert (pointer.element_type.dtype, pointer.storage_scope) == ("float32", "shared")
    assert tir.Var("n", ir.PrimType("int64")).dtype == "int64"


def test_visitors_and_mutators_have_a_default_for_every_kind():
    import roundel.compat.tvm as tvm
    from roundel.compat.tvm import relax
    from roundel.compat.tvm.script import ir as I
    from roundel.compat.tvm.script import relax as R

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((2,), "float32")):
            return R.nn.relu(R.add(x, R.const(1.0, "float32")))

    found = []

    class Calls(relax.PyExprVisitor):
        def visit_call_(self, call):
            found.append(call.op.name)
            super().visit_call_(call)

        def visit_constant_(self, constant):
            found.append("constant")
            super().visit_constant_(constant)

    Calls().visit_expr(Module["main"])
    assert sorted(found) == ["add", "constant", "nn.relu"]
    assert relax.PyExprMutator(Module).visit_constant_(relax.const(1.0)).struct_info == R.Tensor((), "float32")
    assert Module["main"].struct_info.ret == Module["main"].ret_struct_info
    assert tvm.ir.structural_equal(Module["main"].struct_info.params[0], R.Tensor((2,), "float32"))


def test_passes_over_tensor_programs():
    from roundel.compat.tvm import IRModule, tir
    from roundel.compat.tvm.script import tir as T

    @T.prim_func
    def fill(A: T.Buffer((8,), "float32")):
        for i in range(8):
            A[i] = T.float32(1)

    @tir.transform.prim_func_pass(opt_level=0, name="Mark")
    def mark(func, mod, ctx):
        return func.with_attr("marked", len(mod.functions))

    mod = IRModule({"fill": fill})
    assert mark(mod)["fill"].attrs["marked"] == 1
    assert tir.transform.Apply(lambda f: f.with_attr("seen", True))(mod)["fill"].attrs["seen"]
    with pytest.raises(AttributeError, match="docs/from-tvm.md"):
        tir.transform.StorageRewrite()


def test_a_traced_module_of_pytorch_is_imported():
    import torch

    from roundel.compat.tvm import relax
    from roundel.compat.tvm.relax.frontend.torch import from_fx

    traced = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU()).eval())
    mod = from_fx(traced, [((2, 4), "float32")])
    x = np.random.default_rng(0).standard_normal((2, 4)).astype("float32")
    got = relax.VirtualMachine(relax.build(mod, "llvm"))["main"](x)
    np.testing.assert_allclose(got[0] if isinstance(got, list | tuple) else got, traced(torch.tensor(x)).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_numbers_with_a_type_are_operands_of_topi():
    from roundel.compat.tvm import te, tir, topi

    a = te.placeholder((4,), name="A")
    func = te.create_prim_func([a, topi.add(a, tir.const(1, "float32"))])
    out = np.zeros(4, "float32")
    rd.build(func)(np.arange(4, dtype="float32"), out)
    np.testing.assert_array_equal(out, np.arange(4) + 1)


def test_parts_for_accelerators_are_split_off():
    import roundel.compat.tvm.relax.backend.contrib.example_npu  # noqa: F401
    from roundel.compat.tvm.relax.backend import get_patterns_with_prefix
    from roundel.compat.tvm.relax.backend.contrib.tensorrt import partition_for_tensorrt
    from roundel.compat.tvm.relax.transform import FuseOpsByPattern, MergeCompositeFunctions

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((1, 3, 8, 8), "float32"), w: R.Tensor((4, 3, 3, 3), "float32")):
            with R.dataflow():
                y = R.nn.relu(R.nn.conv2d(x, w))
                R.output(y)
            return y

    fused = MergeCompositeFunctions()(FuseOpsByPattern(get_patterns_with_prefix("example_npu"), bind_constants=False, annotate_codegen=True)(Module))
    assert '"Composite": "example_npu.conv2d_relu_fused"' in fused.script() and '"Codegen": "example_npu"' in fused.script()
    assert partition_for_tensorrt(Module).script().count('"Codegen": "tensorrt"') == 1


def test_default_schedules_are_for_targets_with_threads():
    @I.ir_module
    class Module:
        @T.prim_func
        def double(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
            for i in range(64):
                with T.block("B"):
                    v = T.axis.spatial(64, i)
                    B[v] = A[v] * T.float32(2)

    with tvm.target.Target("llvm"):
        assert tvm.ir.structural_equal(tvm.s_tir.transform.DefaultGPUSchedule()(Module), Module)
    with tvm.target.Target("cuda"):
        assert "threadIdx.x" in tvm.tir.transform.DefaultGPUSchedule()(Module).script()
