# SPDX-License-Identifier: Apache-2.0
"""Executors keep the contract of builders and runners; several runners share the work."""

import multiprocessing
import time
from concurrent.futures import Future, ProcessPoolExecutor

import pytest

import roundel as rd
from roundel.ir.errors import TuneError
from roundel.target import Target
from roundel.tune.measure import Failure, Source
from roundel.tune.measure.executors import ExecutorBuilder, ExecutorRunner, RayExecutor, RunnerPool

from ..programs import FakeBuilder, FakeRunner, product
from . import contract


@pytest.fixture(scope="module", params=["processes", "dask", "ray"])
def executor(request):
    """One with processes of its own, through each of the libraries that are installed."""
    if request.param == "dask":
        distributed = pytest.importorskip("distributed")
        with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster, distributed.Client(cluster) as client:
            yield client
    elif request.param == "ray":
        ray = pytest.importorskip("ray")
        ray.init(num_cpus=1, include_dashboard=False)
        yield RayExecutor()
        ray.shutdown()
    else:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as found:
            yield found


def test_the_contract(executor):
    contract.check(ExecutorBuilder(executor), ExecutorRunner(executor))


class Lost:
    """An executor whose workers go away."""

    def submit(self, function, /, *arguments):
        future = Future()
        future.set_exception(OSError("the worker is gone"))
        return future


def test_a_worker_that_is_lost_costs_its_candidate_or_ends_tuning_with_an_error():
    (found,) = [f.result() for f in ExecutorBuilder(Lost()).build([Source(contract.good())], Target.host())]
    assert isinstance(found, Failure) and "the worker is gone" in found.why
    with pytest.raises(TuneError, match="no worker measures"):
        ExecutorRunner(Lost()).race(contract.JOB, None, None, [])


class Slow(FakeRunner):
    def race(self, job, reference, champion, challengers, *rest, **named):
        time.sleep(0.02 * len(challengers))
        return super().race(job, reference, champion, challengers)


def test_two_workers_take_less_than_two_thirds_of_the_time_of_one(tmp_path):
    taken, rows = [], []
    for count in (1, 2):
        runner = RunnerPool([Slow(lambda func: 1e-3) for _ in range(count)])
        artifacts = [f.result() for f in FakeBuilder().build([Source(contract.good())] * 48, Target.host())]
        begun = time.monotonic()
        _, outcomes = runner.race(contract.JOB, artifacts[0], artifacts[0], artifacts)
        taken.append(time.monotonic() - begun)
        assert len(outcomes) == 48
        rows += rd.tune(product(), threads=1, db=tmp_path / str(count), builder=FakeBuilder(), runner=runner, trials=16).rows
        runner.close()
    assert taken[1] < 0.65 * taken[0] and rows[0].trials == rows[1].trials == 16


def test_each_challenger_has_its_own_outcome_whoever_measured_it():
    runner = RunnerPool([FakeRunner(float), FakeRunner(float), FakeRunner(float)])
    artifacts = [type("Code", (), {"built": (float(k),)}) for k in range(1, 8)]
    assert [o.ratios[0] for o in runner.race(None, artifacts[0], artifacts[0], artifacts)[1]] == [float(k) for k in range(1, 8)]
    assert len(runner.race(None, artifacts[0], artifacts[0], [])[1]) == 0
    runner.close()
