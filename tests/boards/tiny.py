# SPDX-License-Identifier: Apache-2.0
"""The four kinds of MLPerf Tiny on boards without a system, beside CMSIS-NN and beside a plain nest of loops, in instructions that QEMU counts.

    python -m tests.boards.tiny                                          # all models, on all boards that can be emulated here
    python -m tests.boards.tiny --boards cortex-m4 cortex-m55 --models keywords --cmsis-nn FOLDER

A table: flash, RAM, stack as announced and as used, instructions, those of the peers on the same layers, the largest difference from this machine's
results, and what the object does not define. It needs onnxruntime, QEMU, and GCC for the boards. CMSIS-NN is compiled from its sources in FOLDER, such as
``git clone https://github.com/ARM-software/CMSIS-NN FOLDER`` gives (the figures in docs/microcontrollers.md: commit 99f736a63036, ``-O3``).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
from tests.boards.microcontroller import ARM, BOARDS, run_on_board, run_program, undefined
from tests.boards.tiny_layers import cmsis_nn, plain_loops
from tests.boards.tiny_models import MODELS, quantised

import roundel as rd

HEAD = ("model", "board", "flash", "RAM", "stack announced / used", "instructions", "CMSIS-NN's", "plain loops'", "off by", "undefined")


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--boards", nargs="+", choices=BOARDS, default=[name for name, board in BOARDS.items() if not board.missing()])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--cmsis-nn", type=Path, help="the folder of its sources")
    given = parser.parse_args(arguments)
    print("| " + " | ".join(HEAD) + " |\n" + "| --- " * len(HEAD) + "|")
    with tempfile.TemporaryDirectory() as folder:
        for name in given.models:
            content = quantised(MODELS[name](), Path(folder))
            for board in given.boards:
                print("| " + " | ".join(row(name, content, board, given.cmsis_nn, Path(folder))) + " |", flush=True)


def row(name: str, content: bytes, cpu: str, sources: Path | None, folder: Path) -> list[str]:
    """The cells of one model on one board."""
    net = MODELS[name]()
    x = np.random.default_rng(7).standard_normal(net.shape).astype(np.float32)
    wanted = np.asarray(rd.compile(content)(x))
    model = rd.compile(content, target=cpu)
    made = model.save(folder / "net.o", header=True)
    needs, run = model.metadata["board"], run_on_board(cpu, made, [x], [wanted])
    off = np.abs(run.outputs[0] - wanted).max() / np.abs(wanted).max()
    peer = None if sources is None or BOARDS[cpu].family is not ARM else run_program(cpu, folder, *cmsis_nn(net.layers, cpu, sources, folder))[1]
    loops = run_program(cpu, folder, *plain_loops(net.layers))[1]
    ratio = lambda count: "" if count is None else f"{millions(count)} ({count / run.instructions:.2f} x)"
    return [name, cpu, f"{needs['flash']:,}", f"{needs['ram']:,}", f"{needs['stack']:,} / {run.stack:,}", millions(run.instructions), ratio(peer), ratio(loops),
            f"{off:.1g}", " ".join(undefined(made, cpu))]


def millions(count: int) -> str:
    """As text."""
    return f"{count / 1e6:.2f} M"


if __name__ == "__main__":
    sys.exit(main())
