# SPDX-License-Identifier: Apache-2.0
"""Text with constants in a file beside it is read by another process, at any stage of the pipeline."""

from __future__ import annotations

import gc
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import roundel as rd
from roundel.driver import DEFAULT
from roundel.ir import graph, structural_equal
from roundel.ir.constants import ConstData, lookup
from roundel.ir.errors import RoundelError, ScriptError
from roundel.passes import run
from roundel.script import parse
from roundel.script import relax as R

READ = """
import sys
import numpy as np
from roundel import interpret
from roundel.script import parse
for stage in sys.argv[1:]:
    mod = parse(open(stage).read(), file=stage)
    print(np.asarray(interpret(mod)["main"](np.ones((1, 3, 6, 6), "float32"))).sum())
"""


def model():
    rng = np.random.default_rng(0)
    bb = rd.BlockBuilder()
    x = graph.Var("x", graph.TensorInfo((1, 3, 6, 6), "float32"))
    with bb.function("main", [x]):
        h = bb.emit(R.nn.relu(R.nn.conv2d(x, R.const(rng.random((16, 3, 3, 3), "float32")), padding=1)))
        h = bb.emit(R.add(R.reshape(h, (16, 36)), R.const(rng.random((16, 1), "float32"))))
        bb.emit_func_output(bb.emit(R.matmul(h, R.const(rng.random((36, 20), "float32")))))
    return bb.get()


def test_another_process_reads_every_stage(tmp_path):
    mod, stages, want = model(), [], []
    x = np.ones((1, 3, 6, 6), "float32")
    mod = mod.replace(attrs=mod.attrs | {"target": rd.Target.host()})
    for k, p in enumerate([None, *DEFAULT]):
        after = mod if p is None else run(mod, [p])
        if p is not None and after is mod:
            continue
        mod = after
        stages.append(tmp_path / f"stage{k}.py")
        stages[-1].write_text(mod.script(constants=tmp_path / f"stage{k}.npz"))
        want.append(float(np.asarray(rd.interpret(mod)["main"](x)).sum()))
    assert "constant_ptr" in stages[-1].read_text() and "sha:" in stages[0].read_text()
    done = subprocess.run([sys.executable, "-c", READ, *map(str, (stages[0], stages[len(stages) // 2], stages[-1]))], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose([float(t) for t in done.stdout.split()], [want[0], want[len(stages) // 2], want[-1]], rtol=1e-5)


def test_all_kinds_of_constants(tmp_path):
    arrays = [
        np.arange(20).astype(ml_dtypes.bfloat16), np.zeros((0, 3), "float32"), np.arange(24, dtype="int8").reshape(2, 3, 4),
        np.full((3, 4), np.nan), np.arange(10) % 3 == 0, np.arange(16).astype(ml_dtypes.int4), np.array(1.5, ml_dtypes.float8_e4m3fn),
    ]
    made = [graph.Constant.of(a) for a in arrays]
    value = graph.Tuple(tuple(made))
    func = graph.Function((), graph.SeqExpr((), value), value.sinfo)
    text = func.script(constants=tmp_path / "c.npz")
    keys = [c.data.key for c in made]
    del made, value
    again = parse(text, constants=tmp_path / "c.npz")
    assert structural_equal(again, func)
    for field, array, key in zip(again.body.body.fields, arrays, keys):
        assert field.data.key == key and field.data.numpy().tobytes() == array.tobytes() and field.data.numpy().dtype == array.dtype


def test_what_is_missing_is_said(tmp_path):
    with pytest.raises(RoundelError, match="cannot be read"):
        parse("@R.function\ndef f():\n    return R.const('sha:0')", constants=tmp_path / "none.npz")
    with pytest.raises(ScriptError, match="constants=file"):
        parse("@R.function\ndef f():\n    return R.const('sha:0')")


def test_a_constant_is_found_as_long_as_an_equal_one_lives():
    first, second = (ConstData(np.full(77, 3.5, "f")) for _ in range(2))
    key = first.key
    assert second.key == key
    del first
    gc.collect()
    np.testing.assert_array_equal(lookup(key).numpy(), second.numpy())
    del second
    gc.collect()
    with pytest.raises(KeyError):
        lookup(key)
