# SPDX-License-Identifier: Apache-2.0
"""C99: flat tensor programs as source that every C compiler takes, and by the machine's C compiler as objects (``backend``)."""
