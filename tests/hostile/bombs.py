# SPDX-License-Identifier: Apache-2.0
"""Small models that want much: each is refused with an error that says why, or compiled and run rightly, in little time and memory.

Every attempt is a process of its own, with limits on its processor time and address space. Time on the clock is no limit, since a machine
may be busy with other work, but a process that waits for something that does not come hangs. Kinds of models are in ``bomb_models``.
"""

from __future__ import annotations

import json
import os
import random
import resource
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SECONDS = 10   # of processor time
PATIENCE = 20  # seconds on the clock in which a process does nothing, and waits for something else than a processor
MEMORY = 2 << 30  # bytes more than a process that has imported everything


def attack(count: int, seed: int) -> Iterator[str]:
    """``count`` models, kinds in turn, each with parameters from ``seed``."""
    from .bomb_models import KINDS

    with _Zygote() as zygote:
        for k in range(count):
            kind = list(KINDS)[k % len(KINDS)]
            verdict, what = zygote.attempt(kind, seed * 1_000_003 + k)
            if verdict not in ("refused", "right"):
                yield f"{kind} (seed {seed * 1_000_003 + k}): {verdict}: {what}"


class _Zygote:
    """A process that has imported everything and forks for each attempt; nothing of one attempt is left for the next."""

    def __enter__(self) -> _Zygote:
        source = str(Path(__file__).parents[2])
        environment = {**os.environ, "ROUNDEL_CACHE": "0", "ROUNDEL_NUM_THREADS": "1", "ROUNDEL_WORKERS": "1", "ROUNDEL_RATES": "table",
                       "PYTHONPATH": os.pathsep.join([source, *sys.path])}
        self.process = subprocess.Popen([sys.executable, "-c", "from tests.hostile.bombs import serve; serve()"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, env=environment, text=True)
        return self

    def __exit__(self, *error: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()

    def attempt(self, kind: str, seed: int) -> tuple[str, str]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps([kind, seed]), file=self.process.stdin, flush=True)
        return tuple(json.loads(self.process.stdout.readline()))


def serve() -> None:
    """Answer lines ``[kind, seed]`` with lines ``[verdict, what]`` until there are no more."""
    import onnx.reference  # noqa: F401

    import roundel.driver
    import roundel.frontend.onnx.ops  # noqa: F401
    from roundel.build import compiler  # noqa: F401

    from . import bomb_models  # noqa: F401

    for line in sys.stdin:
        print(json.dumps(_forked(*json.loads(line))), flush=True)


def _forked(kind: str, seed: int) -> tuple[str, str]:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            os.setsid()
            os.write(write, json.dumps(_limited(kind, seed)).encode())
        except BaseException:
            os.write(write, json.dumps(["error", f"the attack failed: {traceback.format_exc()[-1500:]}"]).encode())
        finally:
            os._exit(0)
    os.close(write)
    answer = _answer(read, child)
    os.close(read)
    if answer is None:
        os.killpg(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if answer:
        verdict, what = json.loads(answer)
        return verdict, what
    if answer is None:
        return "hangs", f"for {PATIENCE} s it waited for something"
    killed = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if killed in (0, signal.SIGKILL, signal.SIGXCPU):
        return "too slow", f"more than {SECONDS} s of processor time"
    return "crashed", signal.Signals(killed).name


def _answer(read: int, child: int) -> bytes | None:
    """What a process writes until it ends; None for one that hangs."""
    answer, spent, active = b"", -1, time.monotonic()
    while True:
        if select.select([read], [], [], 0.5)[0]:
            part = os.read(read, 1 << 16)
            if not part:
                return answer
            answer += part
        state, now = _work(child)
        if state == "R" or now != spent:
            spent, active = now, time.monotonic()
        elif time.monotonic() - active > PATIENCE:
            return None


def _work(process: int) -> tuple[str, int]:
    """What a process does ("R": it runs, or waits for a processor), and ticks of processor time that it had."""
    facts = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return facts[0], int(facts[11]) + int(facts[12])


def _limited(kind: str, seed: int) -> tuple[str, str]:
    before = resource.getrusage(resource.RUSAGE_SELF)
    spent = int(before.ru_utime + before.ru_stime)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY,) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (spent + SECONDS, spent + SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return attempt(kind, seed)


def attempt(kind: str, seed: int) -> tuple[str, str]:
    """"refused", "right", or what is wrong: "wrong" results, an "error" that no user should see; and the message."""
    import numpy as np

    from roundel.driver import compile_module
    from roundel.frontend.onnx import from_onnx
    from roundel.ir.errors import RoundelError

    from .bomb_models import KINDS

    with KINDS[kind](random.Random(seed)) as bomb:
        try:
            got = compile_module(from_onnx(bomb.source)).load(threads=1)["main"](*bomb.inputs)
        except (RoundelError, MemoryError) as error:
            said = str(error)
            if not said:
                return "error", f"{type(error).__name__} without a word"
            return ("refused", said) if bomb.may_refuse else ("error", f"refused what is right: {said}")
        except BaseException:
            return "error", traceback.format_exc()[-1500:]
        if bomb.expected is None:
            return "right", ""
        got = got[0] if isinstance(got, tuple | list) else got
        same = np.allclose(np.asarray(got), bomb.expected, rtol=1e-4, atol=1e-5, equal_nan=True)
        return ("right", "") if same else ("wrong", f"{np.asarray(got).reshape(-1)[:4]}, not {np.asarray(bomb.expected).reshape(-1)[:4]}")
