/* SPDX-License-Identifier: Apache-2.0 */
/* What code generation would emit, by hand: a library with one function for each thing that the runtime does. */
#include <string.h>

#include "roundel.h"

#define F32 2, 32, 1
#define I64 0, 64, 1
#define LENGTH(a) (int32_t)(sizeof(a) / sizeof *(a))
#define FUNCTION(NAME, INPUTS, OUTPUTS, SYMBOLS, ...) \
  {.abi = RD_ABI, .name = #NAME, .num_inputs = INPUTS, .num_outputs = OUTPUTS, .num_symbols = LENGTH(SYMBOLS), .symbols = SYMBOLS, \
   .params = NAME##_params, .run = NAME##_run, __VA_ARGS__}

static const char *const symbols_n[] = {"n"};
static const char *const symbols_nm[] = {"n", "m"};

/* scale(x: f32[n, 4]) -> f32[n, 4] = 2 x + w, through the arena and in parallel */
static const int64_t dims_n4[] = {-1, 4};
static const RdParam scale_params[] = {{"x", F32, 2, dims_n4, 0}, {"y", F32, 2, dims_n4, 0}};
static const RdConstant scale_constants[] = {{0, 16, "w"}};
static const char *const scale_kernels[] = {"double", "add"};
static int64_t scale_arena(const int64_t *s) { return s[0] * 16; }
static void scale_task(int64_t begin, int64_t end, void **args) {
  const float *x = args[0], *w = args[1];
  float *t = args[2], *y = args[3];
  for (int64_t i = begin; i < end; i++)
    for (int j = 0; j < 4; j++) {
      t[i * 4 + j] = 2 * x[i * 4 + j];
      y[i * 4 + j] = t[i * 4 + j] + w[j];
    }
}
static int32_t scale_run(RdContext *ctx, const int64_t *s, void **b) {
  void *args[] = {b[0], (void *)(uintptr_t)ctx->constants[0], ctx->arena, b[1]};
  rd_profile_begin(ctx, 1);
  int32_t status = rd_parallel_for(ctx, scale_task, args, s[0], 3);
  rd_profile_end(ctx, 1);
  return status;
}

/* concat(x: f32[n], y: f32[m]) -> f32[n + m], f32[] (the sum of all) */
static const int64_t dims_n[] = {-1}, dims_m[] = {-2}, dims_computed[] = {RD_COMPUTED};
static const RdParam concat_params[] = {{"x", F32, 1, dims_n, 0}, {"y", F32, 1, dims_m, 0}, {"both", F32, 1, dims_computed, 0}, {"sum", F32, 0, 0, 0}};
static void concat_shapes(const int64_t *s, int64_t *d) { d[0] = s[0], d[1] = s[1], d[2] = s[0] + s[1]; }
static int32_t concat_run(RdContext *ctx, const int64_t *s, void **b) {
  (void)ctx;
  if (s[0]) memcpy(b[2], b[0], (size_t)s[0] * 4);
  if (s[1]) memcpy((float *)b[2] + s[0], b[1], (size_t)s[1] * 4);
  float sum = 0;
  for (int64_t i = 0; i < s[0] + s[1]; i++) sum += ((float *)b[2])[i];
  *(float *)b[3] = sum;
  return 0;
}

/* nonzero(x: f32[n]) -> i64[?] */
static const RdParam nonzero_params[] = {{"x", F32, 1, dims_n, 0}, {"where", I64, 1, dims_computed, 0}};
static void nonzero_shapes(const int64_t *s, int64_t *d) { d[0] = s[0], d[1] = RD_COMPUTED; }
static int32_t nonzero_run(RdContext *ctx, const int64_t *s, void **b) {
  const float *x = b[0];
  int64_t count = 0;
  for (int64_t i = 0; i < s[0]; i++) count += x[i] != 0;
  int64_t *out = rd_alloc_output(ctx, 0, 1, &count);
  if (!out) return rd_fail(ctx, "no output");
  for (int64_t i = 0; i < s[0]; i++)
    if (x[i] != 0) *out++ = i;
  return 0;
}

/* fill(k: i64 scalar) -> i64[k]; fails for k > 100 */
static const int64_t dims_k[] = {-1};
static const RdParam fill_params[] = {{"k", I64, RD_SCALAR, dims_k, 0}, {"out", I64, 1, dims_k, 0}};
static int32_t fill_run(RdContext *ctx, const int64_t *s, void **b) {
  if (s[0] > 100) return rd_failf(ctx, "k = {0} is more than {1}", 2, (int64_t[]){s[0], 100});
  for (int64_t i = 0; i < s[0]; i++) ((int64_t *)b[1])[i] = s[0];
  return 0;
}

/* callback(x: f32[n]) -> f32[n]: "test.callback"(x, 3, 0.5, y), then y += "test.value"(x) */
static const RdParam callback_params[] = {{"x", F32, 1, dims_n, 0}, {"y", F32, 1, dims_n, 0}};
static int32_t callback_run(RdContext *ctx, const int64_t *s, void **b) {
  int64_t shape[] = {s[0]};
  float value;
  DLTensor x = {b[0], {kDLCPU, 0}, 1, {F32}, shape, 0, 0}, y = {b[1], {kDLCPU, 0}, 1, {F32}, shape, 0, 0}, v = {&value, {kDLCPU, 0}, 0, {F32}, shape, 0, 0};
  RdArg args[] = {{RD_ARG_TENSOR, {.tensor = &x}}, {RD_ARG_INT, {.i = 3}}, {RD_ARG_FLOAT, {.f = 0.5}}, {RD_ARG_TENSOR, {.tensor = &y}}};
  int32_t status = rd_call_packed(ctx, "test.callback", 4, args);
  if (!status) status = rd_call_packed_into(ctx, "test.value", 1, args, &v);
  for (int64_t i = 0; i < s[0] && !status; i++) ((float *)b[1])[i] += value;
  return status;
}

/* update(y: f32[n], in and out): y += 1 */
static const RdParam update_params[] = {{"y", F32, 1, dims_n, RD_INOUT}};
static int32_t update_run(RdContext *ctx, const int64_t *s, void **b) {
  (void)ctx;
  for (int64_t i = 0; i < s[0]; i++) ((float *)b[0])[i] += 1;
  return 0;
}

/* peek() -> f32[4]: what a fresh arena and scratch hold */
static const int64_t dims_4[] = {4};
static const RdParam peek_params[] = {{"y", F32, 1, dims_4, 0}};
static int64_t peek_arena(const int64_t *s) { (void)s; return 64; }
static int32_t peek_run(RdContext *ctx, const int64_t *s, void **b) {
  (void)s;
  float *y = b[0], *scratch = rd_scratch(ctx, 256), *heap = rd_heap_alloc(ctx, 16);
  y[0] = ((float *)ctx->arena)[15], y[1] = scratch[0], y[2] = scratch[63], y[3] = heap[3];
  rd_heap_free(ctx, heap);
  memset(ctx->arena, 0, 64);
  memset(scratch, 0, 256);
  return 0;
}

/* blocks(k: i64 scalar) -> i64[3]: where two blocks of k and 3 k bytes lie, and one that is needed when the first is no longer */
static const int64_t dims_3[] = {3};
static const RdParam blocks_params[] = {{"k", I64, RD_SCALAR, dims_k, 0}, {"where", I64, 1, dims_3, 0}};
static int32_t blocks_run(RdContext *ctx, const int64_t *s, void **b) {
  void *first = rd_heap_alloc(ctx, s[0]), *second = rd_heap_alloc(ctx, 3 * s[0]);
  rd_heap_free(ctx, first);
  void *third = rd_heap_alloc(ctx, s[0] / 2);
  int64_t *where = b[1];
  where[0] = (int64_t)first, where[1] = (int64_t)second, where[2] = (int64_t)third;
  rd_heap_free(ctx, second);
  return 0; /* the run ends the third */
}

/* half(x: bf16[n]) -> bf16[n] and nibbles(x: i4[n]) -> i4[n]: copies */
static const RdParam half_params[] = {{"x", 4, 16, 1, 1, dims_n, 0}, {"y", 4, 16, 1, 1, dims_n, 0}};
static int32_t half_run(RdContext *ctx, const int64_t *s, void **b) {
  (void)ctx;
  if (s[0]) memcpy(b[1], b[0], (size_t)s[0] * 2);
  return 0;
}
static const RdParam nibbles_params[] = {{"x", 0, 4, 1, 1, dims_n, 0}, {"y", 0, 4, 1, 1, dims_n, 0}};
static int32_t nibbles_run(RdContext *ctx, const int64_t *s, void **b) {
  (void)ctx;
  if (s[0]) memcpy(b[1], b[0], (size_t)(s[0] + 1) / 2);
  return 0;
}

static const RdFunction functions[] = {
    FUNCTION(scale, 1, 1, symbols_n, .arena_size = scale_arena, .num_constants = 1, .constants = scale_constants, .num_kernels = 2, .kernels = scale_kernels),
    FUNCTION(concat, 2, 2, symbols_nm, .shapes = concat_shapes),
    FUNCTION(nonzero, 1, 1, symbols_n, .shapes = nonzero_shapes),
    FUNCTION(fill, 1, 1, symbols_n),
    FUNCTION(callback, 1, 1, symbols_n),
    FUNCTION(update, 0, 1, symbols_n),
    {.abi = RD_ABI, .name = "peek", .num_outputs = 1, .params = peek_params, .arena_size = peek_arena, .run = peek_run},
    FUNCTION(half, 1, 1, symbols_n),
    FUNCTION(nibbles, 1, 1, symbols_n),
    FUNCTION(blocks, 1, 1, symbols_n),
#ifdef NEEDS
    {.abi = RD_ABI, .name = "newer", .cpu_features = NEEDS, .num_outputs = 1, .params = peek_params, .run = peek_run},
#endif
};

#ifdef METADATA
#include METADATA
#else
static const char metadata[] = "";
#endif
#ifndef WEIGHTS
#define WEIGHTS 16
#endif
RD_API const RdLibrary roundel_library = {RD_ABI, LENGTH(functions), functions, WEIGHTS, metadata};
