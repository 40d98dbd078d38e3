# SPDX-License-Identifier: Apache-2.0
"""Roundel inside other programs: the backend of ``torch.compile``, ONNX's backend interface, and what conformance suites call."""
