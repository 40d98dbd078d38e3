/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: the memory of one run. A model keeps those that are free, so a second run finds its arena warm. */
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

void rd_lock(_Atomic uint32_t *lock) {
  while (atomic_exchange_explicit(lock, 1, memory_order_acquire)) os_yield();
}

void rd_unlock(_Atomic uint32_t *lock) { atomic_store_explicit(lock, 0, memory_order_release); }

/* Gives back kept blocks of so many bytes, or all. */
static void free_kept(Context *ctx, size_t nbytes) {
  for (size_t freed = 0; ctx->kept && freed < nbytes;) {
    RdBlock *block = ctx->kept;
    ctx->kept = block->next;
    ctx->kept_nbytes -= block->nbytes;
    freed += block->nbytes;
    os_free(block, block->nbytes);
  }
}

/* Sizes that serve every function of the model. */
static Context *context_new(RdModel *model) {
  size_t params = 1, dims = 1, symbols = 1, outputs = 1, kernels = 1;
  for (int32_t i = 0; i < model->library->num_functions; i++) {
    const RdFunction *function = &model->library->functions[i];
    size_t count = (size_t)function->num_inputs + (size_t)function->num_outputs;
    if (count > params) params = count;
    if ((size_t)model->functions[i].num_dims > dims) dims = (size_t)model->functions[i].num_dims;
    if ((size_t)function->num_symbols > symbols) symbols = (size_t)function->num_symbols;
    if ((size_t)function->num_outputs > outputs) outputs = (size_t)function->num_outputs;
    if ((size_t)function->num_kernels > kernels) kernels = (size_t)function->num_kernels;
  }
  Context *ctx = calloc(1, sizeof *ctx);
  if (!ctx) return NULL;
  ctx->model = model;
  ctx->symbols = calloc(symbols, sizeof *ctx->symbols);
  ctx->dims = calloc(dims, sizeof *ctx->dims);
  ctx->buffers = calloc(params, sizeof *ctx->buffers);
  ctx->outputs = calloc(outputs, sizeof *ctx->outputs);
  ctx->allocated = calloc(outputs, sizeof *ctx->allocated);
  ctx->kernel_begin = calloc(kernels, sizeof *ctx->kernel_begin);
  if (ctx->symbols && ctx->dims && ctx->buffers && ctx->outputs && ctx->allocated && ctx->kernel_begin) return ctx;
  context_free(ctx);
  return NULL;
}

void context_free(Context *ctx) {
  free_kept(ctx, SIZE_MAX);
  os_free(ctx->shared.arena, ctx->arena_capacity);
  os_free(ctx->scratch.memory, ctx->scratch.capacity);
  free(ctx->symbols);
  free(ctx->dims);
  free(ctx->buffers);
  free(ctx->outputs);
  free(ctx->allocated);
  free(ctx->kernel_begin);
  free(ctx);
}

Context *context_acquire(RdModel *model, int32_t function) {
  rd_lock(&model->lock);
  Context *ctx = model->free_contexts;
  if (ctx) model->free_contexts = ctx->next_free;
  rd_unlock(&model->lock);
  if (!ctx) ctx = context_new(model);
  if (!ctx) {
    rd_set_error(RD_MEMORY_ERROR, "no memory for another run of the model");
    return NULL;
  }
  ctx->function = &model->library->functions[function];
  ctx->shared.constants = model->functions[function].constants;
  ctx->shared.status = ctx->raised = 0;
  ctx->ask_at = 0;
  atomic_store_explicit(&ctx->passing, 0, memory_order_relaxed);
  ctx->message[0] = '\0';
  return ctx;
}

/* A block that is no longer used waits for the next one of its size, so that a warm run asks the system for none. */
static void keep_block(Context *ctx, RdBlock *block) {
  block->next = ctx->kept;
  ctx->kept = block;
  ctx->used_nbytes -= block->nbytes;
  ctx->kept_nbytes += block->nbytes;
}

/* The smallest block that waits and has so many bytes; NULL: there is none. */
static RdBlock *kept_block(Context *ctx, size_t nbytes) {
  RdBlock **best = NULL;
  for (RdBlock **at = &ctx->kept; *at; at = &(*at)->next)
    if ((*at)->nbytes >= nbytes && (!best || (*at)->nbytes < (*best)->nbytes)) best = at;
  if (!best) return NULL;
  RdBlock *block = *best;
  *best = block->next;
  ctx->kept_nbytes -= block->nbytes;
  return block;
}

void context_release(Context *ctx) {
  while (ctx->blocks) {
    RdBlock *block = ctx->blocks;
    ctx->blocks = block->next;
    keep_block(ctx, block);
  }
  RdModel *model = ctx->model;
  rd_lock(&model->lock);
  ctx->next_free = model->free_contexts;
  model->free_contexts = ctx;
  rd_unlock(&model->lock);
}

int context_reserve_arena(Context *ctx, int64_t nbytes) {
  if (!is_addressable(nbytes)) return rd_context_error(ctx, RD_MEMORY_ERROR, "the sizes of the inputs overflow the size of the workspace");
  if ((uint64_t)nbytes > ctx->arena_capacity) {
    os_free(ctx->shared.arena, ctx->arena_capacity);
    ctx->arena_capacity = 0;
    ctx->shared.arena = os_alloc((size_t)nbytes);
    if (!ctx->shared.arena)
      return rd_context_error(ctx, RD_MEMORY_ERROR, "no memory for a workspace of %lld bytes", (long long)nbytes);
    ctx->arena_capacity = (size_t)nbytes;
  }
  if (ctx->model->poison && ctx->shared.arena) memset(ctx->shared.arena, 0xFF, ctx->arena_capacity);
  return 0;
}

/* A header of 64 bytes keeps the memory behind it aligned. What waits and what is used are never more than what was once used together. */
void *block_alloc(Context *ctx, size_t nbytes) {
  if (nbytes > SIZE_MAX - 128) return NULL;
  rd_lock(&ctx->lock);
  RdBlock *block = kept_block(ctx, nbytes + 64);
  rd_unlock(&ctx->lock);
  if (!block) {
    block = os_alloc(nbytes + 64);
    if (!block) return NULL;
    block->nbytes = nbytes + 64;
  }
  block->previous = NULL;
  rd_lock(&ctx->lock);
  block->next = ctx->blocks;
  if (block->next) block->next->previous = block;
  ctx->blocks = block;
  ctx->used_nbytes += block->nbytes;
  if (ctx->used_nbytes > ctx->most_nbytes) ctx->most_nbytes = ctx->used_nbytes;
  if (ctx->used_nbytes + ctx->kept_nbytes > ctx->most_nbytes) free_kept(ctx, ctx->used_nbytes + ctx->kept_nbytes - ctx->most_nbytes);
  rd_unlock(&ctx->lock);
  if (ctx->model->poison) memset((char *)block + 64, 0xFF, nbytes);
  return (char *)block + 64;
}

void *rd_heap_alloc(RdContext *shared, int64_t nbytes) {
  Context *ctx = (Context *)shared;
  void *memory = is_addressable(nbytes) ? block_alloc(ctx, (size_t)nbytes) : NULL;
  if (!memory) rd_context_error(ctx, RD_MEMORY_ERROR, "no memory for %lld bytes", (long long)nbytes);
  return memory;
}

void rd_heap_free(RdContext *shared, void *memory) {
  if (!memory) return;
  Context *ctx = (Context *)shared;
  RdBlock *block = (RdBlock *)((char *)memory - 64);
  rd_lock(&ctx->lock);
  if (block->previous) block->previous->next = block->next;
  else ctx->blocks = block->next;
  if (block->next) block->next->previous = block->previous;
  keep_block(ctx, block);
  rd_unlock(&ctx->lock);
}

void *rd_scratch(RdContext *shared, int64_t nbytes) {
  Context *ctx = (Context *)shared;
  RdScratch *scratch = pool_worker_scratch();
  if (!scratch) scratch = &ctx->scratch;
  if (nbytes < 0 || (uint64_t)nbytes > scratch->capacity) {
    os_free(scratch->memory, scratch->capacity);
    scratch->capacity = 0;
    scratch->memory = is_addressable(nbytes) ? os_alloc((size_t)nbytes) : NULL;
    if (!scratch->memory) {
      rd_context_error(ctx, RD_MEMORY_ERROR, "no memory for a scratch of %lld bytes", (long long)nbytes);
      return NULL;
    }
    scratch->capacity = (size_t)nbytes;
  }
  if (ctx->model->poison && nbytes) memset(scratch->memory, 0xFF, (size_t)nbytes);
  return scratch->memory;
}

void rd_profile_begin(RdContext *shared, int32_t kernel) {
  Context *ctx = (Context *)shared;
  if (ctx->model->options.profile) ctx->kernel_begin[kernel] = os_time_ns();
}

void rd_profile_end(RdContext *shared, int32_t kernel) {
  Context *ctx = (Context *)shared;
  if (!ctx->model->options.profile) return;
  RdFunctionState *state = &ctx->model->functions[ctx->function - ctx->model->library->functions];
  if (!state->nanoseconds) return;
  atomic_fetch_add(&state->nanoseconds[kernel], os_time_ns() - ctx->kernel_begin[kernel]);
  atomic_fetch_add(&state->calls[kernel], 1);
}

int32_t rd_parallel_for(RdContext *shared, RdTask task, void **args, int64_t extent, int64_t grain) {
  if (shared && rd_status_of(shared)) return rd_status_of(shared);
  pool_run(task, args, extent, grain, shared ? atomic_load(&((Context *)shared)->model->num_threads) : pool_default_threads(), shared);
  return shared ? rd_status_of(shared) : 0;
}
