# SPDX-License-Identifier: Apache-2.0
"""The benchmark's models: real architectures of ``transformers`` with random weights (fixed seed), as PyTorch modules and ONNX files.

Files live in ``$ROUNDEL_BENCH_MODELS`` (default: ``~/.cache/roundel-benchmarks``) and are written when they are first asked for:
``resnet18.onnx`` beside ``resnet18.npz`` (inputs by name, and ``__ref``, what PyTorch computes from them).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

SEED = 0
REFERENCE = "__ref"


@dataclass(frozen=True)
class Case:
    """A model at one batch size and, for models of dynamic length, one length."""

    model: str
    batch: int = 1
    length: int | None = None

    @property
    def name(self) -> str:
        """``resnet18``, ``resnet18.b8``, ``bert_dyn@300``."""
        return self.model + (f"@{self.length}" if self.length else "") + (f".b{self.batch}" if self.batch > 1 else "")

    @property
    def onnx_stem(self) -> str:
        """Cases that differ in length alone share one file."""
        return self.model + (f".b{self.batch}" if self.batch > 1 else "")


def cases(models: list[str], batches: list[int]) -> list[Case]:
    """All cases of these models (``all``: every one); the dynamic BERT at three lengths."""
    names = list(BUILDERS) if models == ["all"] else models
    unknown = [n for n in names if n not in BUILDERS]
    if unknown:
        raise ValueError(f"there is no model {unknown[0]!r}; they are {', '.join(BUILDERS)}")
    return [Case(n, b, length) for n in names for b in batches for length in LENGTHS.get(n, (None,))]


def folder() -> Path:
    """Where the files are."""
    default = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "roundel-benchmarks"
    path = Path(os.environ.get("ROUNDEL_BENCH_MODELS", default))
    path.mkdir(parents=True, exist_ok=True)
    return path


def onnx_file(case: Case) -> Path:
    """The ONNX file, exported on first use (needs torch, transformers, onnxscript)."""
    path = folder() / f"{case.onnx_stem}.onnx"
    if not path.exists():
        _export(case, path)
    return path


def data(case: Case) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Inputs by name, and what PyTorch computes from them (once, then from the file)."""
    path = folder() / f"{case.name}.npz"
    if not path.exists() and case.length == 128:
        path = folder() / f"{case.onnx_stem}.npz"
    if not path.exists():
        module, inputs = load(case)
        np.savez(path, **{REFERENCE: run(module, inputs)}, **inputs)
    with np.load(path) as found:
        return {k: found[k] for k in found.files if k != REFERENCE}, found[REFERENCE]


def load(case: Case) -> tuple[Any, dict[str, np.ndarray]]:
    """The PyTorch module in evaluation mode and its inputs by name."""
    import torch

    torch.manual_seed(SEED)
    module, inputs = BUILDERS[case.model](case.batch, case.length or 128)
    return module.eval().requires_grad_(False), inputs


def run(module: Any, inputs: dict[str, np.ndarray]) -> np.ndarray:
    """The module's result."""
    import torch

    with torch.inference_mode():
        return module(*map(torch.from_numpy, inputs.values())).numpy()


def _export(case: Case, path: Path) -> None:
    import torch

    module, inputs = load(case)
    more: dict[str, Any] = {}
    if case.model in LENGTHS:
        length = torch.export.Dim("seq", min=2, max=512)
        more["dynamic_shapes"] = (tuple({0: torch.export.Dim.STATIC, 1: length} for _ in inputs),)
    temporary = path.with_suffix(f".{os.getpid()}")
    torch.onnx.export(module, tuple(map(torch.from_numpy, inputs.values())), str(temporary), input_names=list(inputs), output_names=["out"], dynamo=True,
                      external_data=False, opset_version=18, verbose=False, **more)
    temporary.replace(path)


# --- architectures: each gives a module with positional inputs and one result, and inputs


def _one_output(module: Any, names: list[str], output: str, **fixed: Any) -> Any:
    import torch

    class OneOutput(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, *inputs: Any) -> Any:
            return getattr(self.module(**dict(zip(names, inputs)), **fixed), output)

    return OneOutput()


def _images(batch: int) -> dict[str, np.ndarray]:
    return {"pixel_values": np.random.RandomState(SEED).randn(batch, 3, 224, 224).astype("float32")}


def _tokens(vocabulary: int, batch: int, length: int, mask: bool = False) -> dict[str, np.ndarray]:
    found = {"input_ids": np.random.RandomState(SEED).randint(0, vocabulary, (batch, length)).astype("int64")}
    return {**found, "attention_mask": np.ones((batch, length), "int64")} if mask else found


def trained_statistics(module: Any) -> Any:
    """Batch normalisation as after training; fresh ones would be the identity."""
    import torch

    generator = torch.Generator().manual_seed(SEED + 1)
    for layer in module.modules():
        if isinstance(layer, torch.nn.BatchNorm1d | torch.nn.BatchNorm2d | torch.nn.BatchNorm3d):
            shape = layer.running_mean.shape
            with torch.no_grad():
                layer.running_mean.copy_(torch.randn(shape, generator=generator) * 0.1)
                layer.running_var.copy_(torch.rand(shape, generator=generator) + 0.5)
                layer.weight.copy_(torch.rand(shape, generator=generator) * 0.5 + 0.5)
                layer.bias.copy_(torch.randn(shape, generator=generator) * 0.1)
    return module


def _resnet(batch: int, **sizes: Any) -> tuple[Any, dict[str, np.ndarray]]:
    from transformers import ResNetConfig, ResNetForImageClassification

    module = ResNetForImageClassification(ResNetConfig(num_labels=1000, **sizes))
    return _one_output(trained_statistics(module), ["pixel_values"], "logits"), _images(batch)


def _resnet18(batch: int, length: int) -> tuple[Any, dict[str, np.ndarray]]:
    return _resnet(batch, depths=[2, 2, 2, 2], hidden_sizes=[64, 128, 256, 512], layer_type="basic")


def _resnet50(batch: int, length: int) -> tuple[Any, dict[str, np.ndarray]]:
    return _resnet(batch)


def _mobilenetv2(batch: int, length: int) -> tuple[Any, dict[str, np.ndarray]]:
    from transformers import MobileNetV2Config, MobileNetV2ForImageClassification

    module = MobileNetV2ForImageClassification(MobileNetV2Config(num_labels=1000, tf_padding=False))
    return _one_output(trained_statistics(module), ["pixel_values"], "logits"), _images(batch)


def _vit(batch: int, length: int) -> tuple[Any, dict[str, np.ndarray]]:
    from transformers import ViTConfig, ViTForImageClassification

    return _one_output(ViTForImageClassification(ViTConfig(num_labels=1000)), ["pixel_values"], "logits"), _images(batch)


def _bert(batch: int, length: int) -> tuple[Any, dict[str, np.ndarray]]:
    from transformers import BertConfig, BertModel

    module = BertModel(BertConfig(), add_pooling_layer=False)
    return _one_output(module, ["input_ids", "attention_mask"], "last_hidden_state"), _tokens(30522, batch, length, mask=True)


def _gpt2(batch: int, length: int) -> tuple[Any, dict[str, np.ndarray]]:
    from transformers import GPT2Config, GPT2LMHeadModel

    module = GPT2LMHeadModel(GPT2Config(use_cache=False))
    return _one_output(module, ["input_ids"], "logits", use_cache=False), _tokens(50257, batch, length)


def _llama_module() -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(LlamaConfig(
        vocab_size=32000, hidden_size=768, intermediate_size=2048, num_hidden_layers=12, num_attention_heads=12, num_key_value_heads=12,
        max_position_embeddings=1024, tie_word_embeddings=True))


def _llama(batch: int, length: int) -> tuple[Any, dict[str, np.ndarray]]:
    """Prefill: logits of all positions."""
    return _one_output(_llama_module(), ["input_ids"], "logits", use_cache=False), _tokens(32000, batch, length)


def _llama_decode(batch: int, length: int) -> tuple[Any, dict[str, np.ndarray]]:
    """One token against a cache of ``length - 1``: bound by reading the weights."""
    import torch
    from transformers.cache_utils import DynamicCache

    class Decode(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = _llama_module()

        def forward(self, input_ids: Any, position_ids: Any, past: Any) -> Any:  # past: layers, 2, batch, heads, length, width
            cache = DynamicCache()
            for k in range(past.shape[0]):
                cache.update(past[k, 0], past[k, 1], k)
            return self.module(input_ids=input_ids, position_ids=position_ids, past_key_values=cache, use_cache=True).logits

    random = np.random.RandomState(SEED)
    return Decode(), {
        "input_ids": random.randint(0, 32000, (batch, 1)).astype("int64"),
        "position_ids": np.full((batch, 1), length - 1, "int64"),
        "past": random.randn(12, 2, batch, 12, length - 1, 64).astype("float32"),
    }


BUILDERS: dict[str, Callable[[int, int], tuple[Any, dict[str, np.ndarray]]]] = {
    "resnet18": _resnet18, "resnet50": _resnet50, "mobilenetv2": _mobilenetv2, "vit_b16": _vit, "bert128": _bert, "bert_dyn": _bert,
    "gpt2": _gpt2, "llama110": _llama, "llama110_decode": _llama_decode,
}
LENGTHS: dict[str, tuple[int, ...]] = {"bert_dyn": (17, 128, 300)}
"""Models of dynamic length and the lengths they run at."""
