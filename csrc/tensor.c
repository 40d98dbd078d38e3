/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors in memory: sizes, extents, and copies between strided and compact ones. */
#include <stdio.h>
#include <string.h>

#include "runtime.h"

const char *dtype_text(DLDataType dtype, char text[32]) {
  static const char *const kinds[] = {"int", "uint", "float", "handle", "bfloat", "complex"};
  static const char *const whole[] = {"bool", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
                                      "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"};
  const size_t begin = sizeof kinds / sizeof *kinds, end = begin + sizeof whole / sizeof *whole;
  int length;
  if (dtype.code < begin)
    length = snprintf(text, 32, "%s%d", kinds[dtype.code], dtype.bits);
  else if (dtype.code < end)
    length = snprintf(text, 32, "%s", whole[dtype.code - begin]);
  else
    length = snprintf(text, 32, "dtype(code %d, %d bits)", dtype.code, dtype.bits);
  if (dtype.lanes != 1) snprintf(text + length, 32 - (size_t)length, "x%d", dtype.lanes);
  return text;
}

int tensor_nbytes(int32_t ndim, const int64_t *shape, DLDataType dtype, int64_t *nbytes) {
  int64_t count = 1, bits = (int64_t)dtype.bits * dtype.lanes;
  int empty = 0, overflow = 0;
  for (int32_t i = 0; i < ndim; i++) empty |= shape[i] == 0;
  for (int32_t i = 0; i < ndim && !empty; i++) overflow |= __builtin_mul_overflow(count, shape[i], &count);
  overflow |= __builtin_mul_overflow(count, bits, &count) || count > INT64_MAX - 7;
  *nbytes = empty ? 0 : (count + 7) / 8;
  return !empty && (overflow || !is_addressable(*nbytes));
}

int tensor_lacks_data(const DLTensor *tensor, const RdParam *param) {
  int32_t ndim = param->ndim < 0 ? 0 : param->ndim;
  if (tensor->data || tensor->ndim != ndim || (ndim && !tensor->shape)) return 0;
  for (int32_t i = 0; i < ndim; i++)
    if (tensor->shape[i] == 0) return 0;
  return 1;
}

static int64_t element_bytes(const DLTensor *tensor) { return (int64_t)tensor->dtype.bits * tensor->dtype.lanes / 8; }

int tensor_is_compact(const DLTensor *tensor) {
  if (!tensor->strides) return 1;
  uint64_t expected = 1; /* may overflow before an extent of zero is met */
  int compact = 1;
  for (int32_t i = tensor->ndim - 1; i >= 0; i--) {
    if (tensor->shape[i] == 0) return 1;
    if (tensor->shape[i] != 1 && (uint64_t)tensor->strides[i] != expected) compact = 0;
    expected *= (uint64_t)tensor->shape[i];
  }
  return compact;
}

int tensor_extent(const DLTensor *tensor, uintptr_t *low, uintptr_t *high) {
  int64_t first = 0, last = 0, nbytes;
  *low = *high = (uintptr_t)tensor_data(tensor);
  if (tensor_nbytes(tensor->ndim, tensor->shape, tensor->dtype, &nbytes)) return 1;
  if (nbytes == 0) return 0;
  if (tensor_is_compact(tensor)) {
    *high += (uintptr_t)nbytes;
    return 0;
  }
  int64_t size = element_bytes(tensor);
  for (int32_t i = 0; i < tensor->ndim; i++) {
    int64_t reach;
    if (__builtin_mul_overflow(tensor->shape[i] - 1, tensor->strides[i], &reach) || __builtin_mul_overflow(reach, size, &reach))
      return 1;
    if (__builtin_add_overflow(reach < 0 ? first : last, reach, reach < 0 ? &first : &last)) return 1;
  }
  if (__builtin_add_overflow(last, size, &last) || !is_addressable(last) || first < -PTRDIFF_MAX) return 1;
  *high = *low + (uintptr_t)last;
  *low += (uintptr_t)first;
  return 0;
}

#define PART (1 << 20) /* elements that are copied without asking whether to go on: milliseconds, wherever they lie */

static void copy_row(char *at, char *compact, int64_t count, int64_t step, int64_t size, int pack) {
  if (step == size) {
    pack ? memmove(compact, at, (size_t)(count * size)) : memmove(at, compact, (size_t)(count * size));
  } else if (size == 4) {
    for (int64_t j = 0; j < count; j++)
      pack ? memcpy(compact + j * 4, at + j * step, 4) : memcpy(at + j * step, compact + j * 4, 4);
  } else {
    for (int64_t j = 0; j < count; j++)
      pack ? memcpy(compact + j * size, at + j * step, (size_t)size) : memcpy(at + j * step, compact + j * size, (size_t)size);
  }
}

/* Copies parts of rows (the innermost axis); `pack` from the tensor to the compact memory, else back. */
static int32_t copy_strided(const DLTensor *tensor, char *compact, int pack, RdContext *run) {
  int64_t index[RD_MAX_RANK] = {0}, steps[RD_MAX_RANK], size = element_bytes(tensor), copied = 0;
  int32_t last = tensor->ndim - 1;
  for (int32_t i = 0; i <= last; i++) {
    if (tensor->shape[i] == 0) return RD_OK;
    steps[i] = tensor->shape[i] == 1 ? size : tensor->strides[i] * size; /* the stride of an extent of 1 means nothing and may be anything */
  }
  int64_t row = tensor->shape[last], step = steps[last];
  char *at = tensor_data(tensor);
  for (;;) {
    for (int64_t begin = 0; begin < row; begin += PART) {
      int64_t count = row - begin < PART ? row - begin : PART;
      copy_row(at + begin * step, compact + begin * size, count, step, size, pack);
      if ((copied += count) < PART) continue;
      copied = 0;
      if (rd_checkpoint(run)) return run->status;
    }
    compact += row * size;
    int32_t axis = last - 1;
    for (; axis >= 0; axis--) {
      at += steps[axis];
      if (++index[axis] < tensor->shape[axis]) break;
      at -= steps[axis] * tensor->shape[axis];
      index[axis] = 0;
    }
    if (axis < 0) return RD_OK;
  }
}

/* A compact tensor is a row of bytes. */
static int32_t copy_tensor(const DLTensor *tensor, char *compact, int pack, RdContext *run) {
  int64_t nbytes, one = 1;
  if (!tensor_is_compact(tensor)) return copy_strided(tensor, compact, pack, run);
  if (tensor_nbytes(tensor->ndim, tensor->shape, tensor->dtype, &nbytes) || nbytes == 0) return RD_OK;
  DLTensor bytes = {tensor_data(tensor), tensor->device, 1, {kDLUInt, 8, 1}, &nbytes, &one, 0};
  return copy_strided(&bytes, compact, pack, run);
}

int32_t tensor_pack(const DLTensor *tensor, void *compact, RdContext *run) { return copy_tensor(tensor, compact, 1, run); }

int32_t tensor_unpack(const DLTensor *tensor, const void *compact, RdContext *run) { return copy_tensor(tensor, (char *)(uintptr_t)compact, 0, run); }
