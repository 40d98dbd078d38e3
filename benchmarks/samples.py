# SPDX-License-Identifier: Apache-2.0
"""Samples of common operators: one ONNX node with its data, and what computes the same in PyTorch.

The benchmark runs them at their full size, a test at a small one (``sample(scale)``), so that both speak of the same operators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

Peer = Callable[..., Any]


@dataclass(frozen=True)
class Sample:
    """``inputs`` come at run time, ``constants`` are part of the model; both are operands of the node in this order by name.
    ``peer`` takes the inputs as tensors of PyTorch and gives the first output (None: PyTorch has no such operator)."""

    name: str
    node: str
    inputs: Mapping[str, np.ndarray]
    peer: Peer | None = None
    constants: Mapping[str, np.ndarray] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    outputs: int = 1
    domain: str = ""
    order: tuple[str, ...] = ()  # of the operands, where it is not inputs before constants; "" for one left out

    def save(self, path: Path) -> None:
        """Write it as an ONNX model."""
        import onnx
        from onnx import helper, numpy_helper

        names = [f"y{k}" for k in range(self.outputs)]
        node = helper.make_node(self.node, list(self.order or (*self.inputs, *self.constants)), names, domain=self.domain, **self.attributes)
        kind = lambda a: helper.np_dtype_to_tensor_dtype(a.dtype)
        inputs = [helper.make_tensor_value_info(n, kind(a), a.shape) for n, a in self.inputs.items()]
        weights = [numpy_helper.from_array(a, n) for n, a in self.constants.items()]
        graph = helper.make_graph([node], "sample", inputs, [onnx.ValueInfoProto(name=n) for n in names], weights)
        opsets = [helper.make_opsetid("", 23), helper.make_opsetid("ai.onnx.ml", 3)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
        for v, own in zip(inferred.graph.output, model.graph.output, strict=True):
            own.CopyFrom(v)
        onnx.save(model, str(path))

    def module(self) -> Callable[[], Any]:
        """What makes the same for PyTorch."""
        return lambda: _Peer(self.peer)

    @property
    def elements(self) -> int:
        """Of the largest input."""
        return max(a.size for a in self.inputs.values())


@dataclass(frozen=True)
class _Peer:
    """A function that passes for a module."""

    function: Peer

    def __call__(self, *inputs: Any) -> Any:
        return self.function(*inputs)

    def to(self, **_: Any) -> _Peer:
        return self


class _Drawn:
    """Arrays drawn from one generator; sizes shrink by ``scale`` (of the number of elements of the largest dimensions)."""

    def __init__(self, scale: float) -> None:
        self.random, self.scale = np.random.default_rng(0), scale

    def size(self, n: int) -> int:
        """A dimension at this scale; those up to 32 stay."""
        return n if n <= 32 else max(round(n * self.scale), 9)

    def floats(self, *shape: int, dtype: Any = np.float32) -> np.ndarray:
        return self.random.standard_normal([self.size(n) for n in shape]).astype(dtype)

    def positive(self, *shape: int) -> np.ndarray:
        return np.abs(self.floats(*shape)) + np.float32(0.1)

    def integers(self, most: int, *shape: int, dtype: Any = np.int64) -> np.ndarray:
        return self.random.integers(0, self.size(most), [self.size(n) for n in shape]).astype(dtype)

    def bools(self, *shape: int) -> np.ndarray:
        return self.random.random([self.size(n) for n in shape]) < 0.5


def samples(scale: float = 1.0) -> list[Sample]:
    """All of them; ``scale`` below 1 gives small ones."""
    draw = _Drawn(scale)
    return [s for family in (_functions, _pairs, _casts, _reductions, _normalisations, _moves, _indices, _searches, _recurrences, _images, _trees)
            for s in family(draw)]


def _functions(draw: _Drawn) -> list[Sample]:
    import torch
    import torch.nn.functional as F

    anywhere: dict[str, Peer] = {
        "Relu": F.relu, "Sigmoid": torch.sigmoid, "Tanh": torch.tanh, "Exp": torch.exp, "Erf": torch.erf, "Gelu": F.gelu, "Softplus": F.softplus,
        "HardSwish": F.hardswish, "Elu": F.elu, "Abs": torch.abs, "Neg": torch.neg, "Floor": torch.floor, "Round": torch.round, "Sin": torch.sin,
        "Cos": torch.cos, "Sign": torch.sign, "Mish": F.mish, "Softsign": F.softsign, "IsNaN": torch.isnan,
    }
    above: dict[str, Peer] = {"Log": torch.log, "Sqrt": torch.sqrt, "Reciprocal": torch.reciprocal}
    out = [Sample(f"{n} 512x512", n, {"x": draw.floats(512, 512)}, f) for n, f in anywhere.items()]
    out += [Sample(f"{n} 512x512", n, {"x": draw.positive(512, 512)}, f) for n, f in above.items()]
    out += [Sample(f"{n} 4096x1024", n, {"x": draw.floats(4096, 1024)}, anywhere[n]) for n in ("Relu", "Tanh", "Exp", "Gelu")]
    out.append(Sample("Gelu tanh 512x512", "Gelu", {"x": draw.floats(512, 512)}, lambda x: F.gelu(x, approximate="tanh"), attributes={"approximate": "tanh"}))
    limits = {"low": np.float32(-1), "high": np.float32(1)}
    return [*out, Sample("Clip 512x512", "Clip", {"x": draw.floats(512, 512)}, lambda x: x.clamp(-1, 1), limits)]


def _pairs(draw: _Drawn) -> list[Sample]:
    import torch

    table: dict[str, Peer] = {"Add": torch.add, "Div": torch.div, "Max": torch.maximum, "Greater": torch.gt, "Equal": torch.eq}
    x, y = draw.floats(512, 512), draw.floats(512, 512)
    out = [Sample(f"{n} 512x512", n, {"x": x, "y": y}, f) for n, f in table.items()]
    big = draw.floats(4096, 1024)
    out += [
        Sample("Add 4096x1024", "Add", {"x": big, "y": draw.floats(4096, 1024)}, torch.add),
        Sample("Mul 4096x1024 by row", "Mul", {"x": big, "y": draw.floats(1024)}, torch.mul),
        Sample("Mul 4096x1024 by column", "Mul", {"x": big, "y": draw.floats(4096, 1)}, torch.mul),
        Sample("Pow 512x512", "Pow", {"x": draw.positive(512, 512), "y": y}, torch.pow),
        Sample("Add int64 512x512", "Add", {"x": draw.integers(1000, 512, 512), "y": draw.integers(1000, 512, 512)}, torch.add),
        Sample("Mod int64 512x512", "Mod", {"x": draw.integers(1000, 512, 512), "y": draw.integers(1000, 512, 512) + 1}, torch.remainder),
        Sample("And 512x512", "And", {"x": draw.bools(512, 512), "y": draw.bools(512, 512)}, torch.logical_and),
        Sample("Not 512x512", "Not", {"x": draw.bools(512, 512)}, torch.logical_not),
        Sample("Where 512x512", "Where", {"c": draw.bools(512, 512), "x": x, "y": y}, torch.where),
        Sample("PRelu 8x64x56x56", "PRelu", {"x": draw.floats(8, 64, 56, 56)}, None, {"slope": draw.floats(64, 1, 1)}),
    ]
    return out


def _casts(draw: _Drawn) -> list[Sample]:
    import torch
    from onnx import TensorProto as P

    x = draw.floats(1024, 1024) * np.float32(50)
    types = {"float16": P.FLOAT16, "bfloat16": P.BFLOAT16, "int64": P.INT64, "int32": P.INT32, "float64": P.DOUBLE, "bool": P.BOOL}
    to = lambda name: (lambda v: v.to(getattr(torch, name)))
    out = [Sample(f"Cast float32 {n} 1024x1024", "Cast", {"x": x}, to(n), attributes={"to": p}) for n, p in types.items()]
    sources = {"float16": x.astype(np.float16), "int64": x.astype(np.int64), "uint8": np.abs(x).astype(np.uint8), "bool": x > 0}
    out += [Sample(f"Cast {n} float32 1024x1024", "Cast", {"x": a}, to("float32"), attributes={"to": P.FLOAT}) for n, a in sources.items()]
    q = {"scale": np.float32(0.7), "zero": np.uint8(128)}
    quantize = lambda v: (v / 0.7).round().add(128).clamp(0, 255).to(torch.uint8)
    out.append(Sample("QuantizeLinear 1024x1024", "QuantizeLinear", {"x": x}, quantize, q))
    out.append(Sample("DequantizeLinear 1024x1024", "DequantizeLinear", {"x": sources["uint8"]}, lambda v: (v.float() - 128) * 0.7, q))
    out.append(Sample("DynamicQuantizeLinear 1024x1024", "DynamicQuantizeLinear", {"x": x}, None, outputs=3))
    return out


def _reductions(draw: _Drawn) -> list[Sample]:
    def reduce(name: str, x: np.ndarray, axes: list[int], peer: Peer, note: str) -> Sample:
        return Sample(f"Reduce{name} {note}", f"Reduce{name}", {"x": x}, peer, {"axes": np.array(axes, np.int64)}, {"keepdims": 0})

    def arg(name: str, x: np.ndarray, axis: int, peer: Peer, note: str) -> Sample:
        return Sample(f"{name} {note}", name, {"x": x}, peer, attributes={"axis": axis, "keepdims": 0})

    x, image, big = draw.floats(1024, 1024), draw.floats(8, 64, 56, 56), draw.floats(4096, 1024)
    out = []
    for k, note in ((0, "first of 1024x1024"), (1, "last of 1024x1024")):
        out += [
            reduce("Sum", x, [k], lambda v, k=k: v.sum(k), note), reduce("Max", x, [k], lambda v, k=k: v.amax(k), note),
            reduce("L2", x, [k], lambda v, k=k: v.norm(dim=k), note), reduce("LogSumExp", x, [k], lambda v, k=k: v.logsumexp(k), note),
            arg("ArgMax", x, k, lambda v, k=k: v.argmax(k), note),
        ]
    out += [
        reduce("Sum", x, [0, 1], lambda v: v.sum(), "all of 1024x1024"), reduce("Sum", big, [0, 1], lambda v: v.sum(), "all of 4096x1024"),
        reduce("Max", big, [0, 1], lambda v: v.amax(), "all of 4096x1024"), reduce("Mean", image, [2, 3], lambda v: v.mean((2, 3)), "last two of 8x64x56x56"),
        reduce("Mean", image, [1], lambda v: v.mean(1), "second of 8x64x56x56"),
        reduce("Sum", image, [0, 2, 3], lambda v: v.sum((0, 2, 3)), "all but second of 8x64x56x56"),
        reduce("Prod", x, [1], lambda v: v.prod(1), "last of 1024x1024"), arg("ArgMin", big.reshape(1, -1), 1, lambda v: v.argmin(1), "of 4194304"),
        reduce("Max", draw.integers(1000, 1024, 1024), [1], lambda v: v.amax(1), "int64 last of 1024x1024"),
    ]
    return out


def _normalisations(draw: _Drawn) -> list[Sample]:
    import torch
    import torch.nn.functional as F

    image, rows = draw.floats(8, 64, 56, 56), draw.floats(512, 768)
    groups, width = 3 if image.shape[1] % 8 else 8, rows.shape[1]
    ones = {"s": np.ones(width, np.float32)}
    scale = {"scale": draw.positive(64), "shift": draw.floats(64)}
    moments = {**scale, "mean": draw.floats(64), "variance": draw.positive(64)}
    t = lambda *names: [torch.from_numpy(moments[n]) for n in names]
    return [
        Sample("Softmax last of 512x768", "Softmax", {"x": rows}, lambda v: v.softmax(-1)),
        Sample("Softmax first of 512x768", "Softmax", {"x": rows}, lambda v: v.softmax(0), attributes={"axis": 0}),
        Sample("Softmax second of 8x64x56x56", "Softmax", {"x": image}, lambda v: v.softmax(1), attributes={"axis": 1}),
        Sample("LogSoftmax last of 512x768", "LogSoftmax", {"x": rows}, lambda v: v.log_softmax(-1)),
        Sample("LayerNormalization 512x768", "LayerNormalization", {"x": rows}, lambda v: F.layer_norm(v, (width,), torch.ones(width)), ones),
        Sample("RMSNormalization 512x768", "RMSNormalization", {"x": rows}, lambda v: F.rms_norm(v, (width,), torch.ones(width), 1e-5), ones),
        Sample("InstanceNormalization 8x64x56x56", "InstanceNormalization", {"x": image},
               lambda v: F.instance_norm(v, None, None, *t("scale", "shift")), scale),
        Sample("GroupNormalization 8x64x56x56", "GroupNormalization", {"x": image},
               lambda v: F.group_norm(v, groups, *t("scale", "shift")), scale, {"num_groups": groups}),
        Sample("BatchNormalization 8x64x56x56", "BatchNormalization", {"x": image},
               lambda v: F.batch_norm(v, *t("mean", "variance", "scale", "shift")), moments),
        Sample("LRN 8x64x56x56", "LRN", {"x": image}, lambda v: F.local_response_norm(v, 5), attributes={"size": 5}),
    ]


def _moves(draw: _Drawn) -> list[Sample]:
    import torch
    import torch.nn.functional as F

    x, image, square = draw.floats(1024, 1024), draw.floats(8, 64, 56, 56), draw.floats(16, 128, 12, 64)
    y = draw.floats(1024, 1024)
    n = lambda *v: np.array(v, np.int64)
    turned = lambda a, order, note="": Sample(f"Transpose {''.join(map(str, order))} {'x'.join(map(str, a.shape))}{note}", "Transpose", {"x": a},
                                              lambda v: v.permute(order).contiguous(), attributes={"perm": order})
    out = [turned(x, (1, 0)), turned(x.astype(np.float64), (1, 0), " float64"), turned((x * 9).astype(np.uint8), (1, 0), " uint8"),
           turned(x.astype(np.float16), (1, 0), " float16"),
           *(turned(image, order) for order in ((0, 2, 3, 1), (0, 3, 1, 2), (3, 2, 1, 0), (1, 0, 2, 3), (0, 1, 3, 2), (0, 2, 1, 3))),
           turned(square, (0, 2, 1, 3)), turned(square, (0, 2, 3, 1)), turned(draw.floats(64, 1000, 3), (2, 0, 1)), turned(draw.floats(3, 256, 256), (1, 2, 0))]
    first_of_both = lambda v: (v[:, :half].contiguous(), v[:, half:].contiguous())[0]
    half, whole, even = x.shape[1] // 2, image.shape[1] // 4 * 4, image.shape[2] // 2 * 2
    out += [
        Sample("Concat first 1024x1024", "Concat", {"x": x, "y": y}, lambda a, b: torch.cat((a, b), 0), attributes={"axis": 0}),
        Sample("Concat last 1024x1024", "Concat", {"x": x, "y": y}, lambda a, b: torch.cat((a, b), 1), attributes={"axis": 1}),
        Sample("Concat second 8x64x56x56", "Concat", {"x": image, "y": image}, lambda a, b: torch.cat((a, b), 1), attributes={"axis": 1}),
        Sample("Split last 1024x1024", "Split", {"x": x}, first_of_both, {"sizes": n(half, x.shape[1] - half)}, {"axis": 1}, 2),
        Sample("Slice middle 1024x1024", "Slice", {"x": x}, lambda v: v[3:-5, 7:-9].contiguous(), {"begin": n(3, 7), "end": n(-5, -9)}),
        Sample("Slice every second 1024x1024", "Slice", {"x": x}, lambda v: v[:, ::2].contiguous(),
               {"begin": n(0), "end": n(1 << 40), "axes": n(1), "steps": n(2)}),
        Sample("Slice backwards 1024x1024", "Slice", {"x": x}, lambda v: v.flip(1), {"begin": n(-1), "end": n(-1 << 40), "axes": n(1), "steps": n(-1)}),
        *(Sample(f"Pad {mode} 8x64x56x56", "Pad", {"x": image}, lambda v, m=mode: F.pad(v, (3, 2, 1, 4), m if m != "edge" else "replicate"),
                 {"pads": n(0, 0, 1, 3, 0, 0, 4, 2)}, {"mode": mode}) for mode in ("constant", "reflect", "edge")),
        Sample("Tile 256x512 by 2, 3", "Tile", {"x": draw.floats(256, 512)}, lambda v: v.tile(2, 3), {"by": n(2, 3)}),
        Sample("Expand 1024x1 to 1024x1024", "Expand", {"x": draw.floats(1024, 1)}, lambda v: v.expand(-1, x.shape[1]).contiguous(), {"shape": n(*x.shape)}),
        Sample("Trilu 1024x1024", "Trilu", {"x": x}, torch.triu, attributes={"upper": 1}),
        Sample("DepthToSpace 8x64x56x56", "DepthToSpace", {"x": image[:, :whole]}, lambda v: F.pixel_shuffle(v, 2),
               attributes={"blocksize": 2, "mode": "CRD"}),
        Sample("SpaceToDepth 8x64x56x56", "SpaceToDepth", {"x": image[..., :even, :even]}, None, attributes={"blocksize": 2}),
    ]
    return out


def _indices(draw: _Drawn) -> list[Sample]:
    import torch

    table, words = draw.floats(30000, 768), draw.integers(30000, 8, 128)
    x, places = draw.floats(1024, 1024), draw.integers(1024, 1024, 1024)
    few, pairs = draw.integers(1024, 512), draw.integers(1024, 4096, 2)
    updates = draw.floats(512, 1024)
    columns = draw.integers(1024, 512)
    return [
        Sample("Gather rows 1024 of 30000x768", "Gather", {"x": table, "i": words}, lambda v, i: v[i]),
        Sample("Gather columns 512 of 1024x1024", "Gather", {"x": x, "i": columns}, lambda v, i: v[:, i], attributes={"axis": 1}),
        Sample("GatherElements first of 1024x1024", "GatherElements", {"x": x, "i": places}, lambda v, i: v.gather(0, i)),
        Sample("GatherElements last of 1024x1024", "GatherElements", {"x": x, "i": places}, lambda v, i: v.gather(1, i), attributes={"axis": 1}),
        Sample("GatherND 4096 of 1024x1024", "GatherND", {"x": x, "i": pairs}, lambda v, i: v[i[:, 0], i[:, 1]]),
        Sample("ScatterElements add first of 1024x1024", "ScatterElements", {"x": x, "i": places, "u": x}, lambda v, i, u: v.scatter_add(0, i, u),
               attributes={"axis": 0, "reduction": "add"}),
        Sample("ScatterElements last of 1024x1024", "ScatterElements", {"x": x, "i": np.argsort(places, 1), "u": x},
               lambda v, i, u: v.scatter(1, i, u), attributes={"axis": 1}),
        Sample("ScatterND 512 rows of 1024x1024", "ScatterND", {"x": x, "i": few[:, None], "u": updates}, lambda v, i, u: v.index_add(0, i[:, 0], u),
               attributes={"reduction": "add"}),
        Sample("OneHot 1024 of 1000", "OneHot", {"i": draw.integers(1000, 1024)}, lambda i: torch.nn.functional.one_hot(i, draw.size(1000)).float(),
               {"depth": np.int64(draw.size(1000)), "values": np.array([0, 1], np.float32)}),
        Sample("NonZero 1024x1024", "NonZero", {"x": np.where(x > 0, x, 0)}, lambda v: v.nonzero().T.contiguous()),
        Sample("Compress 1024x1024", "Compress", {"x": x, "c": draw.bools(1024)}, lambda v, c: v[c], attributes={"axis": 0}),
    ]


def _searches(draw: _Drawn) -> list[Sample]:
    x, row = draw.floats(1024, 1024), draw.floats(1, 100000)

    def best(a: np.ndarray, k: int, note: str, axis: int = -1) -> Sample:
        return Sample(f"TopK {k} {note}", "TopK", {"x": a}, lambda v: v.topk(k, axis).values, {"k": np.array([k], np.int64)}, {"axis": axis}, 2)

    def running(name: str, a: np.ndarray, axis: int, peer: Peer, note: str) -> Sample:
        return Sample(f"{name} {note}", name, {"x": a}, peer, {"axis": np.int64(axis)})

    boxes = np.cumsum(draw.positive(1, 1000, 4).reshape(1, -1, 2, 2) * 20, 2).reshape(1, -1, 4).astype(np.float32)
    scores = draw.random.random((1, 1, boxes.shape[1])).astype(np.float32)
    limits = {"most": np.array([100], np.int64), "overlap": np.array([0.5], np.float32), "least": np.array([0.1], np.float32)}
    return [
        running("CumSum", x, 0, lambda v: v.cumsum(0), "first of 1024x1024"), running("CumSum", x, 1, lambda v: v.cumsum(1), "last of 1024x1024"),
        running("CumSum", row.reshape(-1), 0, lambda v: v.cumsum(0), "of 100000"),
        running("CumSum", draw.integers(9, 1024, 1024), 1, lambda v: v.cumsum(1), "int64 last of 1024x1024"),
        best(x, 5, "last of 1024x1024"), best(x, 5, "first of 1024x1024", 0), best(row, 10, "of 100000"), best(row, min(100, row.size), "of 100000"),
        best(x, x.shape[1], "last of 1024x1024 (a sort)"), best(row, row.size, "of 100000 (a sort)"),
        Sample("Unique 100000", "Unique", {"x": draw.integers(1000, 100000)}, None, attributes={"sorted": 1}),
        Sample("NonMaxSuppression 1000 boxes", "NonMaxSuppression", {"boxes": boxes, "scores": scores}, None, limits),
    ]


def _recurrences(draw: _Drawn) -> list[Sample]:
    out = []
    for node, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        for batch in (1, 16):
            x = draw.floats(100, batch, 128)
            width, size = x.shape[2], draw.size(128)
            weights = {"w": (draw.random.standard_normal((1, gates * size, width)) * 0.1).astype(np.float32),
                       "r": (draw.random.standard_normal((1, gates * size, size)) * 0.1).astype(np.float32)}
            out.append(Sample(f"{node} 100 steps, batch {batch}, 128 to 128", node, {"x": x}, None, weights, {"hidden_size": size}))
    return out


def _images(draw: _Drawn) -> list[Sample]:
    import torch.nn.functional as F

    image = draw.floats(8, 64, 56, 56)
    scales = {"scales": np.array([1, 1, 2, 2], np.float32)}
    twice = lambda mode, more: (lambda v: F.interpolate(v, scale_factor=2, mode=mode, **more))
    resize = lambda mode, coordinates, peer: Sample(f"Resize {mode} 8x64x56x56", "Resize", {"x": image}, peer, scales, {
        "mode": mode, "coordinate_transformation_mode": coordinates, **({"nearest_mode": "floor"} if mode == "nearest" else {})}, order=("x", "", "scales"))
    return [
        Sample("MaxPool 3x3 8x64x56x56", "MaxPool", {"x": image}, lambda v: F.max_pool2d(v, 3, 2), attributes={"kernel_shape": [3, 3], "strides": [2, 2]}),
        Sample("AveragePool 2x2 8x64x56x56", "AveragePool", {"x": image}, lambda v: F.avg_pool2d(v, 2), attributes={"kernel_shape": [2, 2], "strides": [2, 2]}),
        Sample("GlobalAveragePool 8x64x56x56", "GlobalAveragePool", {"x": image}, lambda v: F.adaptive_avg_pool2d(v, 1)),
        resize("nearest", "asymmetric", twice("nearest", {})), resize("linear", "half_pixel", twice("bilinear", {"align_corners": False})),
    ]


def _trees(draw: _Drawn) -> list[Sample]:
    """Ensembles of full binary trees."""
    x = draw.floats(1000, 32)
    kinds = ((100, 6, 1000), (10, 4, 1000), (100, 6, 1))
    return [Sample(f"TreeEnsembleRegressor {count} trees of depth {depth}, {rows} rows", "TreeEnsembleRegressor", {"x": x[:rows]},
                   attributes=_forest(count, depth, draw.random), domain="ai.onnx.ml") for count, depth, rows in kinds]


def _forest(count: int, depth: int, random: np.random.Generator) -> dict[str, Any]:
    inner, every = 2**depth - 1, 2 ** (depth + 1) - 1
    number, tree = np.tile(np.arange(every), count), np.repeat(np.arange(count), every)
    leaf = number >= inner
    child = lambda k: np.where(leaf, 0, 2 * number + k).tolist()
    return {
        "n_targets": 1, "nodes_treeids": tree.tolist(), "nodes_nodeids": number.tolist(), "nodes_modes": np.where(leaf, "LEAF", "BRANCH_LEQ").tolist(),
        "nodes_featureids": np.where(leaf, 0, random.integers(0, 32, len(number))).tolist(), "nodes_values": random.standard_normal(len(number)).tolist(),
        "nodes_truenodeids": child(1), "nodes_falsenodeids": child(2), "target_treeids": tree[leaf].tolist(), "target_nodeids": number[leaf].tolist(),
        "target_ids": [0] * int(leaf.sum()), "target_weights": random.standard_normal(int(leaf.sum())).tolist(),
    }
