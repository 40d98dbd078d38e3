# SPDX-License-Identifier: Apache-2.0
"""Building and measuring candidates, in processes that may crash."""

from .job import Argument, Artifact, Failure, Job, Source, Timed, Twin
from .plan import Plan
from .race import FINAL, QUICK, Effort
from .runner import Builder, LocalBuilder, LocalRunner, Runner

__all__ = ["FINAL", "QUICK", "Argument", "Artifact", "Builder", "Effort", "Failure", "Job", "LocalBuilder", "LocalRunner", "Plan", "Runner",
           "Source", "Timed", "Twin"]
