# SPDX-License-Identifier: Apache-2.0
"""ONNX operators on images and boxes: sampling, regions of interest, columns, unpooling."""

from __future__ import annotations

from typing import Any

from .... import te
from ....arith import Analyzer
from ....ir import graph, tir
from ..importer import NodeContext, Value
from ..registry import converter
from .tensor import cut


@converter("GridSample", since=16)
def _grid_sample(node: NodeContext, x: Value, grid: Value) -> Any:
    rank = x.expr.sinfo.ndim
    modes = {"linear": "bilinear", "bilinear": "bilinear", "cubic": "bicubic", "bicubic": "bicubic", "nearest": "nearest"}
    first = node.make("permute_dims", grid.expr, axes=(0, rank - 1, *range(1, rank - 1)))
    return node.make("image.grid_sample", x.expr, first, method=modes[node.attr("mode", "linear")], layout="NCDHW" if rank == 5 else "NCHW",
                     padding_mode=node.attr("padding_mode", "zeros"), align_corners=bool(node.attr("align_corners", 0)))


def _f(v: float) -> tir.Expr:
    return tir.const(float(v), "float32")


def bilinear(read: Any, y: Any, x: Any, height: Any, width: Any, join: Any = None) -> Any:
    """A value between four elements; outside by more than one element it is zero. ``join`` of the four terms, by default their sum."""
    join = join or (lambda a, b: a + b)
    inside = te.logical_and(y > _f(-1), y < te.cast(height, "float32"), x > _f(-1), x < te.cast(width, "float32"))
    low_y, low_x = te.floor(y), te.floor(x)
    fy, fx = y - low_y, x - low_x
    total = None
    for dy in (0, 1):
        for dx in (0, 1):
            yi, xi = te.cast(low_y, "int64") + dy, te.cast(low_x, "int64") + dx
            weight = (fy if dy else _f(1) - fy) * (fx if dx else _f(1) - fx)
            here = te.logical_and(inside, yi >= 0, yi < height, xi >= 0, xi < width)
            safe = read(tir.max_(tir.min_(yi, height - 1), 0), tir.max_(tir.min_(xi, width - 1), 0))
            term = te.select(here, weight * te.cast(safe, "float32"), _f(0))
            total = term if total is None else join(total, term)
    return total


@converter("RoiAlign", since=10)
def _roi_align(node: NodeContext, x: Value, rois: Value, batch: Value) -> Any:
    half = node.opset >= 16 and node.attr("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    rows, cols = node.attr("output_height", 1), node.attr("output_width", 1)
    ratio, scale, mode = node.attr("sampling_ratio", 0), node.attr("spatial_scale", 1.0), node.attr("mode", "avg")
    _check_regions(node, x.expr, rois.expr, 4)
    node.same_size(batch.expr.sinfo.shape[0], rois.expr.sinfo.shape[0], "the number of batch_indices is not that of rois")
    images = node.positions(batch.expr, x.expr.sinfo.shape[0])
    if ratio <= 0:
        return node.te(lambda *a: _roi_adaptive(*a, rows, cols, scale, half, mode), x.expr, rois.expr, images)
    return node.te(lambda *a: _roi_pooled(*a, rows, cols, ratio, scale, half, mode), x.expr, rois.expr, images)


def _check_regions(node: NodeContext, x: Any, rois: Any, width: int) -> None:
    """Rows of ``width`` numbers, of images that are not empty."""
    if x.sinfo.ndim != 4 or rois.sinfo.ndim != 2:
        raise node.error(f"the image has {x.sinfo.ndim} dimensions, the regions {rois.sinfo.ndim}: 4 and 2 are possible")
    node.same_size(rois.sinfo.shape[1], width, "the width of rois")
    for n in x.sinfo.shape[2:]:
        node.same_size(tir.max_(n, 1), n, "the image is empty")


def _roi_box(rois: Any, r: Any, scale: float, half: bool) -> tuple[Any, ...]:
    shift = _f(0.5 if half else 0.0)
    x0, y0, x1, y1 = (te.cast(rois(r, k), "float32") * _f(scale) - shift for k in range(4))
    height, width = y1 - y0, x1 - x0
    if not half:
        height, width = tir.max_(height, _f(1)), tir.max_(width, _f(1))
    return y0, x0, height, width


def _sample(x: Any, i: Any, c: Any, y: Any, xx: Any, mode: str) -> Any:
    """As the operator samples: beyond the border by up to one element the border's value holds; max is over the weighted terms."""
    height, width = x.shape[2], x.shape[3]
    high_y, high_x = te.cast(height, "float32"), te.cast(width, "float32")
    inside = te.logical_and(y >= _f(-1), y <= high_y, xx >= _f(-1), xx <= high_x)
    y, xx = (tir.max_(tir.min_(v, high - _f(1)), _f(0)) for v, high in ((y, high_y), (xx, high_x)))
    return te.select(inside, bilinear(lambda a, b: x(i, c, a, b), y, xx, height, width, tir.max_ if mode == "max" else None), _f(0))


def _roi_pooled(x: Any, rois: Any, batch: Any, rows: int, cols: int, ratio: int, scale: float, half: bool, mode: str) -> Any:
    ky, kx = te.reduce_axis(ratio, "ky"), te.reduce_axis(ratio, "kx")

    def value(r: Any, c: Any, i: Any, j: Any) -> Any:
        y0, x0, height, width = _roi_box(rois, r, scale, half)
        step_y, step_x = height / _f(rows), width / _f(cols)
        y = y0 + te.cast(i, "float32") * step_y + (te.cast(ky.var, "float32") + _f(0.5)) * step_y / _f(ratio)
        xx = x0 + te.cast(j, "float32") * step_x + (te.cast(kx.var, "float32") + _f(0.5)) * step_x / _f(ratio)
        return _sample(x, te.cast(batch(r), "int64"), c, y, xx, mode)

    shape = (rois.shape[0], x.shape[1], rows, cols)
    if mode == "max":
        return te.compute(shape, lambda *at: te.max(value(*at), axis=[ky, kx]), "roi_align")
    total = te.compute(shape, lambda *at: te.sum(value(*at), axis=[ky, kx]), "roi_sum")
    return te.compute(shape, lambda *at: total(*at) / _f(ratio * ratio), "roi_align")


def _roi_adaptive(x: Any, rois: Any, batch: Any, rows: int, cols: int, scale: float, half: bool, mode: str) -> Any:
    """The number of samples follows from the size of each region; only as many are looked at as can lie on the image (see ``_part``)."""
    from ....ops.loops import for_each, let_all, load, store

    def build(ins: Any, outs: Any, scratch: Any, r: Any, c: Any, i: Any, j: Any) -> tir.Stmt:
        (data, boxes, index), (out,) = ins, outs
        y0, x0, height, width = _roi_box(lambda *at: load(boxes, at), r, scale, half)
        step_y, step_x = height / _f(rows), width / _f(cols)
        view = _View(data)

        start_y, start_x = y0 + te.cast(i, "float32") * step_y, x0 + te.cast(j, "float32") * step_x

        def body(count_y: Any, count_x: Any) -> tir.Stmt:
            parts = (_part(start_y, step_y, count_y, data.shape[2]), _part(start_x, step_x, count_x, data.shape[3]))
            return let_all(parts, lambda first_y, first_x: sampled(count_y, count_x, first_y, first_x))

        def sampled(count_y: Any, count_x: Any, first_y: Any, first_x: Any) -> tir.Stmt:
            def visit(a: Any, b: Any) -> tir.Stmt:
                y = start_y + (te.cast(first_y + a, "float32") + _f(0.5)) * step_y / te.cast(count_y, "float32")
                xx = start_x + (te.cast(first_x + b, "float32") + _f(0.5)) * step_x / te.cast(count_x, "float32")
                new = _sample(view, te.cast(load(index, (r,)), "int64"), c, y, xx, mode)
                old = load(out, (r, c, i, j))
                return store(out, (r, c, i, j), tir.max_(old, new) if mode == "max" else old + new)

            start = te.lowest("float32") if mode == "max" else 0.0
            counts = [tir.min_(count_y - first_y, _most(data.shape[2])), tir.min_(count_x - first_x, _most(data.shape[3]))]
            steps = [store(out, (r, c, i, j), start), for_each(counts, visit)]
            found = load(out, (r, c, i, j))
            if mode != "max":
                found = found / (te.cast(count_y, "float32") * te.cast(count_x, "float32"))
            regular = te.logical_and(step_y > _f(0), step_x > _f(0))  # a region that ends before it begins has no samples
            return tir.seq(*steps, store(out, (r, c, i, j), te.select(regular, found, _f(0))))

        return let_all([tir.max_(te.cast(te.ceil(step), "int64"), 1) for step in (step_y, step_x)], body)

    shape = (rois.shape[0], x.shape[1], tir.index_const(rows), tir.index_const(cols))
    return te.extern([(shape, x.dtype)], [x, rois, batch], build, "roi_align", over=shape)


def _part(start: Any, step: Any, count: Any, extent: Any) -> Any:
    """Of ``count`` samples spread over ``step`` from ``start`` on, the first to look at: two or more before the image, or the first of all.

    Outside of the image all are zero, so two say what all say. They lie half an element or more apart where there are several.
    """
    number = te.cast(count, "float32")
    before = te.floor((_f(-1) - start) * number / step) - _f(2)
    return tir.max_(tir.min_(te.cast(before, "int64"), count - tir.min_(count, _most(extent))), 0)


def _most(extent: Any) -> Any:
    """How many samples can lie on an image of this extent, with some before and behind it."""
    return extent * 2 + 10


class _View:
    """A buffer that is called like a tensor."""

    def __init__(self, buffer: tir.Buffer) -> None:
        self.buffer, self.shape = buffer, buffer.shape

    def __call__(self, *at: Any) -> tir.Expr:
        return self.buffer[at]


@converter("MaxUnpool", since=9)
def _max_unpool(node: NodeContext, x: Value, indices: Value, shape: Value | None = None) -> Any:
    v, kernel = x.expr, node.attr("kernel_shape")
    n = len(kernel)
    if v.sinfo.ndim != n + 2 or indices.expr.sinfo.ndim != n + 2:
        raise node.error(f"x has {v.sinfo.ndim} dimensions, the indices {indices.expr.sinfo.ndim}, where the kernel makes {n + 2}")
    for a, b in zip(v.sinfo.shape, indices.expr.sinfo.shape, strict=True):
        node.same_size(a, b, "the indices have another shape than x")
    strides, pads = node.attr("strides", [1] * n), node.attr("pads", [0] * (2 * n))
    an = Analyzer()
    natural = [an.simplify((v.sinfo.shape[2 + k] - 1) * strides[k] - (pads[k] + pads[n + k]) + kernel[k]) for k in range(n)]
    dims = [*v.sinfo.shape[:2], *natural]
    out = [tir.as_index(d) for d in (dims if shape is None else node.static_ints(shape, "the output's shape"))]
    flat = graph.ShapeExpr((tir.product_of(v.sinfo.shape),))
    places = node.make("reshape", node.positions(indices.expr, tir.product_of(dims if shape is None or n == 2 else out)), flat)
    if shape is not None and n == 2:  # indices count in the natural shape
        width, plane = node.number(natural[-1]), node.number(an.simplify(natural[-1] * natural[-2]))
        image = node.make("floor_divide", places, plane)
        row = node.make("floor_divide", node.make("floor_mod", places, plane), width)
        column = node.make("floor_mod", places, width)
        lead = node.make("add", node.make("multiply", image, graph.Constant.of(out[-2].value)), row)
        places = node.make("add", node.make("multiply", lead, graph.Constant.of(out[-1].value)), column)
    zeros = node.make("zeros", graph.ShapeExpr((tir.product_of(out),)), dtype=v.sinfo.dtype)
    spread = node.make("scatter_elements", zeros, places, node.make("reshape", v, flat), axis=0, reduction="update")
    return node.make("reshape", spread, graph.ShapeExpr(tuple(out)))


@converter("Col2Im", since=18)
def _col2im(node: NodeContext, x: Value, image: Value, block: Value) -> Any:
    size, kernel = node.static_ints(image, "the image's shape"), node.static_ints(block, "the block's shape")
    n = len(size)
    strides, dilations, pads = node.attr("strides", [1] * n), node.attr("dilations", [1] * n), node.attr("pads", [0] * (2 * n))
    counts = [(size[k] + pads[k] + pads[n + k] - dilations[k] * (kernel[k] - 1) - 1) // strides[k] + 1 for k in range(n)]
    batch, columns = x.expr.sinfo.shape[:2]
    channels = tir.floordiv(columns, tir.product_of([tir.index_const(k) for k in kernel]))
    fixed = [tir.index_const(v) for v in (*kernel, *counts)]
    v = node.make("reshape", x.expr, graph.ShapeExpr((batch, channels, *fixed)))

    def build(data: Any, shape: Any) -> Any:
        axes = [te.reduce_axis(k, f"k{i}") for i, k in enumerate(kernel)]

        def body(b: Any, c: Any, *at: Any) -> Any:
            places, inside = [], []
            for k in range(n):
                there = at[k] + pads[k] - axes[k].var * dilations[k]
                place = tir.floordiv(there, strides[k])
                inside += [tir.eq(tir.floormod(there, strides[k]), 0), place >= 0, place < counts[k]]
                places.append(tir.max_(tir.min_(place, counts[k] - 1), 0))
            value = data(b, c, *(a.var for a in axes), *places)
            return te.sum(te.select(te.logical_and(*inside), value, tir.const(0, data.dtype)), axis=axes)

        return te.compute(shape, body, "col2im")

    return node.te(build, v, graph.ShapeExpr((batch, channels, *map(tir.as_index, size))))


@converter("DeformConv", since=19)
def _deform_conv(node: NodeContext, x: Value, w: Value, offset: Value, bias: Value | None = None, mask: Value | None = None) -> Any:
    v, weight = x.expr, w.expr
    if v.sinfo.ndim != 4:
        raise node.unsupported("deformable convolution over other than two dimensions")
    kernel = node.static_dims(weight.sinfo.shape[2:], "the kernel's extent")
    strides, dilations, pads = node.attr("strides", [1, 1]), node.attr("dilations", [1, 1]), node.attr("pads", [0] * 4)
    groups, offset_groups = node.attr("group", 1), node.attr("offset_group", 1)
    batch, channels = v.sinfo.shape[:2]
    rows, cols = offset.expr.sinfo.shape[2:]
    taps = kernel[0] * kernel[1]
    sizes = [tir.floordiv(n + low + high - (k - 1) * d - 1, s) + 1
             for n, low, high, k, d, s in zip(v.sinfo.shape[2:], pads[:2], pads[2:], kernel, dilations, strides, strict=True)]
    node.same_size(weight.sinfo.shape[1] * groups, channels, "the weights are for another number of channels than the data has")
    for name, given, per_group in (("offset", offset, 2), ("mask", mask, 1)):
        wanted = (batch, offset_groups * taps * per_group, *sizes)
        for k, (a, b) in enumerate(zip(given.expr.sinfo.shape, wanted, strict=True) if given else ()):
            node.same_size(a, b, f"dimension {k} of the {name} does not fit data and weights")
    if bias is not None:
        node.same_size(bias.expr.sinfo.shape[0], weight.sinfo.shape[0], "the bias does not have one number per output channel")

    def sample(data: Any, shift: Any, *gate: Any) -> Any:
        def body(b: Any, c: Any, k: Any, i: Any, j: Any) -> Any:
            group = tir.floordiv(c, tir.floordiv(channels, offset_groups))
            row, col = tir.floordiv(k, kernel[1]), tir.floormod(k, kernel[1])
            base = (group * taps + k) * 2
            y = te.cast(i * strides[0] - pads[0] + row * dilations[0], "float32") + te.cast(shift(b, base, i, j), "float32")
            xx = te.cast(j * strides[1] - pads[1] + col * dilations[1], "float32") + te.cast(shift(b, base + 1, i, j), "float32")
            out = bilinear(lambda p, q: data(b, c, p, q), y, xx, data.shape[2], data.shape[3])
            return te.cast(out * te.cast(gate[0](b, group * taps + k, i, j), "float32") if gate else out, data.dtype)

        return te.compute((batch, channels, taps, rows, cols), body, "deformed")

    columns = node.te(sample, v, offset.expr, *([] if mask is None else [mask.expr]))
    columns = node.make("reshape", columns, graph.ShapeExpr((batch, tir.index_const(groups), tir.floordiv(channels, groups) * taps, rows * cols)))
    per = tir.floordiv(weight.sinfo.shape[0], groups)
    matrix = node.make("reshape", weight, graph.ShapeExpr((tir.index_const(1), tir.index_const(groups), per, weight.sinfo.shape[1] * taps)))
    out = node.make("reshape", node.make("matmul", matrix, columns), graph.ShapeExpr((batch, weight.sinfo.shape[0], rows, cols)))
    if bias is None:
        return out
    one = tir.index_const(1)
    return node.make("add", out, node.make("reshape", bias.expr, graph.ShapeExpr((one, weight.sinfo.shape[0], one, one))))


@converter("MaxRoiPool")
def _max_roi_pool(node: NodeContext, x: Value, rois: Value) -> Any:
    """The largest element of each cell of a grid over each region (batch, x1, y1, x2, y2); 0 for an empty cell."""
    height, width = node.attr("pooled_shape")
    scale = node.attr("spatial_scale", 1.0)
    _check_regions(node, x.expr, rois.expr, 5)
    number = node.make("astype", node.make("squeeze", cut(node, rois.expr, 1, 0, 1), axis=(1,)), dtype="int64")
    images = node.positions(number, x.expr.sinfo.shape[0])

    def build(data: Any, boxes: Any, image: Any) -> Any:
        rows, columns = te.reduce_axis(data.shape[2], "h"), te.reduce_axis(data.shape[3], "w")

        def span(r: Any, first: int, cell: Any, cells: int, extent: Any) -> tuple[Any, Any]:
            """Begin and end of a cell along one axis; coordinates are rounded, both ends belong to the region."""
            low, high = (te.cast(te.floor(boxes(r, k) * scale + 0.5), "int64") for k in (first, first + 2))
            size = te.cast(tir.max_(high - low + 1, 1), "float32") / float(cells)
            begin = te.cast(te.floor(te.cast(cell, "float32") * size), "int64") + low
            end = te.cast(te.ceil(te.cast(cell + 1, "float32") * size), "int64") + low
            return tuple(tir.max_(tir.min_(v, extent), 0) for v in (begin, end))  # type: ignore[return-value]

        def region(r: Any, i: Any, j: Any) -> tuple[Any, Any, Any, Any]:
            return *span(r, 2, i, height, data.shape[2]), *span(r, 1, j, width, data.shape[3])

        def largest(r: Any, c: Any, i: Any, j: Any) -> Any:
            top, bottom, left, right = region(r, i, j)
            inside = te.logical_and(rows.var >= top, rows.var < bottom, columns.var >= left, columns.var < right)
            value = data(image(r), c, rows.var, columns.var)
            return te.max(te.select(inside, value, te.lowest(data.dtype)), axis=[rows, columns])

        out = te.compute((boxes.shape[0], data.shape[1], tir.index_const(height), tir.index_const(width)), largest, "max_roi_pool")

        def settled(r: Any, c: Any, i: Any, j: Any) -> Any:
            top, bottom, left, right = region(r, i, j)
            return te.select(te.logical_or(bottom <= top, right <= left), tir.const(0.0, data.dtype), out(r, c, i, j))

        return te.compute(out.shape, settled, "roi_cells")

    return node.te(build, x.expr, rois.expr, images)
