# SPDX-License-Identifier: Apache-2.0
"""The parts of pages that need no browser, in node: boxes, letters, windows, how pictures become inputs, tokens."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import roundel.pages

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
