# SPDX-License-Identifier: Apache-2.0
"""Folding of constant scales into the weights of convolutions and matrix products (batch normalisation ends up here)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir import graph, tir
from ...ir.module import IRModule
from ...ops import make
from ...passes import pass_
from ..pattern import Match, PatternRewriter, commutative, is_const, is_op, wildcard
from ..rewriter import is_call, may_call

x, mean, var, gamma, beta = (wildcard() for _ in range(5))
weight, bias, scale = is_const(), is_const(), is_const()


@pass_("decompose_batch_norm")
def decompose_batch_norm(mod: IRModule) -> IRModule:
    """Inference batch normalisation becomes ``x * scale + shift`` with scale and shift computed at compile time where constant."""
    rules = [(is_op("nn.batch_norm")(x, gamma, beta, mean, var), _batch_norm)]
    return PatternRewriter(mod, rules).module() if may_call(mod, ["nn.batch_norm"]) else mod


def _batch_norm(m: Match) -> Any:
    call = m.call(next(p for p in m.captured if getattr(p, "name", "") == "nn.batch_norm"))
    attrs, info = call.attrs, m[x].sinfo
    if attrs["training"]:  # by the statistics of the batch
        return None
    axis = int(attrs.get("axis", 1)) % info.ndim
    shape = graph.ShapeExpr(tuple(info.shape[axis] if i == axis else tir.index_const(1) for i in range(info.ndim)))
    eps = graph.Constant.of(np.asarray(attrs.get("epsilon", 1e-5), m[var].sinfo.dtype.numpy))
    factor = make("rsqrt", make("add", m[var], eps))
    if attrs.get("scale", True):
        factor = make("multiply", m[gamma], factor)
    shift = make("negative", make("multiply", m[mean], factor))
    if attrs.get("center", True):
        shift = make("add", m[beta], shift)
    out = make("add", make("multiply", m[x], make("reshape", factor, shape)), make("reshape", shift, shape))
    return graph.Tuple((out, m[mean], m[var]))


@pass_("fold_scale")
def fold_scale(mod: IRModule) -> IRModule:
    """``conv(x, W) * s`` with constant W and per-channel constant s becomes ``conv(x, W * s)``, also through a bias; likewise
    for a matrix product with a constant right operand and a scale along its last axis. ``conv(x * s, W)`` becomes that where s is one number."""
    if not may_call(mod, _ANCHORS):
        return mod
    rules = []
    for name in _ANCHORS:
        anchor = is_op(name)(x, weight)
        shifted = commutative("add", anchor, bias)
        rules.append((commutative("multiply", anchor, scale), lambda m, a=anchor: _scaled(m, a)))
        rules.append((commutative("multiply", shifted, scale), lambda m, a=anchor, b=shifted: _scaled(m, a, b)))
        scaled = commutative("multiply", x, scale)
        fed = is_op(name)(scaled, weight)
        rules.append((fed, lambda m, a=fed: _scaled_before(m, a)))
    return PatternRewriter(mod, rules).module()


@pass_("scale_sums")
def scale_sums(mod: IRModule) -> IRModule:
    """``(float(x) * a + b) * s`` of integers x, with constants a and b and one number s, becomes ``float(x) * (a * s) + b * s``: sums are brought to the
    scale of the result, moved, and brought to that of the integers which they become."""
    scaled = commutative("multiply", x, weight)
    moved = commutative("add", scaled, bias)
    return PatternRewriter(mod, [(commutative("multiply", moved, scale), lambda m: _scaled_sum(m, scaled, moved))]).module()


def _scaled_sum(m: Match, scaled: Any, moved: Any) -> Any:
    factor, by, added = (m[p].data for p in (scale, weight, bias))
    if any(m.use_count.get(m.captured[p], 0) > 1 for p in (scaled, moved)) or any(d.dtype != "float32" for d in (factor, by, added)):
        return None
    cast = m.call(x)
    if not is_call(cast, "astype") or not cast.args[0].sinfo.dtype.is_int or factor.numpy().size != 1:
        return None
    with np.errstate(all="ignore"):
        a, b = (d.numpy() * factor.numpy().reshape(()) for d in (by, added))
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return None
    return make("add", make("multiply", m[x], graph.Constant.of(a)), graph.Constant.of(b))


_ANCHORS = ("nn.conv1d", "nn.conv2d", "nn.conv3d", "matmul")


def _channel_scale(call: graph.Call, s: np.ndarray) -> np.ndarray | None:
    """``s`` broadcast to the weight, or None when it does not run along output channels alone."""
    out, w = call.sinfo, call.args[1].data
    if out.shape is None or s.ndim > out.ndim:
        return None
    s = s.reshape((1,) * (out.ndim - s.ndim) + s.shape)
    matmul = call.op.name == "matmul"
    if matmul:
        axis, ok = out.ndim - 1, len(w.shape) >= 2
    else:
        layout, kernel = call.attrs.get("data_layout", "NC"), call.attrs.get("kernel_layout", "OI")
        axis, ok = 1, str(layout).startswith("NC") and str(kernel).startswith("OI") and not any(c.isdigit() for c in f"{layout}{kernel}")
    if not ok or any(n != 1 for i, n in enumerate(s.shape) if i != axis):
        return None
    channels = w.shape[-1] if matmul else w.shape[0]
    if s.size not in (1, channels):
        return None
    flat = s.reshape(-1)
    return flat if matmul else flat.reshape((-1,) + (1,) * (len(w.shape) - 1))


def _scaled(m: Match, anchor: Any, shifted: Any = None) -> Any:
    """The anchor with scaled weights; None where something else uses it, or its sum with the bias: both would be computed."""
    call = m.call(anchor)
    if any(m.use_count.get(m.captured[p], 0) > 1 for p in (anchor, shifted) if p is not None) or call.args[1].data.dtype not in ("float32", "float64"):
        return None
    s = m[scale].data.numpy()
    along = _channel_scale(call, s)
    if along is None:
        return None
    w = call.args[1].data.numpy()
    m.origin = anchor  # not the multiplication, which goes
    new = call.replace(args=(call.args[0], graph.Constant.of((w * along).astype(w.dtype)), *call.args[2:]))
    if shifted is None:
        return new
    return make("add", new, graph.Constant.of((m[bias].data.numpy() * s).astype(w.dtype)))


def _scaled_before(m: Match, anchor: Any) -> Any:
    call = m.call(anchor)
    w, s = call.args[1].data, m[scale].data
    if any(n != 1 for n in s.shape) or w.dtype not in ("float32", "float64") or s.dtype != w.dtype or m.use_count.get(call.args[0], 0) > 1 \
            or m[x].sinfo.dtype != w.dtype or m[x].sinfo.shape != call.args[0].sinfo.shape:
        return None
    factor = s.numpy().reshape(())
    if not np.isfinite(factor):
        return None
    return call.replace(args=(m[x], graph.Constant.of((w.numpy() * factor).astype(w.dtype.numpy)), *call.args[2:]))
