/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of a model's C functions with random arguments, from several threads: `arguments COUNT SEED THREADS`, to be built with a sanitizer.
 * Tensors tell the truth about their memory, which is exactly as large as they say, and may be wrong in every other way. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

extern RdPackage roundel_package;

typedef struct { uint64_t state; } Dice;

static uint64_t roll(Dice *dice, uint64_t sides) {
  dice->state ^= dice->state << 13, dice->state ^= dice->state >> 7, dice->state ^= dice->state << 17;
  return (dice->state >> 11) % sides;
}

typedef struct { DLTensor tensor; int64_t shape[8], strides[8]; char *memory; } Made;

static int64_t size_of(Dice *dice) {
  static const int64_t wrong[] = {-1, INT64_MIN, INT64_MAX, (int64_t)1 << 62};
  return roll(dice, 12) ? (int64_t)roll(dice, 9) : wrong[roll(dice, 4)];
}

static int64_t stride_of(Dice *dice) {
  static const int64_t wrong[] = {INT64_MIN, INT64_MAX, (int64_t)1 << 61, -((int64_t)1 << 61)};
  return roll(dice, 16) ? (int64_t)roll(dice, 12) - 4 : wrong[roll(dice, 4)];
}

/* The memory of a tensor: exactly the bytes that it reaches, or one byte where it must be refused. */
static void give_memory(Made *made, Dice *dice) {
  DLTensor *t = &made->tensor;
  uintptr_t low, high;
  t->data = (void *)((uintptr_t)1 << 40);
  int bad = 0;
  for (int i = 0; i < t->ndim && !bad; i++) bad = t->shape[i] < 0;
  int64_t nbytes = 0;
  if (bad || tensor_nbytes(t->ndim, t->shape, t->dtype, &nbytes) || tensor_extent(t, &low, &high)) low = 0, high = 1;
  if (high - low > 1 << 20) low = 0, high = 1, t->device.device_type = 2; /* more than is wanted here: let it be refused */
  uint64_t offset = roll(dice, 4) ? 0 : 8 * roll(dice, 3);
  uintptr_t begin = bad || !low ? 0 : ((uintptr_t)1 << 40) - low;
  made->memory = malloc(offset + (high - low) + (high == low));
  if (!made->memory) exit(2);
  memset(made->memory, (int)roll(dice, 3), offset + (high - low));
  t->data = made->memory + begin;
  t->byte_offset = offset;
}

static void make(Made *made, const RdParam *param, Dice *dice, int output) {
  *made = (Made){.tensor = {.device = {kDLCPU, 0}, .ndim = param->ndim < 0 ? 0 : param->ndim, .dtype = {param->code, param->bits, param->lanes}}};
  DLTensor *t = &made->tensor;
  if (!roll(dice, 10)) t->ndim = (int32_t)roll(dice, 8);
  if (!roll(dice, 15)) t->dtype.bits = (uint8_t)(8 << roll(dice, 4));
  if (!roll(dice, 20)) t->dtype.lanes = (uint16_t)roll(dice, 3);
  for (int i = 0; i < t->ndim; i++) {
    int fixed = i < param->ndim && param->dims && param->dims[i] >= 0 && roll(dice, 8);
    made->shape[i] = fixed ? param->dims[i] : roll(dice, 3) ? 3 : size_of(dice);
    made->strides[i] = stride_of(dice);
  }
  t->shape = made->shape;
  if (!roll(dice, 4)) t->strides = made->strides;
  if (output && !roll(dice, 3)) { /* the model allocates it */
    t->data = NULL;
    return;
  }
  give_memory(made, dice);
  if (!roll(dice, 30)) t->device.device_type = (int32_t)roll(dice, 5);
  if (!roll(dice, 40)) t->data = NULL;
  if (!roll(dice, 40) && t->ndim) t->shape = NULL;
  if (!roll(dice, 60)) t->ndim = (int32_t)(roll(dice, 2) ? -1 : 1000);
}

static int attempt(Dice *dice) {
  const RdLibrary *library = roundel_package.library;
  const RdFunction *f = &library->functions[roll(dice, (uint64_t)library->num_functions)];
  int count = f->num_inputs + f->num_outputs, ours[16];
  Made made[16];
  DLTensor inputs[16], outputs[16];
  if (count > 16) return 0;
  for (int i = 0; i < count; i++) make(&made[i], &f->params[i], dice, i >= f->num_inputs);
  for (int i = 0; i < f->num_inputs; i++) inputs[i] = made[i].tensor;
  for (int i = 0; i < f->num_outputs; i++) outputs[i] = made[f->num_inputs + i].tensor;
  if (f->num_inputs && f->num_outputs && !roll(dice, 6)) outputs[0] = inputs[0]; /* the output is the input's memory */
  for (int i = 0; i < f->num_outputs; i++) ours[i] = outputs[i].data != NULL;
  int status = rd_package_run(&roundel_package, roll(dice, 50) ? f->name : roll(dice, 2) ? "no such function" : NULL, inputs, outputs);
  if (status && !*roundel_last_error()) printf("status %d without a message\n", status), exit(3);
  if (status < 0 || status > RD_CALLBACK_ERROR) printf("status %d of %s\n", status, f->name), exit(3);
  for (int i = 0; i < f->num_outputs && !status; i++) {
    if (ours[i]) continue;
    volatile unsigned char sum = 0;
    int64_t nbytes;
    if (!tensor_nbytes(outputs[i].ndim, outputs[i].shape, outputs[i].dtype, &nbytes))
      for (int64_t k = 0; k < nbytes; k++) sum = (unsigned char)(sum + ((unsigned char *)outputs[i].data)[k]);
    RdModel *model;
    if (!rd_package_open(&roundel_package, NULL, &model)) roundel_release(model, &outputs[i]);
  }
  for (int i = 0; i < count; i++) free(made[i].memory);
  return !status;
}

static int32_t callback(void *user, RdContext *ctx, int32_t nargs, const RdArg *args) {
  (void)user;
  const DLTensor *x = args[0].value.tensor;
  if (x->shape[0] == 2) return rd_fail(ctx, "two are too many");
  if (x->shape[0] == 1) return 1;
  if (nargs > 3 && x->shape[0] > 0) memcpy(args[3].value.tensor->data, x->data, (size_t)x->shape[0] * 4);
  return 0;
}

typedef struct { pthread_t thread; Dice dice; int count, succeeded; } Caller;

static void *call(void *argument) {
  Caller *caller = argument;
  for (int i = 0; i < caller->count; i++) {
    caller->succeeded += attempt(&caller->dice);
    if (!roll(&caller->dice, 50)) rd_package_set_num_threads(&roundel_package, (int)roll(&caller->dice, 6) - 1);
  }
  return NULL;
}

int main(int argc, char **argv) {
  if (argc < 4) return 2;
  Caller callers[16];
  int threads = atoi(argv[3]), succeeded = 0;
  roundel_register("test.callback", callback, NULL);
  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < threads; i++) {
      callers[i] = (Caller){.dice = {(uint64_t)atoll(argv[2]) * 7919 + (uint64_t)(round * 16 + i) * 104729 + 88172645463325252u}, .count = atoi(argv[1]) / threads / 2};
      if (pthread_create(&callers[i].thread, NULL, call, &callers[i])) return 2;
    }
    for (int i = 0; i < threads; i++) pthread_join(callers[i].thread, NULL), succeeded += callers[i].succeeded;
    rd_package_close(&roundel_package);
  }
  printf("%d runs succeeded\nok\n", succeeded);
  return 0;
}
