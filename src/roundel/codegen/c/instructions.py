# SPDX-License-Identifier: Apache-2.0
"""Instructions of single processors in C: a function for each, which any compiler can have, and which is the instruction itself where GCC or Clang
compiles for a processor that has it."""

from __future__ import annotations

from ...ir import tir

_PAIRS = "#if defined(__GNUC__) && defined(__ARM_FEATURE_DSP)\n"


def _pairs(name: str, operands: str, instruction: str, otherwise: str) -> tuple[str, str]:
    """A function of words with two numbers of 16 bits each, by an instruction of Arm's DSP extension."""
    names = [x.split()[-1] for x in operands.split(", ")]
    inputs = ", ".join(f'"r"({n})' for n in names)
    return name, (f'RD_INLINE int32_t {name}({operands}) {{\n{_PAIRS}  int32_t y;\n  __asm__("{instruction}" : "=r"(y) : {inputs});\n  return y;\n#else\n'
                  f"  {otherwise}\n#endif\n}}")


def _widened(name: str, by: int, instruction: str) -> tuple[str, str]:
    low, high = (f"(int8_t)((uint32_t)x >> {at})" if at else "(int8_t)x" for at in (by, by + 16))
    return _pairs(name, "int32_t x", instruction, f"return (int32_t)((uint16_t){low} | (uint32_t)(uint16_t){high} << 16);")


_HALVES = "(int32_t)(int16_t){0} * (int16_t){1}", "(int32_t)(int16_t)((uint32_t){0} >> 16) * (int16_t)((uint32_t){1} >> 16)"
_TURNED = "llvm.arm.sxtb16 of the bytes turned by one"
IN_C = {
    "llvm.arm.smlad": _pairs("rd_smlad", "int32_t a, int32_t b, int32_t c", "smlad %0, %1, %2, %3",
                             f"return (int32_t)((uint32_t)c + (uint32_t)({_HALVES[0].format('a', 'b')}) + (uint32_t)({_HALVES[1].format('a', 'b')}));"),
    "llvm.arm.sxtb16": _widened("rd_sxtb16", 0, "sxtb16 %0, %1"),
    _TURNED: _widened("rd_sxtb16_ror8", 8, "sxtb16 %0, %1, ror #8"),
}
"""Of LLVM's intrinsics, by their names: a function in C, by its name and text."""

DOTS = {"llvm.arm.mve.vmldava.v16i8": "rd_dot16", "llvm.arm.mve.vmldava.v8i16": "rd_dot8"}
"""Those of signed bytes that are neighbours in memory, in both of their last operands: functions of `vectors.h`."""


def turned(name: str, args: tuple[tir.Expr, ...]) -> tuple[str, tuple[tir.Expr, ...]] | None:
    """The instruction that shifts its operand by itself, and that operand; None where there is none."""
    shifted = _bits(args[0])
    if name != "llvm.arm.sxtb16" or type(shifted) is not tir.Call or shifted.op != "shift_right" or shifted.dtype.kind != "uint":
        return None
    value, by = shifted.args
    return (_TURNED, (_bits(value),)) if type(by) is tir.IntImm and by.value == 8 else None


def _bits(e: tir.Expr) -> tir.Expr:
    """What other types' bits of one number are taken of."""
    while type(e) is tir.Call and e.op == "reinterpret" and e.args[0].dtype.lanes == 1:
        e = e.args[0]
    return e
