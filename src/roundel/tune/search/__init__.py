# SPDX-License-Identifier: Apache-2.0
"""Ways to walk through a space: which candidates are measured next."""

from .evolutionary import Evolutionary
from .plain import Exhaustive, Random, Replay
from .search import SEARCHES, Search, search_named

__all__ = ["SEARCHES", "Evolutionary", "Exhaustive", "Random", "Replay", "Search", "search_named"]
