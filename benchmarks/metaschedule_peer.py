# SPDX-License-Identifier: Apache-2.0
"""The other side of ``metaschedule``, run by the peer's own Python, which has ``apache-tvm`` and not Roundel:

    metaschedule_peer.py tune SCRIPT LIBRARY TRIALS SEED CPU   tunes a program and writes its winner; the last line is JSON
    metaschedule_peer.py time LIBRARY ARRAYS OUTPUT            calls it with arrays of an ``.npz``, writes what it computes, then answers each
                                                               line ``CALLS`` with the seconds of a call
"""

from __future__ import annotations

import json
import sys
import tempfile
import time

TODAY = {"@T.prim_func": "@T.prim_func(s_tir=True)", "T.neg(": "T.float32(-1) * ("}  # what this version of the script calls them
BATCH = 16  # candidates that are proposed, built and measured together
LIMIT = 120.0  # seconds to build a candidate, and to run it: processes take long to start where the machine is busy


def parsed(text: str):
    """The program of a script that imports another package's language."""
    from tvm.script import from_source
    from tvm.script import ir as I
    from tvm.script import tirx as T

    for ours, theirs in TODAY.items():
        text = text.replace(ours, theirs)
    return from_source("\n".join(line for line in text.split("\n") if not line.startswith(("from ", "import "))), {"T": T, "I": I})


def tune(script: str, library: str, trials: int, seed: int, cpu: str) -> dict:
    """MetaSchedule as it is, for one core; a program for which it finds nothing is compiled as it stands."""
    import tvm
    from tvm.s_tir import meta_schedule as ms
    from tvm.target import Target

    with open(script) as file:
        func = parsed(file.read())
    target = Target({"kind": "llvm", "mcpu": cpu, "num-cores": 1})
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        database = ms.tune_tir(func, target=target, work_dir=folder, max_trials_global=trials, num_trials_per_iter=min(trials, BATCH), seed=seed,
                               builder=ms.builder.LocalBuilder(timeout_sec=LIMIT), runner=ms.runner.LocalRunner(timeout_sec=LIMIT))
        measured = len(database.get_all_tuning_records())
        found = ms.tir_integration.compile_tir(database, func, target)
    module = found.mod if found is not None else tvm.IRModule({"main": func})
    tvm.compile(module, target=target).export_library(library)
    return {"seconds": round(time.monotonic() - begun, 1), "measured": measured, "found": found is not None}


def answer(library: str, arrays: str, output: str) -> None:
    """Serve until stdin ends."""
    import numpy as np
    import tvm

    with np.load(arrays) as given:
        args = [tvm.runtime.tensor(given[f"arr_{k}"]) for k in range(len(given.files))]
    module = tvm.runtime.load_module(library)
    module["main"](*args)
    np.save(output, args[-1].numpy())
    print("ready", flush=True)
    for line in sys.stdin:
        timed = module.time_evaluator("main", tvm.cpu(), number=int(line), repeat=1)
        print(float(timed(*args).mean), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "tune":
        print(json.dumps(tune(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]), sys.argv[6])))
    else:
        answer(*sys.argv[2:5])
