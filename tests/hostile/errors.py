# SPDX-License-Identifier: Apache-2.0
"""What a user is told who gives a function something odd: an error of Roundel's own, or of Python's about an argument, in words. No text of an object
(``<object at 0x7f..>``, ``IntImm(value=15, dtype='int64')``), no back trace, nothing empty, and nothing that says no more than that it is wrong.

Functions are called rightly but for one or two arguments, which are taken from a list of odd things.
"""

from __future__ import annotations

import contextlib
import random
import re
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import roundel as rd
from roundel.ir.errors import RoundelError


class Odd:
    """Something of the user's own."""


VALUES: dict[str, Callable[[], Any]] = {
    "nothing": lambda: None, "three": lambda: 3, "minus one": lambda: -1, "a half": lambda: 0.5, "not a number": lambda: float("nan"), "yes": lambda: True,
    "a word": lambda: "word", "no text": lambda: "", "bytes": lambda: b"\x00\xff", "a list": lambda: [1, "two"],
    "an empty list": list, "a tuple": lambda: (Odd(),),
    "a mapping": lambda: {"rows": Odd()}, "a mapping of numbers": lambda: {3: 4}, "an empty mapping": dict, "an object": Odd, "a class": lambda: Odd,
    "a function": lambda: lambda x: x, "an array": lambda: np.ones((2, 3)), "an array of objects": lambda: np.array([Odd()], object),
    "an index": lambda: rd.ir.tir.const(15, "int64"), "a variable": lambda: rd.ir.tir.Var("n", "int64"), "a path": lambda: Path("absent.onnx"),
    "a folder": lambda: Path("."), "a target": lambda: rd.Target("znver3"), "a module": lambda: rd.IRModule({}), "a type": lambda: np.dtype("float32"),
    "a large number": lambda: 1 << 70, "a complex number": lambda: 1j, "a set": lambda: {1}, "a model": lambda: model(), "an error": lambda: ValueError("x"),
}
OBJECT = re.compile(r"object at 0x|\bat 0x[0-9a-f]{6}|<(?:class|function|module|bound method|built-in)\b|(?:IntImm|FloatImm|StringImm|SizeVar|Var|PrimFunc|"
                    r"TensorInfo|StructInfo|PosixPath|Attrs|Token|Target|ndarray|dtype)\((?!s\))|Traceback \(most recent|/zig/|\.zig:|thread \d+ panic")
VAGUE = re.compile(r"^(?:|None|error|failed|invalid(?: \w+)?|bad \w+|unsupported|wrong|assert.*|.{0,5})$", re.IGNORECASE)
PYTHON = (TypeError, ValueError, KeyError, IndexError, AttributeError)  # about the call itself, in Python's words


@cache
def model() -> Any:
    """A product of a matrix with rows of any number."""
    weights = [numpy_helper.from_array(np.ones((4, 3), np.float32), "w")]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ("rows", k)) for n, k in (("x", 4), ("y", 3))]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"], name="product")], "g", ends[:1], ends[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@cache
def compiled() -> Any:
    return rd.compile(model())


@cache
def program() -> Any:
    """A tensor program: twice a row."""
    x = rd.te.placeholder((8,), "float32", name="x")
    return rd.te.create_prim_func([x, rd.te.compute((8,), lambda i: x[i] * 2.0, name="y")])


def _scheduled(step: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def run(**given: Any) -> Any:
        sch = rd.Schedule(program())
        return step(sch, given)

    return run


ROWS = np.ones((2, 4), np.float32)
CALLS: dict[str, tuple[Callable[..., Any], dict[str, Callable[[], Any]]]] = {
    "compile": (rd.compile, {"model": model, "target": lambda: None, "threads": lambda: 1, "dynamic": lambda: {"rows": 2}, "hot": lambda: [{"rows": 2}],
                             "accuracy": lambda: "strict", "precision": lambda: "float32", "weights": lambda: None, "bounds_checks": lambda: True,
                             "libraries": lambda: None, "choices": lambda: {"product": "plain"}, "records": lambda: False, "pipeline": lambda: None}),
    "import_model": (rd.import_model, {"model": model, "dynamic": lambda: None}),
    "explain": (rd.explain, {"model": model, "target": lambda: None, "threads": lambda: 1, "sizes": lambda: {"rows": 2}, "seconds": lambda: 0.0,
                             "choices": lambda: None}),
    "load": (rd.load, {"path": lambda: "absent.so", "threads": lambda: 1}),
    "save": (lambda **given: compiled().save(**given), {"path": lambda: "out.so", "name": lambda: "mine", "header": lambda: False}),
    "profile": (lambda **given: compiled().profile(**given), {"inputs": lambda: [ROWS], "sizes": lambda: {"rows": 2}, "seconds": lambda: 0.0}),
    "asm": (lambda **given: compiled().asm(**given), {"kernel": lambda: "absent"}),
    "call": (lambda **given: compiled()(**given), {"x": lambda: ROWS}),
    "interpret": (lambda mod, x: rd.interpret(mod)["main"](x), {"mod": lambda: rd.import_model(model()), "x": lambda: ROWS}),
    "build": (lambda mod, target: rd.build(mod, target=target), {"mod": program, "target": lambda: None}),
    "auto_schedule": (rd.auto_schedule, {"program": program, "target": lambda: None}),
    "target": (rd.Target, {"spec": lambda: "znver3"}),
    "register_func": (lambda name, func: rd.register_func(name, func, override=True), {"name": lambda: "odd.function", "func": lambda: print}),
    "get_func": (rd.get_func, {"name": lambda: "odd.absent"}),
    "placeholder": (rd.te.placeholder, {"shape": lambda: (3,), "dtype": lambda: "float32"}),
    "compute": (rd.te.compute, {"shape": lambda: (3,), "fcompute": lambda: lambda i: rd.ir.tir.const(1.0, "float32")}),
    "schedule": (rd.Schedule, {"mod": program}),
    "get_sblock": (_scheduled(lambda sch, given: sch.get_sblock(given["name"])), {"name": lambda: "y"}),
    "split": (_scheduled(lambda sch, given: sch.split(sch.get_loops(sch.get_sblock("y"))[0], given["factors"])), {"factors": lambda: [2, 4]}),
    "vectorize": (_scheduled(lambda sch, given: sch.vectorize(given["loop"])), {"loop": lambda: None}),
    "reorder": (_scheduled(lambda sch, given: sch.reorder(given["first"], given["second"])), {"first": lambda: None, "second": lambda: None}),
    "tune": (lambda **given: rd.tune(**given), {"model": program, "threads": lambda: 1, "trials": lambda: 0, "search": lambda: "absent",
                                                  "space": lambda: "all"}),
    "report": (rd.report, {"model": model, "out": lambda: "r.html", "sizes": lambda: {"rows": 2}, "seconds": lambda: 0, "assembly": lambda: False,
                           "against": lambda: None}),
}


def attack(count: int, seed: int) -> Iterator[str]:
    """``count`` calls with odd arguments; a line for each message that is no help."""
    rng = random.Random(seed)
    names = list(CALLS)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for k in range(count):
            name = names[k % len(names)]
            call, rightly = CALLS[name]
            odd = {a: rng.choice(list(VALUES)) for a in rng.sample(list(rightly), min(len(rightly), rng.choice((1, 1, 1, 2))))}
            if (wrong := problem(call, {a: VALUES[odd[a]] if a in odd else make for a, make in rightly.items()})) is not None:
                yield f"{name}({', '.join(f'{a}={value}' for a, value in odd.items())}): {wrong}"


def problem(call: Callable[..., Any], arguments: Mapping[str, Callable[[], Any]]) -> str | None:
    """What is wrong with what the call says; None where it runs, or fails in good words."""
    try:
        call(**{name: make() for name, make in arguments.items()})
    except RoundelError as error:
        text = str(error)
        found = OBJECT.search(text)
        if found:
            return f"an object in the message: {text[max(0, found.start() - 60) : found.end() + 60]!r}"
        return f"vague: {text!r}" if VAGUE.match(text) else None
    except PYTHON as error:
        text = str(error)
        if OBJECT.search(text):
            return f"an object in the message: {text!r}"
        return None if _is_foreseen(error) else f"{type(error).__name__} of the inside: {text}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:150]}"
    return None


def _is_foreseen(error: BaseException) -> bool:
    """Whether Roundel, or whoever called it, raised an error of Python's on purpose: the last line that ran says so, or is the call itself."""
    frames = traceback.extract_tb(error.__traceback__)
    return (frames[-1].line or "").startswith("raise ") or not any("/roundel/" in frame.filename for frame in frames)
