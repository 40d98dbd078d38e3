/* SPDX-License-Identifier: Apache-2.0 */
/* Caches: outputs that append to an input. Their memory may have room behind the rows of each outer index. */
#include <string.h>

#include "runtime.h"

const RdCache *cache_of_output(const Context *ctx, int32_t output) {
  for (int32_t i = 0; i < ctx->function->num_caches; i++)
    if (ctx->function->caches[i].output == output) return &ctx->function->caches[i];
  return NULL;
}

const RdCache *cache_of_input(const Context *ctx, int32_t input) {
  for (int32_t i = 0; i < ctx->function->num_caches; i++)
    if (ctx->function->caches[i].input == input) return &ctx->function->caches[i];
  return NULL;
}

static int64_t product(const int64_t *shape, int32_t begin, int32_t end) {
  uint64_t count = 1; /* may overflow where an extent is zero */
  for (int32_t i = begin; i < end; i++) count *= (uint64_t)shape[i];
  return (int64_t)count;
}

int64_t cache_capacity(const DLTensor *tensor, int32_t axis) {
  const int64_t *shape = tensor->shape, *strides = tensor->strides, rows = shape[axis];
  if (tensor_is_compact(tensor)) return rows;
  int64_t expected = 1, capacity = -1;
  for (int32_t i = tensor->ndim - 1; i >= axis; i--) {
    if (shape[i] != 1 && strides[i] != expected) return -1;
    if (i > axis) expected *= shape[i];
  }
  int64_t row = expected;
  for (int32_t i = axis - 1; i >= 0; i--) {
    if (shape[i] == 1) continue;
    if (capacity < 0) {
      if (strides[i] % row || strides[i] / row < rows) return -1;
      capacity = strides[i] / row;
      expected = strides[i];
    }
    if (strides[i] != expected) return -1;
    expected *= shape[i];
  }
  return capacity < 0 ? rows : capacity;
}

static int64_t output_capacity(const Context *ctx, const RdCache *cache) {
  return ctx->outputs[cache->output]->shape[cache->axis] + ctx->symbols[cache->symbol];
}

int cache_grows(const Context *ctx, const RdCache *cache, const DLTensor *past) {
  if (ctx->buffers[ctx->function->num_inputs + cache->output] != tensor_data(past)) return 0;
  int64_t capacity = cache_capacity(past, cache->axis);
  return capacity >= 0 && (product(past->shape, 0, cache->axis) == 1 || capacity == output_capacity(ctx, cache));
}

typedef struct { char *to; const char *from; int64_t to_step, from_step, nbytes; } Fill;

static void fill_rows(int64_t begin, int64_t end, void **args) {
  const Fill *fill = args[0];
  for (int64_t i = begin; i < end; i++)
    memcpy(fill->to + i * fill->to_step, fill->from + i * fill->from_step, (size_t)fill->nbytes);
}

void cache_fill(Context *ctx, const DLTensor *const *inputs) {
  for (int32_t i = 0; i < ctx->function->num_caches; i++) {
    const RdCache *cache = &ctx->function->caches[i];
    const DLTensor *past = inputs[cache->input];
    const void *from = ctx->buffers[cache->input];
    void *to = ctx->buffers[ctx->function->num_inputs + cache->output];
    int64_t outer = product(past->shape, 0, cache->axis), rows = past->shape[cache->axis];
    int64_t row = product(past->shape, cache->axis + 1, past->ndim) * (past->dtype.bits / 8);
    if (outer * rows * row == 0 || from == to) continue;
    int64_t capacity = from == tensor_data(past) ? cache_capacity(past, cache->axis) : rows; /* a copy of it is compact */
    Fill fill = {to, from, output_capacity(ctx, cache) * row, capacity * row, rows * row};
    void *args[] = {&fill};
    int64_t grain = (1 << 18) / fill.nbytes;
    rd_parallel_for(&ctx->shared, fill_rows, args, outer, grain < 1 ? 1 : grain);
  }
}
