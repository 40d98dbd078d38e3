/* SPDX-License-Identifier: Apache-2.0 */
/* A call with NumPy's arrays, read where they are, or with tensors that their library describes: nothing is made in Python for each of them.
 * Arrays of another type are left to the caller, which describes or refuses them; all else is checked as in every call. */
#include <stdlib.h>

#include "runtime.h"

/* What follows an object's header in NumPy's array; compiled extensions rely on it too. */
typedef struct {
  char *data;
  int nd;
  intptr_t *dimensions, *strides;
  void *base;
  const void *type;
  int flags;
} Array;

#define C_CONTIGUOUS 0x1
#define ALIGNED 0x100

/* What a call describes to `rd_invoke`. Sizes are copied: the object's own may change while the model runs. */
typedef struct {
  DLTensor **tensors;
  DLTensor *views;
  int64_t *sizes; /* not taken yet */
} Views;

#define ON_STACK 4096 /* bytes: calls with few tensors ask for no memory */

static int32_t rank_of(const RdParam *param) { return param->ndim > 0 ? param->ndim : 0; }

static size_t views_nbytes(const RdFunction *function, int32_t count) {
  size_t nbytes = (size_t)count * (sizeof(DLTensor) + sizeof(DLTensor *));
  for (int32_t i = 0; i < count; i++) nbytes += 2 * sizeof(int64_t) * (size_t)rank_of(&function->params[i]);
  return nbytes;
}

/* Strides stay those of the array, in elements. */
static int view_of(const RdArrays *call, const RdParam *param, const void *type, const char *object, DLTensor *view, int64_t *sizes) {
  const Array *array = (const Array *)(const void *)(object + call->header);
  if (*(void *const *)(const void *)(object + call->type_at) != call->array_type) return 1;
  if (array->type != type || !(array->flags & ALIGNED) || array->nd != rank_of(param)) return 1;
  int contiguous = array->flags & C_CONTIGUOUS, rank = array->nd;
  intptr_t nbytes = param->bits * param->lanes / 8;
  for (int i = 0; i < rank; i++) {
    sizes[i] = array->dimensions[i];
    if (contiguous) continue;
    if (array->strides[i] % nbytes) return 1;
    sizes[rank + i] = array->strides[i] / nbytes;
  }
  *view = (DLTensor){.data = array->data, .device = {kDLCPU, 0}, .ndim = rank, .dtype = {param->code, param->bits, param->lanes},
                     .shape = sizes, .strides = contiguous ? NULL : sizes + rank};
  return 0;
}

/* One without memory is left to the caller too: it is empty, or stands for one that is elsewhere. */
static int describe_into(const RdParam *param, const char *object, RdDescribe describe, DLTensor *view, int64_t *sizes) {
  if (describe(object, view) || !view->data || view->ndim != rank_of(param)) return 1;
  for (int i = 0; i < view->ndim; i++) {
    sizes[i] = view->shape[i];
    if (view->strides) sizes[view->ndim + i] = view->strides[i];
  }
  view->shape = sizes;
  if (view->strides) view->strides = sizes + view->ndim;
  return 0;
}

static int described(const RdArrays *call, const RdFunction *function, const char *arguments, const char *results, RdDescribe describe, Views views) {
  int32_t inputs = function->num_inputs, count = inputs + function->num_outputs;
  for (int32_t i = 0; i < count; i++) {
    const RdParam *param = &function->params[i];
    const char *tuple = i < inputs ? arguments : results;
    const char *object = ((const char *const *)(const void *)(tuple + call->items))[i < inputs ? i : i - inputs];
    DLTensor *view = views.tensors[i] = &views.views[i];
    if (describe ? describe_into(param, object, describe, view, views.sizes) : view_of(call, param, call->types[i], object, view, views.sizes)) return 0;
    views.sizes += 2 * rank_of(param);
  }
  return 1;
}

int rd_call_arrays(const RdArrays *call, const char *arguments, const char *results, RdDescribe describe) {
  const RdFunction *function = &call->model->library->functions[call->function];
  int32_t count = function->num_inputs + function->num_outputs;
  size_t nbytes = views_nbytes(function, count);
  int64_t on_stack[ON_STACK / sizeof(int64_t)];
  char *room = nbytes <= sizeof(on_stack) ? (char *)on_stack : malloc(nbytes);
  if (!room) return -1;
  Views views = {.views = (DLTensor *)(void *)room};
  views.tensors = (DLTensor **)(void *)(views.views + count);
  views.sizes = (int64_t *)(void *)(views.tensors + count);
  int status = -1;
  if (described(call, function, arguments, results, describe, views)) {
    void *state = call->save_thread();
    status = rd_invoke(call->model, call->function, views.tensors);
    call->restore_thread(state);
  }
  if (room != (char *)on_stack) free(room);
  return status;
}
