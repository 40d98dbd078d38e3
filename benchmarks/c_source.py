# SPDX-License-Identifier: Apache-2.0
"""C source against LLVM's code and against loops by hand: ``python -m benchmarks.c_source COMMAND`` from the project's root.

``models`` compiles a model three times, by LLVM, as plain C and as C with vector extensions, saves the three libraries, and prints how fast each is beside
LLVM's. ``nests`` compares the plain form of matrix products with what the C compiler makes of a loop nest that a person would write for the same tiles and
the same packed weights. Both take one thread. Libraries that are there already are not made again, so that a second command only measures.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import typer

import roundel as rd
from roundel import te
from roundel.build import build
from roundel.codegen.storage import buffer_bytes
from roundel.ir import IRModule, tir
from roundel.ir.visit import walk
from roundel.lower import lower
from roundel.strategy.pack_constants import relayout
from roundel.strategy.schedule_module import schedule_program
from roundel.target import Target

from .measure import interleave
from .models import Case, data, onnx_file

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)
COMPILER = "gcc -march=native -mprefer-vector-width=512"
FOLDER = str(Path(tempfile.gettempdir(), "roundel-c-source"))
PRODUCTS = ((196, 256, 256), (784, 128, 512), (3136, 64, 256))  # rows, columns and depth of 1x1 convolutions of ResNet-50
EFFORTS = ("-O2 -ftree-vectorize", "-O3")  # of the compiler for the loops by hand, of which the faster one counts

_NEST = """
#define TILE(R)                                                                                 \\
  {{                                                                                            \\
    float t[R][{C}] = {{{{0}}}};                                                                \\
    for (int k = 0; k < {depth}; k++)                                                           \\
      for (int r = 0; r < R; r++)                                                               \\
        for (int c = 0; c < {C}; c++)                                                           \\
          t[r][c] += x[(i + r) * {depth} + k] * w[(j * {depth} + k) * {C} + c];                 \\
    for (int r = 0; r < R; r++)                                                                 \\
      for (int c = 0; c < {C}; c++) y[(i + r) * {columns} + j * {C} + c] = t[r][c];             \\
  }}
void nest(const float *restrict x, const float *restrict w, float *restrict y) {{
  for (int j = 0; j < {panels}; j++) {{
    int i = 0;
    for (; i + {R} <= {rows}; i += {R}) TILE({R})
    for (; i < {rows}; i++) TILE(1)
  }}
}}
"""


@app.command()
def models(
    name: str = typer.Argument("resnet50", help="A model of the benchmarks."),
    folder: str = typer.Option(FOLDER, help="Where the libraries are."),
    cpu: str = typer.Option("native", help="The machine that schedules are made for; native: this one."),
    compiler: str = typer.Option(COMPILER, help="The C compiler, with the options that say which instructions it may use."),
    budget: float = typer.Option(20.0, help="Seconds of timing."),
) -> None:
    """A whole model: LLVM, plain C, and C with vector extensions."""
    inputs = [*data(Case(name))[0].values()]
    cpu = Target.host().cpu if cpu == "native" else cpu
    forms = {"LLVM": f"llvm -mcpu={cpu}", "plain C": f"c -mcpu={cpu}", "C with vectors": f"c -mcpu={cpu} -mattr=+vector-extensions"}
    Path(folder).mkdir(parents=True, exist_ok=True)
    os.environ["CC"] = compiler
    libraries = {form: Path(folder, f"{name}-{cpu}-{form.lower().replace(' ', '-')}.so") for form in forms}
    for form, library in libraries.items():
        if not library.exists():
            rd.compile(onnx_file(Case(name)), target=forms[form]).save(library)
    loaded_models = {form: rd.load(library, threads=1) for form, library in libraries.items()}
    results = {form: _first(model(*inputs)) for form, model in loaded_models.items()}
    timings = interleave({form: lambda model=model: model(*inputs) for form, model in loaded_models.items()}, budget=budget)
    base = timings["LLVM"].seconds
    for form, timing in timings.items():
        off = float(np.abs(results[form] - results["LLVM"]).max() / np.abs(results["LLVM"]).max())
        print(f"{name}, {form}: {timing.seconds * 1e3:.2f} ms, {base / timing.seconds:.2f} of LLVM's speed, off by {off:.1e}")


def _first(result: Any) -> np.ndarray:
    return np.asarray(result[0] if isinstance(result, tuple | list) else result)


@app.command()
def nests(
    cpu: str = typer.Option("x86-64", help="The machine that schedules are made for."),
    compiler: str = typer.Option("gcc -march=native", help="The C compiler, with the options that say which instructions it may use."),
    budget: float = typer.Option(6.0, help="Seconds of timing for each product."),
) -> None:
    """Matrix products: the plain form against loops by hand over the same tiles."""
    os.environ["CC"] = compiler
    for rows, columns, depth in PRODUCTS:
        with tempfile.TemporaryDirectory() as folder:
            ways, (high, wide), off = _product(rows, columns, depth, f"c -mcpu={cpu}", compiler, Path(folder))
            timings = interleave(ways, budget=budget)
            best = min((way for way in timings if way != "ours"), key=lambda way: timings[way].seconds)
            ours, hand = timings["ours"].seconds, timings[best].seconds
            print(f"{rows}x{columns}x{depth}, tiles of {high}x{wide}: ours {ours * 1e6:.0f} us, by hand ({best}) {hand * 1e6:.0f} us, "
                  f"{hand / ours:.2f} of its speed, off by {off:.1e}")


def _product(rows: int, columns: int, depth: int, target: str, compiler: str, folder: Path) -> tuple[dict[str, Callable[[], Any]], tuple[int, int], float]:
    """The ways to compute a product, the tile that the schedule has, and how far the results are apart."""
    x, w = te.placeholder((rows, depth), "float32", "x"), te.placeholder((depth, columns), "float32", "w")
    k = te.reduce_axis((0, depth), "k")
    func = te.create_prim_func([x, w, te.compute((rows, columns), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), "y")])
    made, layouts = schedule_program(func, Target(target), (1,))
    panels, _, wide = (int(n.value) for n in made.buffer_params[1].shape)
    flat = lower(IRModule({"f": made.with_attr("global_symbol", "f")}))
    tiles = (s.buffer for _, f in flat.items() for s in walk(f.body) if type(s) is tir.Allocate and s.buffer.name == "y_local")
    high = max(buffer_bytes(tile).value for tile in tiles) // (4 * wide)
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((rows, depth)).astype("f"), rng.standard_normal((depth, columns)).astype("f")
    packed = relayout(b, layouts[1], [panels, depth, wide])
    run, ours = build(flat, target, pipeline=())["f"], np.empty((rows, columns), "f")
    ways: dict[str, Callable[[], Any]] = {"ours": lambda: run(a, packed, ours)}
    hand = np.empty_like(ours)
    for number, effort in enumerate(EFFORTS):
        source, library = folder / "nest.c", folder / f"nest{number}.so"
        source.write_text(_NEST.format(rows=rows, columns=columns, depth=depth, panels=panels, R=high, C=wide))
        subprocess.run([*compiler.split(), *effort.split(), "-ffp-contract=fast", "-shared", "-fPIC", source, "-o", library], check=True)
        nest, pointers = ctypes.CDLL(str(library)).nest, [ctypes.c_void_p(array.ctypes.data) for array in (a, packed, hand)]
        ways[effort] = lambda nest=nest, pointers=pointers: nest(*pointers)
    run(a, packed, ours)
    ways[EFFORTS[0]]()
    return ways, (high, wide), float(np.abs(ours - hand).max() / np.abs(hand).max())


if __name__ == "__main__":
    app()
