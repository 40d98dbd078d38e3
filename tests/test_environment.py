# SPDX-License-Identifier: Apache-2.0
"""Compiling, saving, loading and running where the process's surroundings are poor: names of files that its locale cannot say, no home, no
folder for temporary files, closed streams, a mask that takes all rights away."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import roundel as rd

USE = """
import os, sys
import numpy as np
import roundel as rd
path, out = sys.argv[1:]
x = np.ones((2, 4), np.float32)
model = rd.compile(path)
assert (np.asarray(model(x)) == 2).all()
assert (np.asarray(rd.load(model.save(out, header=True))(x)) == 2).all()
"""
PLAIN = {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
SOURCE = str(Path(rd.__file__).parents[1])


@pytest.fixture
def model(tmp_path):
    """A model in a folder, with weights in a file beside it, none of whose names are ASCII."""
    w = numpy_helper.from_array(np.eye(4, dtype=np.float32) * 2, "w")
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", 4]) for n in "xy")
    g = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [x], [y], [w])
    path = tmp_path / "日本é" / "モデル.onnx"
    path.parent.mkdir()
    onnx.save(helper.make_model(g, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path, save_as_external_data=True,
              location="モデル.daten", size_threshold=0)
    return path


def environment(folder, changes=()):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("ROUNDEL_")}
    both = {**kept, "PYTHONPATH": SOURCE, "ROUNDEL_CACHE_DIR": str(folder / "cache_ü"), "ROUNDEL_RATES": "table", **dict(changes)}
    return {k: v for k, v in both.items() if v is not None}


def works(model, folder, changes=(), **how):
    """A program of the user's and the command line both do what they are to; twice, the second time with what the first left in the cache."""
    out, env = folder / "gebäut", environment(folder, changes)
    out.mkdir()
    for k, command in enumerate(([sys.executable, "-c", USE, model, out / "ä.so"], [sys.executable, "-m", "roundel", "compile", model, "-o", out / "ö.so"],
                                 [sys.executable, "-m", "roundel", "run", out / "ö.so"])):
        done = subprocess.run(list(map(os.fsencode, command)), env=env, capture_output=True, check=False, **how)
        assert done.returncode == 0, (k, done.stderr[-2000:])


@pytest.mark.parametrize("changes", [{**PLAIN, "PYTHONIOENCODING": "ascii:strict", "TMPDIR": "/nowhere"}, {"HOME": None, "ROUNDEL_CACHE_DIR": None},
                                     {"TMPDIR": "/proc"}], ids=["ASCII", "no home", "temporary files nowhere"])
def test_poor_surroundings(model, tmp_path, changes):
    if "HOME" in changes:
        changes = {**changes, "ROUNDEL_CACHE": "0"}  # the home of the user who runs the tests is not to be written to
    works(model, tmp_path, changes)


def test_a_mask_that_takes_all_rights_away(model, tmp_path):
    works(model, tmp_path, umask=0o777 if os.geteuid() == 0 else 0o077)


@pytest.mark.parametrize("streams", [(2,), (0, 1, 2)], ids=str)
def test_closed_streams(model, tmp_path, streams):
    closing = " ".join(f"{n}>&-" for n in streams)
    saved = tmp_path / "ö.so"
    for command in (["-c", USE, model, tmp_path / "ä.so"], ["-m", "roundel", "compile", model, "-o", saved], ["-m", "roundel", "run", saved]):
        shell = ["sh", "-c", f'exec "$@" {closing}', "sh", sys.executable, *map(os.fsencode, command)]
        assert subprocess.run(shell, env=environment(tmp_path), check=False).returncode == 0
    assert (tmp_path / "ä.so").exists()
    assert saved.exists()


def test_options_on_which_models_depend_are_known_before_anything_is_imported():
    """The key of a cached model must not depend on what the process has imported meanwhile."""
    ask = "from roundel.ir import options; import roundel, roundel.cache; a = options.shaping_code(); " \
          "import roundel.driver, roundel.frontend.onnx.ops, roundel.build.compiler; assert a == options.shaping_code(), a"
    subprocess.run([sys.executable, "-c", ask], env={**os.environ, "PYTHONPATH": SOURCE}, check=True)
