# SPDX-License-Identifier: Apache-2.0
"""What holds for all tests: property tests are judged by results, not by how fast a busy machine draws examples; processes that run
elsewhere find the package where these tests do, also by a relative ``PYTHONPATH``."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile("roundel", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("roundel")
if "PYTHONPATH" in os.environ:
    os.environ["PYTHONPATH"] = os.pathsep.join(os.path.abspath(p) for p in os.environ["PYTHONPATH"].split(os.pathsep))
