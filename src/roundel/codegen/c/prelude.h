#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized" /* arrays of which every element that is read was written */
#endif
#ifdef __FAST_MATH__
#error "compile this file without -ffast-math: its results would be others"
#endif
#if defined(__SSE4_1__) || defined(__aarch64__) || (defined(__ARM_FEATURE_DIRECTED_ROUNDING) && defined(__ARM_FP))
#define RD_ROUNDS /* there is an instruction that rounds to whole numbers */
#endif
#if defined(__clang__) && defined(__arm__) && defined(__ARM_FEATURE_FMA) && defined(__NO_MATH_ERRNO__)
#define RD_FUSES /* there is an instruction for fmaf, which Clang does not say, nor makes of products and sums where it is slow */
#endif
#if (defined(__arm__) && !defined(__ARM_FP)) || (defined(__riscv) && !defined(__riscv_flen))
#define RD_NO_FLOATS /* each operation on floats is a call of a function */
#endif
#if defined(__GNUC__)
#ifndef RD_ALIGNMENT
#define RD_ALIGNMENT 64 /* helps compilers to use vectors; nothing depends on it */
#endif
#define RD_ALIGNED __attribute__((aligned(RD_ALIGNMENT)))
#define RD_INLINE static inline __attribute__((unused))
#else
#define RD_ALIGNED
#define RD_INLINE static inline
#endif

/* A value that a task is given. */
typedef union {
  void *p;
  int8_t int8; int16_t int16; int32_t int32; int64_t int64;
  uint8_t uint8; uint16_t uint16; uint32_t uint32; uint64_t uint64;
  float f32; double f64;
} RdSlot;
