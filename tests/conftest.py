# SPDX-License-Identifier: Apache-2.0
"""What holds for all tests: property tests are judged by results, not by how fast a busy machine draws examples."""

from hypothesis import HealthCheck, settings

settings.register_profile("roundel", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("roundel")
