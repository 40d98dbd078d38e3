# SPDX-License-Identifier: Apache-2.0
"""Relay's operators on pictures: resizing and sampling."""

from __future__ import annotations

from typing import Any

from ....ir import graph
from ..importer import NodeContext
from ..registry import converter


@converter("image.resize2d", "image.resize")
def _resize(node: NodeContext, x: Any) -> Any:
    method = node.attr("method", "linear")
    method = {"nearest_neighbor": "nearest_neighbor", "bilinear": "linear", "bicubic": "cubic"}.get(method, method)
    return node.make("image.resize2d", x, graph.ShapeExpr(node.ints("size")), layout=node.attr("layout", "NCHW"), method=method,
                     coordinate_transformation_mode=node.attr("coordinate_transformation_mode", "half_pixel"),
                     rounding_method=node.attr("rounding_method", "round"), cubic_alpha=float(node.attr("cubic_alpha", -0.5)),
                     cubic_exclude=node.flag("cubic_exclude"), extrapolation_value=float(node.attr("extrapolation_value", 0.0)))


@converter("nn.upsampling")
def _upsampling(node: NodeContext, x: Any) -> Any:
    layout, method = node.attr("layout", "NCHW"), node.attr("method", "nearest_neighbor")
    method = {"bilinear": "linear", "bicubic": "cubic"}.get(method, method)
    mode = "align_corners" if node.flag("align_corners") else "asymmetric" if method == "nearest_neighbor" else "half_pixel"
    sizes = []
    for axis, name in (("H", "scale_h"), ("W", "scale_w")):
        size = x.sinfo.shape[layout.index(axis)]
        if not hasattr(size, "value"):
            raise node.unsupported("enlarging a picture whose size is not known")
        sizes.append(round(size.value * float(node.attr(name, 1.0))))
    return node.make("image.resize2d", x, graph.ShapeExpr(tuple(sizes)), layout=layout, method=method, coordinate_transformation_mode=mode,
                     rounding_method="floor" if method == "nearest_neighbor" else "round")


@converter("image.grid_sample")
def _grid_sample(node: NodeContext, x: Any, grid: Any) -> Any:
    """The grid's first axis after the batch holds the coordinates: (batch, 2, height, width)."""
    return node.make("image.grid_sample", x, grid, method=node.attr("method", "bilinear"),
                     layout=node.attr("layout", "NCHW"), padding_mode=node.attr("padding_mode", "zeros"), align_corners=node.flag("align_corners", True))
