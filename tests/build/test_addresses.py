# SPDX-License-Identifier: Apache-2.0
"""Addresses in loops: what is read at distances that do not change needs one pointer, and none on the stack."""

from __future__ import annotations

import re

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from roundel import driver
from roundel.frontend.onnx import from_onnx
from roundel.reports.stages import kernel_text


def test_one_pointer_for_the_rows_of_a_tile():
    """A first convolution, on planes: fourteen pixels of each of three planes, which are far apart."""
    weight = numpy_helper.from_array(np.ones((32, 3, 3, 3), "float32"), "w")
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, *size)) for name, size in (("x", (3, 224, 224)), ("y", (32, 112, 112))))
    node = helper.make_node("Conv", ["x", "w"], ["y"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    mod = from_onnx(helper.make_model(helper.make_graph([node], "g", [x], [y], [weight]), opset_imports=[helper.make_opsetid("", 20)]))
    name = next(n for n in driver.prepare(mod, target=driver.target_of("znver5")).functions if "conv" in n)
    assembly = kernel_text(driver.prepare(mod, target=driver.target_of("znver5")), name, "asm")
    loops = [body for _, body in re.findall(r"(\.LBB\d+_\d+):\n((?:\t.*\n)*?\tj\w+\t\1\n)", assembly) if body.count("vfmadd") >= 24]
    assert loops and all(body.count("%rsp") <= 4 for body in loops)
