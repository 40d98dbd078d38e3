# SPDX-License-Identifier: Apache-2.0
"""What a caller may ask of the printer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ...ir.dataclass import dataclass


@dataclass(frozen=True)
class PrinterOptions:
    """Options of ``script()``; their names are those of TVM's printer where it has them. Raises TypeError, ValueError.

    ``dialect``: ``"roundel"`` (reads back to an equal program), or ``"tvm"``: the text that TVM prints for the program.
    ``name``: the class name of a module, or the name of a function (by default ``Module``, and ``global_symbol`` or ``main``).
    ``indent``: blanks per level. ``imports``: the import line above modules and functions (a comment in TVM's dialect).
    ``constants``: a file to which the constants go that the text names by key; a module's text then says so.
    ``ir_prefix``, ``tir_prefix``, ``relax_prefix``: what ``I``, ``T`` and ``R`` are called. ``module_alias``: the name of the module
    inside of graph functions; empty for its own.
    ``obj_to_underline``: nodes under which ``^^^`` stands; ``path_to_underline``: places as ``structural_equal`` reports them
    (``".body.stmts[1]"``). ``obj_to_annotate``, ``path_to_annotate``: the same with the comments that they get.
    ``print_line_numbers``; ``num_context_lines``: how many lines around what is underlined are shown (-1: all).
    ``show_object_address``: names end in the address of what they name.

    Of TVM's dialect alone: ``block``, ``"block"`` or ``"sblock"``; ``int_dtype``: whose constants are plain numbers, ``"index"`` for both
    int32 and int64, else one of them (``"int32"`` is what TVM takes a number for, ``"int64"`` what Roundel does); ``float_dtype``: the same
    of floating-point constants (``"void"``: none); ``show_meta``: the values that the text names by ``metadata`` stand on top of it;
    ``syntax_sugar``: buffers as parameters, ``T.grid``, ``T.axis.remap``, the implicit root; ``show_all_struct_info``: struct info is
    written where it follows from the value, too; ``verbose_expr``: accepted, for it changes no text.
    """

    dialect: str = "roundel"
    name: str | None = None
    indent: int = 4
    imports: bool = True
    constants: str | Path | None = None
    ir_prefix: str = "I"
    tir_prefix: str = "T"
    relax_prefix: str = "R"
    module_alias: str = "cls"
    block: str = "block"
    int_dtype: str = "index"
    float_dtype: str = "void"
    show_meta: bool = False
    syntax_sugar: bool = True
    show_all_struct_info: bool = True
    verbose_expr: bool = False
    show_object_address: bool = False
    print_line_numbers: bool = False
    num_context_lines: int = -1
    obj_to_underline: Sequence[Any] = ()
    path_to_underline: Sequence[str] = ()
    obj_to_annotate: Mapping[Any, str] = field(default_factory=dict)
    path_to_annotate: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = {"dialect": ("roundel", "tvm"), "block": ("block", "sblock"), "int_dtype": ("index", "int32", "int64")}
        for option, values in known.items():
            if getattr(self, option) not in values:
                raise ValueError(f"{option} is one of {', '.join(values)}, not {getattr(self, option)!r}")
        for prefix in (self.ir_prefix, self.tir_prefix, self.relax_prefix, self.module_alias or "cls"):
            if not prefix.isidentifier():
                raise ValueError(f"{prefix!r} is no Python name, so it cannot be a prefix of the script")

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> PrinterOptions:
        """The options by name."""
        names = [f.name for f in fields(cls)]
        for option in given:
            if option not in names:
                near = get_close_matches(option, names, 1)
                hint = f"; did you mean {near[0]}?" if near else ""
                raise TypeError(f"script() has no option {option!r}{hint} The options are {', '.join(names)}")
        return cls(**given)

    @property
    def prefixes(self) -> dict[str, str]:
        """The usual prefixes and what they are called."""
        return {"I": self.ir_prefix, "T": self.tir_prefix, "R": self.relax_prefix}
