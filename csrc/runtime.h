/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime's own view of models and contexts, and what its files offer each other. */
#ifndef ROUNDEL_RUNTIME_H_
#define ROUNDEL_RUNTIME_H_

#include <stdatomic.h>

#include "os.h"
#include "roundel.h"
#include "thread_pool.h"

#define RD_MAX_RANK 64
#define RD_MESSAGE 2048

typedef struct RdBlock RdBlock; /* memory of a run */
struct RdBlock { RdBlock *next, *previous; size_t nbytes; };

struct RdContextPrivate {
  RdContext shared; /* what generated code sees comes first */
  struct RdContextPrivate *next_free;
  RdModel *model;
  const RdFunction *function;
  size_t arena_capacity;
  RdScratch scratch; /* of the calling thread; workers have their own */
  RdBlock *blocks, *kept;                           /* used in this run; waiting for the next */
  size_t used_nbytes, kept_nbytes, most_nbytes;     /* of these; the most that was ever used */
  _Atomic uint32_t lock;                            /* of blocks and `message` */
  int64_t ask_at, looked_at; /* when to ask next whether to go on (0: not yet known), and when that was looked at */
  int32_t pass;              /* so many checkpoints pass between two looks at the clock, */
  _Atomic int32_t passing;   /* of which so many are left */
  int32_t raised; /* the error is tvm-ffi's raised error, not `message` */
  char message[RD_MESSAGE];
  int64_t *symbols;        /* num_symbols */
  int64_t *dims;           /* of all parameters */
  void **buffers;          /* one for each parameter */
  DLTensor **outputs;      /* the caller's */
  uint8_t *allocated;      /* outputs that got their memory in this run */
  int64_t *kernel_begin;   /* one for each kernel */
};
typedef struct RdContextPrivate Context;

typedef struct {
  const void **constants;
  _Atomic int64_t *nanoseconds, *calls; /* of each kernel, with profiling */
  int32_t num_dims;                     /* of all parameters */
} RdFunctionState;

struct RdModel {
  const RdLibrary *library;
  RdOptions options;
  _Atomic int32_t num_threads;
  int32_t poison;
  RdFunctionState *functions;
  const void *mapped; /* the weights file */
  size_t mapped_nbytes;
  _Atomic uint32_t lock; /* of `free_contexts` */
  Context *free_contexts;
};

/* errors.c */
int rd_set_error(int status, const char *format, ...) __attribute__((format(printf, 2, 3))); /* of this thread */
int rd_context_error(Context *ctx, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));
int rd_whole_characters(const char *text, int most); /* bytes of UTF-8, at most so many, that cut no character */
int rd_publish_error(Context *ctx); /* the context's error becomes the thread's; returns its status */

/* interrupt.c */
typedef struct {
  int (*take_lock)(void);
  void (*release_lock)(int state);
  int (*check_signals)(void);
  void (*fetch)(void **type, void **value, void **traceback);
  void (*restore)(void *type, void *value, void *traceback);
} RdPython; /* PyGILState_Ensure, PyGILState_Release, PyErr_CheckSignals, PyErr_Fetch, PyErr_Restore */
void rd_set_interrupt(RdInterrupt ask, void *user, uint64_t thread); /* thread: the only one that asks; 0: any */
RD_API void rd_python_signals(const RdPython *functions, uint64_t thread); /* runs of that thread see to signals; functions NULL: no longer */
RD_API int rd_python_raise(void); /* behind RD_INTERRUPTED: what a signal's handler raised is raised in Python; 0: there was nothing */
static inline int32_t rd_status_of(const RdContext *ctx) { return __atomic_load_n(&ctx->status, __ATOMIC_RELAXED); }

/* context.c */
Context *context_acquire(RdModel *model, int32_t function); /* NULL: error is set */
void context_release(Context *ctx);
void context_free(Context *ctx);
int context_reserve_arena(Context *ctx, int64_t nbytes);
void *block_alloc(Context *ctx, size_t nbytes);
void rd_lock(_Atomic uint32_t *lock);
void rd_unlock(_Atomic uint32_t *lock);

/* check.c: solve the symbols, compute and compare all dimensions */
int check_arguments(Context *ctx, const DLTensor *const *inputs, DLTensor *const *outputs);

/* tensor.c */
const char *dtype_text(DLDataType dtype, char text[32]);
/* Whether a block can have so many bytes: sizes are computed in 64 bits, also where addresses have 32. */
static inline int is_addressable(int64_t nbytes) { return nbytes >= 0 && (uint64_t)nbytes <= PTRDIFF_MAX; }

int tensor_nbytes(int32_t ndim, const int64_t *shape, DLDataType dtype, int64_t *nbytes); /* nonzero: overflow */
int tensor_is_compact(const DLTensor *tensor);
int tensor_lacks_data(const DLTensor *tensor, const RdParam *param); /* though it has elements; not of one that the checks refuse by its shape */
int tensor_extent(const DLTensor *tensor, uintptr_t *low, uintptr_t *high); /* bytes it touches; nonzero: overflow */
int32_t tensor_pack(const DLTensor *tensor, void *compact, RdContext *run); /* nonzero: interrupted, as is the run that it belongs to */
int32_t tensor_unpack(const DLTensor *tensor, const void *compact, RdContext *run);
static inline char *tensor_data(const DLTensor *tensor) { return (char *)tensor->data + tensor->byte_offset; }

/* output.c */
void *output_allocate(Context *ctx, int32_t index, int32_t ndim, const int64_t *shape);
void output_discard(Context *ctx);

/* cache.c: outputs that append to an input */
const RdCache *cache_of_output(const Context *ctx, int32_t output); /* NULL: it is none */
const RdCache *cache_of_input(const Context *ctx, int32_t input);
int64_t cache_capacity(const DLTensor *tensor, int32_t axis); /* rows from one outer index to the next; negative: not laid out so */
int cache_grows(const Context *ctx, const RdCache *cache, const DLTensor *past); /* whether `past` lies where the output begins */
void cache_fill(Context *ctx, const DLTensor *const *inputs); /* copies the inputs that do not lie there */

/* run.c: one call, with the parameters apart */
int rd_run(RdModel *model, int32_t function, const DLTensor *const *inputs, DLTensor *const *outputs, int *raised);

/* The same for Python: inputs, then outputs. One with ndim < 0 gets its memory from the runtime; one that has no data is
 * empty, whoever made it. RD_CALLBACK_ERROR: the error is tvm-ffi's raised error. */
RD_API int rd_invoke(RdModel *model, int32_t function, DLTensor **tensors);

/* arrays.c: the same with NumPy's arrays, in tuples. The caller holds Python's lock, which is released while the model runs. -1: one of them
 * is no array of its type, and nothing was done. */
typedef struct {
  RdModel *model;
  int32_t function;
  int32_t header, type_at, items; /* bytes: of an object's header, to its type in that, and to the items of a tuple */
  const void *array_type;         /* of the arrays themselves */
  const void *const *types;       /* of the elements of each parameter */
  void *(*save_thread)(void);
  void (*restore_thread)(void *state);
} RdArrays;
/* DLPack's dltensor_from_py_object_no_sync of a library: describes its tensor; nonzero: it cannot, and Python has an exception. */
typedef int (*RdDescribe)(const void *object, DLTensor *tensor);
RD_API int rd_call_arrays(const RdArrays *call, const char *arguments, const char *results, RdDescribe describe); /* NULL: they are arrays */

/* That many calls in a row, timed without Python in between; call k has the arguments sets[k % num_sets]. */
RD_API int rd_time_calls(RdModel *model, int32_t function, DLTensor ***sets, int32_t num_sets, int64_t calls, int64_t *nanoseconds);

/* cpu.c: the first of the named features that this CPU lacks, or NULL */
const char *cpu_lacks(const char *features, char name[64]);
const char *library_lacks(const RdLibrary *library, const RdFunction **function, char name[64]); /* of those that its functions need */

/* ffi.c: tvm-ffi, if the process has it */
int ffi_call_global(Context *ctx, const char *name, int32_t nargs, const RdArg *args, DLTensor *result); /* -1: unknown */
void ffi_take_raised(Context *ctx); /* its raised error becomes the context's message */

/* levels.c: one model built for several CPUs of a family, of which a process runs the best that its CPU can */
typedef struct { const char *name; const RdLibrary *library; } RdLevel;
RD_API int rd_package_level(const RdLevel *levels, int32_t count, int32_t *chosen); /* levels: the best first; ROUNDEL_LEVEL names one */

/* package.c: a library with its weights, as a shipped file holds them */
typedef struct {
  const RdLibrary *library; /* of several levels that for the smallest CPU */
  const void *weights;      /* embedded, or NULL */
  const char *weights_file; /* beside the file that holds this structure, or NULL */
  const char *digest;       /* 64 characters that end the weights file */
  _Atomic(RdModel *) model; /* opened by the first run */
  _Atomic uint32_t lock;
  int32_t num_levels; /* 0: `library` is the only one */
  const RdLevel *levels;
  uint64_t weights_nbytes; /* of all levels together; 0: what `library` says */
} RdPackage;
RD_API int rd_package_library(const RdPackage *package, const RdLibrary **library); /* the level to be run here */
RD_API int rd_package_open(RdPackage *package, const RdOptions *options, RdModel **model);
RD_API void rd_package_close(RdPackage *package); /* the shared model, which no run may be using; the next run opens it again */
RD_API int rd_package_set_num_threads(RdPackage *package, int num_threads);
RD_API int rd_package_num_threads(RdPackage *package);
RD_API int rd_package_run(RdPackage *package, const char *function, const DLTensor *inputs, DLTensor *outputs);

typedef struct { int32_t type_index; uint32_t padding; union { int64_t i; double f; void *p; const char *s; } value; } RdAny;
RD_API int rd_package_ffi(RdPackage *package, const char *function, const RdAny *args, int32_t nargs, RdAny *result);
/* Makes a function of an open model one of tvm-ffi's, known by name: inputs, then outputs, as in rd_package_ffi. */
RD_API int rd_ffi_register(RdModel *model, int32_t function, const char *name);
RD_API int rd_ffi_raised(void *self, const RdAny *args, int32_t nargs, RdAny *result); /* -1: hands on the raised error */

#endif
