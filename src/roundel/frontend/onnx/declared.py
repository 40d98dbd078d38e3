# SPDX-License-Identifier: Apache-2.0
"""What a model says of the types and shapes of its results and of its inputs' defaults, and whether it is so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...ir import tir
from ...ir.errors import ModelError
from ...ir.warning import warn
from .load import STRING, dtype_of
from .values import MapValue, Value


def check_type(what: str, declared: Any, value: Any) -> None:
    """Raises ModelError where a tensor's elements are of another type than the model's ``ValueInfoProto`` says: whoever reads the file
    counts on that type. Nothing is said of strings, which are found by what the model declares."""
    code = declared.type.tensor_type.elem_type
    if isinstance(value, Value) and not isinstance(value, MapValue) and code and code != STRING and not value.is_text:
        found, wanted = value.expr.sinfo.dtype, dtype_of(code, what)
        if found != wanted:
            raise ModelError(f"{what} is declared to hold {wanted}, and it holds {found}", where="the model's graph",
                             hint="correct its type in the file, or convert it by a Cast")


def check_shape(what: str, declared: Any, value: Any) -> None:
    """Warns where a tensor has another shape than the model says. What is computed counts; such files are common, since tools that change
    a model's sizes leave what was written."""
    if not isinstance(value, Value) or isinstance(value, MapValue) or not declared.type.tensor_type.HasField("shape"):
        return
    shape, said = value.expr.sinfo.shape, list(declared.type.tensor_type.shape.dim)
    if shape is not None and (len(shape) != len(said) or any(map(_differ, shape, said))):
        warn(f"{what} is declared with shape [{', '.join(map(_size, said))}], its shape is [{', '.join(d.script() for d in shape)}]; "
             "the latter counts")


def check_between(infos: Sequence[Any], values: Mapping[str, Any]) -> None:
    """Warns, once for all, of results between the nodes that have another type or shape than the model's ``value_info`` says. Nothing
    depends on what it says, so what is computed counts."""
    wrong = [f"{info.name!r} is {said}, not {found}" for info in infos if (pair := _contradiction(info, values.get(info.name))) for said, found in [pair]]
    if wrong:
        more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        warn(f"the model's value_info is not what its nodes compute: {wrong[0]}{more}; what is computed counts")


def _contradiction(info: Any, value: Any) -> tuple[str, str] | None:
    """What a result is, and what the model says of it, where these cannot both be."""
    if not isinstance(value, Value) or isinstance(value, MapValue) or value.content is not None or value.is_text:
        return None
    code, found, said = info.type.tensor_type.elem_type, value.expr.sinfo, list(info.type.tensor_type.shape.dim)
    if code and code != STRING and dtype_of(code, info.name) != found.dtype:
        return str(found.dtype), str(dtype_of(code, info.name))
    if info.type.tensor_type.HasField("shape") and found.shape is not None and (len(found.shape) != len(said) or any(map(_differ, found.shape, said))):
        return f"[{', '.join(d.script() for d in found.shape)}]", f"[{', '.join(map(_size, said))}]"
    return None


def _differ(size: tir.Expr, said: Any) -> bool:
    return isinstance(size, tir.IntImm) and said.HasField("dim_value") and said.dim_value >= 0 and said.dim_value != size.value


def check_default(declared: Any, value: Any) -> None:
    """Raises ModelError where the initializer of an input's name has another type or shape than the input."""
    tensor, what, info = declared.type.tensor_type, f"input {declared.name!r}", value.expr.sinfo
    check_type(f"the initializer of {what}", declared, value)
    said = list(tensor.shape.dim)
    if tensor.HasField("shape") and (len(said) != info.ndim or any(map(_differ, info.shape, said))):
        raise ModelError(f"the initializer of {what} has another shape than the input", where="the model's graph",
                         why=f"[{', '.join(d.script() for d in info.shape)}], and [{', '.join(_size(d) for d in said)}]")


def _size(said: Any) -> str:
    return str(said.dim_value) if said.HasField("dim_value") else said.dim_param or "?"
