# SPDX-License-Identifier: Apache-2.0
"""Models on machines other than this one: a program is made here, runs there, and its results come back."""

from .board import Board
from .remote import RemoteModel

__all__ = ["Board", "RemoteModel"]
