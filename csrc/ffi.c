/* SPDX-License-Identifier: Apache-2.0 */
/* Both directions of tvm-ffi's calling convention, without a link to it: what is needed of it is looked up by name when
 * the process has it. The layouts below are those of its stable C interface. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

enum { FFI_NONE = 0, FFI_INT = 1, FFI_BOOL = 2, FFI_FLOAT = 3, FFI_POINTER = 4, FFI_DLTENSOR = 7, FFI_RAW_STRING = 8,
       FFI_OBJECT = 64, FFI_TENSOR = 70 };
#define FFI_HEADER 24 /* bytes of an object before its own fields */

typedef struct { const char *data; size_t size; } FfiBytes;
typedef struct { FfiBytes kind, message; } FfiError; /* the first fields */

static int (*get_global)(const FfiBytes *, void **);
static int (*call_function)(void *, RdAny *, int32_t, RdAny *);
static int (*release_object)(void *);
static void (*set_raised)(void *);
static void (*set_raised_text)(const char *, const char *);
static void (*take_raised)(void **);
static int (*tensor_from_dlpack)(void *, int32_t, int32_t, void **);
static int (*create_function)(void *, int (*)(void *, const RdAny *, int32_t, RdAny *), void (*)(void *), void **);
static int (*set_global)(const FfiBytes *, void *, int);

static void *symbol_or_null(const char *name) { return os_find_symbol(name); }

static int find_ffi(void) {
  *(void **)&get_global = symbol_or_null("TVMFFIFunctionGetGlobal");
  *(void **)&call_function = symbol_or_null("TVMFFIFunctionCall");
  *(void **)&release_object = symbol_or_null("TVMFFIObjectDecRef");
  *(void **)&set_raised = symbol_or_null("TVMFFIErrorSetRaised");
  *(void **)&set_raised_text = symbol_or_null("TVMFFIErrorSetRaisedFromCStr");
  *(void **)&take_raised = symbol_or_null("TVMFFIErrorMoveFromRaised");
  *(void **)&tensor_from_dlpack = symbol_or_null("TVMFFITensorFromDLPackVersioned");
  *(void **)&create_function = symbol_or_null("TVMFFIFunctionCreate");
  *(void **)&set_global = symbol_or_null("TVMFFIFunctionSetGlobal");
  if (!get_global || !call_function || !tensor_from_dlpack || !create_function || !set_global || !release_object || !set_raised || !set_raised_text || !take_raised) return 0;
  return 1;
}

static int ffi_present(void) {
  static _Atomic int found;
  static _Atomic uint32_t lock; /* of the pointers above, until all are found */
  if (atomic_load(&found)) return 1;
  rd_lock(&lock);
  if (!atomic_load(&found) && find_ffi()) atomic_store(&found, 1);
  rd_unlock(&lock);
  return atomic_load(&found);
}

/* DLPack's exchange structure around a view; its shape and strides are copied, its memory stays the run's. */
typedef struct Managed Managed;
struct Managed { uint32_t major, minor; void *context; void (*deleter)(Managed *); uint64_t flags; DLTensor tensor; int64_t sizes[]; };

static int any_of_tensor(const DLTensor *view, RdAny *any) {
  size_t ndim = (size_t)view->ndim;
  Managed *managed = calloc(1, sizeof *managed + 2 * ndim * sizeof(int64_t));
  if (!managed) return 1;
  managed->major = 1;
  managed->deleter = (void (*)(Managed *))free; /* no function of this file, which may be unloaded before a tensor that was kept is given up */
  managed->tensor = *view;
  managed->tensor.shape = managed->sizes;
  managed->tensor.strides = managed->sizes + ndim;
  int64_t step = 1;
  for (size_t i = ndim; i-- > 0; step *= view->shape[i]) {
    managed->sizes[i] = view->shape[i];
    managed->sizes[ndim + i] = view->strides ? view->strides[i] : step;
  }
  void *object = NULL;
  if (tensor_from_dlpack(managed, 0, 0, &object)) {
    free(managed);
    return 1;
  }
  *any = (RdAny){.type_index = FFI_TENSOR, .value.p = object};
  return 0;
}

static int any_of(const RdArg *arg, RdAny *any) {
  *any = (RdAny){.type_index = FFI_NONE};
  switch (arg->kind) {
    case RD_ARG_INT: *any = (RdAny){.type_index = FFI_INT, .value.i = arg->value.i}; return 0;
    case RD_ARG_FLOAT: *any = (RdAny){.type_index = FFI_FLOAT, .value.f = arg->value.f}; return 0;
    case RD_ARG_STRING: *any = (RdAny){.type_index = FFI_RAW_STRING, .value.s = arg->value.string}; return 0;
    case RD_ARG_TENSOR: return any_of_tensor(arg->value.tensor, any);
    default: return 0;
  }
}

static const DLTensor *tensor_of(const RdAny *any) {
  if (any->type_index == FFI_DLTENSOR || any->type_index == FFI_POINTER) return any->value.p;
  if (any->type_index == FFI_TENSOR) return (const DLTensor *)(const void *)((const char *)any->value.p + FFI_HEADER);
  return NULL;
}

static int store_number(Context *ctx, const char *name, double f, int64_t i, int is_int, DLTensor *result) {
  void *to = tensor_data(result);
  DLDataType t = result->dtype;
  if (result->ndim != 0) return rd_context_error(ctx, RD_TYPE_ERROR, "function '%s' returned a number, a tensor was expected", name);
  if (t.code == kDLFloat && t.bits == 32) *(float *)to = is_int ? (float)i : (float)f;
  else if (t.code == kDLFloat && t.bits == 64) *(double *)to = is_int ? (double)i : f;
  else if (is_int && t.code <= kDLUInt && t.bits >= 8) memcpy(to, &i, t.bits / 8);
  else if (is_int && t.code == kDLBool) *(uint8_t *)to = i != 0;
  else return rd_context_error(ctx, RD_TYPE_ERROR, "function '%s' returned a number of another type than expected", name);
  return 0;
}

static int store_result(Context *ctx, const char *name, const RdAny *any, DLTensor *result) {
  if (any->type_index == FFI_INT || any->type_index == FFI_BOOL) return store_number(ctx, name, 0, any->value.i, 1, result);
  if (any->type_index == FFI_FLOAT) return store_number(ctx, name, any->value.f, 0, 0, result);
  const DLTensor *tensor = tensor_of(any);
  if (!tensor) return rd_context_error(ctx, RD_TYPE_ERROR, "function '%s' returned no tensor", name);
  char have[32], want[32];
  if (memcmp(&tensor->dtype, &result->dtype, sizeof tensor->dtype) != 0)
    return rd_context_error(ctx, RD_TYPE_ERROR, "function '%s' returned dtype %s, expected %s", name, dtype_text(tensor->dtype, have),
                            dtype_text(result->dtype, want));
  if (tensor->ndim != result->ndim || tensor->device.device_type != kDLCPU)
    return rd_context_error(ctx, RD_VALUE_ERROR, "function '%s' returned %d dimensions, expected %d", name, (int)tensor->ndim, (int)result->ndim);
  for (int32_t i = 0; i < tensor->ndim; i++)
    if (tensor->shape[i] != result->shape[i])
      return rd_context_error(ctx, RD_VALUE_ERROR, "function '%s' returned dimension %d = %lld, expected %lld", name, (int)i,
                              (long long)tensor->shape[i], (long long)result->shape[i]);
  return tensor_pack(tensor, tensor_data(result), &ctx->shared);
}

int ffi_call_global(Context *ctx, const char *name, int32_t nargs, const RdArg *args, DLTensor *result) {
  FfiBytes key = {name, strlen(name)};
  void *function = NULL;
  if (!ffi_present() || get_global(&key, &function) || !function) return -1;
  RdAny small[16], *all = nargs > 16 ? malloc((size_t)nargs * sizeof *all) : small;
  if (!all) return rd_context_error(ctx, RD_MEMORY_ERROR, "no memory to call '%s'", name);
  int status = 0;
  int32_t count = 0;
  for (; count < nargs && !status; count++)
    if (any_of(&args[count], &all[count])) status = rd_context_error(ctx, RD_MEMORY_ERROR, "no memory to call '%s'", name);
  RdAny out = {.type_index = FFI_NONE};
  if (!status && call_function(function, all, nargs, &out)) {
    ctx->raised = 1;
    status = rd_context_error(ctx, RD_CALLBACK_ERROR, "function '%s' raised an error", name);
  } else if (!status && result) {
    status = store_result(ctx, name, &out, result);
  }
  if (out.type_index >= FFI_OBJECT) release_object(out.value.p);
  for (int32_t i = 0; i < count; i++)
    if (all[i].type_index == FFI_TENSOR) release_object(all[i].value.p);
  if (all != small) free(all);
  release_object(function);
  return status;
}

void ffi_take_raised(Context *ctx) {
  void *error = NULL;
  take_raised(&error);
  if (!error) return;
  const FfiError *what = (const FfiError *)(const void *)((const char *)error + FFI_HEADER);
  int length = what->message.size < RD_MESSAGE / 2 ? (int)what->message.size : rd_whole_characters(what->message.data, RD_MESSAGE / 2);
  snprintf(ctx->message, sizeof ctx->message, "%.*s: %.*s", (int)what->kind.size, what->kind.data, length, what->message.data);
  release_object(error);
}

static int raise_text(const char *kind) {
  if (ffi_present()) set_raised_text(kind, roundel_last_error());
  return -1;
}

static const char *kind_of(int status) {
  static const char *const kinds[] = {"RuntimeError", "RuntimeError", "ValueError", "TypeError", "MemoryError"};
  return status > 0 && status < 5 ? kinds[status] : "RuntimeError";
}

/* What a function of tvm-ffi returns: -2 where the error is Python's own. */
static int failure(int status) { return status == RD_INTERRUPTED && rd_python_raise() ? -2 : raise_text(kind_of(status)); }

/* Arguments as tensors; numbers stand for scalars. A plain pointer is a DLTensor that the call may fill in. Returns what the argument
 * is, or lacks, and NULL if it can be used. */
typedef struct { DLTensor tensor; union { int64_t i; double f; float f32; int32_t i32; uint8_t byte; } number; } Slot;

static const char *read_argument(const RdAny *any, const RdParam *param, Slot *slot, DLTensor **tensor) {
  static _Alignas(64) char nothing[64];
  const char *not_a_tensor = "is not a tensor";
  const DLTensor *given = tensor_of(any);
  *tensor = &slot->tensor;
  if (given) {
    if (any->type_index == FFI_POINTER) {
      *tensor = (DLTensor *)(uintptr_t)given;
      return NULL;
    }
    slot->tensor = *given;
    if (tensor_lacks_data(given, param)) return "has no data";
    if (!given->data) slot->tensor.data = nothing; /* not ours to allocate */
    return NULL;
  }
  DLDataType dtype = {param->code, param->bits, param->lanes};
  int is_int = any->type_index == FFI_INT || any->type_index == FFI_BOOL;
  if ((!is_int && any->type_index != FFI_FLOAT) || param->ndim > 0) return not_a_tensor;
  slot->tensor = (DLTensor){.data = &slot->number, .device = {kDLCPU, 0}, .dtype = dtype};
  if (dtype.code == kDLFloat && dtype.bits == 64) slot->number.f = is_int ? (double)any->value.i : any->value.f;
  else if (dtype.code == kDLFloat && dtype.bits == 32) slot->number.f32 = is_int ? (float)any->value.i : (float)any->value.f;
  else if (is_int && (dtype.code <= kDLUInt || dtype.code == kDLBool)) slot->number.i = any->value.i;
  else return not_a_tensor;
  return NULL;
}

static int invoke(RdModel *model, int32_t index, const RdAny *args, int32_t nargs, int *raised) {
  const RdFunction *function = &model->library->functions[index];
  int32_t count = function->num_inputs + function->num_outputs;
  if (nargs != count)
    return rd_set_error(RD_TYPE_ERROR, "'%s' takes %d tensors (%d inputs, then %d outputs), %d were given", function->name, (int)count,
                        (int)function->num_inputs, (int)function->num_outputs, (int)nargs);
  Slot small_slots[16], *slots = count > 16 ? malloc((size_t)count * sizeof *slots) : small_slots;
  DLTensor *small[16], **tensors = count > 16 ? malloc((size_t)count * sizeof *tensors) : small;
  int status = slots && tensors ? 0 : rd_set_error(RD_MEMORY_ERROR, "no memory for the arguments");
  for (int32_t i = 0; i < count && !status; i++) {
    const char *why = read_argument(&args[i], &function->params[i], &slots[i], &tensors[i]);
    if (why)
      status = rd_set_error(RD_TYPE_ERROR, "argument %d ('%s') of '%s' %s", (int)i, function->params[i].name ? function->params[i].name : "",
                            function->name, why);
  }
  if (!status) status = rd_run(model, index, (const DLTensor *const *)tensors, tensors + function->num_inputs, raised);
  if (slots != small_slots) free(slots);
  if (tensors != small) free(tensors);
  return status;
}

int rd_ffi_raised(void *self, const RdAny *args, int32_t nargs, RdAny *result) {
  (void)self, (void)args, (void)nargs, (void)result;
  return -1;
}

int rd_package_ffi(RdPackage *package, const char *name, const RdAny *args, int32_t nargs, RdAny *result) {
  (void)result;
  int raised = 0;
  RdModel *model;
  int status = rd_package_open(package, NULL, &model);
  if (status) return raise_text(kind_of(status));
  const RdFunction *function = roundel_function(model, name);
  status = invoke(model, (int32_t)(function - model->library->functions), args, nargs, &raised);
  if (!status) return 0;
  return raised ? -1 : failure(status);
}

typedef struct { RdModel *model; int32_t function; } Bound;

static int call_bound(void *self, const RdAny *args, int32_t nargs, RdAny *result) {
  const Bound *bound = self;
  (void)result;
  int raised = 0, status = invoke(bound->model, bound->function, args, nargs, &raised);
  return !status ? 0 : raised ? -1 : failure(status);
}

int rd_ffi_register(RdModel *model, int32_t function, const char *name) {
  if (!ffi_present()) return rd_set_error(RD_RUNTIME_ERROR, "tvm-ffi is not loaded in this process");
  Bound *bound = malloc(sizeof *bound);
  if (!bound) return rd_set_error(RD_MEMORY_ERROR, "no memory to register '%s'", name);
  *bound = (Bound){model, function};
  void *object = NULL;
  FfiBytes key = {name, strlen(name)};
  if (create_function(bound, call_bound, free, &object)) {
    free(bound);
    return RD_CALLBACK_ERROR;
  }
  int failed = set_global(&key, object, 1);
  release_object(object);
  return failed ? RD_CALLBACK_ERROR : RD_OK;
}
