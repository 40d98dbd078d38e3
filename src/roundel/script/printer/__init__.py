# SPDX-License-Identifier: Apache-2.0
"""From programs to Python text."""
