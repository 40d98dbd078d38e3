# SPDX-License-Identifier: Apache-2.0
"""ONNX and PyTorch models that take positions from data, for ``indices``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .index_subjects import (
    JOIN,
    Case,
    Subject,
    Unprescribed,
    data,
    draw,
    gather_elements,
    gather_nd,
    inside,
    many,
    scatter_elements,
    scatter_nd,
    sizes,
    take,
)

Rng = np.random.Generator
_TYPES = {"f": 1, "u": 2, "j": 6, "i": 7, "b": 9}  # float32, uint8, int32, int64, bool


def model(nodes: Sequence[Any], inputs: str, constants: Sequence[Any] = (), opset: int = 18, **given: Any) -> Callable[[], Any]:
    """A compiled model; ``inputs`` such as "x:f:n,4 i:i:k"; its result is y. ``given`` goes to ``rd.compile``."""

    def build() -> Any:
        from onnx import helper

        import roundel as rd

        infos = []
        for text in inputs.split():
            name, kind, dims = text.split(":")
            shape = [int(d) if d.isdigit() else d for d in dims.split(",") if d]
            infos.append(helper.make_tensor_value_info(name, _TYPES[kind], shape))
        out = [helper.make_empty_tensor_value_info("y")]
        out[0].type.tensor_type.elem_type = 1
        graph = helper.make_graph(list(nodes), "g", infos, out, list(constants))
        opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1), helper.make_opsetid("ai.onnx.ml", 3)]
        return rd.compile(helper.make_model(graph, opset_imports=opsets), **given)

    return build


def node(op: str, inputs: str, outputs: str = "y", **attrs: Any) -> Any:
    """A node of a model; "-" is an input left out."""
    from onnx import helper

    return helper.make_node(op, ["" if i == "-" else i for i in inputs.split()], outputs.split(), name=f"/{op}", **attrs)


def _gather_constant(rng: Rng) -> Case:
    n, d = int(rng.integers(0, 12)), int(rng.integers(1, 5))
    x = data(rng, n, d)
    return (x,), lambda: take(x, np.array([0, 5, -7, 3]), 0)


def _gather(rng: Rng) -> Case:
    a, n, d = sizes(rng, 3)
    x, i = data(rng, a, n, d), draw(rng, (many(rng) % 40, 2), n)
    return (x, i), lambda: take(x, i, 1)


def _gather_nd(rng: Rng) -> Case:
    b, n, m = sizes(rng, 3)
    rows = b if rng.random() < 0.9 else b + 1
    k = many(rng) % 50
    x, i = data(rng, b, n, m), np.stack([draw(rng, (rows, k), v) for v in (n, m)], 2)
    return (x, i), lambda: gather_nd(x, i, 1)


def _scatter(axis: int, join: str) -> Callable[[Rng], Case]:
    def case(rng: Rng) -> Case:
        n, m = sizes(rng, 2)
        shape = [int(rng.integers(0, v + 1)) for v in (n, m)]
        shape[axis] = int(rng.integers(0, 20))
        x, i, u = data(rng, n, m), draw(rng, shape, (n, m)[axis], "int32"), data(rng, *shape)
        return (x, i, u), lambda: scatter_elements(x, i, u, axis, join)

    return case


def _scatter_nd(join: str) -> Callable[[Rng], Case]:
    def case(rng: Rng) -> Case:
        n, d = sizes(rng, 2)
        k = many(rng)
        x, i, u = data(rng, n, d), draw(rng, (k, 1), n), data(rng, k, d)
        return (x, i, u), lambda: scatter_nd(x, i, u, join)

    return case


def _unpool(rng: Rng) -> Case:
    a, c, h, w = sizes(rng, 4, 5)
    total = a * c * h * w * 4
    x, i = data(rng, a, c, h, w), draw(rng, (a, c, h, w), total, negative=False)

    def reference() -> Any:
        out = np.zeros(total, np.float32)
        for place, value in zip(inside(i, total, False).reshape(-1), x.reshape(-1), strict=True):
            out[place] = value
        return out.reshape(a, c, 2 * h, 2 * w)

    return (x, i), reference


def _reverse(rng: Rng) -> Case:
    t, b, d = sizes(rng, 3)
    x, lengths = data(rng, t, b, d), draw(rng, (b,), t + 1, negative=False)

    def reference() -> Any:
        out = x.copy()
        for k, n in enumerate(inside(lengths, t + 1, False)):
            out[:n, k] = x[:n, k][::-1]
        return out

    return (x, lengths), reference


def _regions(op: str) -> Callable[[Rng], Case]:
    """Regions that cover one element, so that the result is that element."""

    def case(rng: Rng) -> Case:
        n, c, r = (int(v) for v in rng.integers(1, 6, 3))
        x, which = data(rng, n, c, 4, 4), draw(rng, (r,), n, negative=False)
        if op == "RoiAlign":
            rois = np.tile(np.float32([1, 1, 1, 1]), (r, 1))
            inputs: tuple[Any, ...] = (x, rois, which)
            pick = lambda i: np.mean([x[i][:, a, b] for a in (1, 2) for b in (1, 2)], 0)  # the centre of the cell [1, 2) x [1, 2)
        else:
            which = np.clip(which, -(2**31), 2**31).astype(np.float32).astype(np.int64)
            inputs = (x, np.concatenate([which[:, None].astype(np.float32), np.ones((r, 4), np.float32)], 1))
            pick = lambda i: x[i][:, 1, 1]
        return inputs, lambda: np.stack([pick(i) for i in inside(which, n, False)])[:, :, None, None].astype(np.float32)

    return case


def _rotary(rng: Rng) -> Case:
    b, s, m = (int(v) for v in rng.integers(1, 7, 3))
    x, at, cos, sin = data(rng, b, 2, s, 4), draw(rng, (b, s), m, negative=False), data(rng, m, 2), data(rng, m, 2)

    def reference() -> Any:
        c, d = (t[inside(at, m, False)][:, None] for t in (cos, sin))
        first, second = x[..., :2], x[..., 2:]
        return np.concatenate([first * c - second * d, first * d + second * c], -1)

    return (x, at, cos, sin), reference


def _embed_norm(rng: Rng) -> Case:
    b, s, v, p = int(rng.integers(1, 4)), int(rng.integers(1, 12)), int(rng.integers(1, 20)), int(rng.integers(1, 14))
    ids, kinds = draw(rng, (b, s), v, "int32", False), draw(rng, (b, s), 2, "int32", False)
    words, places, types = data(rng, v, 8), data(rng, p, 8), data(rng, 2, 8)
    gamma, beta = data(rng, 8), data(rng, 8)

    def reference() -> Any:
        if s > p:
            raise IndexError
        total = words[inside(ids, v, False)] + places[:s] + types[inside(kinds, 2, False)]
        centred = total - total.mean(-1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-3) * gamma + beta

    return (ids, kinds, words, places, types, gamma, beta), reference


def _tensor_scatter(rng: Rng) -> Case:
    b, room, d = (int(v) for v in rng.integers(1, 8, 3))
    new = int(rng.integers(1, room + 2))
    x, u, start = data(rng, b, room, d), data(rng, b, new, d), draw(rng, (b,), max(room - new + 1, 1), negative=False)

    def reference() -> Any:
        out = x.copy()
        for k, s in enumerate(inside(start, room - new + 1, False)):
            out[k, s:s + new] = u[k]
        return out

    return (x, u, start), reference


def _features(rng: Rng) -> Case:
    n, m = int(rng.integers(1, 8)), int(rng.integers(1, 8))
    x, i = data(rng, n, m), draw(rng, (int(rng.integers(1, 30)),), m, negative=False)
    return (x, i), lambda: take(x, i, 1, False)


def _slice(rng: Rng) -> Case:
    n = int(rng.integers(0, 20))
    x = data(rng, n)
    start, end = (draw(rng, (1,), n + 1) for _ in range(2))

    def clamp(v: int) -> int:
        return max(0, min(n, v + n if v < 0 else v))

    return (x, start, end), lambda: x[clamp(int(start[0])):max(clamp(int(end[0])), clamp(int(start[0])))]


def _slice_steps(rng: Rng) -> Case:
    n = int(rng.integers(1, 20))
    x, start, end = data(rng, n), draw(rng, (1,), n), draw(rng, (1,), n)
    step = np.array([int(rng.choice([1, 2, -1, -3]))])
    return (x, start, end, step), lambda: x[int(start[0]):int(end[0]):int(step[0])]


def _top(rng: Rng) -> Case:
    n = int(rng.integers(0, 12))
    x, k = data(rng, 3, n), draw(rng, (1,), n + 1, negative=False)
    return (x, k), lambda: -np.sort(-x, 1)[:, :inside(k, n + 1, False)[0]]


def _top_3(rng: Rng) -> Case:
    n = int(rng.integers(0, 6))
    x = data(rng, 2, n)
    return (x,), lambda: -np.sort(-x, 1)[:, :inside(np.array([3]), n + 1)[0]]


def _one_hot(rng: Rng) -> Case:
    i = draw(rng, (many(rng) % 40,), 5)
    wide = i.astype(object)
    return (i,), lambda: (np.where(wide < 0, wide + 5, wide)[:, None] == np.arange(5)).astype(np.float32)


def _compress(rng: Rng) -> Case:
    n, m = int(rng.integers(0, 12)), int(rng.integers(0, 14))
    x, keep = data(rng, n, 3), rng.random(m) < 0.5
    return (x, keep), lambda: take(x, np.nonzero(keep)[0], 0)


def _loop(rng: Rng) -> Case:
    n, k = int(rng.integers(1, 8)), int(rng.integers(1, 6))
    x, i = data(rng, n, 3), draw(rng, (k,), n)
    return (x, i), lambda: take(x, i, 0).sum(0)


def _branch(rng: Rng) -> Case:
    n = int(rng.integers(1, 8))
    x, i, c = data(rng, n, 3), draw(rng, (20,), n), np.array(rng.random() < 0.7)
    return (x, i, c), lambda: take(x, i, 0) if c else np.zeros((20, 3), np.float32)


def _loop_nodes() -> list[Any]:
    from onnx import helper

    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [node("Gather", "i n", "at"), node("Gather", "x at", "row"), node("Add", "s row", "t"), node("Identity", "go", "on")], "body",
        [value("n", 7, []), value("go", 9, []), value("s", 1, [3])], [value("on", 9, []), value("t", 1, [3])])
    shape = [node("Size", "i", "count"), node("Constant", "", "zero", value=helper.make_tensor("z", 1, [3], [0.0] * 3)),
             node("Constant", "", "true", value=helper.make_tensor("t", 9, [], [True]))]
    return [*shape, helper.make_node("Loop", ["count", "true", "zero"], ["y"], body=body)]


def _branch_nodes() -> list[Any]:
    from onnx import helper

    value = helper.make_tensor_value_info
    yes = helper.make_graph([node("Gather", "x i", "a")], "yes", [], [value("a", 1, [20, 3])])
    no = helper.make_graph([node("Constant", "", "b", value=helper.make_tensor("z", 1, [20, 3], [0.0] * 60))], "no", [], [value("b", 1, [20, 3])])
    return [helper.make_node("If", ["c"], ["y"], then_branch=yes, else_branch=no)]


def onnx_subjects() -> list[Subject]:
    """Models of one operator, or of one inside of a loop or branch."""
    from onnx import numpy_helper

    constant = lambda name, value: numpy_helper.from_array(np.asarray(value), name)
    ms = {"domain": "com.microsoft"}
    scatters = [Subject(f"ScatterElements {axis} {join}", model([node("ScatterElements", "x i u", axis=axis, reduction=join)], "x:f:n,m i:j:p,q u:f:p,q"),
                        _scatter(axis, join)) for axis in (0, 1) for join in JOIN]
    nd = [Subject(f"ScatterND {join}", model([node("ScatterND", "x i u", reduction=join)], "x:f:n,d i:i:k,1 u:f:k,d"), _scatter_nd(join)) for join in JOIN]
    return [
        Subject("Gather of constant indices", model([node("Gather", "x i")], "x:f:n,d", [constant("i", [0, 5, -7, 3])]), _gather_constant),
        Subject("Gather", model([node("Gather", "x i", axis=1)], "x:f:a,n,d i:i:k,2"), _gather),
        Subject("GatherND", model([node("GatherND", "x i", batch_dims=1)], "x:f:b,n,m i:i:p,k,2"), _gather_nd),
        *scatters, *nd,
        Subject("MaxUnpool", model([node("MaxUnpool", "x i", kernel_shape=[2, 2], strides=[2, 2])], "x:f:a,c,h,w i:i:a,c,h,w"), _unpool),
        Subject("ReverseSequence", model([node("ReverseSequence", "x i", time_axis=0, batch_axis=1)], "x:f:t,b,d i:i:b"), _reverse),
        Subject("RoiAlign", model([node("RoiAlign", "x r i", sampling_ratio=1, coordinate_transformation_mode="output_half_pixel")],
                                   "x:f:n,c,4,4 r:f:k,4 i:i:k"), _regions("RoiAlign")),
        Subject("MaxRoiPool", model([node("MaxRoiPool", "x r", pooled_shape=[1, 1])], "x:f:n,c,4,4 r:f:k,5"), _regions("MaxRoiPool")),
        Subject("RotaryEmbedding", model([node("RotaryEmbedding", "x i c s", **ms)], "x:f:b,2,s,4 i:i:b,s c:f:m,2 s:f:m,2"), _rotary),
        Subject("EmbedLayerNormalization", model([node("EmbedLayerNormalization", "i k w p t g b", "y m", epsilon=1e-3, **ms)],
                                                  "i:j:b,s k:j:b,s w:f:v,8 p:f:p,8 t:f:2,8 g:f:8 b:f:8"), _embed_norm),
        Subject("TensorScatter", model([node("TensorScatter", "x u i", axis=1)], "x:f:b,n,d u:f:b,k,d i:i:b", opset=24), _tensor_scatter),
        Subject("ArrayFeatureExtractor", model([node("ArrayFeatureExtractor", "x i", domain="ai.onnx.ml")], "x:f:n,m i:i:k"), _features),
        Subject("Slice", model([node("Slice", "x s e")], "x:f:n s:i:1 e:i:1"), _slice),
        Subject("Slice with steps", model([node("Slice", "x s e a t")], "x:f:n s:i:1 e:i:1 t:i:1", [constant("a", [0])]), _slice_steps),
        Subject("TopK", model([node("TopK", "x k", "y i")], "x:f:3,n k:i:1"), _top),
        Subject("TopK 3", model([node("TopK", "x k", "y i")], "x:f:2,n", [constant("k", [3])]), _top_3),
        Subject("OneHot", model([node("OneHot", "i d v")], "i:i:k", [constant("d", 5), constant("v", np.float32([0, 1]))]), _one_hot),
        Subject("Compress", model([node("Compress", "x c", axis=0)], "x:f:n,3 c:b:m"), _compress),
        Subject("Gather in Loop", model(_loop_nodes(), "x:f:n,3 i:i:k"), _loop),
        Subject("Gather in If", model(_branch_nodes(), "x:f:n,3 i:i:20 c:b:"), _branch),
    ]


# ---- PyTorch


def _torch(fn: Callable[..., Any], shapes: Sequence[tuple[Any, ...]], dtypes: str) -> Callable[[], Any]:
    """A function of tensors; dimensions that are text are dynamic, equal ones the same."""

    def build() -> Any:
        import torch

        import roundel as rd

        class Two(torch.nn.Module):
            def forward(self, x: Any, i: Any) -> Any:
                return fn(torch, x, i)

        class Three(torch.nn.Module):
            def forward(self, x: Any, i: Any, u: Any) -> Any:
                return fn(torch, x, i, u)

        names: dict[str, int] = {}
        size = lambda d: names.setdefault(d, 5 + 2 * len(names)) if isinstance(d, str) else d
        example = [torch.zeros([size(d) for d in s], dtype=torch.float32 if t == "f" else torch.int64) for s, t in zip(shapes, dtypes, strict=True)]
        dims = {n: torch.export.Dim(n, min=2, max=4096) for n in names}
        dynamic = tuple({k: dims[d] for k, d in enumerate(s) if isinstance(d, str)} for s in shapes)
        return rd.compile(Two() if len(shapes) == 2 else Three(), example, dynamic=dynamic)

    return build


def _rows(negative: bool, of: Callable[..., Any]) -> Callable[[Rng], Case]:
    """x (n, 4), indices (k,)."""

    def case(rng: Rng) -> Case:
        n, k = int(rng.integers(2, 12)), int(rng.integers(2, 60))
        x, i = data(rng, n, 4), draw(rng, (k,), n, negative=negative)
        return (x, i), lambda: of(x, inside(i, n, negative))

    return case


def _updates(negative: bool, join: str) -> Callable[[Rng], Case]:
    """x (n, 4), indices (k,), updates (k, 4)."""

    def case(rng: Rng) -> Case:
        n, k = int(rng.integers(2, 12)), int(rng.integers(2, 40))
        x, i, u = data(rng, n, 4), draw(rng, (k,), n, negative=negative), data(rng, k, 4)
        return (x, i, u), lambda: scatter_nd(x, inside(i, n, negative)[:, None], u, join)

    return case


def _elements(rng: Rng) -> Case:
    n, m = int(rng.integers(2, 9)), int(rng.integers(2, 30))
    x, i = data(rng, n, m), draw(rng, (n, m), m, negative=False)
    return (x, i), lambda: gather_elements(x, i, 1, False)


def _bags(rng: Rng) -> Case:
    n, k = int(rng.integers(2, 12)), int(rng.integers(2, 30))
    x, i = data(rng, n, 4), draw(rng, (k, 3), n, negative=False)

    def reference() -> Any:
        inside(i, n)
        if (i < 0).any():  # PyTorch itself refuses these, what it is taken apart into does not
            raise Unprescribed
        return x[i].sum(1)

    return (x, i), reference


def _filled(rng: Rng) -> Case:
    n, k = int(rng.integers(2, 12)), int(rng.integers(2, 30))
    x, i = data(rng, n, 4), draw(rng, (k,), n)

    def reference() -> Any:
        out = x.copy()
        out[inside(i, n)] = 0.5
        return out

    return (x, i), reference


def _one_hot_of_torch(rng: Rng) -> Case:
    x, i = data(rng, 3, 4), draw(rng, (int(rng.integers(2, 30)),), 5, negative=False)
    return (x, i), lambda: np.eye(5, dtype=np.float32)[inside(i, 5, False)]


def _counted(rng: Rng) -> Case:
    k = int(rng.integers(2, 30))
    x, i = data(rng, k), draw(rng, (k,), 7)
    return (x, i), lambda: np.bincount(inside(i, 7), x, 7).astype(np.float32)


def _searched(rng: Rng) -> Case:
    n, k = int(rng.integers(2, 12)), int(rng.integers(2, 30))
    x, i = np.sort(data(rng, n)), draw(rng, (k,), n)
    return (x, i), lambda: np.searchsorted(x, i.astype(np.float32))


def _scattered_max(rng: Rng) -> Case:
    n, m = int(rng.integers(2, 9)), int(rng.integers(2, 30))
    x, i, u = data(rng, n, m), draw(rng, (n, m), m, negative=False), data(rng, n, m)
    return (x, i, u), lambda: scatter_elements(x, i, u, 1, "max", False)


def _scattered(rng: Rng) -> Case:
    n, m = int(rng.integers(2, 9)), int(rng.integers(2, 30))
    x, i, u = data(rng, n, m), draw(rng, (n, m), m, negative=False), data(rng, n, m)
    return (x, i, u), lambda: scatter_elements(x, i, u, 1, "add", False)


def _pairs(rng: Rng) -> Case:
    n, m, k = int(rng.integers(2, 9)), int(rng.integers(2, 30)), int(rng.integers(2, 60))
    x, i, j = data(rng, n, m), draw(rng, (k,), n), draw(rng, (k,), m)
    return (x, i, j), lambda: x[inside(i, n), inside(j, m)]


def torch_subjects() -> list[Subject]:
    """Functions of PyTorch. It takes embedding_bag apart into index, index_add and index_copy into index_put, where negative positions count from the end."""
    x, i, u = ("n", 4), ("k",), ("k", 4)
    grid = ("n", "m")
    return [
        Subject("torch embedding", _torch(lambda t, x, i: t.nn.functional.embedding(i, x), (x, i), "fi"), _rows(False, lambda x, i: x[i])),
        Subject("torch index_select", _torch(lambda t, x, i: t.index_select(x, 0, i), (x, i), "fi"), _rows(False, lambda x, i: x[i])),
        Subject("torch index", _torch(lambda t, x, i: x[i], (x, i), "fi"), _rows(True, lambda x, i: x[i])),
        Subject("torch index of two", _torch(lambda t, x, i, j: x[i, j], (grid, i, i), "fii"), _pairs),
        Subject("torch take", _torch(lambda t, x, i: t.take(x, i), (("n",), i), "fi"),
                lambda rng: (lambda n, k: (lambda x, i: ((x, i), lambda: take(x, i, 0)))(data(rng, n), draw(rng, (k,), n)))(
                    int(rng.integers(2, 12)), int(rng.integers(2, 60)))),
        Subject("torch gather", _torch(lambda t, x, i: t.gather(x, 1, i), (grid, grid), "fi"), _elements),
        Subject("torch scatter_add", _torch(lambda t, x, i, u: t.scatter_add(x, 1, i, u), (grid, grid, grid), "fif"), _scattered),
        Subject("torch index_put", _torch(lambda t, x, i, u: t.index_put(x, (i,), u, True), (x, i, u), "fif"), _updates(True, "add")),
        Subject("torch index_add", _torch(lambda t, x, i, u: t.index_add(x, 0, i, u), (x, i, u), "fif"), _updates(True, "add")),
        Subject("torch embedding with padding", _torch(lambda t, x, i: t.nn.functional.embedding(i, x, padding_idx=1), (x, i), "fi"),
                _rows(False, lambda x, i: x[i])),
        Subject("torch embedding_bag", _torch(lambda t, x, i: t.nn.functional.embedding_bag(i, x, mode="sum"), (x, ("k", 3)), "fi"), _bags),
        Subject("torch scatter_reduce", _torch(lambda t, x, i, u: t.scatter_reduce(x, 1, i, u, "amax"), (grid, grid, grid), "fif"), _scattered_max),
        Subject("torch index_fill", _torch(lambda t, x, i: t.index_fill(x, 0, i, 0.5), (x, i), "fi"), _filled),
        Subject("torch one_hot", _torch(lambda t, x, i: t.nn.functional.one_hot(i, 5) + x[0, 0] * 0, (x, i), "fi"), _one_hot_of_torch),
        Subject("torch bincount", _torch(lambda t, x, i: t.zeros(7).index_put((i,), x, True), (("k",), i), "fi"), _counted),
        Subject("torch searchsorted", _torch(lambda t, x, i: t.searchsorted(x, i.float()), (("n",), i), "fi"), _searched),
        Subject("torch index_copy", _torch(lambda t, x, i, u: t.index_copy(x, 0, i, u), (x, i, u), "fif"), _updates(True, "none")),
    ]
