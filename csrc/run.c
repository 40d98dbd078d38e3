/* SPDX-License-Identifier: Apache-2.0 */
/* One call of a function: check, find or make compact memory for every parameter, run, hand back. */
#include <string.h>

#include "runtime.h"

typedef struct { uintptr_t low, high; } Extent;

static int overlap(Extent a, Extent b) { return a.low < b.high && b.low < a.high; }

static Extent extent_of(const DLTensor *tensor) {
  Extent extent;
  tensor_extent(tensor, &extent.low, &extent.high); /* does not overflow: checked */
  return extent;
}

/* A compact copy for the time of the run. */
static void *stage(Context *ctx, const DLTensor *tensor, int copy_in) {
  int64_t nbytes;
  tensor_nbytes(tensor->ndim, tensor->shape, tensor->dtype, &nbytes);
  void *memory = block_alloc(ctx, (size_t)nbytes);
  if (!memory) rd_context_error(ctx, RD_MEMORY_ERROR, "no memory for a copy of %lld bytes", (long long)nbytes);
  else if (copy_in && tensor_pack(tensor, memory, &ctx->shared)) return NULL;
  return memory;
}

/* Generated code asks for the alignment of an element, as C does. */
static int is_aligned(const DLTensor *tensor) {
  uintptr_t size = (uintptr_t)tensor->dtype.bits / 8, natural = size >= 8 ? 8 : size >= 4 ? 4 : size >= 2 ? 2 : 1;
  return (uintptr_t)tensor_data(tensor) % natural == 0;
}

static int usable_in_place(const DLTensor *tensor) { return is_aligned(tensor) && tensor_is_compact(tensor); }

static int repeats_memory(const DLTensor *tensor) {
  if (tensor_is_compact(tensor)) return 0;
  for (int32_t i = 0; i < tensor->ndim; i++)
    if (tensor->strides[i] == 0 && tensor->shape[i] > 1) return 1;
  return 0;
}

static int known(const int64_t *dims, int32_t ndim) {
  for (int32_t i = 0; i < ndim; i++)
    if (dims[i] == RD_COMPUTED) return 0;
  return 1;
}

static int place_output(Context *ctx, int32_t index, const int64_t *dims) {
  const RdParam *param = &ctx->function->params[ctx->function->num_inputs + index];
  DLTensor *output = ctx->outputs[index];
  void **buffer = &ctx->buffers[ctx->function->num_inputs + index];
  int32_t ndim = param->ndim < 0 ? 0 : param->ndim;
  if (!output->data) {
    *buffer = NULL;
    if (known(dims, ndim) && !(*buffer = output_allocate(ctx, index, ndim, dims))) return ctx->shared.status;
    return 0;
  }
  if (repeats_memory(output))
    return rd_context_error(ctx, RD_VALUE_ERROR, "output %d has a stride of 0, so its elements share memory", (int)index);
  for (int32_t i = 0; i < index; i++)
    if (!ctx->allocated[i] && ctx->outputs[i]->data && overlap(extent_of(output), extent_of(ctx->outputs[i])))
      return rd_context_error(ctx, RD_VALUE_ERROR, "outputs %d and %d share memory", (int)i, (int)index);
  *buffer = tensor_data(output);
  const RdCache *cache = cache_of_output(ctx, index);
  int64_t capacity = cache && is_aligned(output) ? cache_capacity(output, cache->axis) : -1;
  if (capacity >= 0) {
    ctx->symbols[cache->symbol] = capacity - dims[cache->axis];
    return 0;
  }
  if (!usable_in_place(output) && !(*buffer = stage(ctx, output, (param->flags & RD_INOUT) != 0))) return ctx->shared.status;
  return 0;
}

static int place_input(Context *ctx, int32_t index, const DLTensor *input) {
  const RdCache *cache = cache_of_input(ctx, index);
  ctx->buffers[index] = tensor_data(input);
  if (cache && cache_grows(ctx, cache, input)) return 0;
  int copy = cache ? cache_capacity(input, cache->axis) < 0 : !usable_in_place(input);
  Extent extent = extent_of(input);
  for (int32_t i = 0; i < ctx->function->num_outputs && !copy; i++)
    copy = !ctx->allocated[i] && ctx->outputs[i]->data && overlap(extent, extent_of(ctx->outputs[i]));
  if (copy && !(ctx->buffers[index] = stage(ctx, input, 1))) return ctx->shared.status;
  return 0;
}

static int place_arguments(Context *ctx, const DLTensor *const *inputs, DLTensor *const *outputs) {
  const RdFunction *function = ctx->function;
  const int64_t *dims = ctx->dims;
  for (int32_t i = 0; i < function->num_inputs; i++)
    if (function->params[i].ndim > 0) dims += function->params[i].ndim;
  memset(ctx->allocated, 0, (size_t)function->num_outputs);
  for (int32_t i = 0; i < function->num_outputs; i++) ctx->outputs[i] = outputs[i];
  for (int32_t i = 0; i < function->num_outputs; i++) {
    if (place_output(ctx, i, dims)) return ctx->shared.status;
    if (function->params[function->num_inputs + i].ndim > 0) dims += function->params[function->num_inputs + i].ndim;
  }
  for (int32_t i = 0; i < function->num_inputs; i++)
    if (place_input(ctx, i, inputs[i])) return ctx->shared.status;
  return 0;
}

static int execute(Context *ctx, const DLTensor *const *inputs) {
  const RdFunction *function = ctx->function;
  if (context_reserve_arena(ctx, function->arena_size ? function->arena_size(ctx->symbols) : 0)) return ctx->shared.status;
  int parallel = atomic_load(&ctx->model->num_threads) > 1;
  if (parallel) pool_begin_run();
  cache_fill(ctx, inputs);
  int32_t status = function->run(&ctx->shared, ctx->symbols, ctx->buffers);
  if (parallel) pool_end_run();
  if (status && !ctx->shared.status) rd_fail(&ctx->shared, "the model failed without a message");
  for (int32_t i = 0; i < function->num_outputs && !ctx->shared.status; i++)
    if (!ctx->outputs[i]->data) rd_context_error(ctx, RD_RUNTIME_ERROR, "the model did not produce output %d", (int)i);
  return ctx->shared.status;
}

int rd_run(RdModel *model, int32_t index, const DLTensor *const *inputs, DLTensor *const *outputs, int *raised) {
  Context *ctx = context_acquire(model, index);
  if (!ctx) return RD_MEMORY_ERROR;
  const RdFunction *function = ctx->function;
  int placed = 0;
  if (!check_arguments(ctx, inputs, outputs)) {
    placed = 1;
    if (!place_arguments(ctx, inputs, outputs)) execute(ctx, inputs);
  }
  for (int32_t i = 0; i < function->num_outputs && !ctx->shared.status; i++)
    if (!ctx->allocated[i] && ctx->buffers[function->num_inputs + i] != tensor_data(outputs[i]))
      tensor_unpack(outputs[i], ctx->buffers[function->num_inputs + i], &ctx->shared);
  int status = ctx->shared.status;
  if (status) {
    if (placed) output_discard(ctx);
    if (raised) *raised = ctx->raised;
    else if (ctx->raised) ffi_take_raised(ctx);
    rd_publish_error(ctx);
  }
  context_release(ctx);
  return status;
}

int rd_invoke(RdModel *model, int32_t index, DLTensor **tensors) {
  static _Alignas(64) char nothing[64];
  const RdFunction *function = &model->library->functions[index];
  DLTensor **outputs = tensors + function->num_inputs, copies[16];
  int32_t used = 0;
  for (int32_t i = 0; i < function->num_outputs; i++) {
    if (outputs[i]->data || outputs[i]->ndim < 0) continue;
    if (tensor_lacks_data(outputs[i], &function->params[function->num_inputs + i])) return rd_set_error(RD_VALUE_ERROR, "output %d of '%s' has no data", (int)i, function->name);
    if (used == 16) return rd_set_error(RD_VALUE_ERROR, "more than 16 outputs have no data");
    copies[used] = *outputs[i];
    copies[used].data = nothing;
    outputs[i] = &copies[used++];
  }
  int raised = 0, status = rd_run(model, index, (const DLTensor *const *)tensors, outputs, &raised);
  return status && raised ? RD_CALLBACK_ERROR : status;
}

int rd_time_calls(RdModel *model, int32_t index, DLTensor ***sets, int32_t num_sets, int64_t calls, int64_t *nanoseconds) {
  int64_t begin = os_time_ns();
  for (int64_t k = 0; k < calls; k++) {
    int status = rd_invoke(model, index, sets[k % num_sets]);
    if (status) return status;
  }
  *nanoseconds = os_time_ns() - begin;
  return 0;
}
