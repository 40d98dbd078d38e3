# SPDX-License-Identifier: Apache-2.0
"""Attacks on what Roundel promises: one module for each subject, with ``attack(count, seed)``, which makes ``count`` attempts and yields
a line for each finding. No line means that it held. A short form runs in the tests, the long one by ``python -m tests.hostile``."""
