# SPDX-License-Identifier: Apache-2.0
"""The page docs/from-tvm.md: every public name of TVM's with what it is here. ``python -m roundel.compat > docs/from-tvm.md`` writes it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from ..ir.op import all_ops
from . import tvm

_NAMES = Path(__file__).with_name("from_tvm.toml")
_OPERATORS = ("tvm.relax.op", "tvm.relax.op.nn", "tvm.relax.op.image")
_HEAD = '''# From TVM to Roundel

A program written for TVM runs once its imports are changed, if it uses names that the tables below list as the same:

```python
import numpy as np

import roundel.compat.tvm as tvm
from roundel.compat.tvm import relax, te, tir
from roundel.compat.tvm.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func
    def scale(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
        for i in range(128):
            with T.block("B"):
                vi = T.axis.spatial(128, i)
                B[vi] = A[vi] * T.float32(2)


sch = tvm.tir.Schedule(Module)
i, = sch.get_loops(sch.get_block("B", func_name="scale"))
sch.vectorize(sch.split(i, factors=[None, 8])[1])
rt = tvm.build(sch.mod, target="llvm")
a, b = tvm.nd.array(np.arange(128, dtype="float32")), tvm.nd.empty((128,), "float32")
rt["scale"](a, b)
tvm.testing.assert_allclose(b.numpy(), 2 * a.numpy())
print(rt.time_evaluator("scale", tvm.cpu(), number=100)(a, b))
```

`roundel.compat.tvm` has TVM's names; the compiler behind them is Roundel's. These are the differences:

- Programs run on the CPU. Programs with threads bound to a GPU run in the interpreter: `rd.interpret(mod)`.
- Passes never change a module in place: instead of `mod["main"] = f`, write `mod.with_functions({"main": f})`. Only `mod.update_func`
  changes the module that it is called on.
- There is no virtual machine: `relax.build` gives native functions, and `relax.VirtualMachine` returns these.
- A cost model chooses kernels without tuning. `meta_schedule` tunes with [`rd.tune`](tuning.md), which also tries the compiler's own choice.
- `rd.compile(model)` compiles a model; you need no list of passes. Pipelines are [lists that you may change](passes.md). `relax.get_pipeline`
  knows TVM's names of pipelines; passes that `build` makes superfluous do nothing.
- An operator's name is `nn.relu`, and equals `"relax.nn.relu"`. As a key of a dictionary, use the short name.
- [`rd.import_relay`](relay.md) reads Relay modules.

Modules that TVM has renamed are found by all their names. `tirx` and `s_tir` of 0.24 and later are `tir`, and types of values (`relax.TensorType`, `out_ty`,
`x.ty`) are struct info. `import roundel.compat.tvm_ffi as tvm_ffi` has the names of `tvm_ffi` that programs use.

The tables list the public names of TVM 0.23 by module. Names in the first table of a module are the same in `roundel.compat.tvm`.
The second table says what to use instead of the other names.
'''


def page() -> str:
    """The page as text."""
    modules = tomllib.loads(_NAMES.read_text())
    parts = [_HEAD, _overview(modules)]
    for module, entry in modules.items():
        names = entry["names"].split()
        here = {n: _line(module, n) for n in names if _has(module, n)}
        other = {n: entry.get("instead", {}).get(n, entry["others"]) for n in names if n not in here}
        parts.append(f"## {module}\n")
        if here:
            parts.append("| name | what it is |\n| --- | --- |\n" + "".join(f"| `{n}` | {line} |\n" for n, line in here.items()))
        if other:
            parts.append("| name | instead |\n| --- | --- |\n" + "".join(f"| {', '.join(f'`{n}`' for n in ns)} | {text} |\n" for text, ns in _by_text(other)))
    return "\n".join(parts)


def _overview(modules: dict[str, Any]) -> str:
    rows = [(m, [_has(m, n) for n in e["names"].split()]) for m, e in modules.items()]
    return "| module | names | the same here |\n| --- | --- | --- |\n" + "".join(f"| {m} | {len(found)} | {sum(found)} |\n" for m, found in rows)


def _by_text(names: dict[str, str]) -> list[tuple[str, list[str]]]:
    """Names that have the same instead are in one row."""
    rows: dict[str, list[str]] = {}
    for name, text in names.items():
        rows.setdefault(text, []).append(name)
    return list(rows.items())


def _find(path: str) -> Any:
    value: Any = tvm
    for name in path.split(".")[1:]:
        value = getattr(value, name)
    return value


def _has(module: str, name: str) -> bool:
    if module == "tvm.script.relax" and name not in dir(_find(module)):  # a script may hold any name; it has a meaning if it is an operator's
        return any(op == name or op.startswith(f"{name}.") for op in all_ops())
    if module in _OPERATORS:
        return f"{module.removeprefix('tvm.relax.op').removeprefix('.')}.{name}".lstrip(".") in all_ops()
    try:
        getattr(_find(module), name)
    except (AttributeError, ModuleNotFoundError):
        return False
    return True


def _line(module: str, name: str) -> str:
    """What a name is: the first line of its documentation, where it has its own."""
    value = all_ops()[f"{module.removeprefix('tvm.relax.op').removeprefix('.')}.{name}".lstrip(".")] if module in _OPERATORS else getattr(_find(module), name)
    text = getattr(value, "__doc__", None) or ""
    if not isinstance(value, type) and text == getattr(type(value), "__doc__", None) and module not in _OPERATORS:
        text = ""  # that of its class
    first = " ".join(text.strip().split("\n\n")[0].split())
    return first.replace("|", "\\|").replace("``", "`").split(". ")[0].rstrip(".")
