# SPDX-License-Identifier: Apache-2.0
"""Tuning: what can be measured of a model, how it is measured, and what was found."""
