# SPDX-License-Identifier: Apache-2.0
"""Reverse-mode differentiation of graph functions: ``reverse`` goes over a function, the other modules hold a rule for each operator by family."""

from .reverse import gradient
from .rules import Step, register_te_gradient, rule

__all__ = ["Step", "gradient", "register_te_gradient", "rule"]
