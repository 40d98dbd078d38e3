# SPDX-License-Identifier: Apache-2.0
"""Whole modules: host functions with arena, constants and kernels; caching, workers, several models, files."""

import signal
import subprocess
import sys

import numpy as np
import pytest
from flat_programs import c, flat, func, loop

import roundel as rd
from roundel.build import compile_module, inspect
from roundel.build.build import Built, layout, machine_spec
from roundel.build.units import Units
from roundel.ir import Attrs, ConstData, DType, IRModule, Var, decl_buffer, options, tir
from roundel.ir.dtype import HANDLE, INT32, INT64, VOID
from roundel.ir.errors import BuildError, CallError
from roundel.ir.graph import GlobalVar
from roundel.runtime import tensors
from roundel.script import tir as T
from roundel.target.spec import MachineSpec


def var(name="i"):
    return Var(name, INT64)


def scale(factor, count=None):
    """y = factor * x"""
    n = Var("n", INT64, True) if count is None else c(count)
    A, B, i = decl_buffer((n,), "float32", "A"), decl_buffer((n,), "float32", "B"), var()
    return func(
        [A, B], loop(i, n, tir.BufferStore(B, A[i] * float(factor), (i,))), scalars=(n,) if count is None else ()
    )


def add():
    n = Var("n", INT64, True)
    A, B, C, i = (
        decl_buffer((n,), "float32", "A"),
        decl_buffer((n,), "float32", "B"),
        decl_buffer((n,), "float32", "C"),
        var(),
    )
    return func([A, B, C], loop(i, n, tir.BufferStore(C, A[i] + B[i], (i,))), scalars=(n,))


def address(b):
    return tir.Call("address_of", (tir.BufferLoad(b, (c(0),) * b.ndim),), HANDLE)


def kernel(name, *args):
    return tir.Evaluate(tir.Call(GlobalVar(name), args, VOID))


def model(weights):
    """z = (2 x + w[:n]) with intermediate results in an arena; w a constant of 100."""
    n = Var("n", INT64, True)
    x, z = decl_buffer((n,), "float32", "x"), decl_buffer((n,), "float32", "z")
    arena = decl_buffer(((n * 4 + 63) // 64 * 64 + n * 4,), "uint8", "arena")
    t = decl_buffer((n,), "float32", "t", data=arena.data, elem_offset=(n * 4 + 63) // 64 * 16)
    w = decl_buffer((100,), "float32", "w")
    body = tir.seq(
        tir.Assert(n <= 100, "n is at most 100"),
        kernel("double", address(x), address(t), n),
        kernel("add", address(t), address(w), address(z), n),
    )
    body = tir.Allocate(arena, tir.DeclBuffer(t, body), Attrs(arena=True))
    body = tir.Let(w.data, tir.Call("constant_ptr", (tir.StringImm(weights.key),), HANDLE), tir.DeclBuffer(w, body))
    handles = (Var("x", HANDLE), Var("z", HANDLE))
    attrs = Attrs(
        kind="host", global_symbol="main", num_inputs=1, num_outputs=1, input_names=("x",), output_names=("z",)
    )
    host = tir.PrimFunc(handles, body, tuple(zip(handles, (x, z))), attrs, INT32)
    return IRModule({"main": host, "double": scale(2), "add": add()})


def run_model(rt, weights):
    for count in (0, 1, 37, 100):
        x = np.random.rand(count).astype("f")
        np.testing.assert_allclose(rt["main"](x), 2 * x + weights.numpy()[:count], rtol=1e-6)


def test_host_function_with_arena_constants_and_kernels():
    weights = ConstData(np.random.rand(100).astype("f"))
    rt = flat(model(weights))
    run_model(rt, weights)
    assert str(rt["main"]) == "<graph function main(x: float32[n]) -> z: float32[n]>"
    with pytest.raises(Exception, match="n is at most 100"):
        rt["main"](np.zeros(101, "f"))
    with pytest.raises(Exception, match="dtype"):
        rt["main"](np.zeros(10, "float64"))


def test_memory_of_a_run_is_told_for_any_size():
    weights = ConstData(np.zeros(100, "f"))
    rt = flat(model(weights))
    assert [rt["main"].arena_nbytes(n=n) for n in (0, 1, 37, 100)] == [(n * 4 + 63) // 64 * 64 + n * 4 for n in (0, 1, 37, 100)]
    with pytest.raises(CallError, match="depends on n"):
        rt["main"].arena_nbytes()


def test_two_models_in_one_process_do_not_mix():
    first, second = ConstData(np.zeros(100, "f")), ConstData(np.full(100, 7, "f"))
    a, b = flat(model(first)), flat(model(second))
    run_model(a, first)
    run_model(b, second)
    del a
    run_model(b, second)


def test_weights_in_memory_lie_as_they_do_in_a_file():
    """One block, aligned: what is linked in memory is as fast as what was saved."""
    weights = [ConstData(np.arange(n, dtype="f")) for n in (100, 3, 1 << 20, 17)]
    offsets, nbytes = layout({c.key: c for c in weights})
    built = Built([], [], {c.key: c for c in weights}, offsets, nbytes, None, {}, machine_spec(None))
    built.capture()
    places = {key: tensors.address(array) for key, array in built.captured.items()}
    first = min(places.values())
    assert first % 64 == 0 and {key: at - first for key, at in places.items()} == {key: start for key, (start, _) in offsets.items()}
    assert not built.weights and all(built.captured[c.key].tobytes() == c.numpy().tobytes() for c in weights)


def test_saved_file_runs_in_a_process_of_its_own(tmp_path):
    weights = ConstData(np.arange(100).astype("f"))
    path = compile_module(model(weights), pipeline=()).save(tmp_path / "model.so")
    script = (
        "import numpy as np; from roundel.runtime import load_executable; "
        f"print(load_executable({str(path)!r})['main'](np.ones(5, 'f')).tolist())"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[2.0, 3.0, 4.0, 5.0, 6.0]"


def test_equal_kernels_are_compiled_once():
    mod = IRModule({"a": scale(2), "b": scale(2), "c": scale(3)})
    units = Units(mod, MachineSpec.host())
    assert len(list(units.kernels())) == 2
    assert units.symbols["a"] == units.symbols["b"] != units.symbols["c"]
    rt = flat(mod)
    for name, factor in (("a", 2), ("b", 2), ("c", 3)):
        out = np.zeros(3, "f")
        rt[name](np.ones(3, "f"), out)
        assert out.tolist() == [factor] * 3


def test_outputs_inouts_and_argument_order():
    n, i = Var("n", INT64, True), var()
    B, A = decl_buffer((n,), "float32", "B"), decl_buffer((n, 2 * n), "float32", "A")
    program = func(
        [B, A], loop(i, n, tir.BufferStore(B, B[i] + A[i, i], (i,))), scalars=(n,), global_symbol="accumulate"
    )
    run = flat(IRModule({"f": program}))["accumulate"]
    a, b = np.random.rand(5, 10).astype("f"), np.random.rand(5).astype("f")
    want = b + np.diag(a[:, :5])
    strided = np.zeros(10, "f")[::2]
    strided[:] = b
    run(strided, a)
    np.testing.assert_allclose(strided, want, rtol=1e-6)
    with pytest.raises(Exception, match="dimension 1"):
        run(b, np.zeros((5, 9), "f"))


def test_registered_functions_and_outputs_of_unknown_shape():
    from roundel.runtime import register_func

    seen = []

    @register_func("tests.build.halve", override=True)
    def halve(x, factor, name, out):
        seen.append((float(factor), str(name)))
        np.from_dlpack(out)[:] = np.from_dlpack(x) * factor

    n, k = Var("n", INT64, True), Var("k", INT64, True)
    x, z = decl_buffer((n,), "float32", "x"), decl_buffer((k,), "float32", "z")

    def view(b):
        return tir.Call(
            "tensor_view", (tir.StringImm("float32"), b if isinstance(b, tir.Var) else address(b), c(1), k), HANDLE
        )

    memory = Var("memory", HANDLE)
    call = tir.Call(
        "call_packed",
        (tir.StringImm("tests.build.halve"), view(x), tir.const(0.5), tir.StringImm("label"), view(memory)),
        INT32,
    )
    made = tir.Call("alloc_output", (tir.const(0, "int32"), k), HANDLE)
    body = tir.Let(k, tir.min_(n, 3), tir.Let(memory, made, tir.Evaluate(call)))
    handles = (Var("x", HANDLE), Var("z", HANDLE))
    attrs = Attrs(kind="host", num_inputs=1, num_outputs=1)
    rt = flat(IRModule({"main": tir.PrimFunc(handles, body, tuple(zip(handles, (x, z))), attrs, INT32)}))
    data = np.arange(5, dtype="f") + 1
    np.testing.assert_array_equal(rt["main"](data), [0.5, 1, 1.5])
    assert seen == [(0.5, "label")]

    @register_func("tests.build.halve", override=True)
    def fails(*_):
        raise ValueError("no halves today")

    with pytest.raises(ValueError, match="no halves today"):
        rt["main"](data)


def test_object_cache(tmp_path):
    with options.override(cache_dir=str(tmp_path)):
        first = compile_module(IRModule({"f": scale(41)}), pipeline=())
        kept = sorted(tmp_path.rglob("*.o"))
        assert len(kept) == 2  # the kernel and the host module
        times = [p.stat().st_mtime_ns for p in kept]
        assert compile_module(IRModule({"f": scale(41)}), pipeline=()).objects == first.objects
        assert [p.stat().st_mtime_ns for p in sorted(tmp_path.rglob("*.o"))] == times
        with options.override(cache=False):
            compile_module(IRModule({"f": scale(42)}), pipeline=())
        assert len(list(tmp_path.rglob("*.o"))) == 2


def test_worker_processes_and_llvm_giving_up():
    from roundel.build.compiler import Pool, compile_units
    from roundel.build.units import Unit

    units = list(Units(IRModule({"a": scale(50), "b": add()}), MachineSpec.host()).kernels())
    pool = Pool(2)
    try:
        objects = [f.result(60) for f in [pool.submit(u, MachineSpec.host()) for u in units]]
        assert all(o[:4] == b"\x7fELF" for o in objects)
        with pytest.raises(BuildError, match=r"not accept.*broken|broken"):
            pool.submit(Unit("broken", "x", "define nonsense", "light"), MachineSpec.host()).result(60)
        text = (
            "define i32 @x(i32 %a) { %r = call i32 @llvm.aarch64.crc32b(i32 %a, i32 %a)\n ret i32 %r }\n"
            "declare i32 @llvm.aarch64.crc32b(i32, i32)"
        )  # another machine's instruction is a fatal error in LLVM
        with pytest.raises(BuildError, match="LLVM gave up on dead"):
            pool.submit(Unit("dead", "x", text, "none"), MachineSpec.host()).result(60)
        assert pool.submit(units[0], MachineSpec.host()).result(60) == objects[0]
    finally:
        pool.close()
    with options.override(cache=False):
        assert [len(o) > 0 for o in compile_units(units, MachineSpec.host(), isolated=True)] == [True, True]


def test_worker_processes_that_something_else_ends():
    from roundel.build.compiler import Pool

    unit, pool = next(iter(Units(IRModule({"a": scale(50)}), MachineSpec.host()).kernels())), Pool(1)
    try:
        first = pool.submit(unit, MachineSpec.host()).result(60)
        process = pool.idle.queue[0].process
        process.kill()
        process.wait()
        assert pool.submit(unit, MachineSpec.host()).result(60) == first and pool.started == 1
        process = pool.idle.queue[0].process
        process.send_signal(signal.SIGSTOP)
        answer = pool.submit(unit, MachineSpec.host())
        process.kill()
        with pytest.raises(BuildError, match="the process that compiled a was killed"):
            answer.result(60)
        assert pool.submit(unit, MachineSpec.host()).result(60) == first and pool.started == 1
    finally:
        pool.close()


@pytest.mark.parametrize(
    "triple,cpu",
    [
        ("aarch64-unknown-linux-gnu", "neoverse-n1"),
        ("riscv64-unknown-linux-gnu", "generic-rv64"),
        ("wasm32-unknown-unknown", "generic"),
    ],
)
def test_objects_for_other_machines(triple, cpu):
    built = compile_module(IRModule({"a": scale(2), "b": add()}), f"llvm -mtriple={triple} -mcpu={cpu}", pipeline=())
    assert len(built.objects) == 3


def test_profiled_kernels():
    weights = ConstData(np.zeros(100, "f"))
    rt = flat(model(weights), profile=True)
    for _ in range(3):
        rt["main"](np.zeros(10, "f"))
    times = rt["main"].profile()
    assert [times[k][0] for k in ("double", "add")] == [3, 3]


def test_an_instruction_that_this_machine_lacks_is_an_error():
    A, i = decl_buffer((4,), "int32", "A"), var()
    value = tir.Call(
        "call_llvm_intrin", (tir.StringImm("llvm.aarch64.crc32b"), tir.const(2, "uint32"), A[i], A[i]), DType("int32")
    )
    with pytest.raises(BuildError, match="LLVM gave up on main"):
        flat(func([A], loop(i, 4, tir.BufferStore(A, value, (i,)))))


def test_inspection_shows_every_stage():
    n, i = Var("n", INT64, True), var()
    A, B = decl_buffer((n,), "float32", "A"), decl_buffer((n,), "float32", "B")
    seen = inspect(
        func([A, B], tir.For(i, c(0), n, tir.ForKind.PARALLEL, tir.BufferStore(B, A[i] + 1.0, (i,))), kind=None)
    )
    assert "parallel" in seen.program.script() and "parallel_for" in seen.script
    assert (
        "call i32 @rd_parallel_for" in seen.llvm and "define" in seen.optimised and "rd_parallel_for" in seen.assembly
    )


def test_unusable_modules_say_why():
    n = Var("n", INT64, True)
    A, i = decl_buffer((4 * n,), "float32", "A"), var()
    with pytest.raises(BuildError, match="size n of main does not follow"):
        flat(func([A], loop(i, n, tir.BufferStore(A, tir.const(1.0), (i,))), scalars=(n,)))
    a, b = func([A], kernel("b", A.data, n), scalars=(n,)), func([A], kernel("a", A.data, n), scalars=(n,))
    with pytest.raises(BuildError, match="calls itself"):
        flat(IRModule({"a": a, "b": b}))
    with pytest.raises(BuildError, match="nobody is called"):
        flat(IRModule({"a": func([A], kernel("nobody", A.data, n), scalars=(n,))}))


def test_dtype_of_scalars_that_are_sizes():
    n = Var("n", DType("int32"))
    A, i = decl_buffer((tir.cast(n, "int64") * 2,), "float32", "A"), var()
    out = np.zeros(6, "f")
    flat(func([A], loop(i, tir.cast(n, "int64"), tir.BufferStore(A, tir.const(1.0), (i,))), scalars=(n,)))["main"](
        out, np.int32(3)
    )
    assert out.tolist() == [1, 1, 1, 0, 0, 0]


def test_building_and_running_in_several_threads():
    from concurrent.futures import ThreadPoolExecutor

    def task(k):
        rt = flat(IRModule({"f": scale(k), "g": add()}))
        out = np.zeros(5, "f")
        rt["f"](np.ones(5, "f"), out)
        return out[0]

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(task, range(60, 84))) == list(range(60, 84))


def _scaled(factor, symbol=None):
    @T.prim_func
    def scaled(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * T.float32(factor)

    return scaled.with_attr("global_symbol", symbol) if symbol else scaled


@pytest.mark.parametrize("symbols", [(None, None, None), ("b", "c", "a"), ("x", "x", "b"), ("c", None, None)], ids=str)
def test_functions_are_found_by_their_names_in_the_module_whatever_they_are_exported_as(symbols):
    """Three functions made by one Python function have one ``global_symbol``; symbols may also be the names of other functions."""
    mod = rd.IRModule({name: _scaled(k + 2, symbol) for k, (name, symbol) in enumerate(zip("abc", symbols))})
    x = np.ones(4, np.float32)
    for run in (rd.interpret(mod), rd.build(mod)):
        for k, name in enumerate("abc"):
            out = np.zeros(4, np.float32)
            run[name](x, out)
            assert out[0] == k + 2, (type(run), name)
