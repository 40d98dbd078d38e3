# SPDX-License-Identifier: Apache-2.0
"""Models written as modules with parameters, as in PyTorch, and exported as graph functions that take the parameters behind their inputs.

    class MLP(nn.Module):
        def __init__(self):
            self.fc1, self.fc2 = nn.Linear(784, 256), nn.Linear(256, 10)

        def forward(self, x):
            return self.fc2(nn.op.relu(self.fc1(x)))

    mod, params = MLP().export_tvm({"forward": {"x": nn.spec.Tensor(("n", 784), "float32")}})
    rd.build(mod)["forward"](x, *weights)
"""

from typing import Any

from . import llm, op, spec
from .core import Module, ModuleDict, ModuleList, Object, Parameter, Sequential, Tensor
from .extern_module import ExternModule
from .layers import GELU, Conv1D, Conv2D, Conv3D, ConvTranspose1D, Embedding, GroupNorm, Identity, LayerNorm, Linear, ReLU, RMSNorm, SiLU


def __getattr__(name: str) -> Any:
    """Operators are found here too: ``nn.extern`` is ``nn.op.extern``."""
    return getattr(op, name)


__all__ = [
    "GELU",
    "Conv1D",
    "Conv2D",
    "Conv3D",
    "ConvTranspose1D",
    "Embedding",
    "ExternModule",
    "GroupNorm",
    "Identity",
    "LayerNorm",
    "Linear",
    "Module",
    "ModuleDict",
    "ModuleList",
    "Object",
    "Parameter",
    "RMSNorm",
    "ReLU",
    "Sequential",
    "SiLU",
    "Tensor",
    "llm",
    "op",
    "spec",
]  # fmt: skip
