# SPDX-License-Identifier: Apache-2.0
"""What a user gives, a text, JSON, or a path to either, and parameters, to a module."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...ir.errors import ModelError
from ...ir.module import IRModule
from . import saved
from .arrays import load_params
from .importer import convert_module
from .parser import parse


def from_relay(model: str | bytes | os.PathLike[str], params: Mapping[str, Any] | bytes | str | os.PathLike[str] | None = None, *,
               entry: str = "main") -> IRModule:
    """A module of the graph functions of a Relay model, which TVM 0.8 to 0.14 wrote.

    ``model``: what ``mod.astext()`` or ``tvm.ir.save_json(mod)`` gave, or the path of a file with it. ``params``: arrays by name, what
    ``relay.save_param_dict`` gave, or the path of a file with it; they become constants, and the parameters of the function ``entry`` that
    are not among them stay inputs. Dimensions written ``?`` are symbolic. Raises ModelError, which tells the place in the text, for what is no such
    model, and UnsupportedError for operators that have no counterpart.
    """
    text = _text(model)
    module = saved.load(text) if text.lstrip()[:1] == "{" else parse(text)
    return convert_module(module, _arrays(params), entry)


def _text(model: Any) -> str:
    if isinstance(model, os.PathLike) or (isinstance(model, str) and _is_path(model)):
        model = _content(model, "the Relay model")
    if not isinstance(model, str | bytes | bytearray):
        raise ModelError(f"this is no Relay model: {type(model).__name__}", hint="give mod.astext(), tvm.ir.save_json(mod), or the path of a file with either")
    if isinstance(model, str):
        return model
    try:
        return str(model, "utf-8")
    except UnicodeDecodeError as error:
        raise ModelError("the Relay model is no text", why=str(error), hint="mod.astext() and tvm.ir.save_json(mod) give texts") from error


def _is_path(text: str) -> bool:
    """Whether a text names a file: neither has it the signs of a model nor is it empty."""
    return bool(text.strip()) and not any(sign in text for sign in "\n{}[]()%@;")


def _arrays(params: Any) -> Mapping[str, np.ndarray]:
    if params is None:
        return {}
    if isinstance(params, Mapping):
        return {str(k): v.numpy() if hasattr(v, "numpy") else np.asarray(v) for k, v in params.items()}
    return load_params(params if isinstance(params, bytes | bytearray | memoryview) else _content(params, "the parameters"))


def _content(path: Any, what: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError, TypeError) as error:
        raise ModelError(f"{what} cannot be read: {path}", why=str(error)) from error
