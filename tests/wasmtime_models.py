# SPDX-License-Identifier: Apache-2.0
"""WebAssembly models in wasmtime, as a server runs them: `Program` runs modules for WASI, `Instance` calls those that import memory alone."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from roundel.build.wasm import _Module

CODES = {"i": 0, "u": 1, "f": 2, "b": 6}  # DLPack's, by NumPy's kinds


class Failed(Exception):
    """What a module said was wrong; ``status``: the kind of error."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Program:
    """``Program("m.wasm").run([array], 1)``: its results. Files are exchanged in ``folder``, that of the module by default."""

    def __init__(self, file: Path, folder: Path | None = None) -> None:
        import wasmtime

        self.folder, self.engine = folder or file.parent, wasmtime.Engine()
        self.module = wasmtime.Module.from_file(self.engine, str(file))

    def call(self, *args: str) -> str:
        """What the program prints; raises Failed."""
        import wasmtime

        linker, store, config = wasmtime.Linker(self.engine), wasmtime.Store(self.engine), wasmtime.WasiConfig()
        linker.define_wasi()
        config.argv = ["model", *args]
        config.preopen_dir(str(self.folder), ".")
        config.stdout_file, config.stderr_file = str(self.folder / "stdout"), str(self.folder / "stderr")
        store.set_wasi(config)
        try:
            linker.instantiate(store, self.module).exports(store)["_start"](store)
        except wasmtime.ExitTrap as end:
            raise Failed((self.folder / "stderr").read_text(), end.code) from None
        return (self.folder / "stdout").read_text()

    def run(self, inputs: Sequence[np.ndarray], outputs: int, *more: str) -> list[np.ndarray]:
        """The first ``outputs`` of the model; raises Failed."""
        names, results = [f"in{k}.npy" for k in range(len(inputs))], [f"out{k}.npy" for k in range(outputs)]
        for name, array in zip(names, inputs, strict=True):
            np.save(self.folder / name, array)
        self.call(*more, *names, *(word for name in results for word in ("-o", name)))
        return [np.load(self.folder / name) for name in results]


class Instance:
    """A module that imports its memory, with pointers of 32 or 64 bits."""

    def __init__(self, file: Path) -> None:
        import wasmtime

        sections = _Module.read(content := file.read_bytes())
        told = json.loads(content[content.rindex(b"\7roundel") + 8:])
        self.bits = told.get("bits", 32)
        self.layout = "<QiiiBBHQQQ" if self.bits == 64 else "<IiiiBBHII4xQ"
        self.engine = wasmtime.Engine()
        self.store = wasmtime.Store(self.engine)
        kind = wasmtime.MemoryType(wasmtime.Limits(sections.pages, 1 << 20 if self.bits == 64 else 1 << 16), is_64=self.bits == 64)
        self.memory = wasmtime.Memory(self.store, kind)
        self.exports = wasmtime.Instance(self.store, wasmtime.Module(self.engine, content), [self.memory]).exports(self.store)
        if told["weights"]:
            weights = (file.parent / told["weights"]["file"]).read_bytes()
            self.call("give_weights", self.put(weights), len(weights))
        self.check(self.call("check"))
        self.metadata = json.loads(self.text(self.call("metadata")))

    def call(self, name: str, *args: Any) -> Any:
        """What an export returns."""
        return self.exports[f"roundel_{name}"](self.store, *args)

    def check(self, status: int) -> None:
        """Raises Failed for the status of an error."""
        if status:
            raise Failed(self.text(self.call("error")), status)

    def put(self, content: bytes) -> int:
        """Where a copy of bytes lies in the module's memory."""
        place = self.call("allocate", max(len(content), 1)) & (1 << self.bits) - 1
        assert place, "no memory"
        self.memory.write(self.store, content, place)
        return place

    def text(self, place: int) -> str:
        """The text at an address, which ends with a zero."""
        place, found = place & (1 << self.bits) - 1, b""
        while b"\0" not in found:
            found += self.memory.read(self.store, place + len(found), min(place + len(found) + 256, self.memory.data_len(self.store)))
        return found[: found.index(b"\0")].decode()

    def run(self, inputs: Sequence[np.ndarray], outputs: int) -> list[np.ndarray]:
        """All outputs of its main function, of which there are so many; raises Failed."""
        given = b""
        for a in inputs:
            shape = self.put(struct.pack(f"<{a.ndim}q", *a.shape))
            given += self._tensor(self.put(a.tobytes()), a.ndim, CODES[a.dtype.kind], a.dtype.itemsize * 8, shape)
        made = self.put(none := self._tensor(0, 0, 0, 0, 0) * outputs)
        self.check(self.call("call", self.put(b"main\0"), self.put(given), made))
        return [self._taken(made + k * len(none) // outputs) for k in range(outputs)]

    def _tensor(self, data: int, ndim: int, code: int, bits: int, shape: int) -> bytes:
        """A DLTensor."""
        return struct.pack(self.layout, data, 1, 0, ndim, code, bits, 1, shape, 0, 0)

    def _taken(self, at: int) -> np.ndarray:
        read = lambda begin, size: bytes(self.memory.read(self.store, begin, begin + size))
        data, _, _, ndim, code, bits, _, shape, _, offset = struct.unpack(self.layout, read(at, struct.calcsize(self.layout)))
        sizes = struct.unpack(f"<{ndim}q", read(shape, 8 * ndim))
        kind = next(k for k, c in CODES.items() if c == code)
        dtype = np.dtype("bool" if kind == "b" else f"{kind}{bits // 8}")
        return np.frombuffer(read(data + offset, dtype.itemsize * int(np.prod(sizes))), dtype).reshape(sizes)
