# SPDX-License-Identifier: Apache-2.0
"""Graph passes by subject: ``tidy``, ``algorithms``, ``layout``, ``programs`` (operators to tensor programs) and ``checks``.

They are written with what stands beside these: ``rewriter`` goes over a function binding by binding, ``pattern`` rewrites by example.
"""
