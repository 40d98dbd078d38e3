# SPDX-License-Identifier: Apache-2.0
"""What holds for all tests: property tests are judged by results, not by how fast a busy machine draws examples; processes that run
elsewhere find the package where these tests do, also by a relative ``PYTHONPATH``; a schedule rule that fails and is passed over, which
a user only notices by the speed, fails the test. What is chosen follows from the table of machines, not from what this one was measured to do.

    OPCHECK_SCHEDULED=1 python -m pytest -q tests/ops --vector-bytes 16

takes this machine for one with vectors of so many bytes (`python -m tests.ops` does so for four widths, and for real models)."""

import logging
import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("roundel", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("roundel")
os.environ["ROUNDEL_RATES"] = "table"
if "PYTHONPATH" in os.environ:
    os.environ["PYTHONPATH"] = os.pathsep.join(os.path.abspath(p) for p in os.environ["PYTHONPATH"].split(os.pathsep))


def pytest_addoption(parser):
    parser.addoption("--vector-bytes", type=int, help="take this machine for one with vectors of so many bytes")


def pytest_configure(config):
    if nbytes := config.getoption("vector_bytes", None):
        from roundel.target import host

        this = host.described().with_(vector_bytes=nbytes)
        host.described = lambda: this


@pytest.fixture(autouse=True)
def no_rule_fails(request):
    """Warnings of the logger ``roundel.schedule`` are failures, but for tests marked ``rules_may_fail``."""
    dropped: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: dropped.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("roundel.schedule")
    logger.addHandler(handler)
    yield
    logger.removeHandler(handler)
    assert not dropped or request.node.get_closest_marker("rules_may_fail"), "\n".join(dropped)


@pytest.fixture
def nothing_added(monkeypatch):
    """Models go into the cache, whatever other tests of this process have added to Roundel (which keeps them out of it)."""
    monkeypatch.setattr("roundel.ir.extensions._added", [])
