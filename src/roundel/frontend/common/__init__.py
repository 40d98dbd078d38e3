# SPDX-License-Identifier: Apache-2.0
"""What importers of every format are made of: nodes with their names, places and errors, and checks of sizes that have to agree."""
