/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of one call: types and ranks, the value of every symbol, then every dimension, so that generated code may
 * believe what it was promised. An output without `data` is not checked, the runtime allocates it. */
#include <stdio.h>

#include "runtime.h"

#define UNSOLVED INT64_MIN
#define BAD(...) rd_context_error(ctx, RD_VALUE_ERROR, __VA_ARGS__)

/* "input 'x'" or "output 1 ('y')" */
static const char *param_text(const RdFunction *function, int32_t index, char text[128]) {
  int is_input = index < function->num_inputs;
  const char *name = function->params[index].name;
  int32_t number = is_input ? index : index - function->num_inputs;
  int length = name ? rd_whole_characters(name, 64) : 0;
  const char *kind = is_input ? "input" : "output";
  if (!length) snprintf(text, 128, "%s %d", kind, (int)number);
  else snprintf(text, 128, "%s %d ('%.*s%s')", kind, (int)number, length, name, name[length] ? "..." : "");
  return text;
}

static const DLTensor *given(const Context *ctx, const DLTensor *const *inputs, DLTensor *const *outputs, int32_t index) {
  int32_t output = index - ctx->function->num_inputs;
  return output < 0 ? inputs[index] : outputs[output];
}

#define NAME param_text(ctx->function, index, name) /* made for messages only: it takes longer than the checks */

static int check_type(Context *ctx, int32_t index, const DLTensor *tensor) {
  const RdParam *param = &ctx->function->params[index];
  char name[128], want[32], have[32];
  if (tensor->device.device_type != kDLCPU)
    return BAD("%s is on device type %d; this model takes tensors in CPU memory", NAME, (int)tensor->device.device_type);
  if (tensor->dtype.code != param->code || tensor->dtype.bits != param->bits || tensor->dtype.lanes != param->lanes) {
    DLDataType wanted = {param->code, param->bits, param->lanes};
    return rd_context_error(ctx, RD_TYPE_ERROR, "%s has dtype %s, expected %s", NAME, dtype_text(tensor->dtype, have),
                            dtype_text(wanted, want));
  }
  int32_t ndim = param->ndim < 0 ? 0 : param->ndim;
  if (tensor->ndim != ndim) return BAD("%s has %d dimensions, expected %d", NAME, (int)tensor->ndim, (int)ndim);
  if (ndim > RD_MAX_RANK) return BAD("%s has %d dimensions, at most %d are supported", NAME, (int)ndim, RD_MAX_RANK);
  if (ndim && !tensor->shape) return BAD("%s has no shape", NAME);
  for (int32_t i = 0; i < ndim; i++)
    if (tensor->shape[i] < 0) return BAD("%s has dimension %d = %lld, which is negative", NAME, (int)i, (long long)tensor->shape[i]);
  int64_t nbytes;
  if (tensor_nbytes(ndim, tensor->shape, tensor->dtype, &nbytes)) return BAD("the size of %s overflows", NAME);
  if (nbytes && !tensor->data) return BAD("%s has no data", NAME);
  uintptr_t low, high;
  if (tensor_extent(tensor, &low, &high)) return BAD("the strides of %s overflow", NAME);
  for (int32_t i = 0; i < ndim && index >= ctx->function->num_inputs && tensor->strides && nbytes; i++)
    if (tensor->shape[i] > 1 && tensor->strides[i] == 0) return BAD("%s has stride 0 in dimension %d: its elements share memory", NAME, (int)i);
  if (tensor->dtype.bits % 8 && !tensor_is_compact(tensor)) return BAD("%s is strided, which %d-bit types may not be", NAME, tensor->dtype.bits);
  return 0;
}

/* The parameter and dimension that gave a symbol its value, for messages. */
static const char *origin_text(Context *ctx, int32_t symbol, char text[192]) {
  const RdFunction *function = ctx->function;
  char name[128];
  for (int32_t p = 0; p < function->num_inputs + function->num_outputs; p++) {
    const RdParam *param = &function->params[p];
    int32_t count = param->ndim == RD_SCALAR ? (param->dims ? 1 : 0) : param->ndim;
    for (int32_t i = 0; i < count; i++)
      if (param->dims[i] == -1 - (int64_t)symbol) {
        param_text(function, p, name);
        if (param->ndim == RD_SCALAR) snprintf(text, 192, "%s", name);
        else snprintf(text, 192, "dimension %d of %s", (int)i, name);
        return text;
      }
  }
  snprintf(text, 192, "nothing");
  return text;
}

static int bind_symbol(Context *ctx, int32_t symbol, int64_t value, int32_t index, int32_t dim) {
  int64_t *known = &ctx->symbols[symbol];
  if (*known == UNSOLVED) *known = value;
  if (*known == value) return 0;
  char name[128], origin[192], where[160];
  param_text(ctx->function, index, name);
  if (dim < 0) snprintf(where, sizeof where, "%s", name);
  else snprintf(where, sizeof where, "dimension %d of %s", (int)dim, name);
  return BAD("%s is %lld, but '%s' is %lld (%s)", where, (long long)value, ctx->function->symbols[symbol], (long long)*known,
             origin_text(ctx, symbol, origin));
}

static int scalar_value(const DLTensor *tensor, int64_t *value) {
  const void *data = tensor_data(tensor);
  int is_signed = tensor->dtype.code == kDLInt;
  if (!is_signed && tensor->dtype.code != kDLUInt && tensor->dtype.code != kDLBool) return 1;
  switch (tensor->dtype.bits) {
    case 8: *value = is_signed ? *(const int8_t *)data : *(const uint8_t *)data; return 0;
    case 16: *value = is_signed ? *(const int16_t *)data : *(const uint16_t *)data; return 0;
    case 32: *value = is_signed ? *(const int32_t *)data : (int64_t)*(const uint32_t *)data; return 0;
    case 64: *value = *(const int64_t *)data; return 0;
    default: return 1;
  }
}

static int solve_symbols(Context *ctx, const DLTensor *const *inputs, DLTensor *const *outputs) {
  const RdFunction *function = ctx->function;
  for (int32_t s = 0; s < function->num_symbols; s++) ctx->symbols[s] = UNSOLVED;
  for (int32_t i = 0; i < function->num_caches; i++) ctx->symbols[function->caches[i].symbol] = 0; /* until its memory is known */
  for (int32_t p = 0; p < function->num_inputs + function->num_outputs; p++) {
    const RdParam *param = &function->params[p];
    const DLTensor *tensor = given(ctx, inputs, outputs, p);
    if (p >= function->num_inputs && !tensor->data) continue;
    if (param->ndim == RD_SCALAR) {
      int64_t value;
      if (!param->dims) continue;
      if (scalar_value(tensor, &value)) return BAD("parameter %d should be an integer", (int)p);
      if (bind_symbol(ctx, (int32_t)(-1 - param->dims[0]), value, p, -1)) return ctx->shared.status;
    }
    for (int32_t i = 0; i < param->ndim; i++)
      if (param->dims[i] < 0 && param->dims[i] != RD_COMPUTED &&
          bind_symbol(ctx, (int32_t)(-1 - param->dims[i]), tensor->shape[i], p, i))
        return ctx->shared.status;
  }
  for (int32_t s = 0; s < function->num_symbols; s++)
    if (ctx->symbols[s] == UNSOLVED)
      return BAD("the size '%s' does not follow from the inputs; pass the outputs too", function->symbols[s]);
  return 0;
}

static void compute_dims(Context *ctx) {
  const RdFunction *function = ctx->function;
  int64_t *dims = ctx->dims;
  if (function->shapes) {
    function->shapes(ctx->symbols, dims);
    return;
  }
  for (int32_t p = 0; p < function->num_inputs + function->num_outputs; p++)
    for (int32_t i = 0; i < function->params[p].ndim; i++, dims++) {
      int64_t dim = function->params[p].dims[i];
      *dims = dim >= 0 || dim == RD_COMPUTED ? dim : ctx->symbols[-1 - dim];
    }
}

static int compare_dims(Context *ctx, int32_t index, const DLTensor *tensor, const int64_t *dims) {
  const RdParam *param = &ctx->function->params[index];
  char name[128], origin[192];
  for (int32_t i = 0; i < param->ndim; i++) {
    if (dims[i] == RD_COMPUTED || (tensor && tensor->shape[i] == dims[i])) continue;
    param_text(ctx->function, index, name);
    if (dims[i] < 0) return BAD("dimension %d of %s would be %lld for these inputs", (int)i, name, (long long)dims[i]);
    if (!tensor) continue;
    if (param->dims[i] >= 0 || param->dims[i] == RD_COMPUTED || !ctx->function->num_symbols)
      return BAD("dimension %d of %s is %lld, expected %lld", (int)i, name, (long long)tensor->shape[i], (long long)dims[i]);
    int32_t symbol = (int32_t)(-1 - param->dims[i]);
    return BAD("dimension %d of %s is %lld, expected '%s' = %lld (%s)", (int)i, name, (long long)tensor->shape[i],
               ctx->function->symbols[symbol], (long long)dims[i], origin_text(ctx, symbol, origin));
  }
  DLDataType dtype = {param->code, param->bits, param->lanes};
  int64_t nbytes;
  for (int32_t i = 0; i < param->ndim; i++)
    if (dims[i] == RD_COMPUTED) return 0;
  if (tensor_nbytes(param->ndim, dims, dtype, &nbytes))
    return BAD("the size of %s overflows for these inputs", param_text(ctx->function, index, name));
  return 0;
}

int check_arguments(Context *ctx, const DLTensor *const *inputs, DLTensor *const *outputs) {
  const RdFunction *function = ctx->function;
  int32_t count = function->num_inputs + function->num_outputs;
  char name[128];
  for (int32_t p = 0; p < count; p++) {
    const DLTensor *tensor = given(ctx, inputs, outputs, p);
    if (!tensor) return BAD("%s is missing", param_text(function, p, name));
    if (p >= function->num_inputs && !tensor->data) continue;
    if (check_type(ctx, p, tensor)) return ctx->shared.status;
  }
  if (solve_symbols(ctx, inputs, outputs)) return ctx->shared.status;
  compute_dims(ctx);
  const int64_t *dims = ctx->dims;
  for (int32_t p = 0; p < count; p++) {
    const DLTensor *tensor = given(ctx, inputs, outputs, p);
    int absent = p >= function->num_inputs && !tensor->data;
    if (compare_dims(ctx, p, absent ? NULL : tensor, dims)) return ctx->shared.status;
    if (function->params[p].ndim > 0) dims += function->params[p].ndim;
  }
  return 0;
}
