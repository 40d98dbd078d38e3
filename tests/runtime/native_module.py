# SPDX-License-Identifier: Apache-2.0
"""A library written by hand in C stands in for generated code."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np

from roundel.runtime import FunctionInfo, TensorInfo, library, toolchain

SOURCE = Path(__file__).parent / "module.c"
WEIGHT = np.array([1, 2, 3, 4], np.float32)


def graph_info() -> list[FunctionInfo]:
    def info(name, inputs, outputs, arguments=None, result=0, kind="graph"):
        return FunctionInfo(
            name,
            kind,
            tuple(TensorInfo(*i) for i in inputs),
            tuple(TensorInfo(*o) for o in outputs),
            tuple(arguments or range(len(inputs))),
            result,
        )

    f, i = "float32", "int64"
    return [
        info("scale", [("x", f, ("n", 4))], [("y", f, ("n", 4))]),
        info(
            "concat",
            [("x", f, ("n",)), ("y", f, ("m",))],
            [("both", f, ("n + m",)), ("sum", f, (), True)],
            [[0, 1]],
            [0, [1]],
        ),
        info("nonzero", [("x", f, ("n",))], [("where", i, ("?",))]),
        info("fill", [("k", i, (), True)], [("out", i, ("k",))]),
        info("callback", [("x", f, ("n",))], [("y", f, ("n",))]),
        info("update", [], [("y", f, ("n",))], [0], kind="tensor"),
        info("peek", [], [("y", f, (4,))]),
        info("half", [("x", "bfloat16", ("n",))], [("y", "bfloat16", ("n",))]),
        info("nibbles", [("x", "int4", ("n",))], [("y", "int4", ("n",))]),
        info("blocks", [("k", i, (), True)], [("where", i, (3,))]),
    ]


def compile_module(folder: Path, *flags: str) -> Path:
    out = folder / "module.o"
    toolchain.run(
        [
            *toolchain.compiler(),
            "-std=c11",
            "-O1",
            "-fPIC",
            f"-I{library.source_dir()}",
            *flags,
            "-c",
            SOURCE,
            "-o",
            out,
        ]
    )
    return out


def load_in_process(folder: Path, *flags: str) -> tuple[ctypes.CDLL, int]:
    """The module as code of this process, bound to the process's runtime as the JIT would do it."""
    library.runtime()
    out = folder / "module.so"
    toolchain.run(
        [
            *toolchain.compiler(),
            "-shared",
            "-o",
            out,
            compile_module(folder, *flags),
            library.folder() / "libroundel_rt.so",
            f"-Wl,-rpath,{library.folder()}",
        ]
    )
    code = ctypes.CDLL(str(out))
    return code, library.address(code, "roundel_library")
