
/* Vectors of four numbers of 32 bits: registers of Arm's MVE or of RISC-V's V where the compiler has them, arrays elsewhere. Narrower integers are widened where they are
 * loaded, and keep their low bits where they are stored. */
#if defined(__GNUC__) && defined(__ARM_FEATURE_MVE) && __ARM_FEATURE_MVE == 3
#include <arm_mve.h>
typedef int32x4_t rd_i32x4;
typedef float32x4_t rd_f32x4;
/* Loads and stores that compilers see through keep what is in arrays of a function in registers, as instructions that they know as such do. */
typedef rd_i32x4 rd_i32x4_at __attribute__((aligned(4), may_alias));
typedef rd_f32x4 rd_f32x4_at __attribute__((aligned(4), may_alias));
typedef int8x16_t rd_i8x16_at __attribute__((aligned(1), may_alias));
RD_INLINE rd_f32x4 rd_load4_f32(const float *p) { return *(const rd_f32x4_at *)p; }
RD_INLINE rd_i32x4 rd_load4_i32(const int32_t *p) { return *(const rd_i32x4_at *)p; }
RD_INLINE rd_i32x4 rd_load4_i16(const int16_t *p) { return vldrhq_s32(p); }
RD_INLINE rd_i32x4 rd_load4_i8(const int8_t *p) { return vldrbq_s32(p); }
RD_INLINE rd_i32x4 rd_load4_u8(const uint8_t *p) { return (rd_i32x4)vldrbq_u32(p); }
RD_INLINE void rd_store4_f32(float *p, rd_f32x4 x) { *(rd_f32x4_at *)p = x; }
RD_INLINE void rd_store4_i32(int32_t *p, rd_i32x4 x) { *(rd_i32x4_at *)p = x; }
RD_INLINE void rd_store4_i16(int16_t *p, rd_i32x4 x) { vstrhq_s32(p, x); }
RD_INLINE void rd_store4_i8(int8_t *p, rd_i32x4 x) { vstrbq_s32(p, x); }
RD_INLINE void rd_store4_u8(uint8_t *p, rd_i32x4 x) { vstrbq_u32(p, (uint32x4_t)x); }
RD_INLINE void rd_copy16(void *to, const void *from) { *(rd_i8x16_at *)to = *(const rd_i8x16_at *)from; }
RD_INLINE rd_f32x4 rd_all4_f32(float x) { return vdupq_n_f32(x); }
RD_INLINE rd_i32x4 rd_all4_i32(int32_t x) { return vdupq_n_s32(x); }
RD_INLINE rd_f32x4 rd_add4_f32(rd_f32x4 a, rd_f32x4 b) { return vaddq_f32(a, b); }
RD_INLINE rd_f32x4 rd_sub4_f32(rd_f32x4 a, rd_f32x4 b) { return vsubq_f32(a, b); }
RD_INLINE rd_f32x4 rd_mul4_f32(rd_f32x4 a, rd_f32x4 b) { return vmulq_f32(a, b); }
RD_INLINE rd_i32x4 rd_add4_i32(rd_i32x4 a, rd_i32x4 b) { return vaddq_s32(a, b); }
RD_INLINE rd_i32x4 rd_sub4_i32(rd_i32x4 a, rd_i32x4 b) { return vsubq_s32(a, b); }
RD_INLINE rd_i32x4 rd_mul4_i32(rd_i32x4 a, rd_i32x4 b) { return vmulq_s32(a, b); }
RD_INLINE rd_f32x4 rd_add4_f32_by(rd_f32x4 a, float b) { return vaddq_n_f32(a, b); }
RD_INLINE rd_f32x4 rd_sub4_f32_by(rd_f32x4 a, float b) { return vsubq_n_f32(a, b); }
RD_INLINE rd_f32x4 rd_mul4_f32_by(rd_f32x4 a, float b) { return vmulq_n_f32(a, b); }
RD_INLINE rd_i32x4 rd_add4_i32_by(rd_i32x4 a, int32_t b) { return vaddq_n_s32(a, b); }
RD_INLINE rd_i32x4 rd_sub4_i32_by(rd_i32x4 a, int32_t b) { return vsubq_n_s32(a, b); }
RD_INLINE rd_i32x4 rd_mul4_i32_by(rd_i32x4 a, int32_t b) { return vmulq_n_s32(a, b); }
RD_INLINE rd_f32x4 rd_fma4_f32(rd_f32x4 a, rd_f32x4 b, rd_f32x4 c) { return vfmaq_f32(c, a, b); }
RD_INLINE rd_f32x4 rd_fma4_f32_by(rd_f32x4 a, float b, rd_f32x4 c) { return vfmaq_n_f32(c, a, b); }
RD_INLINE rd_f32x4 rd_neg4_f32(rd_f32x4 x) { return vnegq_f32(x); }
RD_INLINE rd_i32x4 rd_min4_i32(rd_i32x4 a, rd_i32x4 b) { return vminq_s32(a, b); }
RD_INLINE rd_i32x4 rd_max4_i32(rd_i32x4 a, rd_i32x4 b) { return vmaxq_s32(a, b); }
RD_INLINE rd_f32x4 rd_min4_f32(rd_f32x4 a, rd_f32x4 b) { return vpselq_f32(a, vpselq_f32(a, b, vcmpltq_f32(a, b)), vcmpneq_f32(a, a)); }
RD_INLINE rd_f32x4 rd_max4_f32(rd_f32x4 a, rd_f32x4 b) { return vpselq_f32(a, vpselq_f32(a, b, vcmpgtq_f32(a, b)), vcmpneq_f32(a, a)); }
RD_INLINE rd_f32x4 rd_float4(rd_i32x4 x) { return vcvtq_f32_s32(x); }
RD_INLINE rd_i32x4 rd_whole4(rd_f32x4 x) { return vcvtq_s32_f32(x); }
RD_INLINE rd_f32x4 rd_round4(rd_f32x4 x) { return vrndnq_f32(x); }
RD_INLINE rd_i32x4 rd_nearest4(rd_f32x4 x, int32_t zero, int32_t low, int32_t high) {
  rd_i32x4 n = vqaddq_n_s32(vcvtnq_s32_f32(x), zero);
  n = vminq_s32(vmaxq_s32(n, vdupq_n_s32(low)), vdupq_n_s32(high));
#if defined(__clang__)
  return vdupq_m_n_s32(n, 0, vcmpneq_f32(x, x));
#else
  mve_pred16_t p; /* which lanes are NaN, where GCC would take it through another register */
  __asm__("vpt.f32 ne, %q2, %q2\n\tvmovt.i32 %q0, #0" : "+w"(n), "=&Up"(p) : "w"(x));
  return n;
#endif
}
RD_INLINE int32_t rd_dot16(const int8_t *a, const int8_t *b, int32_t c) {
  __asm__("vmladava.s8 %0, %q1, %q2" : "+Te"(c) : "w"(*(const rd_i8x16_at *)a), "w"(*(const rd_i8x16_at *)b));
  return c;
}
RD_INLINE int32_t rd_dot8(const int8_t *a, const int8_t *b, int32_t c) {
  __asm__("vmladava.s16 %0, %q1, %q2" : "+Te"(c) : "w"(vldrbq_s16(a)), "w"(vldrbq_s16(b)));
  return c;
}
#elif defined(__clang__) && defined(__riscv_vector)
#include <riscv_vector.h>
typedef int32_t rd_i32x4 __attribute__((vector_size(16)));
typedef uint32_t rd_u32x4 __attribute__((vector_size(16)));
typedef float rd_f32x4 __attribute__((vector_size(16)));
typedef rd_i32x4 rd_i32x4_at __attribute__((aligned(4), may_alias));
typedef rd_f32x4 rd_f32x4_at __attribute__((aligned(4), may_alias));
typedef int16_t rd_i16x4 __attribute__((vector_size(8), aligned(2), may_alias));
typedef int8_t rd_i8x4 __attribute__((vector_size(4), aligned(1), may_alias));
typedef uint8_t rd_u8x4 __attribute__((vector_size(4), aligned(1), may_alias));
typedef int8_t rd_i8x16 __attribute__((vector_size(16), aligned(1), may_alias));
#define RD_CHOSEN(t, p, a, b) ((t)(((rd_i32x4)(a) & (rd_i32x4)(p)) | ((rd_i32x4)(b) & ~(rd_i32x4)(p))))
#define RD_WRAPS(a, sign, b) ((rd_i32x4)((rd_u32x4)(a) sign (rd_u32x4)(b)))
RD_INLINE rd_f32x4 rd_load4_f32(const float *p) { return *(const rd_f32x4_at *)p; }
RD_INLINE rd_i32x4 rd_load4_i32(const int32_t *p) { return *(const rd_i32x4_at *)p; }
RD_INLINE rd_i32x4 rd_load4_i16(const int16_t *p) { return __builtin_convertvector(*(const rd_i16x4 *)p, rd_i32x4); }
RD_INLINE rd_i32x4 rd_load4_i8(const int8_t *p) { return __builtin_convertvector(*(const rd_i8x4 *)p, rd_i32x4); }
RD_INLINE rd_i32x4 rd_load4_u8(const uint8_t *p) { return __builtin_convertvector(*(const rd_u8x4 *)p, rd_i32x4); }
RD_INLINE void rd_store4_f32(float *p, rd_f32x4 x) { *(rd_f32x4_at *)p = x; }
RD_INLINE void rd_store4_i32(int32_t *p, rd_i32x4 x) { *(rd_i32x4_at *)p = x; }
RD_INLINE void rd_store4_i16(int16_t *p, rd_i32x4 x) { *(rd_i16x4 *)p = __builtin_convertvector(x, rd_i16x4); }
RD_INLINE void rd_store4_i8(int8_t *p, rd_i32x4 x) { *(rd_i8x4 *)p = __builtin_convertvector(x, rd_i8x4); }
RD_INLINE void rd_store4_u8(uint8_t *p, rd_i32x4 x) { *(rd_u8x4 *)p = __builtin_convertvector(x, rd_u8x4); }
RD_INLINE void rd_copy16(void *to, const void *from) { *(rd_i8x16 *)to = *(const rd_i8x16 *)from; }
RD_INLINE rd_f32x4 rd_all4_f32(float x) { return (rd_f32x4){x, x, x, x}; }
RD_INLINE rd_i32x4 rd_all4_i32(int32_t x) { return (rd_i32x4){x, x, x, x}; }
RD_INLINE rd_f32x4 rd_add4_f32(rd_f32x4 a, rd_f32x4 b) { return a + b; }
RD_INLINE rd_f32x4 rd_sub4_f32(rd_f32x4 a, rd_f32x4 b) { return a - b; }
RD_INLINE rd_f32x4 rd_mul4_f32(rd_f32x4 a, rd_f32x4 b) { return a * b; }
RD_INLINE rd_i32x4 rd_add4_i32(rd_i32x4 a, rd_i32x4 b) { return RD_WRAPS(a, +, b); }
RD_INLINE rd_i32x4 rd_sub4_i32(rd_i32x4 a, rd_i32x4 b) { return RD_WRAPS(a, -, b); }
RD_INLINE rd_i32x4 rd_mul4_i32(rd_i32x4 a, rd_i32x4 b) { return RD_WRAPS(a, *, b); }
RD_INLINE rd_f32x4 rd_add4_f32_by(rd_f32x4 a, float b) { return a + b; }
RD_INLINE rd_f32x4 rd_sub4_f32_by(rd_f32x4 a, float b) { return a - b; }
RD_INLINE rd_f32x4 rd_mul4_f32_by(rd_f32x4 a, float b) { return a * b; }
RD_INLINE rd_i32x4 rd_add4_i32_by(rd_i32x4 a, int32_t b) { return RD_WRAPS(a, +, rd_all4_i32(b)); }
RD_INLINE rd_i32x4 rd_sub4_i32_by(rd_i32x4 a, int32_t b) { return RD_WRAPS(a, -, rd_all4_i32(b)); }
RD_INLINE rd_i32x4 rd_mul4_i32_by(rd_i32x4 a, int32_t b) { return RD_WRAPS(a, *, rd_all4_i32(b)); }
RD_INLINE rd_f32x4 rd_fma4_f32(rd_f32x4 a, rd_f32x4 b, rd_f32x4 c) { return __builtin_elementwise_fma(a, b, c); }
RD_INLINE rd_f32x4 rd_fma4_f32_by(rd_f32x4 a, float b, rd_f32x4 c) { return __builtin_elementwise_fma(a, rd_all4_f32(b), c); }
RD_INLINE rd_f32x4 rd_neg4_f32(rd_f32x4 x) { return -x; }
RD_INLINE rd_i32x4 rd_min4_i32(rd_i32x4 a, rd_i32x4 b) { return __builtin_elementwise_min(a, b); }
RD_INLINE rd_i32x4 rd_max4_i32(rd_i32x4 a, rd_i32x4 b) { return __builtin_elementwise_max(a, b); }
RD_INLINE rd_f32x4 rd_min4_f32(rd_f32x4 a, rd_f32x4 b) { return RD_CHOSEN(rd_f32x4, (a < b) | (a != a), a, b); }
RD_INLINE rd_f32x4 rd_max4_f32(rd_f32x4 a, rd_f32x4 b) { return RD_CHOSEN(rd_f32x4, (a > b) | (a != a), a, b); }
RD_INLINE rd_f32x4 rd_float4(rd_i32x4 x) { return __builtin_convertvector(x, rd_f32x4); }
RD_INLINE rd_i32x4 rd_whole4(rd_f32x4 x) {
  const rd_i32x4 large = x >= 0x1p31f, small = x <= -0x1p31f, inside = (x == x) & ~large & ~small;
  const rd_i32x4 n = __builtin_convertvector(RD_CHOSEN(rd_f32x4, inside, x, rd_all4_f32(0.0f)), rd_i32x4);
  return n | (large & INT32_MAX) | (small & INT32_MIN);
}
RD_INLINE rd_f32x4 rd_round4(rd_f32x4 x) { return __builtin_elementwise_roundeven(x); }
RD_INLINE rd_i32x4 rd_nearest4(rd_f32x4 x, int32_t zero, int32_t low, int32_t high) {
  const rd_f32x4 v = RD_CHOSEN(rd_f32x4, x == x, rd_max4_f32(rd_min4_f32(x, rd_all4_f32(32767.0f)), rd_all4_f32(-32768.0f)), rd_all4_f32(0.0f));
  const rd_i32x4 n = (rd_i32x4)(v + 0x1.8p23f) - 0x4B400000 + zero; /* the sum has no digits behind the point */
  return RD_CHOSEN(rd_i32x4, x == x, rd_min4_i32(rd_max4_i32(n, rd_all4_i32(low)), rd_all4_i32(high)), rd_all4_i32(0));
}
RD_INLINE int32_t rd_dots(const int8_t *a, const int8_t *b, int32_t c, size_t n) {
  const vint16m2_t products = __riscv_vwmul_vv_i16m2(__riscv_vle8_v_i8m1(a, n), __riscv_vle8_v_i8m1(b, n), n);
  return __riscv_vmv_x_s_i32m1_i32(__riscv_vwredsum_vs_i16m2_i32m1(products, __riscv_vmv_s_x_i32m1(c, 1), n));
}
RD_INLINE int32_t rd_dot16(const int8_t *a, const int8_t *b, int32_t c) { return rd_dots(a, b, c, 16); }
RD_INLINE int32_t rd_dot8(const int8_t *a, const int8_t *b, int32_t c) { return rd_dots(a, b, c, 8); }
#undef RD_CHOSEN
#undef RD_WRAPS
#else
#define RD_LANES for (int k = 0; k < 4; k++)
typedef struct { int32_t at[4]; } rd_i32x4;
typedef struct { float at[4]; } rd_f32x4;
RD_INLINE rd_f32x4 rd_load4_f32(const float *p) { rd_f32x4 y; RD_LANES y.at[k] = p[k]; return y; }
RD_INLINE rd_i32x4 rd_load4_i32(const int32_t *p) { rd_i32x4 y; RD_LANES y.at[k] = p[k]; return y; }
RD_INLINE rd_i32x4 rd_load4_i16(const int16_t *p) { rd_i32x4 y; RD_LANES y.at[k] = p[k]; return y; }
RD_INLINE rd_i32x4 rd_load4_i8(const int8_t *p) { rd_i32x4 y; RD_LANES y.at[k] = p[k]; return y; }
RD_INLINE rd_i32x4 rd_load4_u8(const uint8_t *p) { rd_i32x4 y; RD_LANES y.at[k] = p[k]; return y; }
RD_INLINE void rd_store4_f32(float *p, rd_f32x4 x) { RD_LANES p[k] = x.at[k]; }
RD_INLINE void rd_store4_i32(int32_t *p, rd_i32x4 x) { RD_LANES p[k] = x.at[k]; }
RD_INLINE void rd_store4_i16(int16_t *p, rd_i32x4 x) { RD_LANES p[k] = (int16_t)x.at[k]; }
RD_INLINE void rd_store4_i8(int8_t *p, rd_i32x4 x) { RD_LANES p[k] = (int8_t)x.at[k]; }
RD_INLINE void rd_store4_u8(uint8_t *p, rd_i32x4 x) { RD_LANES p[k] = (uint8_t)x.at[k]; }
RD_INLINE void rd_copy16(void *to, const void *from) { memcpy(to, from, 16); }
RD_INLINE rd_f32x4 rd_all4_f32(float x) { rd_f32x4 y; RD_LANES y.at[k] = x; return y; }
RD_INLINE rd_i32x4 rd_all4_i32(int32_t x) { rd_i32x4 y; RD_LANES y.at[k] = x; return y; }
RD_INLINE rd_f32x4 rd_add4_f32(rd_f32x4 a, rd_f32x4 b) { RD_LANES a.at[k] += b.at[k]; return a; }
RD_INLINE rd_f32x4 rd_sub4_f32(rd_f32x4 a, rd_f32x4 b) { RD_LANES a.at[k] -= b.at[k]; return a; }
RD_INLINE rd_f32x4 rd_mul4_f32(rd_f32x4 a, rd_f32x4 b) { RD_LANES a.at[k] *= b.at[k]; return a; }
RD_INLINE rd_i32x4 rd_add4_i32(rd_i32x4 a, rd_i32x4 b) { RD_LANES a.at[k] = (int32_t)((uint32_t)a.at[k] + (uint32_t)b.at[k]); return a; }
RD_INLINE rd_i32x4 rd_sub4_i32(rd_i32x4 a, rd_i32x4 b) { RD_LANES a.at[k] = (int32_t)((uint32_t)a.at[k] - (uint32_t)b.at[k]); return a; }
RD_INLINE rd_i32x4 rd_mul4_i32(rd_i32x4 a, rd_i32x4 b) { RD_LANES a.at[k] = (int32_t)((uint32_t)a.at[k] * (uint32_t)b.at[k]); return a; }
RD_INLINE rd_f32x4 rd_add4_f32_by(rd_f32x4 a, float b) { return rd_add4_f32(a, rd_all4_f32(b)); }
RD_INLINE rd_f32x4 rd_sub4_f32_by(rd_f32x4 a, float b) { return rd_sub4_f32(a, rd_all4_f32(b)); }
RD_INLINE rd_f32x4 rd_mul4_f32_by(rd_f32x4 a, float b) { return rd_mul4_f32(a, rd_all4_f32(b)); }
RD_INLINE rd_i32x4 rd_add4_i32_by(rd_i32x4 a, int32_t b) { return rd_add4_i32(a, rd_all4_i32(b)); }
RD_INLINE rd_i32x4 rd_sub4_i32_by(rd_i32x4 a, int32_t b) { return rd_sub4_i32(a, rd_all4_i32(b)); }
RD_INLINE rd_i32x4 rd_mul4_i32_by(rd_i32x4 a, int32_t b) { return rd_mul4_i32(a, rd_all4_i32(b)); }
#if defined(FP_FAST_FMAF) || defined(__FP_FAST_FMAF) || defined(RD_FUSES)
RD_INLINE rd_f32x4 rd_fma4_f32(rd_f32x4 a, rd_f32x4 b, rd_f32x4 c) { RD_LANES c.at[k] = fmaf(a.at[k], b.at[k], c.at[k]); return c; }
#else
RD_INLINE rd_f32x4 rd_fma4_f32(rd_f32x4 a, rd_f32x4 b, rd_f32x4 c) { RD_LANES c.at[k] = a.at[k] * b.at[k] + c.at[k]; return c; }
#endif
RD_INLINE rd_f32x4 rd_fma4_f32_by(rd_f32x4 a, float b, rd_f32x4 c) { return rd_fma4_f32(a, rd_all4_f32(b), c); }
RD_INLINE rd_f32x4 rd_neg4_f32(rd_f32x4 x) { RD_LANES x.at[k] = -x.at[k]; return x; }
RD_INLINE rd_i32x4 rd_min4_i32(rd_i32x4 a, rd_i32x4 b) { RD_LANES a.at[k] = a.at[k] < b.at[k] ? a.at[k] : b.at[k]; return a; }
RD_INLINE rd_i32x4 rd_max4_i32(rd_i32x4 a, rd_i32x4 b) { RD_LANES a.at[k] = a.at[k] > b.at[k] ? a.at[k] : b.at[k]; return a; }
RD_INLINE rd_f32x4 rd_min4_f32(rd_f32x4 a, rd_f32x4 b) { RD_LANES a.at[k] = a.at[k] < b.at[k] || a.at[k] != a.at[k] ? a.at[k] : b.at[k]; return a; }
RD_INLINE rd_f32x4 rd_max4_f32(rd_f32x4 a, rd_f32x4 b) { RD_LANES a.at[k] = a.at[k] > b.at[k] || a.at[k] != a.at[k] ? a.at[k] : b.at[k]; return a; }
RD_INLINE rd_f32x4 rd_float4(rd_i32x4 x) { rd_f32x4 y; RD_LANES y.at[k] = (float)x.at[k]; return y; }
RD_INLINE rd_i32x4 rd_whole4(rd_f32x4 x) {
  rd_i32x4 y;
  RD_LANES y.at[k] = x.at[k] != x.at[k] ? 0 : x.at[k] >= 0x1p31f ? INT32_MAX : x.at[k] <= -0x1p31f ? INT32_MIN : (int32_t)x.at[k];
  return y;
}
RD_INLINE rd_f32x4 rd_round4(rd_f32x4 x) { RD_LANES x.at[k] = rintf(x.at[k]); return x; }
RD_INLINE rd_i32x4 rd_nearest4(rd_f32x4 x, int32_t zero, int32_t low, int32_t high) {
  rd_i32x4 y;
  RD_LANES {
    const float v = x.at[k] < -32768.0f ? -32768.0f : x.at[k] > 32767.0f ? 32767.0f : x.at[k];
    const int32_t n = v == v ? (int32_t)rintf(v) + zero : 0;
    y.at[k] = x.at[k] != x.at[k] ? 0 : n < low ? low : n > high ? high : n;
  }
  return y;
}
RD_INLINE int32_t rd_dot16(const int8_t *a, const int8_t *b, int32_t c) { for (int k = 0; k < 16; k++) c += a[k] * b[k]; return c; }
RD_INLINE int32_t rd_dot8(const int8_t *a, const int8_t *b, int32_t c) { for (int k = 0; k < 8; k++) c += a[k] * b[k]; return c; }
#undef RD_LANES
#endif
