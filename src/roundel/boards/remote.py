# SPDX-License-Identifier: Apache-2.0
"""A compiled model whose runs take place on a board."""

from __future__ import annotations

import shutil
import weakref
from pathlib import Path
from typing import Any

import numpy as np

from ..build.link import foreign_triple
from ..ir.dtype import DType
from ..ir.errors import CallError
from ..runtime import toolchain
from .board import Board
from .program import INPUTS, OUTPUTS, TIMES, make_program, read_tensors, write_tensors


class RemoteModel:
    """A model, compiled for the board's machine, that is called as if it were here. Each call is a new process there: the model is opened and its
    weights are read each time.

    ``board``: a `Board` or its text; ``threads``: the most threads of a run (default: the board's cores); ``timeout``: seconds for the program of
    one call; ``library``: the model is sent as a shared library, and its program takes the board's C library, where it is otherwise one static file.
    Raises OptionError for a board that is none, BuildError where no program can be made for its machine.
    """

    def __init__(self, model: Any, board: Board | str, *, threads: int | None = None, timeout: float = 600.0, library: bool = False) -> None:
        self.model, self.board = model, board if isinstance(board, Board) else Board.of(board)
        self.threads, self.timeout = threads, timeout
        self._folder = toolchain.temporary_folder("roundel-board-")
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._program = make_program(model, self._folder, foreign_triple(model.metadata.get("triple")), library=library)

    def __call__(self, *arrays: Any) -> Any:
        """The outputs for these inputs: an array, or a tuple of them. Raises CallError where inputs do not fit or the program fails."""
        outputs, _ = self.run(arrays)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def run(self, arrays: Any, times: int = 1) -> tuple[list[np.ndarray], np.ndarray]:
        """The outputs, and the seconds that each of ``times`` runs took on the board, in one process."""
        write_tensors(self._folder / INPUTS, [self._fitting(i, a) for i, a in zip(self._inputs(len(arrays)), arrays, strict=True)])
        self.board.run(self._folder, self._program, [str(times), str(self.threads or 0)], self.timeout)
        seconds = np.frombuffer(Path(self._folder, TIMES).read_bytes(), "<f8")
        return read_tensors(self._folder / OUTPUTS, self.model.outputs), seconds

    def _inputs(self, given: int) -> Any:
        if given != len(self.model.inputs):
            raise CallError(f"the model has {len(self.model.inputs)} inputs, {given} were given")
        return self.model.inputs

    def _fitting(self, info: Any, array: Any) -> np.ndarray:
        array = np.asarray(array)
        if DType(info.dtype).storage_bits < 8:
            raise CallError(f"input {info.name}: {info.dtype} cannot be sent to a board", hint="give the model an input of whole bytes")
        if array.dtype != DType(info.dtype).numpy or array.ndim != len(info.shape):
            raise CallError(f"input {info.name} is {array.dtype} of {array.ndim} dimensions where the model takes {info}")
        return array
