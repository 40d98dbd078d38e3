# SPDX-License-Identifier: Apache-2.0
"""The parts of pages that need no browser, in node: boxes, letters, windows, how pictures become inputs, tokens."""

import json
import shutil
import subprocess
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

import roundel.pages
from roundel.pages.mel import of_input, parsed
from roundel.runtime.metadata import TensorInfo

WEB = Path(roundel.pages.__file__).parent / "web"
NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="needs node")
SIZE = {"width": 100, "height": 50}


def calls(*asked):
    """The results of functions: ``("boxes.mjs", "boxesOf", arguments...)``."""
    text = json.dumps([{"file": str(WEB / file), "name": name, "values": values} for file, name, *values in asked], default=tensor)
    done = subprocess.run([NODE, Path(__file__).with_name("parts.mjs")], input=text, capture_output=True, text=True, timeout=60, check=False)
    assert not done.returncode, done.stderr
    return json.loads(done.stdout)


def tensor(array):
    return {"numbers": array.ravel().tolist(), "shape": array.shape}


def told(form, **more):
    return {"form": form, "order": "corners", "columns": False, "objectness": False, "places": [0, 1, None], **more}


def test_boxes_of_every_form():
    rows = np.zeros((1, 3, 7), "f")  # x and y of the centre, sides, objectness, two classes
    rows[0, 0] = [30, 20, 20, 10, 0.9, 0.1, 1]
    rows[0, 1] = [31, 20, 20, 10, 0.8, 0, 1]  # the same
    rows[0, 2] = [30, 20, 20, 10, 0.2, 1, 1]  # not likely
    columns = np.delete(rows * (rows[..., 4:5] > 0.5), 4, 2).transpose(0, 2, 1)
    lists = [np.array([[[0.2, 0.3, 0.4, 0.5]]], "f"), np.array([[[-9, 3]]], "f")]
    image = np.zeros((1, 1, 50, 100), "f")
    image[..., 10:20, 20:60] = 0.9
    image[..., 40, 40] = 0.9  # too small
    want = {"x": 20, "y": 15, "w": 20, "h": 10, "label": 1}
    found = calls(("boxes.mjs", "boxesOf", [rows], told("rows", order="centre", objectness=True), SIZE, 0.5),
                  ("boxes.mjs", "boxesOf", [columns], told("rows", order="centre", columns=True), SIZE, 0.5),
                  ("boxes.mjs", "boxesOf", [np.array([[[20, 15, 40, 25, 0.9, 1], [0, 0, 1, 1, 0.1, 0]]], "f")], told("finished"), SIZE, 0.5),
                  ("boxes.mjs", "boxesOf", lists, told("lists"), SIZE, 0.5),
                  ("boxes.mjs", "boxesOf", lists, told("lists", order="rows first"), SIZE, 0.5),
                  ("boxes.mjs", "boxesOf", [image], told("map"), SIZE, 0.5))
    assert [len(boxes) for boxes in found] == [1] * 6
    for boxes in found[:4]:
        assert {k: pytest.approx(boxes[0][k], abs=1e-4) for k in want} == want
    assert [pytest.approx(found[4][0][k], abs=1e-4) for k in "xywh"] == [30, 10, 20, 10]
    area, border = 400, 100
    by = area * 0.6 / border  # Liao et al. 2020: area over border, times how much it grows, which moves each side by the half
    assert [pytest.approx(found[5][0][k], abs=1e-4) for k in "xywh"] == [20 - 2 * by, 10 - 2 * by, 40 + 4 * by, 10 + 4 * by]


def test_letters_are_read():
    steps = np.eye(4, dtype="f")[[0, 1, 1, 0, 1, 2, 3, 3]]
    assert calls(("letters.mjs", "readLetters", steps[None], ["", "a", "b", " "])) == [{"text": "aab ", "score": 1}]


def log_mel(samples, mel, rate):
    """The spectrogram of pages/mel.py by NumPy."""
    if mel.centre:
        samples = np.pad(samples, mel.fft // 2, mode="reflect")
        ahead, frames = (mel.fft - mel.window) // 2, (len(samples) - mel.fft) // mel.hop
    else:
        ahead, frames = 0, (len(samples) - mel.window) // mel.hop + 1
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(mel.window) / mel.window)
    cut = np.stack([samples[t * mel.hop + ahead : t * mel.hop + ahead + mel.window] for t in range(frames)])
    sized = np.abs(np.fft.rfft(cut * hann, mel.fft)) ** mel.power
    to = {"htk": lambda f: 2595 * np.log10(1 + f / 700), "slaney": lambda f: np.where(f < 1000, 3 * f / 200, 15 + 27 * np.log(f / 1000 + 1e-30) / np.log(6.4))}
    grid = np.linspace(0, rate / 2, 1 << 20)
    edges = np.interp(np.linspace(to[mel.scale](mel.low), to[mel.scale](mel.high), mel.bands + 2), to[mel.scale](grid), grid)
    f = np.arange(mel.fft // 2 + 1)[:, None] * rate / mel.fft
    lower, centre, upper = edges[:-2], edges[1:-1], edges[2:]
    weights = np.maximum(0, np.minimum((f - lower) / (centre - lower), (upper - f) / (upper - centre)))
    energy = np.maximum(sized @ (weights * 2 / (upper - lower) if mel.area else weights), mel.floor)
    level = {"ln": np.log, "log10": np.log10, "db": lambda e: 10 * np.log10(e)}[mel.log](energy)
    level = np.maximum(level, level.max() - mel.range) if mel.range else level
    return ((level.T if mel.bands_first else level) - mel.mean) / mel.std


@pytest.mark.parametrize("text, shape", [
    ("log", (1, 49, 40)), ("log,window=640,hop=320,log=db,floor=1e-10", ("n", "t", 64)), ("whisper", (1, 80, "t")),
    ("log,fft=600,window=600,scale=slaney,power=1,low=0,high=3000,centre=1,mean=0.5,std=2", (1, 1, 13, "t")),
    ("log,window=400,fft=1024,centre=1", (1, "t", 32)),
])
def test_spectrograms_are_those_of_numpy(text, shape):
    rate = 16000
    mel, _ = of_input(TensorInfo("x", "float32", shape), parsed(text, rate))
    samples = 0.1 * np.random.default_rng(0).standard_normal(7000) + np.sin(np.arange(7000) ** 1.5 / 500)
    want = log_mel(samples, mel, rate)
    (found,) = calls(("mel.mjs", "spectrogram", samples.tolist(), asdict(mel), rate))
    np.testing.assert_allclose(np.array(found).reshape(want.shape), want, rtol=2e-4, atol=2e-4)


def test_the_form_whisper_is_what_its_own_package_computes():
    """The extractor of Hugging Face's library, which makes frames of 30 seconds."""
    from_library = pytest.importorskip("transformers").WhisperFeatureExtractor()
    samples = np.sin(np.arange(480000) ** 1.2 / 300) * np.random.default_rng(0).random(480000)
    want = from_library(samples, sampling_rate=16000, return_tensors="np").input_features
    mel, frames = of_input(TensorInfo("x", "float32", (1, 80, 3000)), parsed("whisper", 16000))
    assert mel.samples(frames) == len(samples)
    (found,) = calls(("mel.mjs", "spectrogram", samples.tolist(), asdict(mel), 16000))
    np.testing.assert_allclose(np.array(found).reshape(want.shape), want, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("n", [1, 2, 15, 400, 512])
def test_transforms_are_fourier_s(n):
    x = np.random.default_rng(n).standard_normal((2, n))
    (found,) = calls(("mel.mjs", "transformed", *x.tolist()))
    want = np.fft.fft(x[0] + 1j * x[1])
    np.testing.assert_allclose(np.array(found[0]) + 1j * np.array(found[1]), want, atol=1e-10)


def test_pictures_become_inputs():
    picture = {"width": 4, "height": 2, "channels": 3, "channels_first": True, "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.25, 0.5], "fit": "cover", "bgr": True}
    pixels = np.random.default_rng(0).integers(0, 256, (2, 4, 4))
    found, cover, limit, line = calls(("pictures.mjs", "asInput", pixels.ravel().tolist(), {"width": 4, "height": 2}, picture, {"dtype": "float32"}),
                                      ("pictures.mjs", "placed", picture, 8, 8),
                                      ("pictures.mjs", "placed", picture | {"fit": "limit", "width": 640}, 1280, 500),
                                      ("pictures.mjs", "placed", picture | {"fit": "line", "height": 48}, 300, 100))
    want = ((pixels[..., 2::-1] / 255 - 0.5) / (0.5, 0.25, 0.5)).transpose(2, 0, 1)
    np.testing.assert_allclose(np.array(found["data"]).reshape(3, 2, 4), want, atol=1e-5)
    assert (cover["x"], cover["y"], cover["w"], cover["h"]) == (0, -1, 4, 4)
    assert (limit["width"], limit["height"], line["width"], line["height"]) == (640, 256, 144, 48)


def test_scores_become_shares_and_tokens_are_chosen():
    shares, one, best, drawn = calls(("tensors.mjs", "probabilities", [1, 2, 3]), ("tensors.mjs", "probabilities", [0.25]),
                                     ("generation.mjs", "chosen", [1, 5, 2], 0), ("sound.mjs", "spans", [0, 0.9, 0.8, 0, 0.7], 0.5))
    np.testing.assert_allclose(shares, np.exp([1, 2, 3]) / np.exp([1, 2, 3]).sum())
    assert (one, best, drawn) == ([0.25], 1, [{"from": 0.5, "to": 1.5}, {"from": 2, "to": 2.5}])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_numbers_of_16_bits_are_those_of_the_oracle(dtype):
    """Every one of them as a number, and numbers beside and between two of them, and beyond the largest, as bits."""
    kind = np.dtype(getattr(pytest.importorskip("ml_dtypes"), dtype) if dtype == "bfloat16" else dtype)
    bits = np.arange(1 << 16, dtype=np.uint16)
    with np.errstate(invalid="ignore"):
        numbers = bits.view(kind).astype("d")
    finite = np.isfinite(numbers)
    steps = np.sort(numbers[finite])
    between = np.concatenate([steps, (steps[1:] + steps[:-1]) / 2, steps * (1 + 2.0**-13), [steps[-1] * 1.01, -steps[-1] * 1.01, 1e300]])
    read, written = calls(("tensors.mjs", "readable", {"dtype": dtype, "data": bits.tolist()}),
                          ("tensors.mjs", "tensor", {"dtype": dtype}, between.tolist(), []))
    np.testing.assert_array_equal(np.array(read["data"], "d")[finite], numbers[finite])
    with np.errstate(over="ignore"):
        want = between.astype("f").astype(kind) if dtype == "bfloat16" else between.astype(kind)
    np.testing.assert_array_equal(np.array(written["data"], np.uint16), want.view(np.uint16))


def test_numbers_that_a_type_does_not_hold_are_refused():
    def parsed(dtype, text):
        return ("numbers.mjs", "parsed", {"name": "x", "dtype": dtype}, text, len(text.split()))

    held = {"uint8": "0 255 1e2", "int8": "-128 127 +3", "int64": f"{-2**63} {2**63 - 1} 9007199254740993", "uint64": f"0 {2**64 - 1} 1",
            "bool": "True 0 false", "float32": "0.5 1e3 -2"}
    answers = calls(*(parsed(dtype, text) for dtype, text in held.items()))
    assert [[float(v) for v in answer] for answer in answers[-2:]] == [[1, 0, 0], [0.5, 1000, -2]]
    assert [[int(v) for v in answer] for answer in answers[:-2]] == [[int(float(w)) if "e" in w else int(w) for w in held[d].split()] for d in [*held][:-2]]
    beyond = {"uint8": ("256", "x: 256 is not a uint8 (0 to 255)"), "int8": ("-129", "x: -129 is not an int8 (-128 to 127)"),
              "int64": (str(2**63), f"x: {2**63} is not an int64 ({-2**63} to {2**63 - 1})"),
              "uint64": ("-1", f"x: -1 is not a uint64 (0 to {2**64 - 1})"),
              "bool": ("2", "x: 2 is not a bool (0, 1, true or false)"), "int32": ("1.5", "x: 1.5 is not a whole number"),
              "float16": ("a", "x: a is not a number")}
    assert calls(*(parsed(dtype, text) for dtype, (text, _) in beyond.items())) == [{"error": message} for _, message in beyond.values()]


def test_sizes_that_are_none_are_named():
    info = {"name": "x", "dtype": "float32", "shape": ["n", 2]}
    answers = calls(*(("numbers.mjs", "shapeOf", info, {"n": text}) for text in ("3", "-1", "1.5", "abc", "", "1e9")))
    assert answers == [[3, 2], *({"error": f"n: {text} is no size; give a whole number from 0 on"} for text in ("-1", "1.5", "abc", "nothing")),
                       {"error": "x would have 2,000,000,000 numbers, more than a page has memory for: make n = 1000000000 smaller"}]


def test_pages_of_one_origin_keep_their_files_beside_each_other():
    """Also one whose address begins with that of another; what was emptied is filled at the next visit, and an older version of the same page is dropped."""
    one, two = "http://host/a/", "http://host/a/b/"
    visits = [{"scope": one, "version": "1"}, {"scope": two, "version": "1"}, {"scope": one, "version": "1", "without": True}, {"scope": one, "version": "1"},
              {"scope": one, "version": "2"}]
    text = json.dumps({"text": (WEB / "offline.js").read_text(), "files": ["./", "page.mjs"], "visits": visits})
    done = subprocess.run([NODE, Path(__file__).with_name("offline.mjs")], input=text, capture_output=True, text=True, timeout=60, check=False)
    assert not done.returncode, done.stderr
    answers = json.loads(done.stdout)
    first, other, newer = (f"roundel-page-{scope}#{version}" for scope, version in ((one, 1), (two, 1), (one, 2)))
    assert [answer["from"] for answer in answers] == ["kept", "kept", "fetched", "kept", "kept"]
    assert [answer["held"] for answer in answers] == [{first: 2}, {first: 2, other: 2}, {first: 2, other: 0}, {first: 2, other: 0}, {other: 0, newer: 2}]
