# SPDX-License-Identifier: Apache-2.0
"""What a machine is: vector registers, caches, cores, bandwidths; named machines, this one, and what it measures."""

from .target import Target, TargetLike

__all__ = ["Target", "TargetLike"]
