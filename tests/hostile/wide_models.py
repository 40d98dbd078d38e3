# SPDX-License-Identifier: Apache-2.0
"""Models of a size ``n``, one kind for each thing of which a model can have many: operands, results, nodes, layers, parameters, names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

F32, I64 = TensorProto.FLOAT, TensorProto.INT64
node = helper.make_node
Made = tuple[onnx.ModelProto, tuple[np.ndarray, ...], Any]
"""A model, its inputs, and what is expected of the first result (None: not known)."""

KINDS: dict[str, Callable[[int], Made]] = {}
_OPSETS = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]


def _kind(make: Callable[[int], Made]) -> Callable[[int], Made]:
    KINDS[make.__name__.strip("_")] = make
    return make


def _value(name: str, shape: Sequence[Any] | None, kind: int = F32) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def _model(nodes: Sequence[Any], inputs: Sequence[onnx.ValueInfoProto], outputs: Sequence[str] = ("y",), constants: dict[str, Any] | None = None,
           functions: Sequence[Any] = ()) -> onnx.ModelProto:
    g = helper.make_graph(list(nodes), "g", list(inputs), [_value(o, None) for o in outputs],
                          [numpy_helper.from_array(np.asarray(v), k) for k, v in (constants or {}).items()])
    return helper.make_model(g, opset_imports=_OPSETS, functions=list(functions), ir_version=9)


def _numbers(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) % 17


def _many(n: int, *shape: int) -> tuple[list[str], list[onnx.ValueInfoProto], tuple[np.ndarray, ...]]:
    """``n`` inputs: names, types and values."""
    names = [f"x{k}" for k in range(n)]
    return names, [_value(x, shape) for x in names], tuple(_numbers(*shape) + np.float32(k % 5) for k in range(n))


# -- many operands


@_kind
def _concat(n: int) -> Made:
    x = _numbers(4)
    return _model([node("Concat", ["x"] * n, ["y"], axis=0)], [_value("x", (4,))]), (x,), np.tile(x, n)


@_kind
def _concat_inputs(n: int) -> Made:
    names, infos, xs = _many(n, 3, 2)
    return _model([node("Concat", names, ["y"], axis=1)], infos), xs, np.concatenate(xs, 1)


@_kind
def _concat_symbolic(n: int) -> Made:
    x = _numbers(3, 2)
    nodes = [*(node("Mul", ["x", f"w{k}"], [f"t{k}"]) for k in range(n)), node("Concat", [f"t{k}" for k in range(n)], ["y"], axis=1)]
    weights = {f"w{k}": np.float32([k % 5]) for k in range(n)}
    return _model(nodes, [_value("x", ("a", "b"))], constants=weights), (x,), np.concatenate([x * (k % 5) for k in range(n)], 1)


@_kind
def _concat_widths(n: int) -> Made:
    xs = tuple(_numbers(2, k % 7 + 1) for k in range(n))
    nodes = [node("Concat", [f"x{k}" for k in range(n)], ["z"], axis=-1), node("Relu", ["z"], ["y"])]
    return _model(nodes, [_value(f"x{k}", x.shape) for k, x in enumerate(xs)]), xs, np.concatenate(xs, 1)


@_kind
def _dense(n: int) -> Made:
    """Each layer reads all before it."""
    n, x = n // 10, _numbers(1, 4, 8)
    nodes, expected = [], [x]
    for k in range(n):
        nodes += [node("Concat", [*(f"t{i}" for i in range(k)), "x"], [f"c{k}"], axis=1), node("ReduceMax", [f"c{k}", "axes"], [f"t{k}"])]
        expected.insert(0, np.concatenate(expected, 1).max(1, keepdims=True))
    nodes.append(node("Concat", [f"t{k}" for k in range(n)], ["y"], axis=1))
    return _model(nodes, [_value("x", x.shape)], constants={"axes": np.asarray([1])}), (x,), np.concatenate(expected[:-1], 1)


def _variadic(op: str, combine: Callable[..., np.ndarray]) -> None:
    def own(n: int) -> Made:
        names, infos, xs = _many(n, 4)
        return _model([node(op, names, ["y"])], infos), xs, combine(np.stack(xs), axis=0)

    def same(n: int) -> Made:
        x = _numbers(4)
        return _model([node(op, ["x"] * n, ["y"])], [_value("x", (4,))]), (x,), combine(np.stack([x] * n), axis=0)

    KINDS[op.lower()], KINDS[f"{op.lower()}_same"] = own, same


for _op, _combine in (("Sum", np.sum), ("Max", np.max), ("Mean", np.mean)):
    _variadic(_op, _combine)


@_kind
def _sequence(n: int) -> Made:
    names, infos, xs = _many(n, 4)
    nodes = [node("SequenceConstruct", names, ["s"]), node("ConcatFromSequence", ["s"], ["y"], axis=0, new_axis=1)]
    return _model(nodes, infos), xs, np.stack(xs)


@_kind
def _insertions(n: int) -> Made:
    n, x = n // 10, _numbers(4)
    nodes = [node("SequenceEmpty", [], ["s0"])]
    nodes += [node("SequenceInsert", [f"s{k}", "x"], [f"s{k + 1}"]) for k in range(n)]
    nodes += [node("ConcatFromSequence", [f"s{n}"], ["y"], axis=0, new_axis=1)]
    return _model(nodes, [_value("x", (4,))]), (x,), np.stack([x] * n)


# -- many results


@_kind
def _split(n: int) -> Made:
    x = _numbers(3, n)
    names = [f"o{k}" for k in range(n)]
    return _model([node("Split", ["x"], names, axis=1, num_outputs=n)], [_value("x", x.shape)], names), (x,), x[:, :1]


@_kind
def _split_rows(n: int) -> Made:
    x = _numbers(n, 3)
    names = [f"o{k}" for k in range(n)]
    return _model([node("Split", ["x"], names, num_outputs=n)], [_value("x", x.shape)], names), (x,), x[:1]


@_kind
def _split_empty(n: int) -> Made:
    x = _numbers(4)
    names = [f"o{k}" for k in range(n)]
    return _model([node("Split", ["x"], names, num_outputs=n), node("Neg", ["x"], ["y"])], [_value("x", (4,))], ["y"]), (x,), -x


@_kind
def _split_symbolic(n: int) -> Made:
    x = _numbers(3, n)
    names = [f"o{k}" for k in range(n)]
    return _model([node("Split", ["x", "parts"], names, axis=1)], [_value("x", ("a", n))], names, {"parts": np.ones(n, np.int64)}), (x,), x[:, :1]


@_kind
def _split_concat(n: int) -> Made:
    """Parts of different widths in another order."""
    widths = [k % 7 + 1 for k in range(n)]
    x = _numbers(2, sum(widths))
    names = [f"o{k}" for k in range(n)]
    nodes = [node("Split", ["x", "widths"], names, axis=1), node("Concat", names[::-1], ["y"], axis=1)]
    expected = np.concatenate(np.split(x, np.cumsum(widths)[:-1], 1)[::-1], 1)
    return _model(nodes, [_value("x", x.shape)], constants={"widths": np.asarray(widths)}), (x,), expected


@_kind
def _slices(n: int) -> Made:
    """One number at a time."""
    x = _numbers(3, n + 1)
    nodes = [node("Gather", ["x", f"k{k}"], [f"t{k}"], axis=1) for k in range(n)]
    return _model([*nodes, node("Sum", [f"t{k}" for k in range(n)], ["y"])], [_value("x", x.shape)],
                  constants={f"k{k}": np.int64(k) for k in range(n)}), (x,), x[:, :n].sum(1)


@_kind
def _outputs(n: int) -> Made:
    x = _numbers(4)
    nodes = [node("Mul", ["x", f"w{k}"], [f"y{k}"]) for k in range(n)]
    weights = {f"w{k}": np.float32([k + 1, 2, 3, 4]) for k in range(n)}
    return _model(nodes, [_value("x", (4,))], [f"y{k}" for k in range(n)], weights), (x,), x * weights["w0"]


@_kind
def _branches(n: int) -> Made:
    """An If with many results."""
    x, names = _numbers(4), [f"y{k}" for k in range(n)]
    then = helper.make_graph([node("Neg", ["x"], [f"a{k}"]) for k in range(n)], "then", [], [_value(f"a{k}", (4,)) for k in range(n)])
    other = helper.make_graph([node("Abs", ["x"], [f"b{k}"]) for k in range(n)], "else", [], [_value(f"b{k}", (4,)) for k in range(n)])
    nodes = [node("ReduceSum", ["x"], ["s"], keepdims=0), node("Cast", ["s"], ["t"], to=9), node("If", ["t"], names, then_branch=then, else_branch=other)]
    return _model(nodes, [_value("x", (4,))], names), (x,), -x


@_kind
def _carried(n: int) -> Made:
    """A Loop that carries many tensors."""
    names, infos, xs = _many(n, 4)
    body = helper.make_graph([node("Identity", ["go"], ["on"]), *(node("Neg", [f"a{k}"], [f"b{k}"]) for k in range(n))], "body",
                             [_value("i", (), I64), _value("go", (), 9), *(_value(f"a{k}", (4,)) for k in range(n))],
                             [_value("on", (), 9), *(_value(f"b{k}", (4,)) for k in range(n))])
    outs = [f"y{k}" for k in range(n)]
    return _model([node("Loop", ["trips", "", *names], outs, body=body)], [_value("trips", (), I64), *infos], outs), (np.asarray(3), *xs), -xs[0]


# -- many inputs, parameters and constants


@_kind
def _inputs(n: int) -> Made:
    names, infos, xs = _many(n, 4)
    nodes = [node("Add", [names[0], names[1]], ["t2"]), *(node("Add", [f"t{k}", names[k]], [f"t{k + 1}"]) for k in range(2, n))]
    nodes[-1].output[0] = "y"
    return _model(nodes, infos), xs, np.sum(xs, 0)


@_kind
def _formal_parameters(n: int) -> Made:
    names, infos, xs = _many(n, 4)
    f = helper.make_function("own", "f", [f"a{k}" for k in range(n)], ["b"], [node("Sum", [f"a{k}" for k in range(n)], ["b"])], _OPSETS)
    return _model([node("f", names, ["y"], domain="own")], infos, functions=[f]), xs, np.sum(xs, 0)


@_kind
def _functions(n: int) -> Made:
    x = _numbers(4)
    made = [helper.make_function("own", f"f{k}", ["a"], ["b"], [node("Neg", ["a"], ["b"])], _OPSETS) for k in range(n)]
    nodes = [node(f"f{k}", [f"t{k}" if k else "x"], [f"t{k + 1}" if k < n - 1 else "y"], domain="own") for k in range(n)]
    return _model(nodes, [_value("x", (4,))], functions=made), (x,), x * (-1) ** n


@_kind
def _initializers(n: int) -> Made:
    """Constants of their own values, each used once by a chain."""
    x = _numbers(4)
    constants = {f"w{k}": np.float32([k, 1, -k, -1]) for k in range(n)}
    return _model(_chain("Add", n, lambda k: [f"w{k}"]), [_value("x", (4,))], constants=constants), (x,), x + np.sum(list(constants.values()), 0)


@_kind
def _unused_initializers(n: int) -> Made:
    x = _numbers(4)
    constants = {f"w{k}": np.float32([k, 1, -k, -1]) for k in range(n)}
    return _model([node("Neg", ["x"], ["y"])], [_value("x", (4,))], constants=constants), (x,), -x


@_kind
def _symbols(n: int) -> Made:
    """Inputs of sizes of their own."""
    n //= 10
    names = [f"x{k}" for k in range(n)]
    return (_model([node("Concat", names, ["y"], axis=0)], [_value(x, (f"n{k}",)) for k, x in enumerate(names)]), tuple(_numbers(k % 3 + 1) for k in range(n)),
            np.concatenate([_numbers(k % 3 + 1) for k in range(n)]))


@_kind
def _names(n: int) -> Made:
    x, name = _numbers(4), "é*/\n%" * n * 10
    return _model([node("Neg", [name], [name + "2"], name=name)], [_value(name, (4,))], [name + "2"]), (x,), -x


@_kind
def _equal_names(n: int) -> Made:
    """Nodes of one name, with results whose names become equal where only letters and digits are left."""
    x = _numbers(4)
    names = ["x", *("t" + "".join(".:/-"[k >> 2 * i & 3] for i in range(6)) for k in range(n - 1)), "y"]
    nodes = [node(("Sin", "Neg")[k % 2], [names[k]], [names[k + 1]], name="same") for k in range(n)]
    return _model(nodes, [_value("x", (4,))]), (x,), None


@_kind
def _attribute(n: int) -> Made:
    values = [float(k % 9) for k in range(n * 500)]
    nodes = [node("Constant", [], ["c"], value_floats=values), node("ReduceMax", ["c"], ["m"], keepdims=0), node("Add", ["m", "x"], ["y"])]
    return _model(nodes, [_value("x", (4,))]), (_numbers(4),), _numbers(4) + 8


@_kind
def _rank(n: int) -> Made:
    n = min(n // 32, 64)
    x = np.float32([1, 2]).reshape(1, 2, *[1] * (n - 2))
    nodes = [node("Transpose", ["x"], ["t"], perm=[*range(1, n), 0]), node("ReduceSum", ["t", "axes"], ["r"]), node("Add", ["r", "x"], ["y"])]
    return _model(nodes, [_value("x", x.shape)], constants={"axes": np.arange(1, n)}), (x,), None


# -- many nodes


def _chain(op: str, n: int, others: Callable[[int], Sequence[str]] = lambda k: (), **attributes: Any) -> list[onnx.NodeProto]:
    return [node(op, [f"t{k}" if k else "x", *others(k)], [f"t{k + 1}" if k < n - 1 else "y"], **attributes) for k in range(n)]


@_kind
def _sines(n: int) -> Made:
    return _model(_chain("Sin", n), [_value("x", (4,))]), (_numbers(4),), None


@_kind
def _softmaxes(n: int) -> Made:
    return _model(_chain("Softmax", n), [_value("x", (4,))]), (_numbers(4),), None


@_kind
def _cumulative_sums(n: int) -> Made:
    return _model(_chain("CumSum", n, lambda k: ["axis"]), [_value("x", (4,))], constants={"axis": np.asarray(0)}), (np.zeros(4, np.float32),), np.zeros(4)


@_kind
def _symbolic_sines(n: int) -> Made:
    return _model(_chain("Sin", n), [_value("x", ("n", "m"))]), (_numbers(3, 4),), None


@_kind
def _reshapes(n: int) -> Made:
    x = _numbers(4)
    nodes = _chain("Reshape", n, lambda k: [f"s{k % 2}"])
    return _model(nodes, [_value("x", (4,))], constants={"s0": np.asarray([2, 2]), "s1": np.asarray([4])}), (x,), None


@_kind
def _transposes(n: int) -> Made:
    return _model(_chain("Transpose", n | 1), [_value("x", (2, 3))]), (_numbers(2, 3),), _numbers(2, 3).T


@_kind
def _shapes(n: int) -> Made:
    """Arithmetic of shapes, as exporters write it around every layer."""
    n, x, nodes = n // 5, _numbers(2, 6), []
    for k in range(n):
        before, after = f"t{k}" if k else "x", f"t{k + 1}" if k < n - 1 else "y"
        nodes += [node("Shape", [before], [f"s{k}"]), node("Gather", [f"s{k}", "zero"], [f"g{k}"]), node("Unsqueeze", [f"g{k}", "axes"], [f"u{k}"]),
                  node("Concat", [f"u{k}", "rest"], [f"c{k}"], axis=0), node("Reshape", [before, f"c{k}"], [f"r{k}"]), node("Sin", [f"r{k}"], [f"v{k}"]),
                  node("Reshape", [f"v{k}", "back"], [after])]
    return _model(nodes, [_value("x", ("n", 6))], constants={"zero": np.asarray(0), "axes": np.asarray([0]), "rest": np.asarray([2, 3]),
                                                             "back": np.asarray([-1, 6])}), (x,), None


@_kind
def _convolutions(n: int) -> Made:
    """Equal small layers."""
    x = _numbers(1, 4, 6, 6)
    weights = {f"w{k}": np.full((4, 4, 3, 3), 1 / 36 + k * 1e-6, np.float32) for k in range(n)}
    return _model(_chain("Conv", n, lambda k: [f"w{k}"], pads=[1, 1, 1, 1]), [_value("x", x.shape)], constants=weights), (x,), None


@_kind
def _products(n: int) -> Made:
    """Equal layers of a perceptron."""
    nodes, weights = [], {f"w{k}": np.full((8, 8), 1 / 8 + k * 1e-6, np.float32) for k in range(n // 2)}
    for k in range(n // 2):
        nodes += [node("MatMul", [f"t{k}" if k else "x", f"w{k}"], [f"m{k}"]), node("Relu", [f"m{k}"], [f"t{k + 1}" if k < n // 2 - 1 else "y"])]
    return _model(nodes, [_value("x", ("n", 8))], constants=weights), (_numbers(2, 8),), None


@_kind
def _transformer(n: int) -> Made:
    """Blocks of width 64, ``n / 10`` of them."""
    n, x, nodes, weights = n // 10, _numbers(1, 8, 64) / 17, [], {}
    rng = np.random.default_rng(0)
    for k in range(n):
        t, p = f"t{k}" if k else "x", f"b{k}_"
        for name, shape in (("q", (64, 64)), ("k", (64, 64)), ("v", (64, 64)), ("o", (64, 64)), ("u", (64, 128)), ("d", (128, 64))):
            weights[p + name] = (rng.standard_normal(shape) * 0.02).astype(np.float32)
        nodes += [node("LayerNormalization", [t, "scale", "bias"], [p + "n"])]
        for name in "qkv":
            nodes += [node("MatMul", [p + "n", p + name], [p + name + "m"]), node("Reshape", [p + name + "m", "heads"], [p + name + "r"]),
                      node("Transpose", [p + name + "r"], [p + name + "t"], perm=[0, 2, 3, 1] if name == "k" else [0, 2, 1, 3])]
        nodes += [node("MatMul", [p + "qt", p + "kt"], [p + "s"]), node("Softmax", [p + "s"], [p + "a"]), node("MatMul", [p + "a", p + "vt"], [p + "c"]),
                  node("Transpose", [p + "c"], [p + "ct"], perm=[0, 2, 1, 3]), node("Reshape", [p + "ct", "whole"], [p + "cr"]),
                  node("MatMul", [p + "cr", p + "o"], [p + "om"]), node("Add", [p + "om", t], [p + "x"]),
                  node("LayerNormalization", [p + "x", "scale", "bias"], [p + "l"]), node("MatMul", [p + "l", p + "u"], [p + "um"]),
                  node("Relu", [p + "um"], [p + "ur"]), node("MatMul", [p + "ur", p + "d"], [p + "dm"]),
                  node("Add", [p + "dm", p + "x"], [f"t{k + 1}" if k < n - 1 else "y"])]
    weights |= {"scale": np.ones(64, np.float32), "bias": np.zeros(64, np.float32), "heads": np.asarray([0, 0, 4, 16]), "whole": np.asarray([0, 0, 64])}
    return _model(nodes, [_value("x", x.shape)], constants=weights), (x,), None


@_kind
def _lookups(n: int) -> Made:
    """Indices that are data, into a table of each layer's own."""
    constants = {f"w{k}": np.full((4, 4), k % 3, np.float32) for k in range(n)}
    nodes = [*(node("Gather", [f"w{k}", "i"], [f"t{k}"]) for k in range(n)), node("Sum", [f"t{k}" for k in range(n)], ["y"])]
    return _model(nodes, [_value("i", (2,), I64)], constants=constants), (np.asarray([1, 3]),), np.full((2, 4), sum(k % 3 for k in range(n)), np.float32)


@_kind
def _nested(n: int) -> Made:
    """Branches in branches."""
    n, x = min(n // 40, 30), _numbers(4)  # protobuf nests messages 100 deep, three for each branch
    body = [node("Neg", ["x"], [f"r{n}"])]
    for k in reversed(range(n)):
        then = helper.make_graph(body, f"then{k}", [], [_value(f"r{k + 1}", (4,))])
        other = helper.make_graph([node("Abs", ["x"], [f"e{k}"])], f"else{k}", [], [_value(f"e{k}", (4,))])
        body = [node("If", ["t"], [f"r{k}"], then_branch=then, else_branch=other)]
    body[-1].output[0] = "y"
    return _model([node("ReduceSum", ["x"], ["s"], keepdims=0), node("Cast", ["s"], ["t"], to=9), *body], [_value("x", (4,))]), (x,), -x


@_kind
def _conditions(n: int) -> Made:
    """One branch after another."""
    n, x, nodes = n // 5, _numbers(4), [node("ReduceSum", ["x"], ["s"], keepdims=0), node("Cast", ["s"], ["t"], to=9)]
    for k in range(n):
        before = f"t{k}" if k else "x"
        then = helper.make_graph([node("Neg", [before], [f"a{k}"])], "then", [], [_value(f"a{k}", (4,))])
        other = helper.make_graph([node("Abs", [before], [f"b{k}"])], "else", [], [_value(f"b{k}", (4,))])
        nodes.append(node("If", ["t"], [f"t{k + 1}" if k < n - 1 else "y"], then_branch=then, else_branch=other))
    return _model(nodes, [_value("x", (4,))]), (x,), x * (-1) ** n


@_kind
def _loops(n: int) -> Made:
    """One loop after another."""
    n, x, nodes = n // 20, _numbers(4), []
    for k in range(n):
        body = helper.make_graph([node("Identity", ["go"], ["on"]), node("Neg", ["a"], ["b"])], "body",
                                 [_value("i", (), I64), _value("go", (), 9), _value("a", (4,))], [_value("on", (), 9), _value("b", (4,))])
        nodes.append(node("Loop", ["trips", "", f"t{k}" if k else "x"], [f"t{k + 1}" if k < n - 1 else "y"], body=body))
    return _model(nodes, [_value("trips", (), I64), _value("x", (4,))]), (np.asarray(3), x), x * (-1) ** n


@_kind
def _recurrent(n: int) -> Made:
    """Layers of an LSTM."""
    n, x = n // 50, _numbers(3, 1, 4) / 17
    weights = {"w": np.full((1, 16, 4), 0.1, np.float32), "r": np.full((1, 16, 4), 0.1, np.float32), "axes": np.asarray([1])}
    nodes = []
    for k in range(n):
        nodes += [node("LSTM", [f"t{k}" if k else "x", "w", "r"], [f"h{k}"], hidden_size=4),
                  node("Squeeze", [f"h{k}", "axes"], [f"t{k + 1}" if k < n - 1 else "y"])]
    return _model(nodes, [_value("x", x.shape)], constants=weights), (x,), None
