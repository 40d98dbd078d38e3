/* SPDX-License-Identifier: Apache-2.0 */
/* A call with NumPy's arrays, read where they are, or with tensors that their library describes: nothing is made in Python for each of them.
 * Arrays that are not contiguous or of another type are left to the caller, which describes or refuses them; all else is checked as in every
 * call. */
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

#define C_CONTIGUOUS 1

typedef struct {
  DLTensor tensor;
  int64_t shape[RD_MAX_RANK], strides[RD_MAX_RANK]; /* the object's own may change while the model runs */
} View;

static int view_of(const RdArrays *call, const RdParam *param, const void *type, const char *object, View *view) {
  const Array *array = (const Array *)(const void *)(object + call->header);
  if (*(void *const *)(const void *)(object + call->type_at) != call->array_type) return 1;
  if (array->type != type || !(array->flags & C_CONTIGUOUS) || array->nd > RD_MAX_RANK) return 1;
  for (int i = 0; i < array->nd; i++) view->shape[i] = array->dimensions[i];
  view->tensor = (DLTensor){.data = array->data, .device = {kDLCPU, 0}, .ndim = array->nd, .dtype = {param->code, param->bits, param->lanes},
                            .shape = view->shape};
  return 0;
}

/* One without memory is left to the caller too: it is empty, or stands for one that is elsewhere. */
static int describe_into(View *view, const char *object, RdDescribe describe) {
  DLTensor *tensor = &view->tensor;
  if (describe(object, tensor) || !tensor->data || tensor->ndim > RD_MAX_RANK) return 1;
  for (int i = 0; i < tensor->ndim; i++) {
    view->shape[i] = tensor->shape[i];
    if (tensor->strides) view->strides[i] = tensor->strides[i];
  }
  tensor->shape = view->shape;
  if (tensor->strides) tensor->strides = view->strides;
  return 0;
}

int rd_python_arrays(const RdArrays *call, const char *arguments, const char *results, RdDescribe describe) {
  const RdFunction *function = &call->model->library->functions[call->function];
  View views[RD_ARRAYS_MOST];
  DLTensor *tensors[RD_ARRAYS_MOST];
  int32_t inputs = function->num_inputs, count = inputs + function->num_outputs;
  for (int32_t i = 0; i < count; i++) {
    const char *tuple = i < inputs ? arguments : results;
    const char *object = ((const char *const *)(const void *)(tuple + call->items))[i < inputs ? i : i - inputs];
    if (describe ? describe_into(&views[i], object, describe) : view_of(call, &function->params[i], call->types[i], object, &views[i])) return -1;
    tensors[i] = &views[i].tensor;
  }
  void *state = call->save_thread();
  int status = rd_invoke(call->model, call->function, tensors);
  call->restore_thread(state);
  return status;
}
