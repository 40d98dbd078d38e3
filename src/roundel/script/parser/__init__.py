# SPDX-License-Identifier: Apache-2.0
"""From Python syntax to programs."""
