# SPDX-License-Identifier: Apache-2.0
"""Results that append to an input: they grow in place where nobody can tell, and are copied where somebody could."""

import subprocess
import threading

import numpy as np
import pytest

import roundel as rd
from graph.decoders import B, P, S, appending, decoder, info, numbers, step_inputs
from roundel import load
from roundel.build.header import write_header
from roundel.driver import build_module
from roundel.interp import interpret
from roundel.ir import graph
from roundel.ir.errors import CallError
from roundel.runtime import caches, tensors, toolchain
from roundel.script import ir as I
from roundel.script import relax as R
from roundel.script import tir as T


@pytest.fixture(scope="module")
def step():
    """The compiled decoder and what it is to compute."""
    mod = decoder()
    return build_module(mod)["main"], interpret(mod)["main"]


def _same(got, want):
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(np.asarray(g), w, rtol=1e-5, atol=1e-6)


def _address(a):
    return a.data_ptr() if hasattr(a, "data_ptr") else a.ctypes.data


def _next(new=1, batch=2):
    q, _, _, k, v = step_inputs(batch, 0, new)
    return q, k, v


def test_a_cache_grows_in_place(step):
    run, reference = step
    _, *past, _, _ = step_inputs(2, 5, 1)
    want, moved = past, 0
    for n in range(150):
        q, *new = _next(1 + n % 3)
        expected = reference(q, *want, *new)
        got = run(q, *past, *new)
        _same(got, expected)
        moved += _address(got[1]) != _address(past[0])
        past, want = got[1:], expected[1:]
    assert past[0].shape[2] > 300 and moved <= 7


def test_who_does_not_pass_it_back_gets_compact_memory(step):
    run, reference = step
    inputs = step_inputs(2, 5, 2)
    got = run(*inputs)
    assert all(a.flags.c_contiguous and a.flags.writeable for a in got)
    _same(got, reference(*inputs))


def test_a_past_that_has_grown_already_is_kept(step):
    run, reference = step
    _, *foreign, _, _ = step_inputs(2, 5, 1)
    q, *new = _next()
    root = run(q, *foreign, *new)[1:]
    kept = [r.copy() for r in root]
    steps = [_next() for _ in range(3)]
    for q, *new in steps:  # three ways on from the same past
        _same(run(q, *root, *new), reference(q, *kept, *new))
    branches = [run(q, *root, *new) for q, *new in steps]
    for (q, *new), got in zip(steps, branches, strict=True):
        _same(got, reference(q, *kept, *new))
    _same(root, kept)
    assert len({_address(b[1]) for b in branches}) == 3


def test_one_past_for_two_caches(step):
    run, reference = step
    _, past, _, _, _ = step_inputs(2, 5, 1)
    q, *new = _next()
    past = run(q, past, past, *new)[1]
    q, *new = _next()
    _same(run(q, past, past, *new), reference(q, past.copy(), past.copy(), *new))


@pytest.mark.parametrize("change", [lambda a: a[:, :, :-1], lambda a: a[:1], lambda a: a[:, :, ::-1], lambda a: a[:, ::-1], lambda a: a.copy(),
                                    lambda a: a.transpose(0, 2, 1, 3).copy().transpose(0, 2, 1, 3)])
def test_other_views_of_a_cache_are_copied(step, change):
    run, reference = step
    _, *past, _, _ = step_inputs(2, 6, 1)
    q, *new = _next()
    past = [change(p) for p in run(q, *past, *new)[1:]]
    q, *new = _next(batch=past[0].shape[0])
    want = reference(q, *(np.ascontiguousarray(p) for p in past), *new)
    _same(run(q, *past, *new), want)


def test_a_call_that_fails_gives_back_what_it_took(step):
    run, reference = step
    _, *past, _, _ = step_inputs(2, 0, 1)
    q, *new = _next()
    past = run(q, *past, *new)[1:]
    with pytest.raises(CallError):
        run(q, *past, new[0], new[1].astype("float64"))
    q, *new = _next()
    got = run(q, *past, *new)
    assert _address(got[1]) == _address(past[0]) and _address(got[2]) == _address(past[1])
    _same(got, reference(q, *past, *new))


def test_memory_goes_when_nobody_holds_it(step):
    run, _ = step
    _, *past, _, _ = step_inputs(2, 6, 1)
    q, *new = _next()
    before = len(caches._known)
    got = run(q, *past, *new)
    assert len(caches._known) == before + 2
    part = got[1][:, :, 1:3]
    del got
    assert len(caches._known) == before + 1
    del part
    assert len(caches._known) == before


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_tensors_of_pytorch(dtype):
    torch = pytest.importorskip("torch")
    kind = getattr(torch, dtype)
    past, new = (graph.TensorInfo((B, 2, n, 4), dtype) for n in (P, S))
    run = build_module(appending(past, new, 2))["main"]
    value = want = torch.randn(2, 2, 3, 4).to(kind)
    moved = 0
    for _ in range(20):
        rows = torch.randn(2, 2, 1, 4).to(kind)
        got, want = run(value, rows), torch.cat((want, rows), 2)
        assert got.dtype is kind and torch.equal(got, want)
        moved += got.data_ptr() != value.data_ptr()
        value = got
    assert moved == 2  # into a compact result, and into memory with room when that came back


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("others", [(1, 1), (3, 5), (0, 2)])
def test_along_every_axis(axis, others):
    def shape(n):
        return (*others[:axis], n, *others[axis:])

    run = build_module(appending(info(*shape(P)), info(*shape(S)), axis))["main"]
    value = want = numbers(*shape(0))
    for n in (1, 0, 3, 1, 100):
        rows = numbers(*shape(n))
        value, want = run(value, rows), np.concatenate((want, rows), axis)
        np.testing.assert_array_equal(value, want)


def test_in_a_callers_memory():
    """As a C program does it: the output has the data and strides of the input."""
    run = build_module(appending(info(2, P, 4), info(2, S, 4), 1))["main"]
    memory, rows = np.full((2, 10, 4), np.nan, "float32"), numbers(2, 7, 4)
    memory[:, :5] = rows[:, :5]
    foreign = np.full((2, 9, 4), np.nan, "float32")
    for source, target in ((memory, memory), (memory, foreign), (rows, foreign), (np.repeat(rows, 2, 2)[:, :, ::2], foreign[::-1])):
        past, out = source[:, :5], target[:, :7]
        run._run([tensors.view(a) for a in (past, np.ascontiguousarray(rows[:, 5:]), out)])
        np.testing.assert_array_equal(out, rows)
    assert np.isnan(memory[:, 7:]).all() and np.isnan(foreign[:, 7:]).all()
    shifted = np.full((2, 12, 4), np.nan, "float32")
    shifted[:, 1:6] = rows[:, :5]  # the past overlaps the result, elsewhere
    run._run([tensors.view(a) for a in (shifted[:, 1:6], np.ascontiguousarray(rows[:, 5:]), shifted[:, :7])])
    np.testing.assert_array_equal(shifted[:, :7], rows)


def test_nobodys_result_changes(step):
    run, reference = step
    _, *past, _, _ = step_inputs(2, 0, 1)
    q, *new = _next(3)
    first = run(q, *past, *new)[1:]
    first[0][:, :, 1] = 7  # a past that its owner changed is what counts
    want = [a.copy() for a in first]
    steps = [_next(), _next()]
    second = run(steps[0][0], *first, *steps[0][1:])
    _same(second, reference(steps[0][0], *want, *steps[0][1:]))
    for shared in (first[0], second[1]):  # one memory, two results
        with pytest.raises(ValueError, match="read-only"):
            shared[:] = 0
    other = run(steps[1][0], *first, *steps[1][1:])  # a memory of its own
    _same(other, reference(steps[1][0], *want, *steps[1][1:]))
    other[1][:] = 0
    _same(first, want)
    del shared, first
    second[1][:, :, 0] = 9  # nobody sees this but its owner
    got = run(steps[1][0], *second[1:], *steps[1][1:])
    assert _address(got[1]) == _address(second[1])
    _same(got, reference(steps[1][0], *(a.copy() for a in second[1:]), *steps[1][1:]))


def test_several_threads_go_on_from_one_past(step):
    run, reference = step
    _, *past, _, _ = step_inputs(2, 0, 1)
    q, *new = _next(33)
    root = run(q, *past, *new)[1:]
    steps, results = [_next() for _ in range(8)], [None] * 8

    def go(k):
        q, *new = steps[k]
        results[k] = run(q, *root, *new)

    threads = [threading.Thread(target=go, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len({_address(r[1]) for r in results}) == 8 and any(_address(r[1]) == _address(root[0]) for r in results)
    for (q, *new), got in zip(steps, results, strict=True):
        _same(got, reference(q, *root, *new))


def test_a_run_that_raises_gives_back_what_it_took():
    fails = []

    @rd.register_func("tests.runtime.may_fail", override=True)
    def may_fail(x):
        if fails:
            raise RuntimeError("today not")
        return x

    @I.ir_module
    class Mod:
        @R.function
        def main(past: R.Tensor((2, "p", 4), "float32"), new: R.Tensor((2, "s", 4), "float32")):
            s = T.int64()
            grown = R.concat((past, new), axis=1)
            same = R.call_packed("tests.runtime.may_fail", new, sinfo_args=R.Tensor((2, s, 4), "float32"))
            result = (grown, same)
            return result

    run = build_module(Mod)["main"]
    past, rows = run(numbers(2, 0, 4), numbers(2, 3, 4))[0], numbers(2, 1, 4)
    want = np.concatenate((past, rows), 1)
    fails.append(1)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="today not"):
            run(past, numbers(2, 1, 4))
    fails.clear()
    got = run(past, rows)[0]
    assert _address(got) == _address(past)
    np.testing.assert_array_equal(got, want)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    built = build_module(appending(info(2, P, 4), info(2, S, 4), 1))
    file = built.save(tmp_path_factory.mktemp("saved") / "cache.so")
    write_header(file.with_suffix(".h"), [built["main"].info], file.stem)
    return file


def test_a_saved_model_grows_too(saved):
    run = load(saved)
    past = run(numbers(2, 0, 4), numbers(2, 4, 4))
    rows = numbers(2, 2, 4)
    got = run(past, rows)
    assert _address(got) == _address(past)
    np.testing.assert_array_equal(got, np.concatenate((past, rows), 1))


_PROGRAM = r"""
#include <stdio.h>
#include "cache.h"
enum { ROOM = 6 };
int main(void) {
  static float cache[2][ROOM][4], new_rows[2][1][4];
  int64_t strides[] = {ROOM * 4, 4, 1}, before[] = {2, 0, 4}, one[] = {2, 1, 4}, after[] = {2, 1, 4};
  for (int step = 0; step < ROOM; step++, before[1]++, after[1]++) {
    for (int i = 0; i < 8; i++) ((float *)new_rows)[i] = (float)(10 * step + i);
    DLTensor inputs[] = {cache_run_input0(cache, before), cache_run_input1(new_rows, one)}, grown = cache_run_output0(cache, after);
    inputs[0].strides = grown.strides = strides;
    if (cache_run(inputs, &grown)) return printf("%s\n", cache_last_error()), 1;
    if (grown.data != cache) return 1;
  }
  for (int head = 0; head < 2; head++)
    for (int row = 0; row < ROOM; row++) printf("%g ", cache[head][row][3]);
  return 0;
}
"""


def test_a_program_in_c_keeps_the_memory(saved, tmp_path):
    (tmp_path / "main.c").write_text(_PROGRAM)
    program = tmp_path / "main"
    toolchain.run([*toolchain.compiler(), "-std=c11", "-Wall", "-Werror", f"-I{saved.parent}", tmp_path / "main.c", saved, "-o", program,
                   f"-Wl,-rpath,{saved.parent}"])
    printed = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    assert [float(v) for v in printed.split()] == [10 * row + 4 * head + 3 for head in range(2) for row in range(6)]
