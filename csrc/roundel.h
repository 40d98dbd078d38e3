/* SPDX-License-Identifier: Apache-2.0 */
/* Roundel's C interface, in three parts: what a built module describes about itself (emitted by code generation),
 * what generated code calls, and what a program that embeds a model calls.  C11, no dependency. */
#ifndef ROUNDEL_H_
#define ROUNDEL_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define RD_API __declspec(dllexport)
#else
#define RD_API __attribute__((visibility("default")))
#endif

/* The number changes whenever a structure below changes; code built for another number is refused at open. */
#define RD_ABI 5u

/* ---- Tensors: DLPack's own structure, repeated here so that nothing else is needed ------------------------------- */
#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_
typedef enum { kDLCPU = 1 } DLDeviceType;
typedef struct { int32_t device_type, device_id; } DLDevice;
typedef enum {
  kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLOpaqueHandle = 3, kDLBfloat = 4, kDLComplex = 5, kDLBool = 6,
  kDLFloat8_e4m3fn = 10, kDLFloat8_e5m2 = 12
} DLDataTypeCode;
typedef struct { uint8_t code, bits; uint16_t lanes; } DLDataType;
typedef struct {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides; /* in elements; NULL: compact, row-major */
  uint64_t byte_offset;
} DLTensor;
#endif

/* ---- Part 1: how a built module describes itself ----------------------------------------------------------------- */
typedef struct RdContext RdContext;
typedef void (*RdTask)(int64_t begin, int64_t end, void **args);

#define RD_COMPUTED INT64_MIN /* a dimension that only `shapes` (or only the run) can tell */
#define RD_SCALAR (-1)        /* `ndim` of a scalar parameter: passed as a tensor of rank 0 */
#define RD_INOUT 1u           /* flag of an output whose former content is read */

/* dims[i] >= 0: a constant; -1-k: symbol k; RD_COMPUTED: an expression.  When ndim is RD_SCALAR, dims[0] = -1-k says
 * that this integer scalar is symbol k, and dims is NULL otherwise.  Sizes: 4-bit types are packed, low nibble first. */
typedef struct {
  const char *name;
  uint8_t code, bits; /* DLPack dtype */
  uint16_t lanes;
  int32_t ndim;
  const int64_t *dims;
  uint32_t flags;
} RdParam;

typedef struct { uint64_t offset, nbytes; const char *hash; } RdConstant; /* in the weights, 64-byte aligned */

/* The output is the input with more rows behind it along `axis`. Where both are one memory, with room between the rows of one outer index
 * and those of the next (strides), only the new rows are written: then the caller gives an output with the data and strides of the input. */
typedef struct { int32_t input, output, axis, symbol; } RdCache; /* symbol: how many rows there is room for behind the output's */

typedef struct {
  uint32_t abi;
  const char *name;
  const char *cpu_features; /* LLVM's names, separated by commas: "avx2,fma"; NULL or "": none */
  int32_t num_inputs, num_outputs, num_symbols, num_constants;
  const char *const *symbols;
  const RdParam *params; /* inputs, then outputs */
  /* All dimensions of all params, in order (a scalar has none).  An output's that is not known before the run is
   * RD_COMPUTED.  NULL: every dimension is a constant or a symbol. */
  void (*shapes)(const int64_t *symbols, int64_t *dims);
  int64_t (*arena_size)(const int64_t *symbols); /* bytes; NULL: none */
  /* buffers: inputs, then outputs; NULL for an output of unknown shape.  Returns 0 or what rd_fail returned. */
  int32_t (*run)(RdContext *ctx, const int64_t *symbols, void **buffers);
  const RdConstant *constants;
  int32_t num_kernels; /* with profiling: the indices given to rd_profile_begin are below this */
  const char *const *kernels;
  int32_t num_caches;
  const RdCache *caches; /* their inputs are not read by `run`: they lie in the outputs already */
} RdFunction;

typedef struct {
  uint32_t abi;
  int32_t num_functions;
  const RdFunction *functions;
  uint64_t weights_nbytes;
  const char *metadata; /* JSON, or NULL */
} RdLibrary; /* generated code defines one, as `roundel_library` */

/* ---- Part 2: what generated code calls --------------------------------------------------------------------------- */
struct RdContext {
  void *arena;            /* 64-byte aligned; contents undefined at the start of a run */
  const void **constants; /* one pointer for each RdConstant of the function */
  int32_t status;         /* nonzero: the run has failed, and what finds that returns */
  /* ... private ... */
};

typedef enum { RD_ARG_NONE = 0, RD_ARG_INT = 1, RD_ARG_FLOAT = 2, RD_ARG_TENSOR = 3, RD_ARG_STRING = 4 } RdArgKind;
typedef struct {
  int64_t kind; /* RdArgKind */
  union { int64_t i; double f; DLTensor *tensor; const char *string; } value;
} RdArg;

/* Calls task on ranges of at most `grain` that cover [0, extent), on several threads; returns when all are done.
 * Serial (one call) with one thread, inside a task, or when one range covers all.  grain 0: chosen here; -n: one range for each
 * thread, of at least n.  Returns the run's status: where it has failed, ranges that nobody has begun are left out. */
RD_API int32_t rd_parallel_for(RdContext *ctx, RdTask task, void **args, int64_t extent, int64_t grain);

/* To be called every few milliseconds by what may take long: has a thread that called a model ask whether to go on, at most five times a
 * second (roundel_set_interrupt). Returns the run's status; what called it returns where that is not 0. */
RD_API int32_t rd_checkpoint(RdContext *ctx);

/* Workspace of the calling thread, 64-byte aligned, valid until its next call; NULL (and the run fails) without memory. */
RD_API void *rd_scratch(RdContext *ctx, int64_t nbytes);

/* Record the run's error (the first one stays) and return the nonzero status that `run` is to return.
 * rd_failf: each {0} ... {9} in `format` is replaced by that integer. */
RD_API int32_t rd_fail(RdContext *ctx, const char *message);
RD_API int32_t rd_failf(RdContext *ctx, const char *format, int32_t nargs, const int64_t *args);

/* Memory of the output `index` (counted from 0 among the outputs), whose shape is known only now.  NULL: return failure. */
RD_API void *rd_alloc_output(RdContext *ctx, int32_t index, int32_t ndim, const int64_t *shape);

/* Memory that lives until the end of the run or rd_heap_free; 64-byte aligned.  NULL: return failure. */
RD_API void *rd_heap_alloc(RdContext *ctx, int64_t nbytes);
RD_API void rd_heap_free(RdContext *ctx, void *memory);

/* Call a registered function: one given to roundel_register, or else one of the process's tvm-ffi registry.
 * rd_call_packed_into copies the tensor or number it returns into `result` after checking shape and dtype. */
RD_API int32_t rd_call_packed(RdContext *ctx, const char *name, int32_t nargs, const RdArg *args);
RD_API int32_t rd_call_packed_into(RdContext *ctx, const char *name, int32_t nargs, const RdArg *args, DLTensor *result);

RD_API void rd_profile_begin(RdContext *ctx, int32_t kernel);
RD_API void rd_profile_end(RdContext *ctx, int32_t kernel);

/* ---- Part 3: what an embedding program calls ---------------------------------------------------------------------
 * Functions that return int return 0, or a RdStatus with the message in roundel_last_error (of this thread). */
#ifndef ROUNDEL_STATUS_
#define ROUNDEL_STATUS_
typedef enum {
  RD_OK = 0,
  RD_RUNTIME_ERROR = 1,  /* the run met sizes or values that the model does not allow, or a file cannot be read */
  RD_VALUE_ERROR = 2,    /* arguments do not fit: shapes, strides, devices, missing data, unknown names */
  RD_TYPE_ERROR = 3,     /* an argument has another type of element */
  RD_MEMORY_ERROR = 4,   /* not enough memory */
  RD_CALLBACK_ERROR = 5, /* a registered function failed */
  RD_MACHINE_ERROR = 6,  /* the code is for another CPU */
  RD_INTERRUPTED = 7     /* the program ended the run */
} RdStatus;
#endif

typedef struct RdModel RdModel;

typedef struct {
  int32_t num_threads;             /* 0: ROUNDEL_NUM_THREADS, or the cores that this process may use */
  int32_t profile;                 /* nonzero: keep times of kernels, see roundel_profile */
  const void *weights;             /* where the weights are, 64-byte aligned and kept by the caller; or NULL and */
  const char *weights_file;        /* ... a regular file to be mapped, where they begin at byte */
  uint64_t weights_offset;         /* ... this one; or NULL and */
  const void *const *constants;    /* ... one pointer for each constant of each function, in order */
  void *(*allocate)(void *user, size_t nbytes); /* memory of outputs without `data`; NULL: the C library's */
  void (*release)(void *user, void *memory);
  void *user;
} RdOptions;

/* A model may be run from several threads at once.  options may be NULL. */
RD_API int roundel_open(const RdLibrary *library, const RdOptions *options, RdModel **model);
RD_API void roundel_close(RdModel *model);

/* Run `function` (NULL: the first).  Tensors of any strides; those with `data` are written in place (and with the
 * data and strides of the input that it appends to, an output grows: see RdCache).  An output whose
 * `data` is NULL gets memory, shape and dtype from the model: hand it to roundel_release afterwards. */
RD_API int roundel_run(RdModel *model, const char *function, const DLTensor *inputs, DLTensor *outputs);
RD_API void roundel_release(RdModel *model, DLTensor *output);

RD_API const RdFunction *roundel_function(const RdModel *model, const char *name); /* NULL: no such function */
RD_API const char *roundel_last_error(void);

/* A function for rd_call_packed.  On failure it returns nonzero, having perhaps called rd_fail. */
typedef int32_t (*RdPacked)(void *user, RdContext *ctx, int32_t nargs, const RdArg *args);
RD_API int roundel_register(const char *name, RdPacked function, void *user); /* NULL: none is known by this name any more */

/* Times since the last reset of each kernel of a function: nanoseconds and calls, num_kernels of each.  Both may be NULL. */
RD_API int roundel_profile(RdModel *model, const char *function, int64_t *nanoseconds, int64_t *calls, int reset);

/* The most threads that a run uses. NULL: what models opened later get. 0 sets the default again: ROUNDEL_NUM_THREADS, or
 * the cores that this process may use. Runs that are under way keep theirs. */
RD_API int roundel_num_threads(const RdModel *model);
RD_API int roundel_set_num_threads(RdModel *model, int num_threads);

/* Runs that take longer than 0.2 s call this function about as often, on the thread that runs the model, until it returns something else than 0:
 * then the run ends with RD_INTERRUPTED, and the model can be run again. NULL (at first): nobody is asked. It holds for all models of this runtime.
 * `user` may not be freed while runs are under way. */
typedef int (*RdInterrupt)(void *user);
RD_API int roundel_set_interrupt(RdInterrupt ask, void *user);

RD_API uint32_t roundel_abi(void); /* RD_ABI of the runtime that is linked in */

#ifdef __cplusplus
}
#endif
#endif
