# SPDX-License-Identifier: Apache-2.0
"""Libraries and kernels of one's own are measured beside generated code: the fastest that is right wins, and later compiles know it."""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import roundel as rd
from roundel import backends, driver
from roundel.driver import libraries
from roundel.ir import options
from roundel.relax.dpl import is_const, is_op, wildcard
from roundel.reports.explained import choices_of
from roundel.reports.table import choice_lines
from roundel.runtime import toolchain
from roundel.script import ir as I
from roundel.script import relax as R
from roundel.target import Target
from roundel.tune.measured import measured_for

SIZE = 384
WEIGHT = np.diag(np.random.default_rng(0).uniform(1, 2, SIZE)).astype(np.float32)
BIAS = np.linspace(-1, 1, SIZE, dtype=np.float32)
X = np.random.default_rng(1).standard_normal((SIZE, SIZE), dtype=np.float32)
WANTED = np.maximum(X @ WEIGHT + BIAS, 0)

SHIM = """
#include <stdint.h>
void shim_scale(const float *restrict x, const float *restrict w, const float *restrict b, float *restrict y, int64_t rows, int64_t n) {
  for (volatile int again = 0; again < @TIMES@; again++)
    for (int64_t i = 0; i < rows; i++)
      for (int64_t j = 0; j < n; j++) {
        float sum = x[i * n + j] * w[j] * @FACTOR@ + b[j];
        y[i * n + j] = sum > 0 ? sum : 0;
      }
}
"""
DECLARED = "void shim_scale(const float *, const float *, const float *, float *, int64_t, int64_t);"
CALLED = """
void call_scale(const float *x, const float *w, const float *b, float *y, int64_t rows, int64_t n) { shim_scale(x, w, b, y, rows, n); }
"""
MAKES = {"fast": {}, "slow": {"times": 2000}, "wrong": {"factor": "1.5f"}}


@I.ir_module
class Dense:
    @R.function
    def main(x: R.Tensor((SIZE, SIZE), "float32")):
        with R.dataflow():
            product = R.matmul(x, R.const(WEIGHT))
            shifted = R.add(product, R.const(BIAS))
            out = R.nn.relu(shifted)
            R.output(out)
        return out


def shim(folder, name, times=1, factor="1", cycles=None, version="1"):
    """A backend whose library multiplies by diagonal matrices, so it is faster than a product; ``times`` make it slow, a ``factor`` wrong."""
    source = folder / f"{name}.c"
    source.write_text(SHIM.replace("@TIMES@", str(times)).replace("@FACTOR@", factor))
    toolchain.run([*toolchain.compiler(), "-shared", "-fPIC", "-O3", "-o", folder / f"lib{name}.so", source])
    library = backends.Library(name, DECLARED, CALLED, lambda: [str(folder / f"lib{name}.so")])

    def implement(c):
        pack = {1: lambda weight: np.ascontiguousarray(weight.diagonal())}
        return library.missing or backends.native(c, "call_scale", *c.operands[0].shape, library=library, cycles=cycles, pack=pack)

    dense = is_op("relax.nn.relu")(is_op("relax.add")(is_op("relax.matmul")(wildcard(), is_const()), is_const()))
    return backends.Backend(name, [(f"{name}.dense", dense)], implement, version)


@pytest.fixture
def registered():
    made = []
    yield lambda *given: made.extend(backends.register(b) for b in given)
    for backend in made:
        backends.unregister(backend)


@pytest.fixture
def db(tmp_path):
    return tmp_path / "tuned.jsonl"


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder with the fast library, and a database in which it won."""
    folder = tmp_path_factory.mktemp("kept")
    backend = backends.register(shim(folder, "fast", cycles=1e15))  # whatever is expected of it
    tuned(folder / "tuned.jsonl", "fast")
    backends.unregister(backend)
    return folder


def tuned(db, names, taken="fast"):
    (compared,) = rd.tune(Dense, libraries=names, trials=0, threads=1, db=db).paths
    assert compared.taken == taken, str(compared)
    return compared


def choice(db, threads=1, **asked):
    """What later compiles choose, without measuring."""
    records = measured_for(str(db), Target.host(), threads)
    done = driver.prepare(Dense, target=Target.host(), pipeline=driver.DEFAULT[: driver.DEFAULT.index(libraries) + 1], records=records, **asked)
    return done, next((c for c in done.choices.made if c.kind == "library"), None)


def explained(mod):
    """What ``roundel explain`` says of the choices of a module, in one line."""
    return " ".join(" ".join(choice_lines(choices_of(mod, 1))).split())


def test_a_fast_library_wins_and_later_compiles_take_it(kept, registered):
    registered(shim(kept, "fast", cycles=1e15))
    mod, chosen = choice(kept / "tuned.jsonl")
    assert (chosen.taken, chosen.reason) == ("fast", "measured") and chosen.measured["fast"] < chosen.measured["generated"]
    model = rd.compile(Dense, records=str(kept / "tuned.jsonl"), threads=1, profile=True)
    np.testing.assert_allclose(model(X), WANTED, rtol=1e-5, atol=1e-5)
    assert any("fast" in kernel for kernel in model.executable["main"].profile())
    for said in (explained(mod), " ".join(str(model.explain()).split())):
        assert "product: dense 384x384 by 384x384: fast (measured), measured " in said and "; else generated +" in said
    with options.override(libraries="off"):
        assert choice(kept / "tuned.jsonl")[1] is None, "nothing takes part"


def test_a_slow_library_loses_whatever_it_promises(tmp_path, registered, db):
    registered(shim(tmp_path, "slow", times=2000, cycles=1.0))
    tuned(db, "slow", "generated")
    with options.override(libraries="slow"):
        _, chosen = choice(db)
    assert (chosen.taken, chosen.reason) == ("generated", "measured")


def test_a_wrong_library_is_named_and_never_taken(tmp_path, registered, db, caplog):
    registered(shim(tmp_path, "wrong", factor="1.5f", cycles=1.0))
    with caplog.at_level(logging.WARNING):
        found = tuned(db, "wrong", "generated")
    assert "off by" in found.wrong["wrong"] and "wrong is wrong" in str(found)
    assert any(r.getMessage().startswith("wrong computes something else at product") for r in caplog.records)
    with options.override(libraries="wrong"):
        mod, chosen = choice(db)
        assert chosen.taken == "generated" and "it was wrong when it was measured" in chosen.alternatives["wrong"]
        assert "not wrong: it was wrong" in explained(mod)
        with pytest.raises(rd.RoundelError, match="wrong cannot be had"):
            rd.compile(Dense, choices={"product": "wrong"}, records=str(db), threads=1)


@pytest.mark.parametrize("version", ["1", "2"])
def test_what_was_wrong_is_not_taken_with_another_number_of_threads_either(tmp_path, registered, db, version):
    backend = shim(tmp_path, "wrong", factor="1.5f", cycles=1.0)
    backends.register(backend)
    tuned(db, "wrong", "generated")
    backends.unregister(backend)
    registered(shim(tmp_path, "wrong", factor="1.5f" if version == "1" else "1", cycles=1.0, version=version))
    with options.override(libraries="wrong"):
        for threads in (1, 2):
            _, chosen = choice(db, threads)
            assert chosen.taken == ("generated" if version == "1" else "wrong"), "another version was never measured"


def test_all_paths_compete_at_once(tmp_path, registered, db):
    registered(*(shim(tmp_path, name, **how) for name, how in MAKES.items()))
    found = tuned(db, ",".join(MAKES))
    assert set(found.seconds) == {"generated", "fast", "slow"} and set(found.wrong) == {"wrong"}


def test_a_function_of_python_is_a_path_too(registered, db):
    cores = os.sched_getaffinity(0)

    def scale(x, w, b, out):
        np.maximum(np.add(np.multiply(x, w.diagonal(), out=out), b, out=out), 0, out=out)

    pattern = is_op("relax.nn.relu")(is_op("relax.add")(is_op("relax.matmul")(wildcard(), is_const()), is_const()))
    registered(backends.Backend("numpy_scale", [("numpy.scale", pattern)], lambda c: backends.python(scale)))
    tuned(db, "numpy_scale", "numpy_scale")
    assert os.sched_getaffinity(0) == cores
    np.testing.assert_allclose(rd.compile(Dense, records=str(db), threads=1)(X), WANTED, rtol=1e-5, atol=1e-5)


def test_what_crashes_is_no_path(tmp_path, registered, db):
    source = "#include <stdlib.h>\nvoid crash(const float *x, const float *w, float *y) { abort(); }"
    pattern = is_op("relax.matmul")(wildcard(), is_const())
    registered(backends.Backend("crashing", [("crashing.matmul", pattern)], lambda c: backends.native(c, "crash", source=source, cycles=1.0)))
    found = tuned(db, "crashing", "generated")
    assert "crash" in found.failed["crashing"]
    with options.override(libraries="crashing"):
        for threads in (1, 2):
            _, chosen = choice(db, threads)
            assert chosen.taken == "generated" and "it failed when it was measured: crash" in chosen.alternatives["crashing"]


def test_records_outlive_the_process(kept):
    code = f"""
import json, logging, sys
from pathlib import Path
logging.disable()
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from tests.tune import test_paths as t
t.backends.register(t.shim(Path({str(kept)!r}), "fast"))
found = t.choice({str(kept / "tuned.jsonl")!r})[1]
print(json.dumps([found.taken, found.reason]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == ["fast", "measured"]


def test_a_record_of_another_version_is_skipped_with_a_warning(kept, registered, caplog):
    registered(shim(kept, "fast", cycles=1e15, version="2"))
    with caplog.at_level(logging.WARNING):
        _, chosen = choice(kept / "tuned.jsonl")
    assert (chosen.taken, chosen.reason) == ("generated", "expected") and not chosen.measured
    assert "fast was measured in version 1, and is 2 now" in caplog.text


def test_a_backend_that_is_gone_leaves_generated_code_and_a_warning(kept, caplog):
    with caplog.at_level(logging.WARNING):
        np.testing.assert_allclose(rd.compile(Dense, records=str(kept / "tuned.jsonl"), threads=1)(X), WANTED, rtol=1e-4, atol=1e-4)
    assert "there is no such backend now" in caplog.text


def test_what_was_measured_holds_for_equal_parts_only(kept, registered):
    """On other threads, and with another operator behind it, nothing was measured."""
    registered(shim(kept, "fast"))
    assert choice(kept / "tuned.jsonl")[1].taken == "fast"
    other = Dense.with_functions({"main": I.ir_module(Behind)["main"]})
    for mod, threads in ((Dense, 2), (other, 1)):
        done = driver.prepare(mod, target=Target.host(), pipeline=[libraries], records=measured_for(str(kept / "tuned.jsonl"), Target.host(), threads))
        assert not [c for c in done.choices.made if c.reason == "measured"]


class Behind:
    @R.function
    def main(x: R.Tensor((SIZE, SIZE), "float32")):
        with R.dataflow():
            out = R.exp(R.nn.relu(R.add(R.matmul(x, R.const(WEIGHT)), R.const(BIAS))))
            R.output(out)
        return out


def test_equal_parts_are_measured_once_and_symbolic_sizes_at_their_values(tmp_path, registered, db):
    registered(shim(tmp_path, "fast"))

    @I.ir_module
    class Twice:
        @R.function
        def main(x: R.Tensor(("n", SIZE), "float32")):
            with R.dataflow():
                one = R.nn.relu(R.add(R.matmul(x, R.const(WEIGHT)), R.const(BIAS)))
                two = R.nn.relu(R.add(R.matmul(one, R.const(WEIGHT)), R.const(BIAS)))
                R.output(two)
            return two

    (found,) = rd.tune(Twice, libraries="fast", trials=0, threads=1, db=db, sizes={"n": [64, 128]}).paths
    assert len(found.sites) == 2 and found.taken == "fast"
    model = rd.compile(Twice, records=str(db), threads=1, profile=True)
    np.testing.assert_allclose(model(X), np.maximum(WANTED @ WEIGHT + BIAS, 0), rtol=1e-5, atol=1e-5)
    assert sum(calls for kernel, (calls, _) in model.executable["main"].profile().items() if "fast_dense" in kernel) == 2


def test_there_has_to_be_something_to_measure(db):
    with pytest.raises(rd.RoundelError, match="no time to tune"):
        rd.tune(Dense, trials=0, db=db)
    with pytest.raises(rd.RoundelError, match="parts of a model"):
        rd.tune(rd.tune.tasks(Dense), libraries="openblas", trials=0, db=db)
    with pytest.raises(rd.RoundelError, match="there is no backend"):
        rd.tune(Dense, libraries="nobody", trials=0, db=db)
