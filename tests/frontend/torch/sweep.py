# SPDX-License-Identifier: Apache-2.0
"""PyTorch's operator and module databases through Roundel: a command that keeps its results and goes on where it stopped.

    python -m tests.frontend.torch.sweep --database op --path export --samples 5 --results export.jsonl [--only 'linalg*'] [--again]

Paths: ``import`` (no code), ``interpret``, ``export`` (torch.export, compiled), ``compile`` (torch.compile). Every sample ends as pass, wrong,
unsupported (refused with a reason), error, crash, timeout, or skipped (PyTorch cannot run or export it). Needs the package expecttest.
"""

from __future__ import annotations

import argparse
import collections
import fnmatch
import itertools
import json
import signal
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

PATHS = ("import", "interpret", "export", "compile")
UNDEFINED = ("empty", "new_empty", "empty_like", "empty_strided", "new_empty_strided", "empty_permuted")
"""Operators whose content is undefined: shape and type are compared alone."""


class Call(torch.nn.Module):
    """An operator with its keyword arguments as a module."""

    def __init__(self, function: Callable[..., Any], kwargs: dict[str, Any]) -> None:
        super().__init__()
        self.function, self.kwargs = function, kwargs

    def forward(self, *args: Any) -> Any:
        return self.function(*args, **self.kwargs)


def entries(database: str) -> dict[str, Any]:
    """The entries for float32 on the CPU, by name."""
    if database == "op":
        from torch.testing._internal.common_methods_invocations import op_db

        return {f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name: op for op in op_db if torch.float32 in op.supported_dtypes("cpu")}
    from torch.testing._internal.common_modules import module_db

    return {m.name.removeprefix("nn."): m for m in module_db}


def samples(database: str, entry: Any) -> Iterator[tuple[torch.nn.Module, tuple[Any, ...]]]:
    """Modules and their arguments."""
    if database == "op":
        for s in entry.sample_inputs("cpu", torch.float32):
            yield Call(entry.op, s.kwargs), (s.input, *s.args)
        return
    for m in entry.module_inputs_func(entry, device="cpu", dtype=torch.float32, requires_grad=False, training=False):
        if m.forward_input is not None:
            module = entry.module_cls(*m.constructor_input.args, **m.constructor_input.kwargs).eval()
            yield Call(module, m.forward_input.kwargs), tuple(m.forward_input.args)


def leaves(value: Any) -> list[Any]:
    """The tensors and numbers of a result."""
    return [v for v in torch.utils._pytree.tree_leaves(value) if v is not None]


def clone(args: Any) -> Any:
    return torch.utils._pytree.tree_map(lambda v: v.clone() if isinstance(v, torch.Tensor) else v, args)


def difference(expected: Any, found: Any, values: bool) -> str:
    """What is wrong with a result; empty when nothing is."""
    expected, found = leaves(expected), leaves(found)
    if len(expected) != len(found):
        return f"{len(found)} results, not {len(expected)}"
    for e, f in zip(expected, found):
        if not isinstance(e, torch.Tensor) and not isinstance(f, torch.Tensor):
            if e != f:
                return f"{f}, not {e}"
            continue
        e, f = (v if isinstance(v, torch.Tensor) else torch.as_tensor(v) for v in (e, f))
        if e.layout is not f.layout:
            return f"{f.layout}, not {e.layout}"
        e, f = (v if v.layout is torch.strided else v.to_dense() for v in (e, f))
        if tuple(e.shape) != tuple(f.shape) or e.dtype != f.dtype:
            return f"{tuple(f.shape)} {f.dtype}, not {tuple(e.shape)} {e.dtype}"
        if values:
            try:
                size = e.abs().nan_to_num(0, 0, 0).max().item() if e.numel() and (e.is_floating_point() or e.is_complex()) else 0
                torch.testing.assert_close(f, e, rtol=1e-4, atol=1e-5 * max(size, 1), equal_nan=True)
            except AssertionError as error:
                return str(error)[:300]
    return ""


def attempt(path: str, module: torch.nn.Module, args: tuple[Any, ...], values: bool) -> tuple[str, str]:
    """One sample: its outcome and the reason."""
    from roundel.ir.errors import RoundelError, UnsupportedError

    try:
        torch.manual_seed(42)  # what operators that seed themselves use
        with torch.no_grad():
            expected = module(*clone(args))
            program = None if path == "compile" else torch.export.export(module.eval(), clone(args), strict=False)
    except Exception as error:
        return "skipped", f"{type(error).__name__}: {error}"[:200]
    try:
        found = _run(path, module, program, clone(args))
    except UnsupportedError as error:
        return "unsupported", str(error)[:600]
    except Exception as error:
        cause = error.__cause__ or getattr(error, "inner_exception", None)
        if isinstance(cause, UnsupportedError) or "UnsupportedError" in str(error)[:2000]:
            return "unsupported", str(cause or error)[:600]
        kind = "error (clear)" if isinstance(error, RoundelError) else "error"
        return kind, f"{type(error).__name__}: {error}"[:500] + "\n" + "".join(traceback.format_tb(error.__traceback__)[-3:])
    if path == "import":
        return "pass", ""
    wrong = difference(expected, found, values)
    return ("wrong", wrong) if wrong else ("pass", "")


def _run(path: str, module: torch.nn.Module, program: Any, args: tuple[Any, ...]) -> Any:
    import roundel as rd
    from roundel.frontend.torch import from_torch

    if path == "compile":
        from roundel.embed.torch.backend import roundel

        torch._dynamo.reset()
        with torch.no_grad():
            compiled = torch.compile(module, backend=roundel)
            torch.manual_seed(42)
            return compiled(*args)
    if path == "import":
        return from_torch(program)
    main: Any = rd.interpret(from_torch(program))["main"] if path == "interpret" else rd.compile(program)
    tensors = [v for v in torch.utils._pytree.tree_leaves(args) if isinstance(v, torch.Tensor)]
    torch.manual_seed(42)
    return main(*tensors)


def _worker(options: argparse.Namespace) -> None:
    """Runs the entries named on stdin, one per line; a line of JSON per sample."""
    warnings.filterwarnings("ignore")
    table = entries(options.database)

    def expired(*_: Any) -> None:
        raise TimeoutError(f"{options.timeout} s")

    signal.signal(signal.SIGALRM, expired)
    for line in sys.stdin:
        name = line.strip()
        values = name.split(".")[0] not in UNDEFINED
        try:
            drawn = list(itertools.islice(samples(options.database, table[name]), options.samples))
        except Exception as error:
            drawn = []
            print(json.dumps([name, -1, "skipped", f"{type(error).__name__}: {error}"[:200]]), flush=True)
        for k, (module, args) in enumerate(drawn):
            print(json.dumps([name, k, "begun", ""]), flush=True)
            signal.alarm(options.timeout)
            try:
                outcome = attempt(options.path, module, args, values)
            except TimeoutError as error:
                outcome = ("timeout", str(error))
            signal.alarm(0)
            if "TimeoutError" in outcome[1][:200]:
                outcome = ("timeout", outcome[1])
            print(json.dumps([name, k, *outcome]), flush=True)
        print(json.dumps([name, -1, "done", ""]), flush=True)


def _sweep(options: argparse.Namespace, names: list[str]) -> None:
    command = [sys.executable, "-m", "tests.frontend.torch.sweep", *sys.argv[1:], "--worker"]
    while names:
        worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert worker.stdin is not None and worker.stdout is not None
        worker.stdin.write("\n".join(names[:options.batch]) + "\n")
        worker.stdin.close()
        sent, begun = names[:options.batch], None
        with open(options.results, "a") as out:
            for line in worker.stdout:
                if not line.startswith("["):
                    continue
                name, k, outcome, _ = json.loads(line)
                begun = (name, k) if outcome == "begun" else None
                if outcome != "begun":
                    out.write(line)
                    out.flush()
                if outcome == "done":
                    names.remove(name)
            if worker.wait() != 0 or set(sent) & set(names):
                lost = begun[0] if begun else next(n for n in sent if n in names)
                out.write(json.dumps([lost, begun[1] if begun else -1, "crash", f"exit status {worker.returncode}"]) + "\n")
                names.remove(lost)


def read(results: str) -> dict[str, dict[int, tuple[str, str]]]:
    """The latest outcomes by entry and sample."""
    found: dict[str, dict[int, tuple[str, str]]] = collections.defaultdict(dict)
    if Path(results).exists():
        for line in Path(results).read_text().splitlines():
            name, k, outcome, reason = json.loads(line)
            if k == 0:
                found[name] = {}
            found[name][k] = (outcome, reason)
    return found


_ORDER = ("crash", "timeout", "wrong", "error", "error (clear)", "unsupported", "pass", "skipped")


def verdict(outcomes: dict[int, tuple[str, str]]) -> str:
    """An entry is right when every sample that PyTorch exports is."""
    kinds = {o for o, _ in outcomes.values() if o != "done"}
    return next((kind for kind in _ORDER if kind in kinds), "skipped")


def summary(results: str, shown: tuple[str, ...] = ("crash", "timeout", "wrong", "error", "error (clear)", "unsupported")) -> None:
    """Print counts, and the entries that are not right with their first reason."""
    found = read(results)
    verdicts = {name: verdict(o) for name, o in found.items()}
    for kind in shown:
        for name in sorted(n for n, v in verdicts.items() if v == kind):
            k, reason = next((k, r) for k, (o, r) in sorted(found[name].items()) if o == kind)
            print(f"{kind:12} {name} #{k}: " + " | ".join(reason.strip().splitlines()[:4])[:260])
    print(dict(collections.Counter(verdicts.values())), "samples:", dict(collections.Counter(o for e in found.values() for o, _ in e.values() if o != "done")))


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", choices=("op", "module"), default="op")
    parser.add_argument("--path", choices=PATHS, default="export")
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--results", default="sweep.jsonl")
    parser.add_argument("--only", default="*")
    parser.add_argument("--again", choices=("none", "failed", "all"), default="none", help="which finished entries to run again")
    parser.add_argument("--timeout", type=int, default=120)
    parser.add_argument("--batch", type=int, default=60, help="entries per worker process")
    parser.add_argument("--summary", action="store_true", help="only print what is in the results file")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        _worker(options)
        return
    if not options.summary:
        done = read(options.results)
        keep = {n for n, o in done.items() if options.again != "all" and (options.again == "none" or verdict(o) in ("pass", "skipped"))}
        _sweep(options, [n for n in entries(options.database) if any(fnmatch.fnmatch(n, p) for p in options.only.split(",")) and n not in keep])
    summary(options.results)


if __name__ == "__main__":
    main()
