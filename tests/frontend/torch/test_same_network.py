# SPDX-License-Identifier: Apache-2.0
"""One network gives the same kernels, whichever importer it came through: what PyTorch pads by an operator of its own as well."""

from __future__ import annotations

import warnings

import pytest

import roundel as rd
from roundel import driver
from roundel.ir import GlobalVar, structural_hash, tir
from roundel.ir.visit import walk

torch = pytest.importorskip("torch")
F = torch.nn.functional


class Same(torch.nn.Conv2d):
    """A convolution that is padded as TensorFlow does, more behind than before, by an operator ahead of it (as ``timm`` writes EfficientNet-Lite)."""

    def forward(self, x):
        width = [max((n - 1) // s * s + k - n, 0) for n, s, k in zip(x.shape[2:], self.stride, self.kernel_size)]
        return super().forward(F.pad(x, [p for w in reversed(width) for p in (w // 2, w - w // 2)]))


class Block(torch.nn.Module):
    """An inverted residual: wider, one channel at a time, narrow again."""

    def __init__(self, read, made, window, stride):
        super().__init__()
        wide = 3 * read
        layers = [torch.nn.Conv2d(read, wide, 1, bias=False), torch.nn.BatchNorm2d(wide), torch.nn.ReLU6(),
                  Same(wide, wide, window, stride, groups=wide, bias=False), torch.nn.BatchNorm2d(wide), torch.nn.ReLU6(),
                  torch.nn.Conv2d(wide, made, 1, bias=False), torch.nn.BatchNorm2d(made)]
        self.layers, self.adds = torch.nn.Sequential(*layers), stride == 1 and read == made

    def forward(self, x):
        return self.layers(x) + x if self.adds else self.layers(x)


def lite():
    torch.manual_seed(0)
    blocks = [Block(8, 8, 3, 1), Block(8, 12, 5, 2)]
    head = [torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(12, 10)]
    return torch.nn.Sequential(Same(3, 8, 3, 2, bias=False), torch.nn.BatchNorm2d(8), torch.nn.ReLU6(), *blocks, *head).eval()


def run(mod):
    """What a run of a prepared module does: the bytes of its arena, and its calls of kernels in order, each by its program."""
    (host,) = (f for _, f in mod.items() if f.attrs.get("kind") == "host")
    called = {n: structural_hash(f) for n, f in mod.items()}
    steps = [called[e.op.name] for e in walk(host) if isinstance(e, tir.Call) and isinstance(e.op, GlobalVar)]
    return [e.buffer.shape for e in walk(host) if isinstance(e, tir.Allocate)], steps


def test_a_network_of_padded_convolutions(tmp_path):
    """As fast from PyTorch as from ONNX, since a run of either calls the same programs one after another on memory of the same size."""
    module, x = lite(), torch.randn(1, 3, 37, 37)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter that needs no package besides is an old one
        torch.onnx.export(module, (x,), str(tmp_path / "lite.onnx"), input_names=["input"], dynamo=False)
    of_torch, of_onnx = (run(driver.prepare(rd.import_model(*given))) for given in ((module, (x,)), (tmp_path / "lite.onnx",)))
    assert of_torch == of_onnx
    assert len(of_torch[1]) == 9  # a kernel for each convolution, the mean, the product: no padding
