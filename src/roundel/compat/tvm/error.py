# SPDX-License-Identifier: Apache-2.0
"""``tvm.error``."""

from ...ir.errors import RoundelError as InternalError
from ...ir.errors import RoundelError as TVMError
from ...ir.errors import ScriptError as DiagnosticError
from ...ir.errors import UnsupportedError as OpNotImplemented

__all__ = ["DiagnosticError", "InternalError", "OpNotImplemented", "TVMError"]
