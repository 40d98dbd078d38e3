# SPDX-License-Identifier: Apache-2.0
"""The pipeline runner and what watches it."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest
from rich.console import Console

from roundel.ir import tir
from roundel.ir.errors import RoundelError
from roundel.ir.module import IRModule
from roundel.passes import PrintAfter, RewriteLog, Timing, all_passes, get_pass, pass_, run
from roundel.script import tir as T


@T.prim_func
def add_one(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + 1.0


@pass_("test.rename")
def rename(mod: IRModule) -> IRModule:
    """Marks every function."""
    return mod.with_functions({n: f.with_attr("mark", 1) for n, f in mod.items()})


def nothing(mod: IRModule) -> IRModule:
    return mod


MODULE = IRModule({"main": add_one})


def test_pipelines_are_lists_of_passes_names_and_lists():
    out = run(MODULE, [nothing, ["test.rename", [nothing]]])
    assert out["main"].attrs["mark"] == 1
    assert run(MODULE, [nothing]) is MODULE
    assert get_pass("test.rename") is rename is all_passes()["test.rename"]
    assert rename.__doc__ == "Marks every function." and repr(rename) == "test.rename"
    with pytest.raises(RoundelError, match=r"no pass 'test\.renam'\n.*test\.rename"):
        run(MODULE, ["test.renam"])
    with pytest.raises(RoundelError, match="returned NoneType"):
        run(MODULE, [lambda mod: None])


def test_roundels_own_passes_are_found_by_name_in_a_fresh_process():
    script = (
        "from roundel.passes import get_pass, all_passes; assert get_pass('legalize').name == 'legalize'; "
        "from roundel.driver import DEFAULT; known = all_passes(); assert all(known[p.name] is p for p in DEFAULT)"
    )
    for first in ("", "from roundel.passes import all_passes; assert 'fuse' in all_passes(); ", "import roundel as rd; rd.passes.get_pass('fuse'); "):
        subprocess.run([sys.executable, "-c", first + script], check=True)


def test_timing():
    timing = Timing()
    run(MODULE, [rename, nothing], observers=[timing])
    assert [(r.name, r.changed) for r in timing.records] == [("test.rename", True), ("nothing", False)]
    assert timing.total > 0
    text = io.StringIO()
    Console(file=text, width=100).print(timing.table())
    assert "test.rename" in text.getvalue() and "total" in text.getvalue()


def test_printing(capsys):
    seen = []
    run(
        MODULE,
        [rename, nothing],
        observers=[PrintAfter("*", lambda name, mod: seen.append(name)), PrintAfter(["input"])],
    )
    assert seen == ["test.rename"]
    assert capsys.readouterr().out.startswith("# after input")


def test_rewrite_log():
    log = RewriteLog()
    run(MODULE, [rename, nothing, lambda mod: mod.with_functions({"other": add_one})], observers=[log])
    assert [(r.pass_name, r.function) for r in log.records] == [("test.rename", "main"), ("<lambda>", "other")]
    assert any(line.startswith("+") and "mark" in line for line in log.records[0].diff().splitlines())
    assert log.records[1].before is None and log.records[1].scripts()[0] == ""
    assert isinstance(log.records[0].after, tir.PrimFunc)
