# SPDX-License-Identifier: Apache-2.0
"""The four kinds of MLPerf Tiny on boards without a system, beside CMSIS-NN and beside a plain nest of loops, in instructions that QEMU counts.

    python -m tests.boards.tiny                                          # all models, on all boards that can be emulated here
    python -m tests.boards.tiny --boards cortex-m4 cortex-m55 --models keywords --cmsis-nn FOLDER
    python -m tests.boards.tiny --floats                                 # the same models in float32, on processors that have floats; without peers

A table: flash, RAM, stack as announced and as used, instructions, those of the peers on the same layers, the largest difference from this machine's
results, and what the object does not define. It needs onnxruntime, QEMU, and GCC for the boards. CMSIS-NN is compiled from its sources in FOLDER (for
RISC-V those that are plain C), such as
``git clone https://github.com/ARM-software/CMSIS-NN FOLDER`` gives (the figures in docs/microcontrollers.md: commit 99f736a63036, ``-O3``).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
from tests.boards.microcontroller import BOARDS, run_on_board, run_program, undefined
from tests.boards.tiny_layers import cmsis_nn, plain_loops
from tests.boards.tiny_models import MODELS, Net, quantised

import roundel as rd

HEAD = ("model", "board", "flash", "RAM", "stack announced / used", "instructions", "CMSIS-NN's", "plain loops'", "off by", "undefined")


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--boards", nargs="+", choices=BOARDS)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--cmsis-nn", type=Path, help="the folder of its sources")
    parser.add_argument("--floats", action="store_true", help="models that are not quantised")
    given = parser.parse_args(arguments)
    boards = given.boards or [name for name, board in BOARDS.items() if not board.missing() and (board.has_floats or not given.floats)]
    print("| " + " | ".join(HEAD) + " |\n" + "| --- " * len(HEAD) + "|")
    with tempfile.TemporaryDirectory() as folder:
        for name in given.models:
            net = MODELS[name]()
            content = net.model().SerializeToString() if given.floats else quantised(net, Path(folder))
            for board in boards:
                cells = row(net, content, board, Path(folder))
                cells[-2:-2] = ["", ""] if given.floats else peers(net, cells[-3], board, given.cmsis_nn, Path(folder))
                print("| " + " | ".join([name, board, *cells]) + " |", flush=True)


def row(net: Net, content: bytes, cpu: str, folder: Path) -> list[str]:
    """The cells of one model on one board, without those of the peers."""
    x = np.random.default_rng(7).standard_normal(net.shape).astype(np.float32)
    wanted = np.asarray(rd.compile(content)(x))
    model = rd.compile(content, target=cpu)
    made = model.save(folder / "net.o", header=True)
    needs, run = model.metadata["board"], run_on_board(cpu, made, [x], [wanted])
    off = np.abs(run.outputs[0] - wanted).max() / np.abs(wanted).max()
    return [f"{needs['flash']:,}", f"{needs['ram']:,}", f"{needs['stack'] or 0:,} / {run.stack:,}", millions(run.instructions), f"{off:.1g}",
            " ".join(undefined(made, cpu))]


def peers(net: Net, own: str, cpu: str, sources: Path | None, folder: Path) -> list[str]:
    """Instructions of CMSIS-NN and of plain loops on the same layers, and how many times as many as our ``own`` these are."""
    counts = [None if sources is None else run_program(cpu, folder, *cmsis_nn(net.layers, cpu, sources, folder))[1],
              run_program(cpu, folder, *plain_loops(net.layers))[1]]
    return ["" if count is None else f"{millions(count)} ({count / 1e6 / float(own.split()[0]):.2f} x)" for count in counts]


def millions(count: int) -> str:
    """As text."""
    return f"{count / 1e6:.2f} M"


if __name__ == "__main__":
    sys.exit(main())
