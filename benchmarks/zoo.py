# SPDX-License-Identifier: Apache-2.0
"""A zoo of architectures at their usual sizes, with random weights (fixed seed): PyTorch modules of ``timm``, ``torchvision`` and
``transformers`` beside inputs as such models see them: normalised pictures, token ids, sound. For questions of breadth, such as accuracy."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .models import BUILDERS, LENGTHS, SEED, trained_statistics


@dataclass(frozen=True)
class Subject:
    """``make()`` gives a module, not yet in evaluation mode, and its positional inputs; of ``any_length``, it is compiled for all of them."""

    kind: str
    make: Callable[[], tuple[Any, list[np.ndarray]]]
    any_length: bool = False


def load(name: str) -> tuple[Any, list[np.ndarray]]:
    """The module in evaluation mode and its inputs."""
    import torch

    torch.manual_seed(SEED)
    module, inputs = ZOO[name].make()
    return module.eval().requires_grad_(False), inputs


def chosen(models: str) -> list[str]:
    """The names that ``all``, or names and kinds separated by semicolons, stand for."""
    asked = [part.strip() for part in models.split(";")]
    unknown = set(asked) - {"all", *ZOO, *(s.kind for s in ZOO.values())}
    if unknown:
        raise ValueError(f"there is no model or kind {min(unknown)!r}; they are {', '.join(ZOO)}")
    return [n for n, s in ZOO.items() if {"all", n, s.kind} & set(asked)]


# --- inputs


def picture(height: int, width: int, batch: int = 1) -> np.ndarray:
    """Like a normalised photograph, ``(batch, 3, height, width)``: amplitudes fall with the frequency, the brightest and darkest parts are cut off."""
    random = np.random.RandomState(SEED)
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None, :])
    spectrum = np.fft.rfft2(random.randn(batch, 3, height, width)) / np.maximum(frequency, 1 / max(height, width))
    values = np.fft.irfft2(spectrum, s=(height, width))
    values = np.clip(0.45 + 0.3 * values / values.std(), 0, 1)
    mean, deviation = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    return ((values - mean[:, None, None]) / deviation[:, None, None]).astype("float32")


def sound(samples: int) -> np.ndarray:
    """A chord whose loudness changes, with noise, ``(1, samples)``, of mean 0 and deviation 1."""
    t = np.arange(samples) / 16000
    chord = sum(np.sin(2 * np.pi * f * t) / k for k, f in enumerate((220, 440, 660, 1320), 1))
    values = chord * (0.1 + np.sin(2 * np.pi * 3 * t) ** 2) + 0.01 * np.random.RandomState(SEED).randn(samples)
    return ((values - values.mean()) / values.std()).astype("float32")[None]


def mel(bands: int, frames: int) -> np.ndarray:
    """A log spectrogram, ``(1, bands, frames)``, smooth along both axes, most of it near its floor."""
    return np.maximum(picture(bands, frames)[:, 0] / 2, -1.0).astype("float32")


def tokens(vocabulary: int, length: int, batch: int = 1) -> np.ndarray:
    """Ids of which small ones are the most frequent, as in a text."""
    return np.minimum(np.random.RandomState(SEED).zipf(1.3, (batch, length)) + 3, vocabulary - 1).astype("int64")


# --- modules


def _called(model: Any, names: Sequence[str], keep: Sequence[str], **fixed: Any) -> Any:
    import torch

    class Called(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *inputs: Any) -> Any:
            out = self.model(**dict(zip(names, inputs, strict=True)), **fixed)
            return tuple(out[k] for k in keep)

    return Called()


def _timm(name: str) -> Callable[[], tuple[Any, list[np.ndarray]]]:
    def make() -> tuple[Any, list[np.ndarray]]:
        import timm

        return _trained_head(trained_statistics(timm.create_model(name, pretrained=False))), [picture(SIZES.get(name, 224), SIZES.get(name, 224))]

    return make


def _trained_head(module: Any) -> Any:
    """The module without the zeros with which some classifiers begin, which would give zeros whatever is before them."""
    import torch

    for layer in module.modules():
        if isinstance(layer, torch.nn.Linear) and not layer.weight.any():
            torch.nn.init.normal_(layer.weight, std=0.02)
    return module


def _torchvision(name: str, size: int, keep: Sequence[str] = (), **more: Any) -> Callable[[], tuple[Any, list[np.ndarray]]]:
    def make() -> tuple[Any, list[np.ndarray]]:
        import torchvision

        module = trained_statistics(torchvision.models.get_model(name, weights=None, weights_backbone=None, **more))
        return (_called(module, ["input" if name.startswith("lraspp") else "x"], keep) if keep else module), [picture(size, size)]

    return make


def _vision(config: str, model: str, keep: Sequence[str], height: int, width: int = 0, **sizes: Any) -> Callable[[], tuple[Any, list[np.ndarray]]]:
    def make() -> tuple[Any, list[np.ndarray]]:
        import transformers

        module = getattr(transformers, model)(getattr(transformers, config)(**sizes))
        return _called(trained_statistics(module), ["pixel_values"], keep), [picture(height, width or height)]

    return make


def _text(name: str, model: str = "Model", keep: str = "last_hidden_state", length: int = 128, **sizes: Any) -> Callable[[], tuple[Any, list[np.ndarray]]]:
    def make() -> tuple[Any, list[np.ndarray]]:
        import transformers

        config = getattr(transformers, f"{name}Config")(**sizes)
        fixed = {"use_cache": False} if hasattr(config, "use_cache") else {}
        module = getattr(transformers, f"{name}{model}")(config)
        return _called(module, ["input_ids"], [keep], **fixed), [tokens(config.vocab_size, length)]

    return make


def _whisper() -> tuple[Any, list[np.ndarray]]:
    import transformers

    config = transformers.WhisperConfig()  # the sizes of Whisper tiny
    module = _called(transformers.WhisperModel(config), ["input_features", "decoder_input_ids"], ["last_hidden_state"], use_cache=False)
    return module, [mel(80, 3000), tokens(config.vocab_size, 16)]


def _wav2vec2() -> tuple[Any, list[np.ndarray]]:
    import transformers

    module = _called(transformers.Wav2Vec2Model(transformers.Wav2Vec2Config(num_hidden_layers=6)), ["input_values"], ["last_hidden_state"])
    return module, [sound(16000)]


def _audio_spectrogram() -> tuple[Any, list[np.ndarray]]:
    import transformers

    config = transformers.ASTConfig(hidden_size=192, num_attention_heads=3, intermediate_size=768, max_length=512)
    return _called(transformers.ASTModel(config), ["input_values"], ["last_hidden_state"]), [mel(512, 128)]


def _recurrent() -> tuple[Any, list[np.ndarray]]:
    import torch

    class Tagger(torch.nn.Module):
        """Spectrogram frames to letters: two bidirectional recurrent layers."""

        def __init__(self) -> None:
            super().__init__()
            self.layers, self.letters = torch.nn.LSTM(80, 256, num_layers=2, bidirectional=True, batch_first=True), torch.nn.Linear(512, 32)

        def forward(self, frames: Any) -> Any:
            return self.letters(self.layers(frames)[0]).log_softmax(-1)

    return Tagger(), [np.ascontiguousarray(mel(80, 200).transpose(0, 2, 1))]


def _recommendation() -> tuple[Any, list[np.ndarray]]:
    import torch

    def layers(*sizes: int) -> Any:
        return torch.nn.Sequential(*(m for a, b in itertools.pairwise(sizes) for m in (torch.nn.Linear(a, b), torch.nn.ReLU())))

    class Dlrm(torch.nn.Module):
        """Naumov et al., "Deep learning recommendation model for personalization and recommendation systems", 2019, at its sizes for Criteo's data."""

        def __init__(self) -> None:
            super().__init__()
            self.tables = torch.nn.ModuleList(torch.nn.EmbeddingBag(10000, 16, mode="sum") for _ in range(26))
            self.bottom, self.top = layers(13, 512, 256, 64, 16), torch.nn.Sequential(layers(367, 512, 256), torch.nn.Linear(256, 1))

        def forward(self, dense: Any, ids: Any) -> Any:
            x = self.bottom(dense)
            vectors = torch.stack([x] + [table(ids[:, k]) for k, table in enumerate(self.tables)], 1)
            pairs = torch.bmm(vectors, vectors.transpose(1, 2))
            row, column = torch.tril_indices(27, 27, -1)
            return torch.sigmoid(self.top(torch.cat([x, pairs[:, row, column]], 1)))

    random = np.random.RandomState(SEED)
    return Dlrm(), [np.log1p(random.exponential(50, (64, 13))).astype("float32"), random.randint(0, 10000, (64, 26, 4)).astype("int64")]


def _wide_and_deep() -> tuple[Any, list[np.ndarray]]:
    import torch

    class FactorisationMachine(torch.nn.Module):
        """Guo et al., "DeepFM: a factorization-machine based neural network for CTR prediction", 2017."""

        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = torch.nn.Embedding(40000, 1), torch.nn.Embedding(40000, 16)
            self.deep = torch.nn.Sequential(torch.nn.Linear(39 * 16, 400), torch.nn.BatchNorm1d(400), torch.nn.ReLU(), torch.nn.Linear(400, 400),
                                            torch.nn.ReLU(), torch.nn.Linear(400, 1))

        def forward(self, ids: Any) -> Any:
            v = self.second(ids)
            pairs = 0.5 * (v.sum(1) ** 2 - (v**2).sum(1)).sum(1, keepdim=True)
            return self.first(ids).sum(1) + pairs + self.deep(v.flatten(1))

    return FactorisationMachine(), [np.random.RandomState(SEED).randint(0, 40000, (64, 39)).astype("int64")]


def _clip() -> tuple[Any, list[np.ndarray]]:
    import transformers

    module = transformers.CLIPModel(transformers.CLIPConfig(text_config={"num_hidden_layers": 6}, vision_config={"num_hidden_layers": 6}))
    ids = np.concatenate([tokens(49000, 15, 2), np.full((2, 1), 49407)], 1).astype("int64")
    return _called(module, ["input_ids", "pixel_values"], ["text_embeds", "image_embeds"]), [ids, picture(224, 224)]


def _benchmark(name: str, length: int = 128) -> Callable[[], tuple[Any, list[np.ndarray]]]:
    def make() -> tuple[Any, list[np.ndarray]]:
        module, inputs = BUILDERS[name](1, length)
        return module, list(inputs.values())

    return make


def _clip_of(frames: int, size: int) -> np.ndarray:
    """A film, ``(1, 3, frames, size, size)``, in which the picture moves by a pixel a frame."""
    wide = picture(size, size + frames)
    return np.ascontiguousarray(np.stack([wide[..., k : k + size] for k in range(frames)], 2))


def _film(name: str, frames: int, size: int) -> Callable[[], tuple[Any, list[np.ndarray]]]:
    def make() -> tuple[Any, list[np.ndarray]]:
        import torchvision

        return trained_statistics(torchvision.models.get_model(name, weights=None)), [_clip_of(frames, size)]

    return make


def _frames(config: str, model: str, frames: int, size: int, **sizes: Any) -> Callable[[], tuple[Any, list[np.ndarray]]]:
    """Models of ``transformers`` that take films as ``(1, frames, 3, size, size)``."""

    def make() -> tuple[Any, list[np.ndarray]]:
        import transformers

        module = getattr(transformers, model)(getattr(transformers, config)(num_frames=frames, image_size=size, **sizes))
        return _called(module, ["pixel_values"], ["last_hidden_state"]), [np.ascontiguousarray(_clip_of(frames, size).transpose(0, 2, 1, 3, 4))]

    return make


def _speech(name: str, keep: str = "last_hidden_state", **sizes: Any) -> Callable[[], tuple[Any, list[np.ndarray]]]:
    def make() -> tuple[Any, list[np.ndarray]]:
        import transformers

        module = getattr(transformers, f"{name}Model")(getattr(transformers, f"{name}Config")(**sizes))
        return _called(module, ["input_values"], [keep]), [sound(16000)]

    return make


def _sequence_to_sequence(name: str, **sizes: Any) -> Callable[[], tuple[Any, list[np.ndarray]]]:
    def make() -> tuple[Any, list[np.ndarray]]:
        import transformers

        config = getattr(transformers, f"{name}Config")(**sizes)
        module = _called(getattr(transformers, f"{name}Model")(config), ["input_ids", "decoder_input_ids"], ["last_hidden_state"], use_cache=False)
        return module, [tokens(config.vocab_size, 128), tokens(config.vocab_size, 32)]

    return make


def _unet() -> tuple[Any, list[np.ndarray]]:
    import torch
    from torch.nn import BatchNorm2d, Conv2d, ConvTranspose2d, MaxPool2d, ReLU, Sequential

    def twice(before: int, after: int) -> Any:
        return Sequential(Conv2d(before, after, 3, 1, 1), BatchNorm2d(after), ReLU(), Conv2d(after, after, 3, 1, 1), BatchNorm2d(after), ReLU())

    class Unet(torch.nn.Module):
        """Ronneberger et al., "U-Net: convolutional networks for biomedical image segmentation", 2015, with half as many channels."""

        def __init__(self) -> None:
            super().__init__()
            widths = (32, 64, 128, 256, 512)
            self.down = torch.nn.ModuleList(map(twice, (3, *widths[:-1]), widths))
            self.up = torch.nn.ModuleList(ConvTranspose2d(b, a, 2, 2) for a, b in itertools.pairwise(widths))
            self.after = torch.nn.ModuleList(twice(b, a) for a, b in itertools.pairwise(widths))
            self.pool, self.classes = MaxPool2d(2), Conv2d(widths[0], 21, 1)

        def forward(self, x: Any) -> Any:
            kept = []
            for layers in self.down:
                kept.append(layers(self.pool(kept[-1]) if kept else x))
            x = kept.pop()
            for up, layers in zip(reversed(self.up), reversed(self.after), strict=True):
                x = layers(torch.cat([kept.pop(), up(x)], 1))
            return self.classes(x)

    return trained_statistics(Unet()), [picture(256, 256)]


def _sequence_recommendation() -> tuple[Any, list[np.ndarray]]:
    import torch

    class Sasrec(torch.nn.Module):
        """Kang and McAuley, "Self-attentive sequential recommendation", 2018: what was bought so far to scores of all items."""

        def __init__(self) -> None:
            super().__init__()
            self.items, self.places = torch.nn.Embedding(20000, 64), torch.nn.Parameter(torch.randn(100, 64) * 0.02)
            self.layers = torch.nn.ModuleList(torch.nn.TransformerEncoderLayer(64, 2, 256, batch_first=True, norm_first=True) for _ in range(2))

        def forward(self, ids: Any) -> Any:
            x = self.items(ids) + self.places
            before = torch.full((100, 100), -torch.inf).triu(1)
            for layer in self.layers:
                x = layer(x, src_mask=before)
            return x[:, -1] @ self.items.weight.T

    return Sasrec(), [tokens(20000, 100, 8)]


def _cross_network() -> tuple[Any, list[np.ndarray]]:
    import torch

    class CrossNetwork(torch.nn.Module):
        """Wang et al., "DCN V2: improved deep & cross network", 2021."""

        def __init__(self) -> None:
            super().__init__()
            width = 26 * 16 + 13
            self.table = torch.nn.Embedding(40000, 16)
            self.cross = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(3))
            self.deep = torch.nn.Sequential(torch.nn.Linear(width, 512), torch.nn.ReLU(), torch.nn.Linear(512, 256), torch.nn.ReLU())
            self.score = torch.nn.Linear(width + 256, 1)

        def forward(self, dense: Any, ids: Any) -> Any:
            start = x = torch.cat([dense, self.table(ids).flatten(1)], 1)
            for layer in self.cross:
                x = start * layer(x) + x
            return torch.sigmoid(self.score(torch.cat([x, self.deep(start)], 1)))

    random = np.random.RandomState(SEED)
    return CrossNetwork(), [np.log1p(random.exponential(50, (64, 13))).astype("float32"), random.randint(0, 40000, (64, 26)).astype("int64")]


SMALL_DECODER = {"hidden_size": 512, "num_hidden_layers": 8, "num_attention_heads": 8, "num_key_value_heads": 2, "intermediate_size": 1408, "vocab_size": 32000}
RESNET_BACKBONE = {"model_type": "resnet", "out_features": ["stage4"]}
CONVOLUTIONAL = ("mobilenetv3_large_100", "efficientnet_b0", "resnet34", "densenet121", "convnext_atto", "regnety_008", "ghostnet_100", "repvgg_a0",
                 "resnest14d", "hrnet_w18_small", "dla34", "vgg11_bn", "res2net50_14w_8s", "mixnet_s", "inception_v3",
                 "resnext50_32x4d", "efficientnetv2_rw_t", "cspresnet50", "rexnet_100", "selecsls42b", "mobilenetv4_conv_small", "convmixer_768_32", "dpn48b")
ATTENTION = ("deit_tiny_patch16_224", "swin_tiny_patch4_window7_224", "levit_128s", "xcit_tiny_12_p16_224", "pvt_v2_b0", "poolformer_s12",
             "mobilevit_xs", "edgenext_x_small", "efficientformer_l1", "mixer_s32_224", "sequencer2d_s", "coat_lite_tiny", "tiny_vit_5m_224",
             "visformer_tiny", "twins_svt_small", "crossvit_tiny_240", "gmlp_s16_224", "resmlp_12_224", "fastvit_t8", "maxvit_nano_rw_256", "cait_xxs24_224")
SIZES = {"inception_v3": 299, "crossvit_tiny_240": 240, **dict.fromkeys(("mobilevit_xs", "edgenext_x_small", "fastvit_t8", "maxvit_nano_rw_256"), 256)}
"""Pictures' edges, where they are not 224."""
ZOO: dict[str, Subject] = {
    **{name: Subject("benchmark", _benchmark(name)) for name in BUILDERS if name not in LENGTHS},
    **{f"{name}@{n}": Subject("benchmark", _benchmark(name, n), any_length=True) for name, lengths in LENGTHS.items() for n in lengths},
    **{name: Subject("convolutions", _timm(name)) for name in CONVOLUTIONAL},
    **{name: Subject("pictures, attention", _timm(name)) for name in ATTENTION},
    "swinv2": Subject("pictures, attention", _vision("Swinv2Config", "Swinv2Model", ["last_hidden_state"], 256, image_size=256)),
    "dinov2": Subject("pictures, attention", _vision("Dinov2Config", "Dinov2Model", ["last_hidden_state"], 224, hidden_size=384, num_attention_heads=6)),
    "segformer_b0": Subject("detection, segmentation", _vision("SegformerConfig", "SegformerForSemanticSegmentation", ["logits"], 256)),
    "deeplabv3_mobilenet_v3": Subject("detection, segmentation", _torchvision("deeplabv3_mobilenet_v3_large", 256, ["out"])),
    "lraspp_mobilenet_v3": Subject("detection, segmentation", _torchvision("lraspp_mobilenet_v3_large", 256, ["out"])),
    "yolos_tiny": Subject("detection, segmentation", _vision(
        "YolosConfig", "YolosForObjectDetection", ["logits", "pred_boxes"], 256, 256, hidden_size=192, num_attention_heads=3, intermediate_size=768,
        image_size=[256, 256], use_mid_position_embeddings=False)),
    "unet": Subject("detection, segmentation", _unet),
    "deeplabv3_resnet50": Subject("detection, segmentation", _torchvision("deeplabv3_resnet50", 256, ["out"])),
    "detr_resnet50": Subject("detection, segmentation", _vision(
        "DetrConfig", "DetrForObjectDetection", ["logits", "pred_boxes"], 320, use_timm_backbone=False, use_pretrained_backbone=False,
        backbone_config=RESNET_BACKBONE)),
    "rt_detr": Subject("detection, segmentation", _vision("RTDetrConfig", "RTDetrForObjectDetection", ["logits", "pred_boxes"], 320)),
    "dpt_small": Subject("detection, segmentation", _vision(
        "DPTConfig", "DPTForDepthEstimation", ["predicted_depth"], 224, image_size=224, hidden_size=384, num_attention_heads=6, intermediate_size=1536,
        neck_hidden_sizes=[48, 96, 192, 384], fusion_hidden_size=64)),
    "swin2sr": Subject("detection, segmentation", _vision("Swin2SRConfig", "Swin2SRForImageSuperResolution", ["reconstruction"], 64, embed_dim=60)),
    "r3d_18": Subject("films", _film("r3d_18", 16, 112)),
    "mc3_18": Subject("films", _film("mc3_18", 16, 112)),
    "r2plus1d_18": Subject("films", _film("r2plus1d_18", 16, 112)),
    "s3d": Subject("films", _film("s3d", 16, 224)),
    "swin3d_t": Subject("films", _film("swin3d_t", 8, 224)),
    "mvit_v2_s": Subject("films", _film("mvit_v2_s", 16, 224)),
    "videomae_small": Subject("films", _frames("VideoMAEConfig", "VideoMAEModel", 8, 224, hidden_size=384, num_attention_heads=6, intermediate_size=1536)),
    "timesformer": Subject("films", _frames("TimesformerConfig", "TimesformerModel", 4, 224, hidden_size=384, num_attention_heads=6,
                                            intermediate_size=1536, num_hidden_layers=6)),
    "distilbert": Subject("text", _text("DistilBert")),
    "roberta": Subject("text", _text("Roberta")),
    "mpnet": Subject("text", _text("MPNet", num_hidden_layers=6)),
    "squeezebert": Subject("text", _text("SqueezeBert")),
    "convbert": Subject("text", _text("ConvBert", num_hidden_layers=6)),
    "fnet": Subject("text", _text("FNet", num_hidden_layers=6)),
    "funnel": Subject("text", _text("Funnel")),
    "mamba": Subject("text", _text("Mamba", length=64, hidden_size=512, num_hidden_layers=8)),
    "bloom": Subject("text", _text("Bloom", "ForCausalLM", "logits", hidden_size=512, n_layer=8, n_head=8, vocab_size=32000)),
    "gpt_neox": Subject("text", _text("GPTNeoX", "ForCausalLM", "logits", hidden_size=512, num_hidden_layers=8, num_attention_heads=8, intermediate_size=2048,
                                      vocab_size=32000)),
    "phi": Subject("text", _text("Phi", "ForCausalLM", "logits", **{**SMALL_DECODER, "num_key_value_heads": 8})),
    "mistral": Subject("text", _text("Mistral", "ForCausalLM", "logits", **SMALL_DECODER)),
    "falcon": Subject("text", _text("Falcon", "ForCausalLM", "logits", hidden_size=512, num_hidden_layers=8, num_attention_heads=8, vocab_size=32000)),
    "olmo2": Subject("text", _text("Olmo2", "ForCausalLM", "logits", **SMALL_DECODER)),
    "qwen3": Subject("text", _text("Qwen3", "ForCausalLM", "logits", **SMALL_DECODER, head_dim=64)),
    "mixtral": Subject("text", _text("Mixtral", "ForCausalLM", "logits", **{**SMALL_DECODER, "num_hidden_layers": 4})),
    "bart": Subject("text", _sequence_to_sequence("Bart", encoder_layers=6, decoder_layers=6, d_model=768, encoder_ffn_dim=3072, decoder_ffn_dim=3072)),
    "t5_small": Subject("text", _sequence_to_sequence("T5")),
    "hubert": Subject("speech", _speech("Hubert", num_hidden_layers=6)),
    "wavlm": Subject("speech", _speech("WavLM", num_hidden_layers=6)),
    "conformer": Subject("speech", _speech("Wav2Vec2Conformer", num_hidden_layers=4, hidden_size=512, num_attention_heads=8, intermediate_size=2048)),
    "sew": Subject("speech", _speech("SEW", hidden_size=512, num_attention_heads=8, num_hidden_layers=6, intermediate_size=2048)),
    "albert": Subject("text", _text("Albert", hidden_size=768, num_attention_heads=12, intermediate_size=3072)),
    "electra_small": Subject("text", _text("Electra")),
    "t5_small_encoder": Subject("text", _text("T5", "EncoderModel")),
    "deberta_v2": Subject("text", _text("DebertaV2", hidden_size=384, num_attention_heads=6, num_hidden_layers=6, intermediate_size=1536,
                                        relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=256)),
    "modernbert": Subject("text", _text("ModernBert", num_hidden_layers=6)),
    "xlnet": Subject("text", _text("XLNet", d_model=512, n_layer=6, n_head=8, d_inner=2048)),
    "opt": Subject("text", _text("OPT", "ForCausalLM", "logits", num_hidden_layers=6)),
    "qwen2": Subject("text", _text("Qwen2", "ForCausalLM", "logits", **SMALL_DECODER)),
    "gemma2": Subject("text", _text("Gemma2", "ForCausalLM", "logits", **SMALL_DECODER, head_dim=64)),
    "whisper_tiny": Subject("speech", _whisper),
    "wav2vec2": Subject("speech", _wav2vec2),
    "ast_tiny": Subject("speech", _audio_spectrogram),
    "lstm_tagger": Subject("speech", _recurrent),
    "dlrm": Subject("recommendation", _recommendation),
    "sasrec": Subject("recommendation", _sequence_recommendation),
    "dcn_v2": Subject("recommendation", _cross_network),
    "deepfm": Subject("recommendation", _wide_and_deep),
    "clip": Subject("pictures and text", _clip),
}
