# SPDX-License-Identifier: Apache-2.0
"""The PyTorch frontend: ``from_torch`` (modules and ExportedPrograms) and the hook to supply operators, ``operator``."""

from typing import Any

__all__ = ["from_exported_program", "from_torch", "operator"]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    homes = {"from_torch": "export", "from_exported_program": "export", "operator": "registry"}
    if name in homes:
        return getattr(import_module(f"{__name__}.{homes[name]}"), name)
    raise AttributeError(name)
