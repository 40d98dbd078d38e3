/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime of a model that is one file of C99: one thread, memory that the program has from the start, no functions of the system but memcpy,
 * memset and those of math.h. What generated code calls is here, and what roundel.h's entry points do: checks of tensors, sizes, the call.
 * RD_MEMORY_BYTES, RD_MOST_SYMBOLS, RD_MOST_DIMS, RD_MOST_PARAMS and RD_MOST_CONSTANTS are those of the model, and RD_TOO_SMALL says that its
 * memory is, and what to change. */

#define RD_UNSOLVED INT64_MIN
#define RD_MOST_ELEMENTS (SIZE_MAX / 32) /* of a tensor */

static union { unsigned char bytes[RD_MEMORY_BYTES + RD_ALIGNMENT]; int64_t i; double f; void *p; } rd_memory; /* activations, then what is asked for */
static char rd_message[200]; /* why the last call failed */
static int64_t rd_used;
static int (*rd_ask)(void *user);
static void *rd_ask_user;
static int rd_busy;

static unsigned char *rd_memory_start(void) {
  return rd_memory.bytes + (RD_ALIGNMENT - (uintptr_t)rd_memory.bytes % RD_ALIGNMENT) % RD_ALIGNMENT;
}

RD_INLINE void rd_append(size_t *length, const char *text) {
  while (*text && *length + 1 < sizeof rd_message) rd_message[(*length)++] = *text++;
  rd_message[*length] = 0;
}

RD_INLINE void rd_append_number(size_t *length, int64_t value) {
  char digits[21];
  uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  uint16_t part[4]; /* the highest first: boards have no instruction that divides 64 bits */
  int k = 20;
  for (int i = 0; i < 4; i++) part[i] = (uint16_t)(magnitude >> (48 - 16 * i));
  digits[k] = 0;
  do {
    uint32_t left = 0;
    for (int i = 0; i < 4; i++) {
      left = left << 16 | part[i];
      part[i] = (uint16_t)(left / 10);
      left %= 10;
    }
    digits[--k] = (char)('0' + left);
  } while (part[0] | part[1] | part[2] | part[3]);
  if (value < 0) rd_append(length, "-");
  rd_append(length, digits + k);
}

RD_INLINE void rd_append_both(size_t *length, int64_t have, int64_t want) {
  rd_append(length, ": ");
  rd_append_number(length, have);
  rd_append(length, ", expected ");
  rd_append_number(length, want);
}

RD_INLINE int32_t rd_failed(RdContext *ctx, int32_t status) {
  if (!ctx->status) ctx->status = status;
  return ctx->status;
}

RD_INLINE int32_t rd_failf(RdContext *ctx, const char *format, int32_t count, const int64_t *values) {
  size_t length = 0;
  if (ctx->status) return ctx->status;
  rd_message[0] = 0;
  for (; *format; format++) {
    char one[2] = {*format, 0};
    if (format[0] == '{' && format[1] >= '0' && format[1] <= '9' && format[2] == '}' && format[1] - '0' < count) {
      rd_append_number(&length, values[format[1] - '0']);
      format += 2;
    } else rd_append(&length, one);
  }
  return rd_failed(ctx, RD_RUNTIME_ERROR);
}

RD_INLINE int32_t rd_fail(RdContext *ctx, const char *message) { return rd_failf(ctx, message, 0, 0); }

/* A function of its own wherever it is called, so that what the program's function needs of the stack is told apart from what the model needs. */
#if defined(__GNUC__)
__attribute__((noinline, unused)) static
#else
static
#endif
int32_t rd_checkpoint(RdContext *ctx) {
  if (!ctx->status && rd_ask && rd_ask(rd_ask_user)) {
    (void)rd_fail(ctx, "the run was interrupted");
    ctx->status = RD_INTERRUPTED;
  }
  return ctx->status;
}

RD_INLINE int32_t rd_parallel_for(RdContext *ctx, RdTask task, void **args, int64_t extent, int64_t grain) {
  (void)grain;
  if (!ctx->status && extent > 0) task(0, extent, args);
  return ctx->status;
}

/* Memory is given from the rest of what there is, and taken back from the last who got it. */
RD_INLINE void *rd_heap_alloc(RdContext *ctx, int64_t nbytes) {
  const int64_t size = nbytes < 0 || nbytes > (int64_t)RD_MEMORY_BYTES ? (int64_t)RD_MEMORY_BYTES + 1 : (nbytes + 63) / 64 * 64 + 64;
  unsigned char *place = rd_memory_start() + rd_used;
  if (size > (int64_t)RD_MEMORY_BYTES - rd_used) {
    (void)rd_fail(ctx, RD_TOO_SMALL);
    ctx->status = RD_MEMORY_ERROR;
    return 0;
  }
  memcpy(place, &size, sizeof size);
  rd_used += size;
  return place + 64;
}

RD_INLINE void rd_heap_free(RdContext *ctx, void *memory) {
  int64_t size;
  (void)ctx;
  if (!memory) return;
  memcpy(&size, (unsigned char *)memory - 64, sizeof size);
  if ((unsigned char *)memory - 64 + size == rd_memory_start() + rd_used) rd_used -= size;
}

/* Says why a call fails before it begins. */
RD_INLINE int rd_refused(const char *why) {
  size_t length = 0;
  rd_message[0] = 0;
  rd_append(&length, why);
  return RD_VALUE_ERROR;
}

RD_INLINE int rd_too_small(int64_t needed) {
  size_t length = 0;
  rd_message[0] = 0;
  rd_append(&length, RD_TOO_SMALL);
  rd_append_both(&length, RD_MEMORY_BYTES, needed);
  return RD_MEMORY_ERROR;
}

/* The CRC-32 of memory, as zlib has it, four bits at a time: a table for eight takes a kilobyte of flash. */
RD_INLINE uint32_t rd_crc32(const unsigned char *at, size_t nbytes) {
  static const uint32_t table[16] = {0, 0x1db71064u, 0x3b6e20c8u, 0x26d930acu, 0x76dc4190u, 0x6b6b51f4u, 0x4db26158u, 0x5005713cu,
                                     0xedb88320u, 0xf00f9344u, 0xd6d6a3e8u, 0xcb61b38cu, 0x9b64c2b0u, 0x86d3d2d4u, 0xa00ae278u, 0xbdbdf21cu};
  uint32_t crc = 0xffffffffu;
  while (nbytes--) {
    crc ^= *at++;
    crc = crc >> 4 ^ table[crc & 15];
    crc = crc >> 4 ^ table[crc & 15];
  }
  return ~crc;
}

RD_INLINE int rd_bad(const RdFunction *f, int32_t index, const char *what, int64_t have, int64_t want, int status) {
  size_t length = 0;
  rd_message[0] = 0;
  rd_append(&length, index < f->num_inputs ? "input " : "output ");
  rd_append_number(&length, index < f->num_inputs ? index : index - f->num_inputs);
  rd_append(&length, " ('");
  rd_append(&length, f->params[index].name);
  rd_append(&length, "') ");
  rd_append(&length, what);
  if (want != RD_UNSOLVED) rd_append_both(&length, have, want);
  return status;
}

RD_INLINE int64_t rd_scalar(const DLTensor *t) {
  const char *p = (const char *)t->data + t->byte_offset;
  int64_t i64 = 0; int32_t i32; int16_t i16; uint32_t u32; uint16_t u16;
  const int is_signed = t->dtype.code == kDLInt;
  if (t->dtype.bits == 64) memcpy(&i64, p, 8);
  else if (t->dtype.bits == 32) { memcpy(&i32, p, 4); memcpy(&u32, p, 4); i64 = is_signed ? i32 : (int64_t)u32; }
  else if (t->dtype.bits == 16) { memcpy(&i16, p, 2); memcpy(&u16, p, 2); i64 = is_signed ? i16 : u16; }
  else i64 = is_signed ? *(const signed char *)p : *(const unsigned char *)p;
  return i64;
}

/* Of the elements of a tensor, in memory: there are processors that load no number from elsewhere. */
RD_INLINE uintptr_t rd_alignment(const RdParam *p) {
  const uintptr_t size = (uintptr_t)p->bits * p->lanes / 8, most = sizeof(void *);
  return size <= 1 ? 1 : (size & (~size + 1)) < most ? (size & (~size + 1)) : most;
}

RD_INLINE int rd_check_kind(const RdFunction *f, int32_t k, const DLTensor *t) {
  const RdParam *p = &f->params[k];
  const int32_t ndim = p->ndim < 0 ? 0 : p->ndim;
  size_t step = 1;
  if (t->dtype.code != p->code || t->dtype.bits != p->bits || t->dtype.lanes != p->lanes)
    return rd_bad(f, k, "has another type of element", 0, RD_UNSOLVED, RD_TYPE_ERROR);
  if (t->ndim != ndim) return rd_bad(f, k, "has another number of dimensions", t->ndim, ndim, RD_VALUE_ERROR);
  if (ndim && !t->shape) return rd_bad(f, k, "has no shape", 0, RD_UNSOLVED, RD_VALUE_ERROR);
  if (((uintptr_t)t->data + (uintptr_t)t->byte_offset) & (rd_alignment(p) - 1)) return rd_bad(f, k, "does not lie where its elements may lie", 0, RD_UNSOLVED, RD_VALUE_ERROR);
  if (!t->data) {
    for (int32_t i = 0; i < ndim; i++) step *= t->shape[i] != 0;
    return step ? rd_bad(f, k, "has no data", 0, RD_UNSOLVED, RD_VALUE_ERROR) : 0;
  }
  for (int32_t i = ndim - 1; i >= 0; i--) {
    if (t->shape[i] < 0) return rd_bad(f, k, "has a negative dimension", 0, RD_UNSOLVED, RD_VALUE_ERROR);
    if (t->strides && t->shape[i] != 1 && t->strides[i] != (int64_t)step) return rd_bad(f, k, "is not compact", 0, RD_UNSOLVED, RD_VALUE_ERROR);
    if (t->shape[i] && (t->shape[i] > (int64_t)RD_MOST_ELEMENTS || step > RD_MOST_ELEMENTS / (size_t)t->shape[i])) return rd_bad(f, k, "is too large", 0, RD_UNSOLVED, RD_VALUE_ERROR);
    step *= (size_t)t->shape[i];
  }
  return 0;
}

RD_INLINE int rd_solve(const RdFunction *f, const DLTensor *const *tensors, int64_t *symbols) {
  for (int32_t s = 0; s < f->num_symbols; s++) symbols[s] = RD_UNSOLVED;
  for (int32_t k = 0; k < f->num_inputs + f->num_outputs; k++) {
    const RdParam *p = &f->params[k];
    for (int32_t i = 0; i < (p->ndim < 0 ? p->dims != 0 : p->ndim); i++) {
      const int64_t value = p->ndim < 0 ? rd_scalar(tensors[k]) : tensors[k]->shape[i];
      int64_t *known;
      if (p->dims[i] >= 0 || p->dims[i] == RD_COMPUTED) continue;
      known = &symbols[-1 - p->dims[i]];
      if (*known == RD_UNSOLVED) *known = value;
      if (*known != value) return rd_bad(f, k, "has a dimension that others contradict", value, *known, RD_VALUE_ERROR);
    }
  }
  return 0;
}

RD_INLINE int rd_compare(const RdFunction *f, const DLTensor *const *tensors, const int64_t *symbols) {
  static int64_t dims[RD_MOST_DIMS + 1];
  int32_t at = 0;
  if (f->shapes) f->shapes(symbols, dims);
  for (int32_t k = 0; k < f->num_inputs + f->num_outputs; k++)
    for (int32_t i = 0; i < f->params[k].ndim; i++, at++) {
      const int64_t named = f->params[k].dims[i];
      const int64_t want = f->shapes ? dims[at] : named >= 0 || named == RD_COMPUTED ? named : symbols[-1 - named];
      if (want != RD_COMPUTED && tensors[k]->shape[i] != want)
        return rd_bad(f, k, "has another size in some dimension", tensors[k]->shape[i], want, RD_VALUE_ERROR);
    }
  return 0;
}

RD_INLINE uintptr_t rd_bytes_of(const DLTensor *t) {
  uintptr_t count = 1;
  for (int32_t i = 0; i < t->ndim; i++) count *= (uintptr_t)t->shape[i];
  return (count * t->dtype.bits * t->dtype.lanes + 7) / 8;
}

/* What an output shares memory with would change while it is read. */
RD_INLINE int rd_check_apart(const RdFunction *f, const DLTensor *const *tensors) {
  for (int32_t k = f->num_inputs; k < f->num_inputs + f->num_outputs; k++)
    for (int32_t j = 0; j < k; j++) {
      const uintptr_t a = (uintptr_t)tensors[k]->data + (uintptr_t)tensors[k]->byte_offset, b = (uintptr_t)tensors[j]->data + (uintptr_t)tensors[j]->byte_offset;
      if (a < b + rd_bytes_of(tensors[j]) && b < a + rd_bytes_of(tensors[k]))
        return rd_bad(f, k, "shares memory with another tensor", 0, RD_UNSOLVED, RD_VALUE_ERROR);
    }
  return 0;
}

RD_INLINE int rd_call(const RdFunction *f, const unsigned char *weights, const DLTensor *const *tensors) {
  static int64_t symbols[RD_MOST_SYMBOLS + 1];
  static const void *constants[RD_MOST_CONSTANTS + 1];
  static void *buffers[RD_MOST_PARAMS + 1];
  RdContext context = {0, 0, 0};
  const int32_t count = f->num_inputs + f->num_outputs;
  int status = 0;
  int64_t arena;
  for (int32_t k = 0; k < count && !status; k++) status = rd_check_kind(f, k, tensors[k]);
  if (!status) status = rd_solve(f, tensors, symbols);
  if (!status) status = rd_compare(f, tensors, symbols);
  if (!status) status = rd_check_apart(f, tensors);
  if (status) return status;
  arena = f->arena_size ? f->arena_size(symbols) : 0;
  rd_used = 0;
  context.arena = rd_memory_start();
  context.constants = constants;
  if (arena < 0 || arena > (int64_t)RD_MEMORY_BYTES) return rd_too_small(arena);
  rd_used = (arena + 63) / 64 * 64;
  if (rd_used > (int64_t)RD_MEMORY_BYTES) rd_used = RD_MEMORY_BYTES;
  for (int32_t k = 0; k < f->num_constants; k++) constants[k] = weights + f->constants[k].offset;
  for (int32_t k = 0; k < count; k++) buffers[k] = tensors[k]->data ? (char *)tensors[k]->data + tensors[k]->byte_offset : (char *)0;
  status = f->run(&context, symbols, buffers);
  return context.status ? context.status : status;
}

/* One run: shapes, types and memory are checked first. */
RD_INLINE int rd_run(const RdFunction *f, const unsigned char *weights, const DLTensor *inputs, const DLTensor *outputs) {
  static const DLTensor *tensors[RD_MOST_PARAMS + 1];
  int status;
  if (rd_busy) return RD_RUNTIME_ERROR; /* one run at a time: the memory is the model's own */
  if (f->num_inputs && !inputs) return rd_refused("the inputs are a null pointer");
  if (f->num_outputs && !outputs) return rd_refused("the outputs are a null pointer");
  rd_busy = 1;
  for (int32_t k = 0; k < f->num_inputs; k++) tensors[k] = inputs + k;
  for (int32_t k = 0; k < f->num_outputs; k++) tensors[f->num_inputs + k] = outputs + k;
  status = rd_call(f, weights, tensors);
  rd_busy = 0;
  return status;
}
