# SPDX-License-Identifier: Apache-2.0
"""Programs in C of the layers of a model: by the kernels of CMSIS-NN, and by nests of loops as one would write them down. Their numbers are made up."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tests.boards.microcontroller import BOARDS
from tests.boards.tiny_models import Layer

SCALE, SHIFT = 1400000000, -9  # of all channels
Program = tuple[list[str], str, str, str, str, list[str]]
"""Of `run_program`: files, includes, definitions, statements, what is written, options."""


class _Constants:
    def __init__(self) -> None:
        self.texts: list[str] = []

    def array(self, kind: str, values: Sequence[int] | int) -> str:
        """A constant array with these numbers, or with so many at random."""
        numbers = np.random.default_rng(len(self.texts)).integers(-100, 100, values).tolist() if isinstance(values, int) else values
        self.texts.append(f"static const {kind} c{len(self.texts)}[{len(numbers)}] = {{{','.join(map(str, numbers))}}};")
        return f"c{len(self.texts) - 1}"


def _sizes(layers: Sequence[Layer]) -> int:
    return max(int(np.prod(s)) for layer in layers for s in (layer.before, layer.after))


# ---- CMSIS-NN ----------------------------------------------------------------------------------------------


def cmsis_nn(layers: Sequence[Layer], cpu: str, sources: Path, folder: Path) -> Program:
    """Its kernels, compiled with -O3, where wrappers choose among them."""
    constants, run = _Constants(), []
    for k, layer in enumerate(layers):
        x, y = ("A", "B") if k % 2 == 0 else ("B", "A")
        run.append(_CMSIS[layer.kind](layer, x, y, constants))
    definitions = "\n".join([f"static int8_t A[{_sizes(layers)}], B[{_sizes(layers)}], scratch[20000];", "static cmsis_nn_context ctx = {scratch, 20000};",
                             "static void check(int bad) { if (bad) say(\"refused\\n\"); }", *constants.texts])
    return [str(_library(cpu, sources, folder))], '#include "arm_nnfunctions.h"', definitions, "\n".join(run), "", [f"-I{sources / 'Include'}", "-w"]


def _dims(name: str, *numbers: int) -> str:
    return f"cmsis_nn_dims {name} = {{{', '.join(map(str, numbers))}}};"


def _convolution(layer: Layer, x: str, y: str, constants: _Constants) -> str:
    (h, w, c), (oh, ow, oc), (kh, kw) = layer.before, layer.after, layer.window
    deep = layer.kind == "depthwise"
    weights, bias = constants.array("int8_t", kh * kw * oc * (1 if deep else c)), constants.array("int32_t", oc)
    scales, shifts = constants.array("int32_t", [SCALE] * oc), constants.array("int32_t", [SHIFT] * oc)
    kind, function = ("dw_conv", "depthwise_conv") if deep else ("conv", "convolve")
    params = f"{{128, -128, {'1, ' if deep else ''}{{{layer.stride}, {layer.stride}}}, {{{layer.pads[1]}, {layer.pads[0]}}}, {{1, 1}}, {{-128, 127}}}}"
    return f"""{{ cmsis_nn_{kind}_params p = {params}; cmsis_nn_per_channel_quant_params q = {{(int32_t *){scales}, (int32_t *){shifts}}};
  {_dims('i', 1, h, w, c)} {_dims('f', *((1, kh, kw, c) if deep else (oc, kh, kw, c)))} {_dims('b', 1, 1, 1, oc)} {_dims('o', 1, oh, ow, oc)}
  ctx.size = arm_{function}_wrapper_s8_get_buffer_size(&p, &i, &f, &o);
  check(arm_{function}_wrapper_s8(&ctx, &p, &q, &i, {x}, &f, {weights}, &b, {bias}, &o, {y})); }}"""


def _dense(layer: Layer, x: str, y: str, constants: _Constants) -> str:
    inner, outer = layer.before[2], layer.after[2]
    weights, bias = constants.array("int8_t", inner * outer), constants.array("int32_t", outer)
    scales, shifts = constants.array("int32_t", [SCALE] * outer), constants.array("int32_t", [SHIFT] * outer)
    return f"""{{ cmsis_nn_fc_params p = {{128, 0, -128, {{-128, 127}}}}; cmsis_nn_quant_params q = {{(int32_t *){scales}, (int32_t *){shifts}, 1}};
  {_dims('i', 1, 1, 1, inner)} {_dims('f', inner, 1, 1, outer)} {_dims('b', 1, 1, 1, outer)} {_dims('o', 1, 1, 1, outer)}
  ctx.size = arm_fully_connected_s8_get_buffer_size(&f);
  check(arm_fully_connected_wrapper_s8(&ctx, &p, &q, &i, {x}, &f, {weights}, &b, {bias}, &o, {y})); }}"""


def _mean(layer: Layer, x: str, y: str, constants: _Constants) -> str:
    h, w, c = layer.before
    return f"""{{ cmsis_nn_pool_params p = {{{{1, 1}}, {{0, 0}}, {{-128, 127}}}}; {_dims('i', 1, h, w, c)} {_dims('f', 1, h, w, 1)} {_dims('o', 1, 1, 1, c)}
  ctx.size = arm_avgpool_s8_get_buffer_size(1, {c}); check(arm_avgpool_s8(&ctx, &p, &i, {x}, &f, &o, {y})); }}"""


_CMSIS = {
    "conv": _convolution, "depthwise": _convolution, "dense": _dense, "mean": _mean,
    "softmax": lambda layer, x, y, _: f"arm_softmax_s8({x}, 1, {layer.before[2]}, 1077952576, 23, -248, {y});",
    "add": lambda layer, x, y, _: f"check(arm_elementwise_add_s8({x}, {y}, 128, {SCALE}, 0, 128, 1300000000, 0, 20, {y}, -128, 1200000000, -18, -128, 127, "
                                  f"{int(np.prod(layer.after))}));",
}


def _library(cpu: str, sources: Path, folder: Path) -> Path:
    """Its integer kernels for a processor, compiled once."""
    made = folder / f"cmsis-nn-{cpu}.a"
    if made.exists():
        return made
    board, objects = BOARDS[cpu], folder / f"objects-{cpu}"
    objects.mkdir()
    files = [p.resolve() for p in sorted((sources / "Source").rglob("*.c")) if not re.search(r"_f16|_f32|flt", p.name)]
    subprocess.run([board.family.compiler, "-std=gnu11", "-O3", *board.family.options, *board.options, "-ffunction-sections", "-fdata-sections", "-w",
                    f"-I{sources.resolve() / 'Include'}", "-c", *files], cwd=objects, check=True)
    subprocess.run([board.family.compiler.replace("-gcc", "-ar"), "rcs", made, *objects.glob("*.o")], check=True)
    return made


# ---- loops -------------------------------------------------------------------------------------------------

_LOOPS = """\
static int8_t scaled(int32_t sum, int32_t scale, int shift) {
  const int64_t product = (int64_t)sum * scale + ((int64_t)1 << (30 - shift));
  const int32_t y = (int32_t)(product >> (31 - shift)) - 128;
  return (int8_t)(y < -128 ? -128 : y > 127 ? 127 : y);
}
static void convolved(const int8_t *x, int8_t *y, const int8_t *weights, const int32_t *bias, const int32_t *scales, int h, int w, int c, int oh, int ow,
                      int oc, int kh, int kw, int stride, int top, int left, int deep) {
  for (int i = 0; i < oh; i++)
    for (int j = 0; j < ow; j++)
      for (int o = 0; o < oc; o++) {
        int32_t sum = bias[o];
        for (int a = 0; a < kh; a++)
          for (int b = 0; b < kw; b++) {
            const int at = i * stride + a - top, along = j * stride + b - left;
            if (at < 0 || at >= h || along < 0 || along >= w) continue;
            if (deep) sum += (x[(at * w + along) * c + o] + 128) * weights[(a * kw + b) * oc + o];
            else for (int k = 0; k < c; k++) sum += (x[(at * w + along) * c + k] + 128) * weights[((o * kh + a) * kw + b) * c + k];
          }
        y[(i * ow + j) * oc + o] = scaled(sum, scales[o], -9);
      }
}
static void averaged(const int8_t *x, int8_t *y, int count, int c) {
  for (int o = 0; o < c; o++) {
    int32_t sum = 0;
    for (int k = 0; k < count; k++) sum += x[k * c + o];
    y[o] = (int8_t)(sum / count);
  }
}
static void added(const int8_t *x, int8_t *y, int count) {
  for (int k = 0; k < count; k++) y[k] = scaled(x[k] + y[k] + 256, 1200000000, 0);
}
"""


def plain_loops(layers: Sequence[Layer]) -> Program:
    """A nest of loops for each layer, compiled with -O2, scales in integers; softmax is left out."""
    constants, run = _Constants(), []
    for k, layer in enumerate(layers):
        x, y = ("A", "B") if k % 2 == 0 else ("B", "A")
        (h, w, c), (oh, ow, oc) = layer.before, layer.after
        if layer.kind in ("conv", "depthwise", "dense"):
            deep = layer.kind == "depthwise"
            arrays = (constants.array("int8_t", layer.window[0] * layer.window[1] * oc * (1 if deep else c)), constants.array("int32_t", oc),
                      constants.array("int32_t", [SCALE] * oc))
            numbers = (h, w, c, oh, ow, oc, *layer.window, layer.stride, *layer.pads, int(deep))
            run.append(f"convolved({x}, {y}, {', '.join(arrays)}, {', '.join(map(str, numbers))});")
        elif layer.kind == "mean":
            run.append(f"averaged({x}, {y}, {h * w}, {c});")
        elif layer.kind == "add":
            run.append(f"added({x}, {y}, {h * w * c});")
    definitions = "\n".join([f"static int8_t A[{_sizes(layers)}], B[{_sizes(layers)}];", *constants.texts, _LOOPS])
    return [], "", definitions, "\n".join(run), "", ["-w"]
