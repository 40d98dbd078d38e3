# SPDX-License-Identifier: Apache-2.0
"""Roundel as an ONNX backend, and any ONNX model on given inputs as conformance suites run it."""
