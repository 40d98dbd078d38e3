# SPDX-License-Identifier: Apache-2.0
"""Models in, graph functions out. Each format has a package; what they share is the builder and the operator table."""
