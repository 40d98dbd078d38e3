# SPDX-License-Identifier: Apache-2.0
"""Architectures as ``transformers`` builds them, small and with random weights, through both frontends at two shapes from one artifact.

    python -m tests.models.architectures                 # all, both frontends
    python -m tests.models.architectures t5 --via onnx

Prints a line for each: the largest error relative to the largest value of PyTorch's answer.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import torch
import transformers as hf
from torch._higher_order_ops import scan

import roundel as rd

Dims = torch.export.Dim.AUTO
TOLERANCE = 2e-5
TEXT = {"vocab_size": 97, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 56}


@dataclass(frozen=True)
class Architecture:
    """``make()`` gives a module of tensors to tensors; ``inputs(k)`` its arguments at the k-th of two shapes."""

    make: Callable[[], torch.nn.Module]
    inputs: Callable[[int], tuple[torch.Tensor, ...]]


class Call(torch.nn.Module):
    """A model called with tensors by name, of whose outputs some are kept."""

    def __init__(self, model: torch.nn.Module, names: Sequence[str], keep: Sequence[str], **fixed: Any) -> None:
        super().__init__()
        self.model, self.names, self.keep, self.fixed = model, tuple(names), tuple(keep), fixed

    def forward(self, *tensors: torch.Tensor) -> Any:
        out = self.model(**dict(zip(self.names, tensors, strict=True)), **self.fixed)
        kept = tuple(getattr(out, k) for k in self.keep)
        return kept[0] if len(kept) == 1 else kept


def ids(*shape: int) -> torch.Tensor:
    return torch.randint(4, 97, shape, generator=torch.Generator().manual_seed(sum(shape)))


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def mask(batch: int, length: int) -> torch.Tensor:
    out = torch.ones(batch, length, dtype=torch.int64)
    out[0, length - 2:] = 0
    return out


def text(name: str, kind: str = "Model", keep: str = "last_hidden_state", masked: bool = True, lengths: tuple[int, int] = (9, 14),
         **config: Any) -> Architecture:
    """A model of token ids (and their mask)."""
    made = getattr(hf, f"{name}Config")(**{**TEXT, **config})
    names = ("input_ids", "attention_mask") if masked else ("input_ids",)
    fixed = {"use_cache": False} if hasattr(made, "use_cache") else {}

    def inputs(k: int) -> tuple[torch.Tensor, ...]:
        b, n = (2, 3)[k], lengths[k]
        return (ids(b, n), mask(b, n)) if masked else (ids(b, n),)

    return Architecture(lambda: Call(getattr(hf, f"{name}{kind}")(made), names, (keep,), **fixed), inputs)


def image(name: str, kind: str = "Model", keep: Sequence[str] = ("last_hidden_state",), sizes: Sequence[tuple[int, ...]] = ((2, 64, 64), (3, 64, 64)),
          config_class: str = "", fixed: dict[str, Any] | None = None, **config: Any) -> Architecture:
    """A model of pictures."""
    made = getattr(hf, f"{config_class or name}Config")(**config)
    return Architecture(lambda: Call(getattr(hf, f"{name}{kind}")(made), ("pixel_values",), keep, **(fixed or {})),
                        lambda k: (normal(sizes[k][0], 3, *sizes[k][1:]),))


def decoder(name: str, **config: Any) -> Architecture:
    """Encoder and decoder of a sequence-to-sequence model, without a cache."""
    made = getattr(hf, f"{name}Config")(**config)
    kind = {"T5": "ForConditionalGeneration", "Bart": "Model"}[name]
    keep = ("logits",) if kind != "Model" else ("last_hidden_state",)

    def inputs(k: int) -> tuple[torch.Tensor, ...]:
        b, n, m = ((2, 9, 5), (3, 13, 7))[k]
        return ids(b, n), mask(b, n), ids(b, m)

    return Architecture(lambda: Call(getattr(hf, f"{name}{kind}")(made), ("input_ids", "attention_mask", "decoder_input_ids"), keep, use_cache=False), inputs)


VISION = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 56}
T5 = {"vocab_size": 97, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 4}
BART = {"vocab_size": 97, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
        "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 64}
CLIP = {"projection_dim": 24, "text_config": {**TEXT, "max_position_embeddings": 64, "eos_token_id": 96},
        "vision_config": {**VISION, "image_size": 64, "patch_size": 16}}
GQA = {"num_key_value_heads": 2, "max_position_embeddings": 128}
WHISPER = {"vocab_size": 97, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
           "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "num_mel_bins": 16, "max_source_positions": 30, "pad_token_id": 0, "decoder_start_token_id": 1,
           "bos_token_id": 2, "eos_token_id": 3}


def whisper_encoder() -> torch.nn.Module:
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    return Call(WhisperEncoder(hf.WhisperConfig(**WHISPER)), ("input_features",), ("last_hidden_state",))


def selective_scan(x: torch.Tensor, dt: torch.Tensor, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, D: torch.Tensor, z: torch.Tensor,
                   delta_bias: torch.Tensor, **_: Any) -> torch.Tensor:
    """Mamba's recurrence as a loop of any length; transformers' own is unrolled by torch.export."""
    dt = torch.nn.functional.softplus(dt + delta_bias[:, None])
    decay = torch.exp(a[None, :, None] * dt[..., None])  # (batch, channels, length, state)
    added = dt[..., None] * b.transpose(1, 2)[:, None] * x[..., None]

    def step(state: torch.Tensor, now: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, torch.Tensor]:
        state = now[0] * state + now[1]
        return state, (state * now[2][:, None]).sum(-1)

    over = (decay.movedim(2, 0), added.movedim(2, 0), c.movedim(2, 0))
    _, out = scan(step, torch.zeros_like(decay[:, :, 0]), over, dim=0)
    return (out.movedim(0, 2) + x * D[None, :, None]) * torch.nn.functional.silu(z)


def mamba() -> Architecture:
    from transformers.models.mamba import modeling_mamba

    made = text("Mamba", masked=False, state_size=8)

    def make() -> torch.nn.Module:
        modeling_mamba.mamba_selective_scan = selective_scan
        return made.make()

    return Architecture(make, made.inputs)


def clip_both() -> torch.nn.Module:
    return Call(hf.CLIPModel(hf.CLIPConfig(**CLIP)), ("input_ids", "pixel_values", "attention_mask"), ("text_embeds", "image_embeds", "logits_per_image"))


ARCHITECTURES: dict[str, Architecture] = {
    "distilbert": text("DistilBert", dim=32, n_layers=2, n_heads=4, hidden_dim=56),
    "roberta": text("Roberta", max_position_embeddings=64, type_vocab_size=1),
    "t5-encoder": Architecture(lambda: Call(hf.T5EncoderModel(hf.T5Config(**T5)), ("input_ids", "attention_mask"), ("last_hidden_state",)),
                               lambda k: (ids(2 + k, 9 + k), mask(2 + k, 9 + k))),
    "t5": decoder("T5", **T5),
    "whisper-encoder": Architecture(whisper_encoder, lambda k: (normal(2 + k, 16, 60),)),
    "whisper": Architecture(lambda: Call(hf.WhisperModel(hf.WhisperConfig(**WHISPER)), ("input_features", "decoder_input_ids"), ("last_hidden_state",),
                                         use_cache=False), lambda k: (normal(2 + k, 16, 60), ids(2 + k, 5 + k))),
    "clip": Architecture(clip_both, lambda k: (ids(2 + k, 9 + k), normal(2 + 3 * k, 3, 64, 64), mask(2 + k, 9 + k))),
    "swin": image("Swin", image_size=64, patch_size=4, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4),
    "convnext": image("ConvNext", sizes=((2, 64, 64), (3, 96, 64)), hidden_sizes=[16, 24, 32, 40], depths=[1, 1, 2, 1]),
    "deit": image("DeiT", image_size=64, **VISION),
    "vit": image("ViT", image_size=64, **VISION),
    "segformer": image("Segformer", "ForSemanticSegmentation", ("logits",), sizes=((2, 64, 64), (3, 96, 64)), hidden_sizes=[16, 24, 32, 40],
                       depths=[1, 1, 1, 1], decoder_hidden_size=32),
    "mamba": mamba(),
    "mixtral": text("Mixtral", "ForCausalLM", "logits", **GQA, num_local_experts=4, num_experts_per_tok=2),
    "qwen2": text("Qwen2", "ForCausalLM", "logits", **GQA),
    "qwen3": text("Qwen3", "ForCausalLM", "logits", **GQA, head_dim=8),
    "llama": text("Llama", "ForCausalLM", "logits", **GQA),
    "gpt2": text("GPT2", "LMHeadModel", "logits", n_embd=32, n_layer=2, n_head=4, n_positions=64),
    "gpt-neox": text("GPTNeoX", max_position_embeddings=64),
    "phi": text("Phi", max_position_embeddings=64),
    "phi3": text("Phi3", **GQA, pad_token_id=0),
    "gemma": text("Gemma", **GQA, head_dim=8),
    "gemma2": text("Gemma2", **GQA, head_dim=8),
    "mistral": text("Mistral", **GQA),
    "bloom": text("Bloom", n_layer=2, n_head=4),
    "opt": text("OPT", ffn_dim=48, max_position_embeddings=64, word_embed_proj_dim=32),
    "electra": text("Electra", embedding_size=16, max_position_embeddings=64),
    "albert": text("Albert", embedding_size=16, max_position_embeddings=64),
    "deberta-v2": text("DebertaV2", max_position_embeddings=64, relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=8),
    "deberta": text("Deberta", max_position_embeddings=64, relative_attention=True, pos_att_type=["p2c", "c2p"]),
    "mpnet": text("MPNet", max_position_embeddings=64),
    "xlm-roberta": text("XLMRoberta", max_position_embeddings=64),
    "modernbert": text("ModernBert", max_position_embeddings=64, pad_token_id=0, global_attn_every_n_layers=2, local_attention=8),
    "bart": decoder("Bart", **BART),
    "wav2vec2": Architecture(lambda: Call(hf.Wav2Vec2Model(hf.Wav2Vec2Config(
        **VISION, vocab_size=32, conv_dim=[16, 16, 16], conv_stride=[5, 2, 2], conv_kernel=[10, 3, 3], num_feat_extract_layers=3,
        num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4)), ("input_values",), ("last_hidden_state",)), lambda k: (normal(2 + k, 1600 + 700 * k),)),
    "efficientnet": image("EfficientNet", image_size=64, width_coefficient=0.25, depth_coefficient=0.25, hidden_dim=320),
    "resnet": image("ResNet", sizes=((2, 64, 64), (3, 96, 64)), embedding_size=16, hidden_sizes=[16, 24, 32, 40], depths=[1, 1, 1, 1]),
    "regnet": image("RegNet", sizes=((2, 64, 64), (3, 96, 64)), embedding_size=16, hidden_sizes=[16, 24, 32, 40], depths=[1, 1, 1, 1], groups_width=8),
    "mobilevit": image("MobileViT", image_size=64, hidden_sizes=[16, 24, 32], neck_hidden_sizes=[8, 16, 16, 24, 24, 32, 64], num_attention_heads=4),
    "mobilenet-v2": image("MobileNetV2", depth_multiplier=0.25, min_depth=8),
    "dinov2": image("Dinov2", image_size=56, patch_size=14, sizes=((2, 56, 56), (3, 56, 56)), hidden_size=32, num_hidden_layers=2, num_attention_heads=4),
    "poolformer": image("PoolFormer", sizes=((2, 64, 64), (3, 96, 64)), hidden_sizes=[16, 24, 32, 40], depths=[1, 1, 1, 1]),
    "beit": image("Beit", image_size=64, **VISION),
    "levit": image("Levit", image_size=64, hidden_sizes=[16, 32, 48], num_attention_heads=[2, 4, 6], depths=[1, 1, 1], key_dim=[8, 8, 8]),
    "dpt": image("DPT", "ForDepthEstimation", ("predicted_depth",), image_size=64, **{**VISION, "num_hidden_layers": 4}, backbone_out_indices=[0, 1, 2, 3],
                 neck_hidden_sizes=[8, 12, 16, 20], fusion_hidden_size=16, reassemble_factors=[4, 2, 1, 0.5]),
}


@contextlib.contextmanager
def silence() -> Any:
    """PyTorch's exporters are talkative."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


def prepare(name: str) -> tuple[torch.nn.Module, list[tuple[torch.Tensor, ...]], list[list[np.ndarray]]]:
    """The module, its arguments at both shapes, PyTorch's answers."""
    torch.manual_seed(0)
    hf.logging.set_verbosity_error()
    arch = ARCHITECTURES[name]
    module = arch.make().eval()
    calls = [arch.inputs(0), arch.inputs(1)]
    with torch.no_grad():
        return module, calls, [_arrays(module(*c)) for c in calls]


def _arrays(out: Any) -> list[np.ndarray]:
    return [t.numpy() for t in (out if isinstance(out, tuple | list) else (out,))]


def open_dims(calls: Sequence[tuple[torch.Tensor, ...]]) -> tuple[dict[int, Any], ...]:
    """torch.export's dynamic shapes: what differs between the two calls is left open."""
    return tuple({d: Dims for d in range(a.ndim) if a.shape[d] != b.shape[d]} for a, b in zip(*calls, strict=True))


def compiled(name: str, via: str, module: torch.nn.Module, calls: list[tuple[torch.Tensor, ...]]) -> Callable[..., Any]:
    """One artifact, through ``torch`` (torch.export) or ``onnx`` (torch.onnx.export)."""
    dims = (open_dims(calls),)
    if via == "onnx" and hasattr(module.model, "set_experts_implementation"):
        module.model.set_experts_implementation("batched_mm")  # PyTorch's exporter has no grouped product
    with silence(), torch.no_grad():
        program = torch.export.export(module, calls[0], dynamic_shapes=dims, strict=False)
        if via == "torch":
            return rd.compile(program)
        file = io.BytesIO()
        torch.onnx.export(program, f=file, dynamo=True, verbose=False)
    return rd.compile(onnx.load_from_string(file.getvalue()))


def error(name: str, via: str) -> float:
    """The largest error at both shapes, relative to the largest value."""
    module, calls, wanted = prepare(name)
    model = compiled(name, via, module, calls)
    worst = 0.0
    for call, want in zip(calls, wanted, strict=True):
        got = model(*(t.numpy() for t in call))
        for g, w in zip(got if isinstance(got, tuple) else (got,), want, strict=True):
            assert g.shape == w.shape and g.dtype == w.dtype, f"{g.dtype}{g.shape}, not {w.dtype}{w.shape}"
            assert np.isfinite(w).all(), "PyTorch's answer is not finite: it says nothing"
            worst = max(worst, float(np.abs(g - w).max() / max(np.abs(w).max(), 1e-6)))
    return worst


def main() -> None:
    """The matrix."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--via", choices=["torch", "onnx"])
    options = parser.parse_args()
    bad = 0
    for name in ARCHITECTURES:
        if options.names and name not in options.names:
            continue
        for via in ("torch", "onnx"):
            if options.via not in (None, via):
                continue
            start = time.perf_counter()
            try:
                worst = error(name, via)
                said = f"{'right' if worst < TOLERANCE else 'WRONG'}  {worst:.1e}"
                bad += worst >= TOLERANCE
            except Exception as e:  # the report is the purpose
                said, bad = f"FAILED {type(e).__name__}: {' | '.join(str(e).strip().splitlines()[:4])[:400]}", bad + 1
            print(f"{name:16} {via:6} {time.perf_counter() - start:5.1f} s  {said}", flush=True)
    print(f"{bad} failed")


if __name__ == "__main__":
    main()
