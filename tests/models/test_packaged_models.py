# SPDX-License-Identifier: Apache-2.0
"""Models with real weights that come in Python packages (silero-vad, rapidocr), against ONNX Runtime at two shapes from one artifact."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import roundel as rd

ort = pytest.importorskip("onnxruntime")
pytestmark = [pytest.mark.slow, pytest.mark.peers]


def path(package: str, file: str) -> str:
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{package} is not installed")
    return str(Path(spec.submodule_search_locations[0]) / file)


def draw(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype("f")


def agree(file: str, calls: list[dict[str, np.ndarray]], tolerance: float = 1e-3) -> None:
    model = rd.compile(file)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(file, options)
    for inputs in calls:
        got = model(**inputs)
        for g, w in zip(got if isinstance(got, tuple) else (got,), session.run(None, inputs), strict=True):
            assert g.shape == w.shape and g.dtype == w.dtype
            np.testing.assert_allclose(g, w, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("file", ["silero_vad.onnx", "silero_vad_16k_op15.onnx", "silero_vad_op18_ifless.onnx", "silero_vad_half.onnx",
                                  "silero_vad_openvino_16k.onnx"])
def test_voice_activity(file):
    """Chunks of 32 ms at 16 kHz, of one voice and of three; where the model takes the rate, chunks at 8 kHz too."""
    where = path("silero_vad", f"data/{file}")
    named = {i.name for i in ort.InferenceSession(where).get_inputs()}
    calls = []
    for batch, rate in ((1, 16000), (3, 16000), (1, 8000)):
        if ("16k" in file and (batch > 1 or rate != 16000)) or (rate != 16000 and "sr" not in named):
            continue
        call = {"input": draw(batch, 576 * rate // 16000), "state": draw(2, batch, 128), "sr": np.asarray(rate, np.int64)}
        calls.append({k: v for k, v in call.items() if k in named})
    agree(where, calls)


def test_voice_activity_of_a_sequence():
    where = path("silero_vad", "data/silero_vad_16k_sequence.onnx")
    names = [i.name for i in ort.InferenceSession(where).get_inputs()]
    agree(where, [dict(zip(names, (draw(n, 576), draw(1, 1, 128), draw(1, 1, 128)), strict=True)) for n in (3, 7)])


@pytest.mark.parametrize("file, sizes", [
    ("PP-OCRv6_rec_small.onnx", ((1, 3, 48, 160), (2, 3, 48, 232))),
    ("PP-OCRv6_det_small.onnx", ((1, 3, 64, 96), (1, 3, 160, 128))),
    ("ch_ppocr_mobile_v2.0_cls_mobile.onnx", ((1, 3, 48, 192), (3, 3, 48, 192))),
])
def test_text_in_pictures(file, sizes):
    agree(path("rapidocr", f"models/{file}"), [{"x": draw(*s)} for s in sizes])
