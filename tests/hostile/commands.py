# SPDX-License-Identifier: Apache-2.0
"""Commands with hostile values of every option, in a folder of hostile files: a result, or an error in a few lines and an exit status."""

from __future__ import annotations

import io
import json
import os
import random
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

import numpy as np

from roundel.ir.record import Key, Record, Timing
from roundel.target import Target
from roundel.tune.database import Database

from .attempts import attempts

SECONDS = 60  # after which a command hangs
LINES = 8  # of an error

NUMBERS = ["", " ", "0", "-1", "1", "2", "007", "+3", "1.5", "1e3", "nan", "inf", "-inf", "many", "0x10", "1_000", "²", "٣", "9" * 19, "9" * 400, "9" * 5000,
           str(2**31), str(2**63 - 1), str(2**63), str(-(2**63)), "\x00", "\udcff", "--help"]
TEXTS = ["", " ", "-", "--", "=", "a", "*", "[", "\x1b[31m", "a\nb", "é", "\udcff", "\x00", "../..", "a" * 5000, "%s%n", "{0}", "None"]
SIZES = [f"batch={n}" for n in NUMBERS] + [f"{t}=1" for t in TEXTS] + ["batch", "batch=2=3", "batch==2", "=2", "batch=2,other=3", "batch=2,batch=3"]
TARGETS = ["", "/etc/passwd", "host", "host -cores=0", "llvm -foo=1", "llvm -mcpu=znver99", "llvm -mtriple=x-y-z", "cuda", "znver3 -dram-gbs=nan", "cortex-m4",
           "x86-64,haswell", "haswell,", "haswell,cortex-a72", "x86-64-any -mcpu=haswell", ",",
           "{", "[]", "{\"kind\": 3}", "folder.json", "empty.json", "deep.json", "pipe.json", "absent.json", *TEXTS]
CHOICES = ["product=plain", "product=strassen", "product=", "=plain", "product", "*=*", "[=direct"]
LIBRARIES = ["openblas", "all", "off", "openblas,openblas", "openblas,", ",", "nothing", *TEXTS]
BOARDS = ["ssh://", "ssh://-x", "ssh://a b", "no-such-emulator", "'", "false", *TEXTS]
CHOICES += [f"product={t}" for t in TEXTS] + [f"{t}=plain" for t in TEXTS]
FILES = ["model.onnx", "model.so", "", ".", "..", "/", "-", "folder", "folder.onnx", "folder.so", "empty.onnx", "empty.so", "cut.onnx", "cut.so", "noise.onnx",
         "noise.so", "pipe.onnx", "pipe.so", "socket.onnx", "loop.onnx", "dangling.onnx", "loop.so", "/dev/null", "/dev/zero", "/dev/full", "/proc/self/mem",
         "absent.onnx", "absent.so", "model.onnx/inside", "a" * 300, "a/" * 3000, "a\x00b.onnx", "\udcff.onnx", "é.onnx", "board.json", "x.npy"]
ARRAYS = ["x.npy", "x=x.npy", "x=wide.npy", "x=int.npy", "x=objects.npy", "x=lying.npy", "x=scalar.npy", "x=empty.npy", "x=cut.npz", "all.npz", "other.npz",
          "x=texts.npy", "x=structured.npy", "x=complex.npy", "x=zero.npy", "x=rank.npy", *(f"x={f}" for f in FILES), *TEXTS]
WRITTEN = ["out.so", "out.o", "out", "", ".", "folder", "folder.so", "empty.onnx/x.so", "/dev/full", "/dev/null/x.so", "/proc/x.so", "a" * 300 + ".so",
           "new/deep/x.so", "out.wasm", "loop.so", "dangling.onnx", "pipe.so", "a\x00.so", "\udcff.so", "é.so", "-", "\x1b[31m.so"]
FOLDERS = ["outputs", "", ".", "folder", "empty.onnx", "empty.onnx/x", "/proc/x", "a" * 300, "loop.so", "pipe.so", "/dev/null", "a\x00", "\udcff", "new/deep"]
DATABASES = ["tuned.jsonl", "cut.jsonl", "noise.jsonl", "pipe.jsonl", "loop.jsonl", "folder.jsonl", "empty.jsonl", "off", *FILES, *TEXTS]
ADDRESSES = [f"{host}:{port}" for host in ("", "localhost") for port in NUMBERS] + TEXTS
FLAG = [None]

OPTIONS: dict[str, dict[str, list]] = {
    "compile": {"": FILES, "--output": WRITTEN, "--target": TARGETS, "--threads": NUMBERS, "--fix": SIZES, "--dim": SIZES, "--hot": SIZES, "--verify": FLAG,
                "--accuracy": TEXTS, "--precision": [*TEXTS, "bfloat16", "auto"],
                "--weights": [*TEXTS, "float16", "float32"], "--no-bounds-checks": FLAG, "--choose": CHOICES, "--header": FLAG,
                "--side-file": FLAG, "--ram": [*NUMBERS, "256K", "1 MiB", "K", *TEXTS], "--max-size": [*NUMBERS, "1K", *TEXTS], "--db": DATABASES,
                "--libraries": LIBRARIES, "--json": FLAG},
    "run": {"": FILES, "--input": ARRAYS, "--output-dir": FOLDERS, "--dim": SIZES, "--fix": SIZES, "--target": TARGETS, "--threads": NUMBERS, "--seed": NUMBERS,
            "--verify": FLAG, "--db": DATABASES, "--on": BOARDS, "--json": FLAG},
    "bench": {"": FILES, "--input": ARRAYS, "--target": TARGETS, "--dim": SIZES, "--fix": SIZES,
              "--threads": NUMBERS, "--top": NUMBERS, "--no-profile": FLAG, "--json": FLAG,
              "--db": DATABASES, "--libraries": LIBRARIES, "--on": BOARDS, "--seconds": ["", "nan", "inf", "-1", "0", "-0.0", "1e-300", "many", "\x00"]},
    "quantize": {"": FILES, "--output": WRITTEN, "--data": ARRAYS, "--mode": [*TEXTS, "static", "weights"], "--bits": NUMBERS, "--group": NUMBERS,
                 "--asymmetric": FLAG, "--per-tensor": FLAG, "--percentile": NUMBERS, "--exclude": TEXTS, "--json": FLAG},
    "info": {"": FILES, "--verify": FLAG, "--dim": SIZES, "--json": FLAG},
    "inspect": {"": FILES, "--after": [*TEXTS, "fuse", "lower_host"], "--function": [*TEXTS, "main"], "--form": [*TEXTS, "llvm", "asm"], "--passes": FLAG,
                "--dim": SIZES, "--fix": SIZES, "--target": TARGETS, "--json": FLAG},
    "explain": {"": FILES, "--kernel": TEXTS, "--no-measure": FLAG, "--dim": SIZES, "--fix": SIZES,
                "--target": TARGETS, "--threads": NUMBERS, "--choose": CHOICES,
                "--seconds": ["", "nan", "inf", "-1", "0", "1e-300", "many"], "--top": NUMBERS, "--db": DATABASES, "--libraries": LIBRARIES,
                "--precision": [*TEXTS, "bfloat16", "auto"], "--json": FLAG},
    "tune": {"": FILES, "--seconds": ["", "nan", "inf", "-1", "0", "1e-300", "many"], "--trials": NUMBERS, "--sizes": SIZES, "--db": DATABASES,
             "--space": TEXTS, "--search": TEXTS, "--target": TARGETS, "--threads": NUMBERS, "--fix": SIZES, "--dim": SIZES, "--accuracy": TEXTS,
             "--seed": NUMBERS, "--libraries": LIBRARIES, "--runner": ADDRESSES, "--tracker": ADDRESSES, "--device": TEXTS, "--report": WRITTEN,
             "--graphs": NUMBERS,
             "--json": FLAG},
    "serve-tracker": {"--host": TEXTS, "--port": NUMBERS},
    "serve-runner": {"--host": TEXTS, "--port": NUMBERS, "--tracker": TEXTS, "--device": TEXTS, "--target": TEXTS,
                     "--on": TEXTS},  # without a key, so that none of them begins to serve
    "web": {"": FILES, "--output": FOLDERS, "--title": TEXTS, "--kind": [*TEXTS, "picture", "numbers"], "--labels": FILES,
            "--tokenizer": FILES, "--template": TEXTS, "--sample": FILES, "--bgr": FLAG, "--size": NUMBERS, "--rate": NUMBERS, "--window": NUMBERS,
            "--overlap": NUMBERS, "--mel": [*TEXTS, "log", "whisper", "log,hop=0", "log,window=-1", "whisper,bins=1e9", "log,hop=", ",hop=3", "log,rate=nan"],
            "--mean": [*NUMBERS, "1,2,3", ",", *TEXTS], "--std": [*NUMBERS, "0,0,0", *TEXTS], "--fix": SIZES,
            "--accuracy": TEXTS, "--weights": [*TEXTS, "float16"], "--port": NUMBERS, "--serve": [],
            "--json": FLAG},  # which does not serve
    "check": {"": FILES, "--json": FLAG},
    "targets": {"--json": FLAG},
    "report ops": {"--markdown": FLAG, "--json": FLAG},
}
_SHORT = {"bench": {"--seconds": "0"}, "explain": {"--seconds": "0"}, "tune": {"--seconds": "1", "--trials": "2", "--sizes": "batch=1"}}


def attack(count: int, seed: int) -> Iterator[str]:
    """So many command lines, most with one hostile value; every value of every option comes once before any comes again."""
    rng = random.Random(seed)
    cases = [(command, option, value) for command, table in OPTIONS.items() for option, values in table.items() for value in values]
    rng.shuffle(cases)
    with _place() as folder:
        for number in attempts(range(count)):
            command, option, value = cases[number % len(cases)]
            line = _line(rng, command, option, value)
            yield from (f"roundel {' '.join(line)[:200]!r}: {finding}" for finding in _findings(line, folder))


def _line(rng: random.Random, command: str, option: str, value: str | None) -> list[str]:
    table = OPTIONS[command]
    models = {"run": ["model.onnx", "model.so"], "bench": ["model.onnx", "model.so"], "info": ["model.so"]}.get(command, ["model.onnx"])
    model = [value or "" if option == "" else rng.choice(models)] if "" in table else []
    said = [] if option == "" else [option] if value is None else [f"{option}={value}"]
    if option and rng.random() < 0.2 and "--json" in table and option != "--json":
        said.append("--json")
    short = [word for name, number in _SHORT.get(command, {}).items() if name != option for word in (name, number)]
    return [*command.split(), *model, *short, *said]


def _findings(line: Sequence[str], folder: Path) -> Iterator[str]:
    try:
        status, out, err = command(line, folder)
    except BaseException as error:
        yield f"{type(error).__name__}: {error}"
        return
    if status not in (0, 1, 2) or "Traceback" in err:
        yield f"status {status}: {' / '.join(err.strip().splitlines()[-3:])}"
    elif status == 1 and not (err.startswith(("error: ", "WARNING ")) or "check" in line):
        yield f"status 1 and says {err[:200]!r}"
    elif status == 2 and not (err or out):
        yield "status 2 without a word"
    elif status and len(err.strip().splitlines()) > LINES:
        yield f"an error of {len(err.splitlines())} lines: {err[:200]!r}"
    elif "\x1b" in err:
        yield f"what steers a terminal is in the error: {err[:200]!r}"
    elif status == 0 and "--json" in line and "--help" not in " ".join(line):
        try:
            json.loads(out)
        except ValueError as error:
            yield f"no JSON: {error}"


def command(line: Sequence[str], folder: Path) -> tuple[int, str, str]:
    """Exit status, output and errors of a command in this process."""
    from roundel.cli import main

    class Hangs(BaseException):
        pass

    def late(*_: object) -> None:
        raise Hangs(f"not finished after {SECONDS} s")

    out, err = io.StringIO(), io.StringIO()
    environment = {"ROUNDEL_CACHE_DIR": str(folder / "cache"), "COLUMNS": "400", "TERM": "dumb"}
    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        with ExitStack() as stack:
            for context in (chdir(folder), redirect_stdout(out), redirect_stderr(err), patch.dict(os.environ, environment),
                            patch.object(sys, "argv", ["roundel", *line])):
                stack.enter_context(context)
            main()
    except SystemExit as left:
        return int(left.code or 0), out.getvalue(), err.getvalue()
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return 0, out.getvalue(), err.getvalue()


@contextmanager
def _place() -> Iterator[Path]:
    """A folder with a model, compiled too, and files that are something else than their names say."""
    import onnx
    from onnx import helper, numpy_helper

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        weight = numpy_helper.from_array(np.arange(12, dtype=np.float32).reshape(4, 3) - 5, "w")
        infos = [helper.make_tensor_value_info(n, 1, ["batch", k]) for n, k in (("x", 4), ("y", 3))]
        nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")]
        model = helper.make_model(helper.make_graph(nodes, "g", infos[:1], infos[1:], [weight]), opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        onnx.save(model, folder / "model.onnx")
        assert command(["compile", "model.onnx"], folder)[0] == 0
        for suffix in ("onnx", "so"):
            whole = (folder / f"model.{suffix}").read_bytes()
            (folder / f"cut.{suffix}").write_bytes(whole[: len(whole) * 2 // 3])
            (folder / f"noise.{suffix}").write_bytes(random.Random(0).randbytes(999))
            (folder / f"empty.{suffix}").touch()
            (folder / f"folder.{suffix}").mkdir()
            (folder / f"loop.{suffix}").symlink_to(f"loop.{suffix}")
            os.mkfifo(folder / f"pipe.{suffix}")
        _databases(folder)
        (folder / "dangling.onnx").symlink_to("nowhere")
        for kind in ("folder.json", "folder"):
            (folder / kind).mkdir()
        (folder / "empty.json").touch()
        os.mkfifo(folder / "pipe.json")
        (folder / "board.json").write_text('{"kind": "llvm", "cpu": "cortex-a76"}')
        (folder / "deep.json").write_text("[" * 100_000)
        _arrays(folder)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(folder / "socket.onnx"))
            yield folder


def _databases(folder: Path) -> None:
    key = Key("a" * 32, Target.host().fingerprint, 1)
    Database(folder / "tuned.jsonl").append(Record(key, "contraction", {"rows": 2}, [["get_block", {}, {}, [], None]], timings=(Timing((), 1e-3),)))
    whole = (folder / "tuned.jsonl").read_bytes()
    (folder / "cut.jsonl").write_bytes(whole + whole[:-9])
    (folder / "noise.jsonl").write_bytes(random.Random(0).randbytes(999))
    (folder / "empty.jsonl").touch()
    (folder / "folder.jsonl").mkdir()
    (folder / "loop.jsonl").symlink_to("loop.jsonl")
    os.mkfifo(folder / "pipe.jsonl")


def _arrays(folder: Path) -> None:
    x = np.ones((3, 4), np.float32)
    odd = {"x": x, "wide": np.ones((2, 9)), "int": x.astype(int), "objects": np.array([{}, []], object), "scalar": np.float32(3),
           "empty": np.empty((0, 4), np.float32), "texts": np.array([["a"] * 4]), "structured": np.zeros((3, 4), "f4,i4"), "complex": x * 1j,
           "zero": np.empty((0, 2**55), np.float32), "rank": np.ones((1,) * 20)}
    for name, array in odd.items():
        np.save(folder / f"{name}.npy", array, allow_pickle=True)
    np.savez(folder / "all.npz", x=x)
    np.savez(folder / "other.npz", z=x)
    (folder / "cut.npz").write_bytes((folder / "all.npz").read_bytes()[:-40])
    (folder / "lying.npy").write_bytes((folder / "x.npy").read_bytes().replace(b"(3, 4)", b"(9" + b"0" * 15 + b",)")[: 10 + 118 + 48])
