# SPDX-License-Identifier: Apache-2.0
"""ONNX's own backend interface: ``prepare``, ``run_model``, ``run_node``, ``supports_device``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep, namedtupledict

from ...ir.errors import UnsupportedError
from .conformance import run


class RoundelRep(BackendRep):
    """A model that is ready to run; it is compiled for the shapes of each call."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = model

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs, in graph order, for one array per input."""
        given = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
        out = run(self.model, given)
        return namedtupledict("Outputs", [o.name for o in self.model.graph.output])(*out)


class RoundelBackend(Backend):
    """Roundel as an ``onnx.backend.base.Backend``."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> RoundelRep:
        """Checks the model; raises an error of ``onnx.checker`` for invalid ones."""
        if not cls.supports_device(device):
            raise UnsupportedError(f"there is no device {device!r}", hint="CPU is supported")
        super().prepare(model, device, **kwargs)
        return RoundelRep(model)

    @classmethod
    def run_node(cls, node: onnx.NodeProto, inputs: Sequence[Any], device: str = "CPU", outputs_info: Any = None, **kwargs: Any) -> tuple[Any, ...]:
        """One node as a model of its own; types of its outputs are inferred by ONNX."""
        arrays = [np.asarray(v) for v in inputs]
        infos = [onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
                 for name, a in zip((n for n in node.input if n), arrays, strict=True)]
        outputs = [onnx.helper.make_empty_tensor_value_info(name) for name in node.output if name]
        graph = onnx.helper.make_graph([node], "node", infos, outputs)
        opset = kwargs.get("opset_version", onnx.defs.onnx_opset_version())
        imports = [onnx.helper.make_opsetid("", opset)] + ([onnx.helper.make_opsetid(node.domain, 1)] if node.domain not in ("", "ai.onnx") else [])
        model = onnx.shape_inference.infer_shapes(onnx.helper.make_model(graph, opset_imports=imports))
        return RoundelRep(model).run(arrays)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether models run there."""
        return device.split(":")[0].upper() == "CPU"


prepare, run_model, run_node, supports_device = (
    RoundelBackend.prepare, RoundelBackend.run_model, RoundelBackend.run_node, RoundelBackend.supports_device)
