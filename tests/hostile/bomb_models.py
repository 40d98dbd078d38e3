# SPDX-License-Identifier: Apache-2.0
"""Kinds of small models that want much time or memory, with random parameters: some so small that they must work, some absurd."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

F32, I64 = TensorProto.FLOAT, TensorProto.INT64


@dataclass(frozen=True)
class Bomb:
    """``source`` as for ``from_onnx``; ``expected`` results of ``inputs`` where they are known; ``may_refuse``: an error is as good."""

    source: Any
    inputs: Sequence[np.ndarray] = ()
    expected: Any = None
    may_refuse: bool = True


KINDS: dict[str, Callable[[random.Random], AbstractContextManager[Bomb]]] = {}


def _kind(make: Callable[[random.Random], Bomb]) -> Callable[[random.Random], Bomb]:
    @wraps(make)
    @contextmanager
    def held(source: random.Random) -> Iterator[Bomb]:
        yield make(source)

    KINDS[make.__name__.strip("_")] = held
    return make


def _model(nodes: Sequence[Any], inputs: Sequence[tuple[str, int, Sequence[Any]]] = (("x", F32, (4,)),), outputs: Sequence[str] = ("y",),
           constants: dict[str, np.ndarray] | None = None, functions: Sequence[Any] = (), kind: int = F32) -> onnx.ModelProto:
    g = helper.make_graph(list(nodes), "g", [helper.make_tensor_value_info(*i) for i in inputs],
                          [helper.make_tensor_value_info(o, kind, None) for o in outputs],
                          [numpy_helper.from_array(np.asarray(v), k) for k, v in (constants or {}).items()])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    return helper.make_model(g, opset_imports=opsets, functions=list(functions), ir_version=9)


def _large(source: random.Random, most: int = 62) -> int:
    return (1 << source.randrange(16, most)) + source.randrange(-3, 4)


X = np.arange(4, dtype=np.float32)
node = helper.make_node


@_kind
def _doubling(source: random.Random) -> Bomb:
    """Functions that each call the one before several times."""
    depth, calls = source.choice((2, 3, 5, 8, 26, 40, 60, 200)), source.choice((2, 3))
    functions = []
    for k in range(depth):
        body = [node("Add", ["a0", "a0"], ["b"])] if k == 0 else []
        body += [node(f"f{k - 1}", [f"a{i}"], [f"a{i + 1}"], domain="own") for i in range(calls)] if k else []
        functions.append(helper.make_function("own", f"f{k}", ["a0"], ["b" if k == 0 else f"a{calls}"], body,
                                              [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]))
    small = calls ** (depth - 1) <= 1000
    expected = X * np.float32(2.0) ** (calls ** (depth - 1)) if calls ** (depth - 1) < 100 else None
    return Bomb(_model([node(f"f{depth - 1}", ["x"], ["y"], domain="own")], functions=functions), (X,), expected, may_refuse=not small)


@_kind
def _recursion(source: random.Random) -> Bomb:
    """Functions that call themselves over others, also inside of a branch."""
    length, branch = source.choice((1, 2, 5, 100)), source.random() < 0.5
    functions = []
    for k in range(length):
        call = node(f"f{(k + 1) % length}", ["a"], ["b"], domain="own")
        if branch:
            then = helper.make_graph([call], "then", [], [helper.make_tensor_value_info("b", F32, None)])
            other = helper.make_graph([node("Neg", ["a"], ["c"])], "else", [], [helper.make_tensor_value_info("c", F32, None)])
            body = [node("ReduceSum", ["a"], ["s"], keepdims=0), node("Cast", ["s"], ["t"], to=9),
                    node("If", ["t"], ["r"], then_branch=then, else_branch=other)]
        else:
            body = [call]
        functions.append(helper.make_function("own", f"f{k}", ["a"], ["r" if branch else "b"], body,
                                              [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]))
    return Bomb(_model([node("f0", ["x"], ["y"], domain="own")], functions=functions), (X,))


@_kind
def _range(source: random.Random) -> Bomb:
    """Ranges of constants."""
    kind = source.choice((np.int64, np.float32, np.int32))
    count = source.choice((3, 100, 10_000, 1_000_000, 300_000_000, 10**9, 10**12, 2**62))
    count = min(count, 2**31 - 1) if kind is np.int32 else count
    step = source.choice((1, 1, -1, 0, 2))
    after = source.choice(("ReduceMax", "Shape", "Identity", "Neg", "CumSum"))
    nodes = [node("Range", ["a", "b", "c"], ["r"]), node(after, ["r", "zero"] if after == "CumSum" else ["r"], ["y"])]
    constants = {"a": kind(0), "b": kind(count), "c": kind(step), "zero": np.int64(0)}
    known = step == 1 and count == 100 and after == "ReduceMax"
    return Bomb(_model(nodes, (), constants=constants, kind=I64), (), np.asarray(count - 1, kind) if known else None)


@_kind
def _blow_up(source: random.Random) -> Bomb:
    """Operators that make much of a few numbers."""
    n = source.choice((3, 1000, 10**6, 10**8, 10**10, 2**40, 2**62, -1, 0))
    m = source.choice((1, 2, 1000, 2**33))
    shape = np.asarray([n, m] if source.random() < 0.7 else [m, n, n], np.int64)
    after = source.choice(("ReduceSum", "Shape", "Identity", "Relu"))
    rank = len(shape)
    make = {
        "ConstantOfShape": lambda: ([node("ConstantOfShape", ["s"], ["r"])], {"s": shape}),
        "Expand": lambda: ([node("Expand", ["one", "s"], ["r"])], {"s": shape, "one": np.ones((1,) * rank, np.float32)}),
        "Tile": lambda: ([node("Tile", ["one", "s"], ["r"])], {"s": shape, "one": np.ones((2,) * rank, np.float32)}),
        "Pad": lambda: ([node("Pad", ["one", "s"], ["r"])], {"s": np.concatenate([shape, shape]), "one": np.ones((2,) * rank, np.float32)}),
        "Resize": lambda: ([node("Resize", ["one", "", "", "s"], ["r"], mode=source.choice(("nearest", "linear", "cubic")))],
                           {"s": np.asarray([1, 1, *shape[:2]]), "one": np.ones((1, 1, 2, 2), np.float32)}),
        "OneHot": lambda: ([node("OneHot", ["i", "d", "v"], ["r"])], {"i": np.asarray([1, 2]), "d": np.asarray([n]), "v": np.asarray([0, 1], np.float32)}),
        "Reshape": lambda: ([node("Reshape", ["one", "s"], ["r"])], {"s": shape, "one": np.ones((6,), np.float32)}),
        "RandomNormal": lambda: ([node("RandomNormal", [], ["r"], shape=shape.tolist())], {}),
        "HannWindow": lambda: ([node("HannWindow", ["n"], ["r"])], {"n": np.asarray(n)}),
        "AveragePool": lambda: ([node("AveragePool", ["one"], ["r"], kernel_shape=[2, 2], pads=[abs(int(m))] * 4)], {"one": np.ones((1, 1, 4, 4), np.float32)}),
        "Upsample": lambda: ([node("Resize", ["one", "", "k"], ["r"])], {"k": np.asarray([1, 1, n, m], np.float32), "one": np.ones((1, 1, 2, 2), np.float32)}),
        "ConvTranspose": lambda: ([node("ConvTranspose", ["one", "w"], ["r"], strides=[max(int(min(n, 2**40)), 1), 1])],
                                  {"one": np.ones((1, 1, 3, 3), np.float32), "w": np.ones((1, 1, 2, 2), np.float32)}),
        "Trilu": lambda: ([node("ConstantOfShape", ["s"], ["q"]), node("Trilu", ["q"], ["r"])], {"s": shape}),
        "MatMul": lambda: ([node("ConstantOfShape", ["s"], ["q"]), node("Transpose", ["q"], ["p"]), node("MatMul", ["q", "p"], ["r"])], {"s": shape[:2]}),
        "Einsum": lambda: ([node("ConstantOfShape", ["s"], ["q"]), node("Einsum", ["q", "q"], ["r"], equation="ab,cd->abcd")], {"s": shape[:2]}),
    }[source.choice(("ConstantOfShape", "Expand", "Tile", "Pad", "Resize", "OneHot", "Reshape", "RandomNormal", "HannWindow", "AveragePool", "Upsample",
                     "ConvTranspose", "Trilu", "MatMul", "Einsum"))]
    nodes, constants = make()
    return Bomb(_model([*nodes, node(after, ["r"], ["y"])], (), constants=constants))


@_kind
def _many_folded(source: random.Random) -> Bomb:
    """Constants that are each small enough to be computed at once, and are not together."""
    count, side = source.choice((5, 50, 300)), source.choice((16, 512, 2048, 4000))
    op = source.choice(("Add", "MatMul", "Concat"))
    nodes = [node("Expand", [f"c{k}", "s"], [f"e{k}"]) for k in range(count)]
    if op == "Concat":
        nodes.append(node("Concat", [f"e{k}" for k in range(count)], ["z"], axis=0))
    else:
        nodes += [node(op, [f"z{k - 1}" if k else "e0", f"e{k}"], [f"z{k}" if k < count - 1 else "z"]) for k in range(1, count)]
        nodes[count].input[0] = "e0"
    nodes += [node("ReduceMax", ["z"], ["w"], keepdims=0), node("Add", ["x", "w"], ["y"])]
    constants = {"s": np.asarray([side, side]), **{f"c{k}": np.full((1, 1), np.float32(0.0)) for k in range(count)}}
    model = _model(nodes, constants=constants)
    return Bomb(model, (X,), X) if count * side < 20_000 else Bomb(_never_run(model), (X,))


@_kind
def _nested(source: random.Random) -> Bomb:
    """Branches and loops in branches and loops."""
    depth, kind, trips = source.choice((1, 2, 4, 10, 20)), source.choice(("If", "Loop", "Loop while")), source.choice((1, 2, 3, 40, 10**6, 2**60))
    info = lambda name, t=F32, shape=None: helper.make_tensor_value_info(name, t, shape)
    inner = [node("Add", ["v0", "one"], ["w0"])]
    for k in range(depth):
        if kind == "If":
            then, other = (helper.make_graph(inner if t else [node("Neg", ["x"], [f"n{k}"])], "b", [], [info(f"w{k}" if t else f"n{k}")]) for t in (1, 0))
            inner = [node("If", ["flag"], [f"w{k + 1}"], then_branch=then, else_branch=other)]
        else:
            go = "flag" if kind == "Loop" else f"m{k}"
            more = [] if kind == "Loop" else [node("Less", [f"i{k}", "most"], [f"m{k}"])]
            first = [] if k == 0 else [node("Identity", [f"v{k}"], ["unused" + str(k)])]
            body = helper.make_graph([*first, *inner, *more, node("Identity", [go], [f"g{k}"])], "b",
                                     [info(f"i{k}", I64, ()), info(f"c{k}", 9, ()), info(f"v{k}", F32, (4,))],
                                     [info(f"g{k}", 9, ()), info(f"w{k}", F32, (4,))])
            inner = [node("Loop", ["trips", "flag", f"v{k + 1}" if k < depth - 1 else "x"], [f"w{k + 1}"], body=body)]
    if kind == "If":
        inner = [node("Identity", ["x"], ["v0"]), *inner]
    nodes = [*inner, node("Identity", [f"w{depth}"], ["y"])]
    constants = {"one": np.float32(1), "trips": np.int64(trips), "most": np.int64(trips)}
    if source.random() < 0.5:
        constants["flag"] = np.asarray(True)
    else:
        nodes = [node("ReduceSum", ["x"], ["sum"], keepdims=0), node("Greater", ["sum", "one"], ["flag"]), *nodes]
    model = _model(nodes, constants=constants)
    endless = kind != "If" and trips > 3
    return Bomb(model, (X,), X + 1 if kind == "If" else None) if not (endless and (trips > 40 or depth > 2)) else Bomb(_never_run(model), (X,))


def _never_run(model: onnx.ModelProto) -> onnx.ModelProto:
    """With an input that no call here gives, so that only compiling is tried: a run may take as long as it likes."""
    model.graph.input.append(helper.make_tensor_value_info("never", F32, (1,)))
    return model


@_kind
def _sequences(source: random.Random) -> Bomb:
    """Sequence operators on what is none, or on an empty one."""
    value = source.choice(("x", "empty", "seq", "k", "opt"))
    make = [node("SequenceEmpty", [], ["empty"]), node("SequenceConstruct", ["x", "x"], ["seq"]), node("Optional", ["x"], ["opt"])]
    op = source.choice(("SequenceAt", "SequenceErase", "SequenceInsert", "SequenceLength", "ConcatFromSequence", "SequenceMap", "OptionalGetElement",
                        "SplitToSequence", "Identity", "ReduceSum"))
    body = helper.make_graph([node("Neg", ["a"], ["b"])], "b", [helper.make_tensor_value_info("a", F32, None)], [helper.make_tensor_value_info("b", F32, None)])
    second = source.choice(("x", "k", "seq", "empty", "big"))
    inputs = {"SequenceInsert": [value, source.choice(("x", "seq", "k"))], "SequenceAt": [value, second], "SequenceErase": [value, second],
              "SplitToSequence": [value, second]}.get(op, [value])
    attributes = {"ConcatFromSequence": {"axis": source.choice((0, 1, 5, -9)), "new_axis": source.choice((0, 1))}, "SequenceMap": {"body": body}}.get(op, {})
    nodes = [*make, node(op, inputs, ["r"], **attributes)]
    if source.random() < 0.5:
        nodes.append(node(source.choice(("SequenceAt", "ConcatFromSequence", "Neg")), ["r", "k"], ["y"], axis=0))
    else:
        nodes[-1].output[0] = "y"
    return Bomb(_model(nodes, constants={"k": np.int64(source.choice((0, 1, -1, 7))), "big": np.int64(_large(source))}), (X,))


@_kind
def _sizes(source: random.Random) -> Bomb:
    """Sizes in inputs, initializers and shapes whose products overflow."""
    dims = [_large(source) for _ in range(source.randrange(1, 4))]
    if source.random() < 0.3:
        dims[0] = 0
    where = source.choice(("input", "initializer", "raw", "value"))
    if where == "input":
        return Bomb(_model([node("Relu", ["x"], ["z"]), node("MatMul", ["z", "z"], ["y"])], [("x", F32, dims)]), (X,))
    model = _model([node("Add", ["x", "w"], ["y"])])
    if where == "value":
        model.graph.value_info.append(helper.make_tensor_value_info("w", F32, dims))
    tensor = TensorProto(name="w", data_type=source.choice((1, 7, 8, 14, 22, 99)), dims=dims)
    if where == "raw":
        tensor.raw_data = b"\0" * source.choice((0, 1, 4096))
    model.graph.initializer.append(tensor)
    return Bomb(model, (X,))


@_kind
def _order(source: random.Random) -> Bomb:
    """Nodes in the wrong order, on a cycle, or defined twice."""
    count, kind = source.choice((10, 1000, 5000)), source.choice(("reversed", "shuffled", "cycle", "twice"))
    nodes = [node("Neg", [f"t{k}" if k else "x"], [f"t{k + 1}" if k < count - 1 else "y"]) for k in range(count)]
    if kind == "cycle":
        nodes[0].input[0] = f"t{source.randrange(1, count)}"
    elif kind == "twice":
        nodes.append(node("Neg", ["x"], [f"t{source.randrange(1, count)}"]))
    elif kind == "reversed":
        nodes.reverse()
    else:
        source.shuffle(nodes)
    return Bomb(_model(nodes), (X,), X if kind in ("reversed", "shuffled") else None, may_refuse=kind in ("cycle", "twice"))


@_kind
def _long(source: random.Random) -> Bomb:
    """Long lists, names and texts."""
    n = source.choice((1000, 100_000, 1_000_000))
    kind = source.choice(("ints", "floats", "perm", "name", "strings", "concat", "split", "axes", "equation", "sum", "unused", "pads"))
    one = [node("Neg", ["x"], ["y"])]
    if kind == "ints":
        nodes = [node("Constant", [], ["c"], value_ints=[1] * n), node("ReduceSum", ["c"], ["y"], keepdims=0)]
        return Bomb(_model(nodes, (), kind=I64), (), n, may_refuse=False)
    if kind == "floats":
        nodes = [node("Constant", [], ["c"], value_floats=[1.0] * n), node("ReduceMax", ["c"], ["y"], keepdims=0)]
        return Bomb(_model(nodes, ()), (), 1, may_refuse=False)
    if kind == "perm":
        return Bomb(_model([node("Transpose", ["x"], ["y"], perm=[0] * n)]), (X,))
    if kind == "name":
        name = source.choice(("a", "é", "\n", "*/", "%s")) * n
        return Bomb(_model([node("Neg", [name], [name + "2"], name=name)], [(name, F32, (4,))], [name + "2"]), (X,), -X)
    if kind == "strings":
        return Bomb(_model([node("Constant", [], ["c"], value_strings=[b"abc"] * n), node("Shape", ["c"], ["y"])], (), kind=I64), (), n)
    if kind == "concat":
        return Bomb(_model([node("Concat", ["x"] * min(n, 2000), ["z"], axis=0), node("ReduceMax", ["z"], ["y"], keepdims=0)]), (X,), 3)
    if kind == "split":
        names = [f"o{k}" for k in range(min(n, 3000))]
        return Bomb(_model([node("Split", ["x"], names, num_outputs=len(names)), node("Neg", ["x"], ["y"])]), (X,), None)
    if kind == "axes":
        return Bomb(_model([node("ReduceSum", ["x", "a"], ["y"])], constants={"a": np.zeros(n, np.int64)}), (X,))
    if kind == "equation":
        return Bomb(_model([node("Einsum", ["x"], ["y"], equation="a" * n + "->a")]), (X,))
    if kind == "sum":
        return Bomb(_model([node("Sum", ["x"] * min(n, 2000), ["y"])]), (X,))
    if kind == "pads":
        return Bomb(_model([node("MaxPool", ["x"], ["y"], kernel_shape=[2] * n, pads=[1] * n)]), (X,))
    return Bomb(_model([*one, *(node("Neg", ["x"], [f"u{k}"]) for k in range(min(n, 5000)))]), (X,), -X, may_refuse=False)


@_kind
def _numbers(source: random.Random) -> Bomb:
    """Shape arithmetic whose numbers or expressions grow with each step."""
    symbolic, op, steps = source.random() < 0.5, source.choice(("Mul", "Add", "Sub", "Max", "Div")), source.choice((2, 5, 12, 40, 200))
    nodes = [node("Shape", ["x"], ["s"]), node("Add", ["s", "one"], ["a0"])]
    nodes += [node(op, [f"a{k}", f"a{source.choice((k, k, max(k - 1, 0)))}"], [f"a{k + 1}"]) for k in range(steps)]
    nodes += [node("Identity", [f"a{steps}"], ["y"])]
    x = np.zeros((3, 5) if symbolic else (2,), np.float32)
    return Bomb(_model(nodes, [("x", F32, ("n", "m") if symbolic else (2,))], constants={"one": np.ones(1, np.int64)}, kind=I64), (x,))


@_kind
def _at_run_time(source: random.Random) -> Bomb:
    """What only a run can tell to be too much: sizes times sizes, values as sizes."""
    n, big = source.choice((1, 3, 1000)), source.choice((10, 10**5, 10**9, 10**13, 2**62))
    x = np.zeros((n,), np.float32)
    if source.random() < 0.5:
        nodes = [node("Expand", ["x", "s"], ["e"]), node("CumSum", ["e", "zero"], ["f"]), node("ReduceMax", ["f"], ["y"], keepdims=0)]
        return Bomb(_model(nodes, [("x", F32, ("n",))], constants={"s": np.asarray([big, 1]), "zero": np.int64(0)}), (x,), 0 if big <= 10**5 else None)
    nodes = [node(source.choice(("ConstantOfShape",)), ["k"], ["c"]), node("Sin", ["c"], ["d"]), node("CumSum", ["d", "zero"], ["e"]),
             node("ReduceMax", ["e"], ["y"], keepdims=0)]
    return Bomb(_model(nodes, [("k", I64, (2,))], constants={"zero": np.int64(0)}), (np.asarray([big, n]),), 0 if big <= 10**5 and n < 1000 else None)


@_kind
def _length(source: random.Random) -> Bomb:
    """Many nodes: chains, layers that all read what came before, wide graphs."""
    count, kind = source.choice((100, 1000, 2000)), source.choice(("chain", "fibonacci", "wide", "alternating", "diamonds"))
    if kind == "wide":
        nodes = [node("Neg", ["x"], [f"w{k}"]) for k in range(count)]
        nodes += [node("Max", [f"w{k}" for k in range(count)], ["y"])]
        return Bomb(_model(nodes), (X,), -X, may_refuse=False)
    nodes = []
    for k in range(count):
        now = f"t{k}" if k else "x"
        before = {"fibonacci": f"t{k - 1}" if k > 1 else "x", "diamonds": now}.get(kind, "")
        op = "Max" if before else "Softmax" if kind == "alternating" and k % 8 == 7 else "Sin"
        nodes.append(node(op, [now, *([before] if before else [])], [f"t{k + 1}" if k < count - 1 else "y"]))
    return Bomb(_model(nodes), (X,), X if kind == "diamonds" else None, may_refuse=False)


@contextmanager
def _external(source: random.Random) -> Iterator[Bomb]:
    """Weights in other files that are not there, not files, not long enough, or elsewhere."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "w.data").write_bytes(np.zeros(4, np.float32).tobytes())
        (folder / "loop").symlink_to(folder / "loop")
        (folder / "out").symlink_to("/etc")
        os.mkfifo(folder / "fifo")
        model = _model([node("Add", ["x", "w"], ["y"])])
        tensor = TensorProto(name="w", data_type=1, dims=[4], data_location=1)
        location = source.choice(("w.data", "w.data", "w.data", "loop", "loop/w", "out/passwd", "fifo", "w\0.data", "a" * 5000, "../w.data", "/etc/passwd", "",
                                  ".", "nowhere", "é.data", "\udcff".encode("utf-8", "replace").decode()))
        facts = {"location": location}
        if source.random() < 0.6:
            facts["offset"] = str(source.choice((0, 0, 4, -4, 2**63, 2**64, 10**30, "x", "", "0x0", "٣", "1_0")))
        if source.random() < 0.6:
            facts["length"] = str(source.choice((16, 16, 0, -16, 2**63, 2**64, 10**400, "y", "16 ", "1e1")))
        for key, value in facts.items():
            entry = tensor.external_data.add()
            entry.key, entry.value = key, value
        model.graph.initializer.append(tensor)
        onnx.save(model, folder / "m.onnx")
        plain = location == "w.data" and facts.get("offset", "0") == "0" and facts.get("length", "16") == "16"
        yield Bomb(folder / "m.onnx", (X,), X if plain else None, may_refuse=not plain)


KINDS["external"] = _external
