# SPDX-License-Identifier: Apache-2.0
"""The ``roundel`` command as a person meets it: help, exit statuses, messages, files written."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import roundel as rd

COMMANDS = ["compile", "run", "bench", "tune", "serve-runner", "serve-tracker", "info", "inspect", "explain", "check", "targets", "report"]


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with ``model.onnx`` (y = relu(x @ w), x is [batch, 4]) and a cache of its own."""
    folder = tmp_path_factory.mktemp("cli")
    w = numpy_helper.from_array(np.arange(12, dtype=np.float32).reshape(4, 3) - 5, "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["xw"], name="product"), helper.make_node("Relu", ["xw"], ["y"], name="relu")], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 3])], [w])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), folder / "model.onnx")
    return folder


def roundel(place: Path, *args: str, status: int = 0) -> Finished:
    """The command in this process, with its own arguments, folder, cache and streams."""
    from roundel.cli import main

    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.chdir(place)
        patch.setattr(sys, "argv", ["roundel", *args])
        patch.setenv("ROUNDEL_CACHE_DIR", str(place / "cache"))
        patch.setenv("COLUMNS", "120")
        with pytest.raises(SystemExit) as left:
            main()
    assert left.value.code == status, out.getvalue() + err.getvalue()
    return Finished(out.getvalue(), err.getvalue())


@dataclass(frozen=True)
class Finished:
    """What a command wrote."""

    stdout: str
    stderr: str


@pytest.fixture(scope="module")
def compiled(place) -> Path:
    done = roundel(place, "compile", "model.onnx", "-o", "model.so", "--header")
    assert "packed weights" in " ".join(done.stdout.split())
    assert "model.so" in done.stdout and "x: float32[batch, 4]" in done.stdout and "y: float32[batch, 3]" in done.stdout
    return place / "model.so"


@pytest.mark.parametrize(("typed", "offered"), [
    ("roundel com", {"compile"}),
    ("roundel compile --side", {"--side-file"}),
    ("roundel compile m.onnx --target cortex-a7", {"cortex-a72", "cortex-a76"}),
    ("roundel inspect m.onnx --after fold_s", {"fold_scale"}),
    ("roundel tune m.onnx --search r", {"random", "replay"}),
    ("roundel compile m.onnx --accuracy x", set()),
])
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell, typed, offered, place, monkeypatch):
    """What the shells ask when the tab key is pressed."""
    monkeypatch.setenv("_ROUNDEL_COMPLETE", f"complete_{shell}")
    for name, value in {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" ")), "_TYPER_COMPLETE_ARGS": typed,
                        "_TYPER_COMPLETE_FISH_ACTION": "get-args"}.items():
        monkeypatch.setenv(name, value)
    said = roundel(place).stdout
    assert {word.strip('"') for word in re.split(r"[\s:()]+", said)} >= offered
    assert "strict" not in said


@pytest.mark.parametrize("command", COMMANDS)
def test_help(command, place):
    text = roundel(place, command, "--help").stdout
    assert "Usage" in text and command in text
    assert len(text.splitlines()) > 5


def test_overview(place):
    text = roundel(place, "--help").stdout
    assert all(command in text for command in COMMANDS)
    assert roundel(place, "--version").stdout.strip() == rd.__version__


def test_run_on_files(place, compiled):
    x = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)
    want = np.maximum(x @ (np.arange(12, dtype=np.float32).reshape(4, 3) - 5), 0)
    np.save(place / "x.npy", x)
    np.savez(place / "all.npz", x=x)
    for model in ("model.onnx", "model.so"):
        for given in ("x=x.npy", "all.npz"):
            shutil.rmtree(place / "out", ignore_errors=True)
            text = roundel(place, "run", model, "--input", given, "--output-dir", "out").stdout
            assert "y  float32[5, 3]" in text and " ms" in text
            np.testing.assert_allclose(np.load(place / "out" / "y.npy"), want, rtol=1e-5)


def test_run_on_random_inputs(place, compiled):
    assert "float32[1, 3]" in roundel(place, "run", "model.so").stdout
    first = roundel(place, "run", "model.so", "--dim", "batch=77", "--seed", "3").stdout.splitlines()[0]
    assert "float32[77, 3]" in first
    assert first == roundel(place, "run", "model.onnx", "--dim", "batch=77", "--seed", "3").stdout.splitlines()[0]


@pytest.mark.parametrize(("args", "message"), [
    (["compile", "absent.onnx"], "absent.onnx"),
    (["compile", "model.onnx", "--target", "no-such-machine"], "no-such-machine"),
    (["compile", "model.onnx", "--target", "llvm -mcpu=znver99"], "there is no processor 'znver99' for x86_64"),
    (["compile", "model.onnx", "--target", "llvm -mcpu=znver33"], "is znver3 meant?"),
    (["compile", "model.onnx", "--target", "znver3 -mattr=+avx51f"], "there is no feature 'avx51f' for x86_64"),
    (["compile", "model.onnx", "--target", "llvm -mtriple=foo-bar-baz"], "there is no machine 'foo-bar-baz'"),
    (["compile", "model.onnx", "--target", "cortex-m0"], "is cortex-m3 or cortex-m4 or cortex-m7 meant?"),
    (["compile", "model.onnx", "--target", "cortex-m4", "--fix", "batch=1", "-o", "model.bin"], "one that ends in .c its source"),
    (["compile", "model.onnx", "--fix", "bach=1"], "no symbolic dimension 'bach'"),
    (["compile", "model.onnx", "--fix", "batch=1", "--hot", "batch=8"], "'batch' is fixed to 1"),
    (["compile", "model.onnx", "--dim", "batch=1"], "--fix batch=1"),
    (["inspect", "model.onnx", "--dim", "batch=1"], "this command runs nothing"),
    (["explain", "model.so", "--choose", "product=plain"], "--choose comes too late"),
    (["run", "model.onnx", "--input", "x=three.npy", "--dim", "batch=4"], "--dim and the inputs must agree"),
    (["run", "model.onnx", "--dim", "bach=3"], "they are batch"),
    (["run", "model.onnx", "--input", "z=wide.npy"], "no input 'z'"),
    (["run", "model.onnx", "--input", "z=absent.npy"], "no input 'z'"),
    (["run", "model.onnx", "--input", "="], "names no file"),
    (["run", "model.onnx", "--input", "x=absent.npy"], "there is no input file absent.npy"),
    (["run", "model.onnx", "--input", "x=model.onnx"], "not a NumPy file"),
    (["run", "model.onnx", "--input", "x=wide.npy"], "dimension 1 of input 0 ('x') is 9, expected 4"),
    (["run", "model.onnx", "--input", "wide.npy"], "dimension 1 of input 0"),
    (["run", "model.onnx", "--input", "other.npz"], "other.npz holds z"),
    (["run", "model.onnx", "--dim", "batch=9999999999999"], "x would be of shape [9999999999999, 4], which no memory holds"),
    (["inspect", "model.onnx", "-f", "absent"], "no function 'absent'"),
    (["inspect", "model.onnx", "--form", "llvm"], "name one with -f"),
    (["inspect", "model.onnx", "--after", "no_such_pass"], "lower_host"),
    (["inspect", "model.onnx", "--form", "asm", "-f", "absent"], "there is no kernel 'absent'"),
    (["bench", "absent.so"], "there is no file"),
    (["compile", ":B:.onnx"], ":B:.onnx"),  # no emoji
])
def test_errors(args, message, place):
    np.save(place / "wide.npy", np.ones((2, 9), np.float32))
    np.save(place / "three.npy", np.ones((3, 4), np.float32))
    np.savez(place / "other.npz", z=np.ones(3))
    before = {p for p in place.rglob("*") if "cache" not in p.parts}
    done = roundel(place, *args, status=1)
    assert done.stderr.startswith("error: ") and message in done.stderr
    assert {p for p in place.rglob("*") if "cache" not in p.parts} == before


@pytest.mark.parametrize("args", [["frobnicate"], ["compile"], ["run", "model.onnx", "--threads", "none"], ["compile", "model.onnx", "--nonsense"],
                                  ["run", "model.onnx", "--dim", "batch=many"], ["run", "model.onnx", "--dim", f"batch={2**63 - 1}"],
                                  ["run", "model.onnx", "--dim", "batch=\u00b2"], ["run", "model.onnx", "--seed=-1"], ["bench", "model.onnx", "--top=0"],
                                  ["compile", "model.onnx", "--fix", "batch=1", "--fix", "batch=2"],
                                  ["bench", "model.onnx", "--seconds", "nan"], ["bench", "model.onnx", "--seconds=-1"]])
def test_wrong_command_lines(args, place):
    assert roundel(place, *args, status=2).stderr


@pytest.mark.parametrize("command", ["run", "bench", "explain", "report"])
def test_what_is_fixed_has_no_size_in_a_run(command, place):
    assert "batch is 1 in every run of this model" in told(roundel(place, command, "model.onnx", "--fix", "batch=1", "--dim", "batch=8", status=2))


@pytest.mark.parametrize(("flag", "command"), [("--fix", "compile"), ("--hot", "compile"), ("--dim", "run"), ("--sizes", "tune")])
def test_a_size_is_a_whole_number_of_zero_or_more(flag, command, place):
    for size, message in ((-1, "batch=-1: a size is 0 or more"), (2**46 + 1, "the most is 70368744177664"), ("1.5", "not NAME=SIZE with a whole number")):
        assert message in told(roundel(place, command, "model.onnx", flag, f"batch={size}", status=2))


def told(done) -> str:
    """What a box of the command line says, as one line."""
    return re.sub(r"[\s\u2500-\u257f]+", " ", done.stderr)


def as_json(place: Path, *args: str, status: int = 0):
    """What a command with ``--json`` says: standard output is one JSON value."""
    def refuse(name):
        raise AssertionError(f"{name} is no JSON")

    return json.loads(roundel(place, *args, "--json", status=status).stdout, parse_constant=refuse)


def test_every_command_speaks_json(place, compiled):
    done = as_json(place, "compile", "model.onnx", "-o", "j.so", "--header")
    assert done["file"] == "j.so" and done["header"] == "j.h" and done["bytes"] == (place / "j.so").stat().st_size
    assert done["inputs"] == [{"name": "x", "dtype": "float32", "shape": ["batch", 4]}] and done["metadata"]["source"]["file"] == "model.onnx"
    np.save(place / "odd.npy", np.array([[np.nan, np.inf, 1, 2]], np.float32))
    ran = as_json(place, "run", "j.so", "--input", "x=odd.npy", "-O", "written")
    assert ran["inputs"] == [{"name": "x", "dtype": "float32", "shape": [1, 4]}] and ran["outputs"][0]["values"][0] == "nan"
    assert ran["files"] == ["written/y.npy"]
    assert as_json(place, "run", "model.onnx", "--dim", "batch=9")["outputs"][0]["shape"] == [9, 3]
    bench = as_json(place, "bench", "model.onnx", "--dim", "batch=2", "--seconds", "0.05")
    assert bench["milliseconds"]["min"] <= bench["milliseconds"]["p99"] and bench["kernels"][0]["calls"] == 1
    (kernel,) = as_json(place, "bench", "j.so", "--seconds", "0.05")["kernels"]
    assert kernel["kernel"] == bench["kernels"][0]["kernel"] and "gflops" not in kernel
    assert "R.matmul" in as_json(place, "inspect", "model.onnx")["functions"]["main"]
    assert "lower_host" in as_json(place, "inspect", "model.onnx", "--passes")
    explained = as_json(place, "explain", "model.onnx", "--no-measure")
    (row,) = explained["kernels"]
    assert {(c["site"], c["kind"], c["taken"]) for c in explained["choices"]} == {
        ("product", "algorithm", "plain"), ("product", "weights", "float32"), ("product", "kernel", "fused"), ("relu", "kernel", "fused"),
        ("product", "packing", "packed")}
    assert row["nodes"] == ["product", "relu"] and row["pin"]["sketch"] == row["rule"]
    assert all(row["pin"][name] in values for name, values in row["space"].items())
    again = as_json(place, "explain", "model.onnx", "--no-measure", *(x for n, d in explained["pins"].items() for x in ("--choose", f"{n}={json.dumps(d)}")))
    assert again["kernels"][0]["decisions"] == row["decisions"] and again["pins"].keys() == explained["pins"].keys()
    assert all(c["expected_ms"].keys() | c["why_not"].keys() >= {c["taken"]} for c in explained["choices"])
    assert row["kernel"] == as_json(place, "explain", "model.onnx", "-f", row["kernel"])["kernel"]
    assert "define" in as_json(place, "inspect", "model.onnx", "--form", "llvm", "-f", row["kernel"])["text"]
    assert as_json(place, "check", "model.onnx")["ok"] is True
    assert as_json(place, "check", "odd.npy", status=2)["ok"] is False
    assert {"this machine", "znver3"} <= {t["name"] for t in as_json(place, "targets")}
    assert any(o["name"] == "R.matmul" for o in as_json(place, "report", "ops")) and any(o["name"] == "Conv" for o in as_json(place, "report", "onnx"))


def test_algorithms_are_asked_for_by_the_names_of_nodes(place):
    assert as_json(place, "compile", "model.onnx", "-o", "c.so", "--choose", "prod*=plain")["metadata"]["choices"] == {"prod*": ["plain"]}
    assert "fewer than four vectors" in roundel(place, "compile", "model.onnx", "--choose", "product=strassen", status=1).stderr
    assert "is product meant?" in roundel(place, "explain", "model.onnx", "--choose", "produkt=plain", status=1).stderr
    assert "NODE=ALTERNATIVE" in roundel(place, "compile", "model.onnx", "--choose", "plain", status=2).stderr
    assert "an object of JSON" in roundel(place, "compile", "model.onnx", "--choose", "product={rows: 3}", status=2).stderr
    assert "node 'product'" in roundel(place, "compile", "model.onnx", "--choose", 'product={"hight": 3}', status=1).stderr


def test_choices_below_the_table(place):
    """Equal layers in one line, each with what others are expected to take; what is as usual and rated by nothing is left out."""
    weight = numpy_helper.from_array(np.full((64, 64, 3, 3), 0.3, np.float32), "w")  # no whole numbers, for which direct is kept
    nodes = [helper.make_node("Conv", [f"x{k}", "w"], [f"x{k + 1}"], name=f"/conv{k}", pads=[1] * 4) for k in range(3)]
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 64, 20, 20]) for name in ("x0", "x3")]
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", infos[:1], infos[1:], [weight]), opset_imports=[helper.make_opsetid("", 17)], ir_version=9),
              place / "convolutions.onnx")
    text = roundel(place, "explain", "convolutions.onnx", "--no-measure", "--choose", "/conv1=direct").stdout
    assert "/conv1: conv2d 1x64x20x20 by 64x64x3x3: direct, expected " in text and "/conv0 and 1 more: " in text and "winograd2 " in text


def test_databases_of_measurements(place):
    """What was measured is compiled, run, measured and explained; pins are shown as such."""
    from roundel.ir.record import Rival, Timing
    from roundel.strategy import Program, choose
    from roundel.strategy.replay import record_of
    from roundel.target import Target
    from roundel.tune.database import Database

    layer = numpy_helper.from_array(np.ones((64, 96), np.float32), "w")
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", [32, 64]), ("y", [32, 96]))]
    onnx.save(helper.make_model(helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"], name="product")], "g", infos[:1], infos[1:], [layer]),
                                opset_imports=[helper.make_opsetid("", 17)], ir_version=9), place / "layer.onnx")
    driver = rd.driver
    before = driver.DEFAULT[: driver.DEFAULT.index(driver.schedule_module)]
    func = next(f for n, f in driver.prepare(rd.import_model(place / "layer.onnx"), target=Target.host(), pipeline=before).items() if n != "main")
    program = Program(func, Target.host(), (1,))
    found = next(a for a in choose(func, Target.host(), (1,)) if a.fits)
    decisions = found.sketch.candidates.decisions(int(found.sketch.candidates.ranking()[5]))
    record = record_of(program, found.name, found.sketch.schedule(decisions), threads=1, timings=[Timing((), 1e-4, 0.01, 9)], default=1.5e-4,
                       second=[Rival("generic", {"tile": 8}, 1.1e-4)])
    Database(place / "tuned.jsonl").append(record)
    asked = ("layer.onnx", "--threads", "1", "--db", "tuned.jsonl")
    assert "1 kernels from records of tuned.jsonl" in roundel(place, "compile", *asked).stdout.replace("\n", " ")
    assert json.loads(roundel(place, "compile", *asked, "--json").stdout)["metadata"]["records"]["kernels"] == 1
    roundel(place, "run", *asked)
    assert json.loads(roundel(place, "bench", *asked, "--seconds", "0.01", "--json").stdout)["kernels"]
    text = " ".join(roundel(place, "explain", *asked, "--no-measure").stdout.split())
    assert "measured 2" in text and "1.50 times as fast as untuned" in text and "generic tile=8 +10.0%" in text and "1 kernel (1 from records)" in text
    kernel = json.loads(roundel(place, "explain", *asked, "--no-measure", "--json").stdout)["kernels"][0]["kernel"]
    row = json.loads(roundel(place, "explain", *asked, "--no-measure", "-f", kernel, "--json").stdout)
    assert row["reason"] == "measured" and row["decisions"] == dict(record.decisions)
    assert row["record"]["by"] == Database(place / "tuned.jsonl").best(record.key).by
    (row,) = json.loads(roundel(place, "explain", *asked, "--no-measure", "--choose", 'product={"rows": 2}', "--json").stdout)["kernels"]
    assert row["reason"] == "pinned" and row["pinned"] == {"rows": 2} and row["record"] is None
    assert "pinned: rows=2" in roundel(place, "explain", *asked, "--no-measure", "--choose", 'product={"rows": 2}', "-f", row["kernel"]).stdout
    (row,) = json.loads(roundel(place, "explain", *asked[:3], "--db", "off", "--no-measure", "--json").stdout)["kernels"]
    assert row["reason"] == "expected" and row["decisions"] != dict(record.decisions)
    assert "there is no database" in roundel(place, "compile", "layer.onnx", "--db", "none.jsonl", status=1).stderr


def test_tuning_on_another_machine(place, monkeypatch):
    """`serve-runner` measures for `tune --runner`, which needs the same key; what was measured is reported."""
    monkeypatch.setenv("ROUNDEL_RUNNER_KEY", "0123456789abcdef")
    server = subprocess.Popen([sys.executable, "-m", "roundel", "serve-runner", "--port", "0"], stdout=subprocess.PIPE, text=True, cwd=place)
    try:
        address = server.stdout.readline().split()[4].rstrip(":")
        asked = ("tune", "model.onnx", "--sizes", "batch=2", "--threads", "1", "--db", "remote.jsonl", "--runner", address)
        found = json.loads(roundel(place, *asked, "--trials", "3", "--report", "tuned.html", "--json").stdout)
        assert found["trials"] <= 3 and found["tasks"] and "<svg" in (place / "tuned.html").read_text()
        monkeypatch.setenv("ROUNDEL_RUNNER_KEY", "fedcba9876543210")
        assert "another key" in roundel(place, *asked, status=1).stderr
        monkeypatch.delenv("ROUNDEL_RUNNER_KEY")
        assert "no key for the runner" in roundel(place, *asked, status=1).stderr
        assert "no key for the runner" in roundel(place, "serve-runner", "--port", "0", status=1).stderr
    finally:
        server.send_signal(signal.SIGINT)
        assert "stopped" in server.communicate(timeout=60)[0] and server.returncode == 0


def test_info(place, compiled):
    digest = hashlib.sha256((place / "model.onnx").read_bytes()).hexdigest()
    text = " ".join(roundel(place, "info", "model.so", "--dim", "batch=3").stdout.split())
    for part in (f"Roundel {rd.__version__}", f"model.onnx sha256 {digest}", "everything", "x: float32[batch, 4]", "y: float32[batch, 3]", "accuracy default",
                 "target llvm", "runs here yes"):
        assert part in text, text
    facts = as_json(place, "info", "model.so", "--verify")
    assert facts["weights"] == rd.load(compiled).weights_nbytes and facts["weights_file"] is None and facts["verified"] == "everything"
    assert facts["source"]["sha256"] == digest and facts["functions"][0]["inputs"][0]["shape"] == ["batch", 4] and facts["threads"] >= 1
    roundel(place, "compile", "model.onnx", "-o", "far.so", "--target", "neoverse-n1")
    facts = as_json(place, "info", "far.so")
    assert facts["machine"] == "aarch64" and not facts["runs_here"] and facts["functions"] and facts["activations"] is None
    assert "runs here no" in " ".join(roundel(place, "info", "far.so").stdout.split())
    data = bytearray(compiled.read_bytes())
    data[len(data) // 2] ^= 4
    (place / "damaged.so").write_bytes(data)
    assert "damaged" in roundel(place, "info", "damaged.so", status=1).stderr
    assert "no symbolic dimension" in roundel(place, "info", "model.so", "--dim", "bach=3", status=1).stderr


def test_files_of_the_current_folder_are_not_imported(place):
    """Neither by the command nor by the processes that it starts to compile."""
    folder = place / "of a stranger"
    folder.mkdir()
    for module in ("json", "numpy", "pickle", "struct", "ziglang"):
        (folder / f"{module}.py").write_text("print('imported', flush=True)\nraise SystemExit(7)\n")
    done = subprocess.run([sys.executable, "-P", "-m", "roundel", "compile", "../model.onnx", "-o", "m.so", "--target", "neoverse-n1"], cwd=folder,
                          env={**os.environ, "ROUNDEL_CACHE_DIR": str(place / "cache3")}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "imported" not in done.stdout, done.stderr
    assert (folder / "m.so").is_file()


def test_options_that_come_too_late(place, compiled):
    assert "compiled already" in roundel(place, "compile", "model.so", status=1).stderr
    assert "--target comes too late" in roundel(place, "run", "model.so", "--target", "znver3", status=1).stderr


def test_inspect(place):
    imported = roundel(place, "inspect", "model.onnx").stdout
    assert "R.matmul" in imported
    module = rd.script.parse(roundel(place, "inspect", "model.onnx", "--after", "lower_host").stdout)
    assert "T.allocate" in module["main"].script() or "kind" in module["main"].attrs
    passes = roundel(place, "inspect", "model.onnx", "--passes").stdout.split()
    assert "fuse" in passes and "lower_host" in passes
    kernel = next(n for n, f in module.functions.items() if f.attrs.get("kind") == "kernel")
    assert "define" in roundel(place, "inspect", "model.onnx", "--form", "llvm", "-f", str(kernel)).stdout
    assert "\x1b[" in roundel(place, "inspect", "model.onnx", "--color").stdout


def test_verify(place):
    roundel(place, "compile", "model.onnx", "-o", "verified.so", "--verify")
    assert (place / "verified.so").is_file()


def test_bench(place, compiled):
    text = roundel(place, "bench", "model.onnx", "--dim", "batch=8", "--seconds", "0.1").stdout
    assert "median" in text and "p99" in text and "kernel" in text and "called with x float32[8, 4]" in text
    assert "median" in roundel(place, "bench", "model.so", "--seconds", "0.1", "--threads", "1").stdout


def test_check_report_targets(place):
    assert "no problems" in roundel(place, "check", "model.onnx").stdout
    assert "ai.onnx::Conv" in roundel(place, "report", "onnx").stdout
    assert "R.matmul" in roundel(place, "report", "ops", "--markdown").stdout
    text = roundel(place, "targets").stdout
    assert "this machine" in text and "znver3" in text and "apple-m1" in text


def test_cached_models_compile_to_files_of_any_name(place, compiled):
    """What the cache holds is linked under another name, with its weights outside; a compiled file is whole all the same."""
    roundel(place, "compile", "model.onnx", "-o", "sub/other.so", "--header")
    alone = place / "alone"
    alone.mkdir()
    shutil.move(place / "sub" / "other.so", alone / "other.so")
    assert "other_run(" in (place / "sub" / "other.h").read_text()
    assert [p.name for p in alone.iterdir()] == ["other.so"]
    assert rd.load(alone / "other.so")(np.ones((2, 4), np.float32)).shape == (2, 3)
    roundel(place, "compile", "model.onnx", "-o", "side.so", "--side-file")
    assert (place / "side.weights").is_file()


def test_one_dimension_fixed(place):
    roundel(place, "compile", "model.onnx", "-o", "fixed.so", "--fix", "batch=2")
    assert rd.load(place / "fixed.so").inputs[0].shape == (2, 4)


PROGRAM = """
#include <stdio.h>
#include "model.h"
int main(void) {
  float x[8] = {1, 0, 0, 0, 0, 0, 0, 1}, y[6];
  int64_t in[] = {2, 4}, out[] = {2, 3};
  DLTensor a = model_run_input0(x, in), b = model_run_output0(y, out);
  if (model_run(&a, &b)) return puts(model_last_error()), 1;
  for (int i = 0; i < 6; i++) printf("%g ", y[i]);
  in[1] = 3;
  return model_run(&a, &b) ? (puts(model_last_error()), 0) : 1;
}
"""


def test_c_program(place, compiled):
    (place / "program.c").write_text(PROGRAM)
    subprocess.run(["cc", "-std=c11", "-Wall", "-Werror", "program.c", "./model.so", "-Wl,-rpath,$ORIGIN", "-o", "program"], cwd=place, check=True)
    done = subprocess.run(["./program"], cwd=place, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith("0 0 0 4 5 6 ") and "dimension 1 of input 0 ('x') is 3" in done.stdout


def test_a_reader_that_leaves_early(place):
    done = subprocess.run(f'"{sys.executable}" -m roundel report ops --markdown | head -n 1', shell=True, cwd=place, capture_output=True, text=True, timeout=60)
    assert done.stdout == "# Operators\n" and done.stderr == ""


def test_progress_on_a_terminal(place):
    """On a terminal the command says what it does; the terminal here is a pseudo-terminal."""
    main, side = pty.openpty()
    environment = {**os.environ, "ROUNDEL_CACHE_DIR": str(place / "cache2"), "TERM": "xterm", "COLUMNS": "120"}
    process = subprocess.Popen([sys.executable, "-m", "roundel", "compile", "model.onnx", "-o", "seen.so"], cwd=place, stdout=side, stderr=side,
                               stdin=subprocess.DEVNULL, env=environment)
    os.close(side)
    seen = b""
    while True:
        try:
            block = os.read(main, 4096)
        except OSError:  # how Linux tells that the other side is closed
            break
        if not block:
            break
        seen += block
    os.close(main)
    assert process.wait(60) == 0
    assert b"compiling model.onnx" in seen and b"seen.so" in seen


def test_a_run_ends_at_once_when_it_is_interrupted():
    """Python's own handler would wait until the call of the model returns."""
    code = ("import os, signal\nfrom roundel.cli.arguments import interruptible\ntry:\n    with interruptible():\n"
            "        os.kill(os.getpid(), signal.SIGINT)\nexcept KeyboardInterrupt:\n    os._exit(5)\n")
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGINT


@pytest.mark.parametrize("command", [("run",), ("bench", "--seconds", "0.1"), ("explain", "--seconds", "0.1")], ids=lambda c: c[0])
def test_sizes_that_were_made_up_are_told_where_they_do_not_fit(command, place):
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("a", ["n", "m"]), ("b", ["n", "k"]), ("c", None))]
    nodes = [helper.make_node("Concat", ["a", "a"], ["twice"], axis=1), helper.make_node("Add", ["twice", "b"], ["c"], name="join")]
    graph = helper.make_graph(nodes, "sizes", tensors[:2], tensors[2:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), place / "sizes.onnx")
    said = roundel(place, command[0], "sizes.onnx", *command[1:], "--dim", "n=2", "--dim", "m=3", status=1).stderr
    assert "join" in said and "--dim k=32" in " ".join(said.split())
    assert not roundel(place, command[0], "sizes.onnx", *command[1:], "--dim", "n=2", "--dim", "m=3", "--dim", "k=6").stderr.startswith("error")
