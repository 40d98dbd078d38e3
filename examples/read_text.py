# SPDX-License-Identifier: Apache-2.0
"""Reads the text in pictures with three pretrained models (PP-OCR), each compiled once for pictures of every size.

    python examples/read_text.py [picture ...]

Without arguments it draws pictures of its own and checks what was read. The models come as ONNX files with the package
``rapidocr``; they find lines of text, tell whether a line is upside down, and read it. When onnxruntime is installed, it
runs the same models in turn with Roundel, with as many threads, for comparison.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

import roundel as rd

FILES = {"find": "PP-OCRv6_det_small.onnx", "turn": "ch_ppocr_mobile_v2.0_cls_mobile.onnx", "read": "PP-OCRv6_rec_small.onnx"}
DRAWN = [
    ("sign", ["Open daily"], 40, 0),
    ("receipt", ["Coffee 3.50", "Orange juice 4.20", "Total 7.70"], 28, 0),
    ("letter", ["Compilers turn models", "into native code"], 36, 0),
    ("upside down", ["Turn me around"], 36, 180),
]
Run = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Engine:
    """The three models, and the characters that the reader knows."""

    find: Run
    turn: Run
    read: Run
    characters: list[str]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("pictures", nargs="*", type=Path, help="pictures to read; default: some that are drawn here")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())
    parser.add_argument("--repeat", type=int, default=5, help="how often each picture is read; the median time is shown")
    options = parser.parse_args()
    folder = models_folder()
    print("compiling three models, each for pictures of every size; what is compiled is kept for the next time", flush=True)
    start = time.perf_counter()
    roundel = engine(folder, lambda path: compiled(path, options.threads))
    print(f"ready after {time.perf_counter() - start:.1f} s; {options.threads} threads", flush=True)
    engines = {"Roundel": roundel}
    if importlib.util.find_spec("onnxruntime"):
        engines["ONNX Runtime"] = engine(folder, lambda path: session(path, options.threads))

    wrong, totals = 0, dict.fromkeys(engines, 0.0)
    for name, picture, expected in pictures(options.pictures):
        texts, times = read_in_turn(engines, picture, options.repeat)
        found = texts["Roundel"]
        print(f"{name} ({picture.shape[1]}x{picture.shape[0]}): " + "   ".join(f"{n} {s * 1e3:.1f} ms" for n, s in times.items()))
        for line in found:
            print(f"    {line}")
        for n, s in times.items():
            totals[n] += s
        if expected is not None and [squeeze(t) for t in found] != [squeeze(t) for t in expected]:
            wrong += 1
            print(f"    expected {expected}")
    print("all pictures: " + "   ".join(f"{n} {s * 1e3:.1f} ms" for n, s in totals.items()))
    return 1 if wrong else 0


def models_folder() -> Path:
    """Where the package ``rapidocr`` keeps its models (the package itself is not imported)."""
    spec = importlib.util.find_spec("rapidocr")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("the models are not there; install them with: pip install --no-deps rapidocr==3.10.0")
    return Path(spec.submodule_search_locations[0]) / "models"


def compiled(path: Path, threads: int) -> Run:
    """One artifact for all sizes: the model's height, width and batch stay symbolic."""
    start = time.perf_counter()
    model = rd.compile(path, threads=threads)
    print(f"    {path.name}: {time.perf_counter() - start:.1f} s", flush=True)
    return lambda x: np.asarray(model(x))


def session(path: Path, threads: int) -> Run:
    """The same model in ONNX Runtime."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.force_spinning_stop", "1")
    made = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    name = made.get_inputs()[0].name
    return lambda x: np.asarray(made.run(None, {name: x})[0])


def engine(folder: Path, make: Callable[[Path], Run]) -> Engine:
    import onnx

    facts = {p.key: str(p.value) for p in onnx.load(folder / FILES["read"], load_external_data=False).metadata_props}
    return Engine(**{name: make(folder / file) for name, file in FILES.items()}, characters=["", *facts["character"].split("\n"), " "])


def pictures(paths: list[Path]) -> Iterator[tuple[str, np.ndarray, list[str] | None]]:
    """Name, RGB array, expected lines (None for the user's own)."""
    for path in paths:
        yield path.name, np.asarray(Image.open(path).convert("RGB")), None
    for name, lines, size, angle in () if paths else DRAWN:
        yield name, draw(lines, size, angle), lines


def draw(lines: list[str], size: int, angle: int) -> np.ndarray:
    """Black text on white."""
    font = ImageFont.load_default(size)
    width = int(max(font.getlength(line) for line in lines)) + 2 * size
    picture = Image.new("RGB", (width, 2 * size * len(lines) + size), "white")
    pen = ImageDraw.Draw(picture)
    for k, line in enumerate(lines):
        pen.text((size, size * (2 * k + 0.7)), line, "black", font=font)
    return np.asarray(picture.rotate(angle))


def read_in_turn(engines: dict[str, Engine], picture: np.ndarray, repeat: int) -> tuple[dict[str, list[str]], dict[str, float]]:
    """What each engine reads, and its median time; the engines take turns so that a busy machine is fair to both."""
    texts = {n: read_picture(e, picture) for n, e in engines.items()}
    times: dict[str, list[float]] = {n: [] for n in engines}
    for _ in range(repeat):
        for n, e in engines.items():
            start = time.perf_counter()
            read_picture(e, picture)
            times[n].append(time.perf_counter() - start)
    return texts, {n: float(np.median(t)) for n, t in times.items()}


def read_picture(engine: Engine, picture: np.ndarray) -> list[str]:
    """The lines of text in reading order."""
    return [read_line(engine, picture[top:bottom, left:right]) for top, bottom, left, right in find_lines(engine, picture)]


def find_lines(engine: Engine, picture: np.ndarray) -> list[tuple[int, int, int, int]]:
    """Boxes (top, bottom, left, right) around lines of text."""
    height, width = picture.shape[:2]
    page = np.full((-(-height // 32) * 32, -(-width // 32) * 32, 3), 255, np.uint8)  # the model halves the sides five times
    page[:height, :width] = picture
    heat = engine.find(planes(page, [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]))[0, 0, :height, :width]
    boxes = []
    for top, bottom, left, right in regions(heat > 0.3):
        tall, wide = bottom - top, right - left
        if min(tall, wide) >= 3:
            grow = int(tall * wide * 0.8 / (tall + wide)) + 1  # the model marks a line's core; this is its border
            boxes.append((max(top - grow, 0), min(bottom + grow, height), max(left - grow, 0), min(right + grow, width)))
    return sorted(boxes)


def regions(mask: np.ndarray) -> list[tuple[int, int, int, int]]:
    """Bounding boxes (top, bottom, left, right) of connected regions: runs of each row, joined with those they touch above."""
    boxes: list[list[int]] = []
    above: list[tuple[int, int, int]] = []
    parent: list[int] = []

    def root(k: int) -> int:
        while parent[k] != k:
            k = parent[k]
        return k

    padded = np.pad(mask, ((0, 0), (1, 1)))
    ys, xs = np.nonzero(padded[:, 1:] != padded[:, :-1])  # where runs begin and end
    runs: list[list[tuple[int, int]]] = [[] for _ in mask]
    for y, left, right in zip(ys[::2].tolist(), xs[::2].tolist(), xs[1::2].tolist(), strict=True):
        runs[y].append((left, right))
    for y, row in enumerate(runs):
        current = []
        for left, right in row:
            touching = sorted({root(k) for a, b, k in above if a < right and left < b})
            if not touching:
                touching = [len(boxes)]
                parent.append(len(boxes))
                boxes.append([y, y + 1, left, right])
            k = touching[0]
            for other in touching:
                parent[other] = k
                mine, theirs = boxes[k], boxes[other]
                boxes[k] = [min(mine[0], theirs[0]), y + 1, min(mine[2], theirs[2], left), max(mine[3], theirs[3], right)]
            current.append((left, right, k))
        above = current
    return [tuple(b) for k, b in enumerate(boxes) if parent[k] == k]  # type: ignore[misc]


def read_line(engine: Engine, crop: np.ndarray) -> str:
    """The text of one line, turned upright first if it is upside down."""
    line = Image.fromarray(crop)
    small = np.asarray(line.resize((192, 48), Image.Resampling.BICUBIC))
    if engine.turn(planes(small, 127.5, 127.5))[0].argmax() == 1:
        line = line.rotate(180)
    line = line.resize((max(round(line.width * 48 / line.height), 16), 48), Image.Resampling.BICUBIC)
    best = engine.read(planes(np.asarray(line), 127.5, 127.5))[0].argmax(-1)
    keep = (best != 0) & (best != np.concatenate(([0], best[:-1])))  # blanks, and one character seen in two places
    return "".join(engine.characters[k] for k in best[keep])


def planes(picture: np.ndarray, mean: float | list[float], deviation: float | list[float]) -> np.ndarray:
    """RGB rows to normalised planes in the order of colours that the models were trained with."""
    bands = np.ascontiguousarray(picture.transpose(2, 0, 1)[::-1])
    subtracted, divisor = (np.reshape(np.asarray(value, np.float32), (-1, 1, 1)) for value in (mean, deviation))
    return np.asarray((bands - subtracted) / divisor)[None]


def squeeze(text: str) -> str:
    return text.replace(" ", "")


if __name__ == "__main__":
    sys.exit(main())
