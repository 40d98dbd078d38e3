# SPDX-License-Identifier: Apache-2.0
"""Small functions in C that generated code calls by name: arithmetic without undefined behaviour, and what C99 has no operator for.

Integers wrap, what is divided by zero is 0, floats that become integers saturate, a minimum or maximum with NaN is NaN.
"""

from __future__ import annotations

from ...ir.dtype import DType
from .types import c_type, short


def _wide(dtype: DType) -> str:
    """The unsigned type in which arithmetic of integers wraps without being promoted."""
    return f"uint{max(32, dtype.bits)}_t"


def narrowed(value: str, dtype: DType) -> str:
    """An integer expression with the bits that its type has."""
    t = c_type(dtype)
    if dtype.bits >= 8:
        return f"({t})({value})"
    mask, sign = (1 << dtype.bits) - 1, 1 << (dtype.bits - 1)
    return f"({t})(({value}) & {mask})" if dtype.kind == "uint" else f"({t})(((({value}) & {mask}) ^ {sign}) - {sign})"


def ring(op: str, dtype: DType) -> tuple[str, str]:
    """``add``, ``sub`` or ``mul`` of integers that wrap."""
    t, wide, sign = c_type(dtype), _wide(dtype), {"add": "+", "sub": "-", "mul": "*"}[op]
    name = f"rd_{op}_{short(dtype)}"
    return name, f"RD_INLINE {t} {name}({t} a, {t} b) {{ return {narrowed(f'({wide})a {sign} ({wide})b', dtype)}; }}"


def divide(op: str, dtype: DType) -> tuple[str, str]:
    """``div``, ``mod`` (towards zero), ``floordiv``, ``floormod``."""
    t, name, signed = c_type(dtype), f"rd_{op}_{short(dtype)}", dtype.kind == "int"
    quotient = op.endswith("div")
    result = "a / b" if quotient else "a % b"
    lines = ["  if (b == 0) return 0;"]
    if signed:
        wide = _wide(dtype)
        lines.append(f"  if (b == -1) return {narrowed(f'0u - ({wide})a', dtype) if quotient else '0'};")
    if signed and op.startswith("floor"):
        lines.append(f"  {{ const {t} r = ({t})(a % b), wrong = (r != 0) & ((r < 0) != (b < 0));")
        lines.append(f"    return ({t})({'a / b - wrong' if quotient else 'wrong ? r + b : r'}); }}")
    else:
        lines.append(f"  return {narrowed(result, dtype)};")
    return name, f"RD_INLINE {t} {name}({t} a, {t} b) {{\n" + "\n".join(lines) + "\n}"


def extreme(op: str, dtype: DType) -> tuple[str, str]:
    """``min``, ``max``; ``max_number`` of floats that are none of them NaN."""
    t, name, sign = c_type(dtype), f"rd_{op}_{short(dtype)}", "<" if op == "min" else ">"
    nan = " || a != a" if dtype.is_float and op != "max_number" else ""
    return name, f"RD_INLINE {t} {name}({t} a, {t} b) {{ return a {sign} b{nan} ? a : b; }}"


def fused(dtype: DType) -> tuple[str, str]:
    """a * b + c, with one rounding where the processor has an instruction for it."""
    t, name, (has, call) = c_type(dtype), f"rd_fma_{short(dtype)}", ("FP_FAST_FMAF", "fmaf") if dtype.bits == 32 else ("FP_FAST_FMA", "fma")
    own = " || defined(RD_FUSES)" if dtype.bits == 32 else ""
    return name, (f"RD_INLINE {t} {name}({t} a, {t} b, {t} c) {{\n"
                  f"#if defined({has}) || defined(__{has}){own}\n  return {call}(a, b, c);\n#else\n  return a * b + c;\n#endif\n}}")


def nearest(dtype: DType) -> tuple[str, str]:
    """The nearest whole number, the even one of two. Where no instruction rounds, it is what is left of the fraction beside a number whose last bit is 1."""
    t, name, f, whole = c_type(dtype), f"rd_round_{short(dtype)}", "f" if dtype.bits == 32 else "", f"0x1p{23 if dtype.bits == 32 else 52}"
    return name, (f"RD_INLINE {t} {name}({t} x) {{\n#ifdef RD_ROUNDS\n  return rint{f}(x);\n#else\n"
                  f"  const {t} by = copysign{f}({whole}{f}, x);\n  return fabs{f}(x) < {whole}{f} ? copysign{f}((x + by) - by, x) : x;\n#endif\n}}")


def to_integer(source: DType, target: DType) -> tuple[str, str]:
    """A float cut off, the nearest limit where it does not fit, 0 of NaN."""
    s, t, name = c_type(source), c_type(target), f"rd_{short(source)}_to_{short(target)}"
    low, high = target.limits
    beyond = float(high + 1).hex() if high > 1 else "2.0"
    least = "INT64_MIN" if low == -(1 << 63) else str(low)
    most = "UINT64_MAX" if high == (1 << 64) - 1 else f"INT64_C({high})" if target.kind == "int" else f"{high}u"
    under = float(low - 1 if target.bits < 53 else low).hex()
    return name, (f"RD_INLINE {t} {name}({s} x) {{\n  if (!(x > ({s}){under})) return ({t})(x != x ? 0 : {least});\n"
                  f"  if (x >= ({s}){beyond}) return ({t}){most};\n  return ({t})x;\n}}")


def reinterpreted(source: DType, target: DType) -> tuple[str, str]:
    """The bits of one type as another."""
    s, t, name = c_type(source), c_type(target), f"rd_bits_{short(source)}_to_{short(target)}"
    return name, f"RD_INLINE {t} {name}({s} x) {{ {t} y; memcpy(&y, &x, sizeof y); return y; }}"


def word(element: DType, dtype: DType) -> tuple[str, str]:
    """Neighbours in memory as one number, in the order of the machine's bytes. They lie where a number of this type may lie."""
    s, t, name = c_type(element), c_type(dtype), f"rd_{short(dtype)}_of_{short(element)}"
    return name, (f"#if defined(__GNUC__)\ntypedef {t} {name}_type __attribute__((may_alias));\n"
                  f"RD_INLINE {t} {name}(const {s} *p) {{ return *(const {name}_type *)(const void *)p; }}\n#else\n"
                  f"RD_INLINE {t} {name}(const {s} *p) {{ {t} x; memcpy(&x, p, sizeof x); return x; }}\n#endif")


def shift(op: str, dtype: DType) -> tuple[str, str]:
    """Shifting by the width or more leaves 0, or the sign."""
    t, name, bits = c_type(dtype), f"rd_{op}_{short(dtype)}", dtype.bits
    wide, over = _wide(dtype), f"({_wide(dtype)})n >= {bits}u" if dtype.bits >= 32 else f"n < 0 || n >= {bits}"
    if dtype.kind == "uint" and dtype.bits < 32:
        over = f"n >= {bits}"
    if op == "shift_left":
        return name, f"RD_INLINE {t} {name}({t} x, {t} n) {{ return ({t})({over} ? 0 : {narrowed(f'({wide})x << n', dtype)}); }}"
    if dtype.kind == "uint":
        return name, f"RD_INLINE {t} {name}({t} x, {t} n) {{ return ({t})({over} ? 0 : x >> n); }}"
    return name, f"RD_INLINE {t} {name}({t} x, {t} n) {{ const int by = {over} ? {bits - 1} : (int)n; return ({t})(x < 0 ? ~(~x >> by) : x >> by); }}"


def count_bits(op: str, dtype: DType) -> tuple[str, str]:
    """``popcount``, ``clz`` and ``ctz``; the last two of 0 are the width."""
    t, name, bits, wide = c_type(dtype), f"rd_{op}_{short(dtype)}", dtype.bits, f"uint{max(8, dtype.bits)}_t"
    loop = {"popcount": "for (; v; v = ({w})(v & (v - 1))) n++;",
            "clz": f"for (n = {bits}; v; v = ({{w}})(v >> 1)) n--;",
            "ctz": f"for (; n < {bits} && !(v & 1); v = ({{w}})(v >> 1)) n++;"}[op].format(w=wide)
    mask = f" & {(1 << bits) - 1}" if bits < 8 else ""
    return name, f"RD_INLINE {t} {name}({t} x) {{ {wide} v = ({wide})(({wide})x{mask}); int n = 0; {loop} return ({t})n; }}"


def integer_power(dtype: DType) -> tuple[str, str]:
    """Powers of integers wrap; a negative power is 0, but of 1 and -1."""
    t, wide, name, signed = c_type(dtype), _wide(dtype), f"rd_pow_{short(dtype)}", dtype.kind == "int"
    negative = "  if (n < 0) return x == 1 ? 1 : x == -1 ? (n & 1 ? -1 : 1) : 0;\n" if signed else ""
    return name, (f"RD_INLINE {t} {name}({t} x, {t} n) {{\n  {wide} out = 1, base = ({wide})x, left = ({wide})n;\n{negative}"
                  f"  for (; left; left >>= 1, base *= base) if (left & 1) out *= base;\n  return {narrowed('out', dtype)};\n}}")


def packed_load(dtype: DType) -> tuple[str, str]:
    """An element of fewer bits than a byte; the first ones lie in the lowest bits."""
    t, name, bits = c_type(dtype), f"rd_load_{short(dtype) if not dtype.is_float else dtype.element}", dtype.bits
    per = 8 // bits
    plain = DType(f"uint{bits}") if dtype.is_float else dtype
    return name, (f"RD_INLINE {t} {name}(const uint8_t *p, int64_t k) {{ return {narrowed(f'p[k / {per}] >> (k % {per} * {bits})', plain)}; }}")


def packed_store(dtype: DType) -> tuple[str, str]:
    """Writes an element of fewer bits than a byte, and leaves its neighbours."""
    t, name, bits = c_type(dtype), f"rd_store_{short(dtype) if not dtype.is_float else dtype.element}", dtype.bits
    per, mask = 8 // bits, (1 << bits) - 1
    return name, (f"RD_INLINE void {name}(uint8_t *p, int64_t k, {t} x) {{\n  const int by = (int)(k % {per}) * {bits};\n"
                  f"  p[k / {per}] = (uint8_t)((p[k / {per}] & ~({mask} << by)) | ((x & {mask}) << by));\n}}")
