/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs whose memory the runtime gets: one block holds the shape and, 64-byte aligned behind it, the data. */
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

static void *get_memory(const RdModel *model, size_t nbytes) {
  return model->options.allocate ? model->options.allocate(model->options.user, nbytes) : os_alloc(nbytes);
}

void roundel_release(RdModel *model, DLTensor *output) {
  if (!output || !output->shape || !output->data) return;
  if (model && model->options.allocate) {
    if (model->options.release) model->options.release(model->options.user, output->shape);
  } else {
    os_free(output->shape, 0);
  }
  output->data = NULL;
  output->shape = NULL;
}

void *output_allocate(Context *ctx, int32_t index, int32_t ndim, const int64_t *shape) {
  const RdParam *param = &ctx->function->params[ctx->function->num_inputs + index];
  DLDataType dtype = {param->code, param->bits, param->lanes};
  size_t header = ((size_t)ndim * sizeof(int64_t) + 64) / 64 * 64;
  int64_t nbytes;
  char *block = NULL;
  if (!tensor_nbytes(ndim, shape, dtype, &nbytes)) block = get_memory(ctx->model, header + (size_t)nbytes);
  if (!block) {
    rd_context_error(ctx, RD_MEMORY_ERROR, "no memory for output %d ('%s')", (int)index, param->name ? param->name : "");
    return NULL;
  }
  if (ndim) memcpy(block, shape, (size_t)ndim * sizeof(int64_t));
  *ctx->outputs[index] = (DLTensor){.data = block + header, .device = {kDLCPU, 0}, .ndim = ndim, .dtype = dtype,
                                    .shape = (int64_t *)(void *)block};
  ctx->allocated[index] = 1;
  return block + header;
}

void output_discard(Context *ctx) {
  for (int32_t i = 0; i < ctx->function->num_outputs; i++)
    if (ctx->allocated[i]) roundel_release(ctx->model, ctx->outputs[i]);
}

void *rd_alloc_output(RdContext *shared, int32_t index, int32_t ndim, const int64_t *shape) {
  Context *ctx = (Context *)shared;
  if (index < 0 || index >= ctx->function->num_outputs || ndim < 0 || ndim > RD_MAX_RANK) {
    rd_fail(shared, "the model allocates an output that it does not have");
    return NULL;
  }
  DLTensor *output = ctx->outputs[index];
  if (!output->data) return output_allocate(ctx, index, ndim, shape);
  void *memory = ctx->buffers[ctx->function->num_inputs + index]; /* the caller's, or what stands in for it */
  if (output->ndim != ndim) memory = NULL;
  for (int32_t i = 0; i < ndim && memory; i++)
    if (output->shape[i] != shape[i]) {
      rd_context_error(ctx, RD_VALUE_ERROR, "dimension %d of output %d is %lld, but the result has %lld there", (int)i,
                       (int)index, (long long)output->shape[i], (long long)shape[i]);
      return NULL;
    }
  if (!memory) rd_context_error(ctx, RD_VALUE_ERROR, "output %d has %d dimensions, but the result has %d", (int)index,
                                (int)output->ndim, (int)ndim);
  return memory;
}
