# SPDX-License-Identifier: Apache-2.0
"""Parts of a graph for others to compute: composite functions put back, foreign code called."""
