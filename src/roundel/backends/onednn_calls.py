# SPDX-License-Identifier: Apache-2.0
"""The C functions that call oneDNN 3 through its C API (dnnl.h): primitives are made once for each shape and kept, weights reordered once.

Each call computes a range of rows of the result on the calling thread alone: a model's own threads share the rows, and oneDNN is told, for the time of
a call and on that thread only, that it has one. A model's file keeps `MOST_KEPT` primitives; where symbolic sizes make more, the one that was not used
for the longest time goes. Primitives get their scratchpad from the caller, which makes them safe to run on several threads at once. Functions
return oneDNN's status (`STATUSES`).
"""

MOST_KEPT = 1024
STATUSES = {1: "out of memory", 2: "invalid arguments", 3: "unimplemented", 5: "runtime error", 9: "invalid shape", 10: "invalid data type"}

DECLARATIONS = """
int dnnl_engine_create(void **, int, size_t);
int dnnl_stream_create(void **, void *, unsigned);
int dnnl_stream_destroy(void *);
int dnnl_memory_desc_create_with_strides(void **, int, const int64_t *, int, const int64_t *);
int dnnl_memory_desc_create_with_tag(void **, int, const int64_t *, int, int);
int dnnl_memory_desc_clone(void **, const void *);
int dnnl_memory_desc_destroy(void *);
int dnnl_memory_desc_equal(const void *, const void *);
size_t dnnl_memory_desc_get_size(const void *);
int dnnl_memory_create(void **, const void *, void *, void *);
int dnnl_memory_destroy(void *);
int dnnl_primitive_attr_create(void **);
int dnnl_primitive_attr_destroy(void *);
int dnnl_primitive_attr_set_scratchpad_mode(void *, int);
int dnnl_primitive_attr_set_fpmath_mode(void *, int);
int dnnl_primitive_attr_set_scales_mask(void *, int, int);
int dnnl_primitive_attr_set_zero_points_mask(void *, int, int);
int dnnl_primitive_attr_set_post_ops(void *, const void *);
int dnnl_post_ops_create(void **);
int dnnl_post_ops_destroy(void *);
int dnnl_post_ops_append_eltwise(void *, int, float, float);
int dnnl_post_ops_append_binary(void *, int, const void *);
int dnnl_convolution_forward_primitive_desc_create(void **, void *, int, int, const void *, const void *, const void *, const void *, const int64_t *,
                                                   const int64_t *, const int64_t *, const int64_t *, const void *);
int dnnl_matmul_primitive_desc_create(void **, void *, const void *, const void *, const void *, const void *, const void *);
int dnnl_reorder_primitive_desc_create(void **, const void *, void *, const void *, void *, const void *);
const void *dnnl_primitive_desc_query_md(const void *, int, int);
int dnnl_primitive_create(void **, const void *);
int dnnl_primitive_execute(const void *, void *, int, const void *);
int dnnl_primitive_destroy(void *);
int dnnl_primitive_desc_destroy(void *);
int dnnl_get_effective_cpu_isa(void);
int omp_get_max_threads(void);
void omp_set_num_threads(int);
"""

SOURCE = f"enum {{ MOST_KEPT = {MOST_KEPT} }};" + r"""
#include <stdlib.h>
#include <string.h>
enum { SRC = 1, DST = 17, WEIGHTS = 33, BIAS = 41, SCRATCHPAD = 80, SCALES = 4096, ZERO_POINTS = 8192, POST_OP = 32768, SRC_1 = 2, F32 = 3, S32 = 4 };
enum { NO_MEMORY = 1, BFLOAT16 = 2, INT8 = 5, HAS_VNNI = 0x48, HAS_AVX512 = 0x20 }; /* of a status, of types, of instruction sets */
enum { CONVOLUTION, MATMUL, KEY = 32, BUCKETS = 1024, MOST_DIMS = 5, MOST_OPS = 6 };
typedef struct { int arg; void *memory; } Argument;
typedef struct Made { /* a primitive; key: the numbers that it was made for; used: when, by so many threads now */
  struct Made *next;
  int64_t key[KEY], used, users;
  void *primitive, *description;
  const void *src, *weights, *dst, *scratchpad;
  void *given, *bias, *scale, *zero, *full; /* the weights as they come; operands beside them */
} Made;
typedef struct Packed { struct Packed *next; const void *given, *form; void *memory; } Packed;
typedef struct { const void *x, *w, *bias, *scale, *other; void *y; int64_t zero; } Operands;
static Made *made_table[BUCKETS];
static _Atomic(Packed *) packed_table[BUCKETS]; /* only added to, so it is read without a lock */
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static int64_t kept, now;
static void *engine;

static const int sizes[] = {0, 2, 2, 4, 4, 1, 1}; /* bytes of an element of each of its types */

static void *plain(int type, int rank, const int64_t *shape, const int64_t *strides) {
  int64_t dense[MOST_DIMS], step = 1;
  for (int k = rank; k-- > 0; step *= shape[k]) dense[k] = step;
  void *form = NULL;
  dnnl_memory_desc_create_with_strides(&form, rank, shape, type, strides ? strides : dense);
  return form;
}

static void *any(int type, int rank, const int64_t *shape) {
  void *form = NULL;
  dnnl_memory_desc_create_with_tag(&form, rank, shape, type, 1);
  return form;
}

/* What a result goes through, four bits for each operator, from the key: 1 adds a tensor, the others are functions of one number. */
static void *attributes(const int64_t *key, const void *full, int channel_mask) {
  static const struct { int function; float alpha, beta; } functions[] = {{0}, {0}, {32}, {49}, {43}, {44, 1}, {41}, {33}, {46}, {52, 1.f / 6, .5f}};
  int32_t bits[2] = {(int32_t)key[3], (int32_t)key[4]};
  float limits[2];
  memcpy(limits, bits, sizeof limits);
  void *attr, *chain;
  dnnl_primitive_attr_create(&attr), dnnl_post_ops_create(&chain);
  dnnl_primitive_attr_set_scratchpad_mode(attr, 1), dnnl_primitive_attr_set_fpmath_mode(attr, 0); /* whatever the environment says */
  for (int64_t ops = key[2]; ops; ops >>= 4) {
    int op = ops & 15;
    if (op == 1) dnnl_post_ops_append_binary(chain, 131056, full);
    else if (op == 8) dnnl_post_ops_append_eltwise(chain, functions[op].function, limits[0], limits[1]);
    else dnnl_post_ops_append_eltwise(chain, functions[op].function, functions[op].alpha, functions[op].beta);
  }
  dnnl_primitive_attr_set_post_ops(attr, chain);
  dnnl_post_ops_destroy(chain);
  if (key[5] & 1) dnnl_primitive_attr_set_scales_mask(attr, WEIGHTS, channel_mask);
  if (key[5] & 2) dnnl_primitive_attr_set_zero_points_mask(attr, SRC, 0);
  return attr;
}

static int type_of(const int64_t *key, int k) { return key[1] >> 4 * k & 15; } /* data, weights, bias (0: none), result */

static int convolution(Made *m) { /* images, channels, rows, columns; outputs, groups; kernel; result; strides; dilation; padding */
  const int64_t *d = m->key + 6, grouped = d[5] > 1;
  int64_t src[] = {d[0], d[1], d[2], d[3]}, dst[] = {d[0], d[4], d[8], d[9]};
  int64_t nhwc[] = {d[2] * d[3] * d[1], 1, d[3] * d[1], d[1]}, result[] = {d[8] * d[9] * d[4], 1, d[9] * d[4], d[4]};
  int64_t groups[] = {d[5], d[4] / d[5], d[1] / d[5], d[6], d[7]}, dense[] = {d[4], d[1], d[6], d[7]};
  int64_t *weights = grouped ? groups : dense, channels[] = {d[4]};
  int rank = grouped ? 5 : 4;
  void *x = plain(type_of(m->key, 0), 4, src, nhwc), *w = any(type_of(m->key, 1), rank, weights), *y = plain(type_of(m->key, 3), 4, dst, result);
  m->given = plain(type_of(m->key, 1), rank, weights, NULL);
  if (type_of(m->key, 2)) m->bias = plain(type_of(m->key, 2), 1, channels, NULL);
  m->full = plain(type_of(m->key, 3), 4, dst, result), m->scale = plain(F32, 1, channels, NULL);
  void *attr = attributes(m->key, m->full, grouped ? 3 : 1);
  int status = dnnl_convolution_forward_primitive_desc_create(&m->description, engine, 96, 1, x, w, m->bias, y, d + 10, d + 12, d + 14, d + 16, attr);
  dnnl_primitive_attr_destroy(attr), dnnl_memory_desc_destroy(x), dnnl_memory_desc_destroy(w), dnnl_memory_desc_destroy(y);
  return status;
}

static int product(Made *m) { /* rows, columns, what is summed over; strides of data, of weights; whether these are constant */
  const int64_t *d = m->key + 6;
  int64_t src[] = {d[0], d[2]}, weights[] = {d[2], d[1]}, dst[] = {d[0], d[1]}, row[] = {1, d[1]};
  void *x = plain(type_of(m->key, 0), 2, src, d + 3), *y = plain(type_of(m->key, 3), 2, dst, NULL);
  m->given = plain(type_of(m->key, 1), 2, weights, d + 5);
  void *w = d[7] ? any(type_of(m->key, 1), 2, weights) : plain(type_of(m->key, 1), 2, weights, d + 5);
  if (type_of(m->key, 2)) m->bias = plain(type_of(m->key, 2), 2, row, NULL);
  m->full = plain(type_of(m->key, 3), 2, dst, NULL), m->scale = plain(F32, 1, row + 1, NULL);
  void *attr = attributes(m->key, m->full, 2);
  int status = dnnl_matmul_primitive_desc_create(&m->description, engine, x, w, m->bias, y, attr);
  dnnl_primitive_attr_destroy(attr), dnnl_memory_desc_destroy(x), dnnl_memory_desc_destroy(w), dnnl_memory_desc_destroy(y);
  return status;
}

static void delete(Made *m) {
  void *forms[] = {m->given, m->bias, m->scale, m->zero, m->full};
  for (int k = 0; k < 5; k++) dnnl_memory_desc_destroy(forms[k]);
  dnnl_primitive_destroy(m->primitive), dnnl_primitive_desc_destroy(m->description);
  free(m);
}

static Made *made(const int64_t *key, int *status) {
  Made *m = calloc(1, sizeof *m);
  int64_t one[] = {1};
  if (!m) return *status = NO_MEMORY, NULL;
  memcpy(m->key, key, sizeof m->key);
  m->zero = plain(S32, 1, one, NULL);
  *status = (key[0] == CONVOLUTION ? convolution : product)(m);
  if (!*status) *status = dnnl_primitive_create(&m->primitive, m->description);
  if (*status) return delete(m), NULL;
  m->src = dnnl_primitive_desc_query_md(m->description, 129, 0), m->weights = dnnl_primitive_desc_query_md(m->description, 131, 0);
  m->dst = dnnl_primitive_desc_query_md(m->description, 133, 0), m->scratchpad = dnnl_primitive_desc_query_md(m->description, 136, 0);
  return m;
}

static Made *found(const int64_t *key, Made *m) { /* for one more user, under the lock */
  while (m && memcmp(m->key, key, sizeof m->key)) m = m->next;
  if (m) m->used = ++now, m->users++;
  return m;
}

/* Out of the table what nobody uses, and nobody has used for the longest time. Under the lock. */
static Made *oldest(void) {
  Made **best = NULL, *m;
  for (int k = 0; k < BUCKETS; k++)
    for (Made **at = &made_table[k]; *at; at = &(*at)->next)
      if (!(*at)->users && (!best || (*at)->used < (*best)->used)) best = at;
  if (!best) return NULL;
  m = *best, *best = m->next, kept--;
  return m;
}

static Made *take(const int64_t *key, int *status) {
  uint64_t hash = 14695981039346656037u;
  for (int k = 0; k < KEY; k++) hash = (hash ^ (uint64_t)key[k]) * 1099511628211u, hash ^= hash >> 29;
  Made **bucket = &made_table[hash % BUCKETS], *mine = NULL, *gone = NULL;
  pthread_mutex_lock(&making);
  if (!engine) *status = dnnl_engine_create(&engine, 1, 0);
  Made *m = found(key, *bucket);
  pthread_mutex_unlock(&making);
  if (m || *status || !(mine = made(key, status))) return m;
  pthread_mutex_lock(&making); /* another thread may have made it meanwhile */
  if (!(m = found(key, *bucket))) {
    m = mine, mine = NULL;
    m->next = *bucket, *bucket = m, m->used = ++now, m->users = 1;
    if (++kept > MOST_KEPT) gone = oldest();
  }
  pthread_mutex_unlock(&making);
  if (mine) delete(mine);
  if (gone) delete(gone);
  return m;
}

static void give_back(Made *m) {
  pthread_mutex_lock(&making);
  m->users--;
  pthread_mutex_unlock(&making);
}

static void *memory(const void *form, const void *data) {
  void *made = NULL;
  dnnl_memory_create(&made, form, engine, (void *)data);
  return made;
}

static int run(void *primitive, Argument *arguments, int count) {
  void *stream = NULL;
  int status = dnnl_stream_create(&stream, engine, 1);
  for (int k = 0; k < count && !status; k++) status = arguments[k].memory ? 0 : NO_MEMORY;
  if (!status) status = dnnl_primitive_execute(primitive, stream, count, arguments);
  for (int k = 0; k < count; k++) dnnl_memory_destroy(arguments[k].memory);
  dnnl_stream_destroy(stream);
  return status;
}

static Packed *reordered(const Made *m, const void *given, int *status) {
  void *description = NULL, *primitive = NULL, *form = NULL;
  Packed *p = calloc(1, sizeof *p);
  *status = p && !posix_memalign(&p->memory, 64, dnnl_memory_desc_get_size(m->weights) + 64) ? 0 : NO_MEMORY;
  if (!*status) *status = dnnl_memory_desc_clone(&form, m->weights);
  if (!*status) *status = dnnl_reorder_primitive_desc_create(&description, m->given, engine, m->weights, engine, NULL);
  if (!*status) *status = dnnl_primitive_create(&primitive, description);
  if (!*status) {
    Argument arguments[] = {{SRC, memory(m->given, given)}, {DST, memory(m->weights, p->memory)}};
    *status = run(primitive, arguments, 2);
  }
  dnnl_primitive_destroy(primitive), dnnl_primitive_desc_destroy(description);
  if (!*status) return p->given = given, p->form = form, p;
  dnnl_memory_desc_destroy(form);
  if (p) free(p->memory);
  free(p);
  return NULL;
}

/* Weights in the form that a primitive wants, made when they are first needed; those of a model stay where they are as long as it. */
static const void *packed(const Made *m, const void *given, int *status) {
  if (dnnl_memory_desc_equal(m->given, m->weights)) return given;
  _Atomic(Packed *) *bucket = &packed_table[(uintptr_t)given / 64 % BUCKETS];
  Packed *p = *bucket;
  while (p && (p->given != given || !dnnl_memory_desc_equal(p->form, m->weights))) p = p->next;
  if (p) return p->memory;
  pthread_mutex_lock(&making); /* another thread may have made them meanwhile */
  for (p = *bucket; p && (p->given != given || !dnnl_memory_desc_equal(p->form, m->weights)); p = p->next) continue;
  if (!p && (p = reordered(m, given, status))) p->next = *bucket, *bucket = p;
  pthread_mutex_unlock(&making);
  return p ? p->memory : NULL;
}

static pthread_key_t room_key;
static pthread_once_t room_once = PTHREAD_ONCE_INIT;
static int has_room_key;
static void make_room_key(void) { has_room_key = !pthread_key_create(&room_key, free); }

static void *scratchpad(size_t bytes) { /* of this thread, kept until it ends */
  pthread_once(&room_once, make_room_key);
  if (!has_room_key) return NULL;
  size_t *room = pthread_getspecific(room_key);
  if (!room || *room < bytes) {
    free(room);
    room = NULL;
    if (!posix_memalign((void **)&room, 64, bytes + 64)) *room = bytes;
    pthread_setspecific(room_key, room);
  }
  return room ? (char *)room + 64 : NULL;
}

static int compute(const int64_t *key, const Operands *o) {
  int threads = omp_get_max_threads(), count = 3, position = 0, status = 0;
  omp_set_num_threads(1); /* of this thread alone, and only until it returns */
  Made *m = take(key, &status);
  const void *w = m ? packed(m, o->w, &status) : NULL;
  size_t room = w ? dnnl_memory_desc_get_size(m->scratchpad) : 0;
  void *own = room ? scratchpad(room) : NULL;
  if (room && !own) status = NO_MEMORY;
  if (!status) {
    int32_t zero = (int32_t)o->zero;
    Argument list[7 + MOST_OPS] = {{SRC, memory(m->src, o->x)}, {WEIGHTS, memory(m->weights, w)}, {DST, memory(m->dst, o->y)}};
    if (m->bias) list[count++] = (Argument){BIAS, memory(m->bias, o->bias)};
    if (room) list[count++] = (Argument){SCRATCHPAD, memory(m->scratchpad, own)};
    if (key[5] & 1) list[count++] = (Argument){SCALES | WEIGHTS, memory(m->scale, o->scale)};
    if (key[5] & 2) list[count++] = (Argument){ZERO_POINTS | SRC, memory(m->zero, &zero)};
    for (int64_t ops = key[2]; ops; ops >>= 4, position++)
      if ((ops & 15) == 1) list[count++] = (Argument){POST_OP * (position + 1) | SRC_1, memory(m->full, o->other)};
    status = run(m->primitive, list, count);
  }
  if (m) give_back(m);
  omp_set_num_threads(threads);
  return status;
}

/* Whether oneDNN computes with these types as the model wants: bfloat16 at all, integers exactly. It may be told to use less than the processor has. */
int32_t onednn_can(int64_t types) {
  int has = dnnl_get_effective_cpu_isa(), type = types & 15;
  return type == BFLOAT16 ? has & HAS_AVX512 : type >= INT8 ? has & HAS_VNNI : 1;
}

/* Rows first ... first + count of all images' rows: whole images at once, or a part of one with the padding that touches it. */
int32_t onednn_convolution(const void *x, const void *w, const void *bias, const void *scale, const void *other, void *y, int64_t types, int64_t ops,
                        int64_t low, int64_t high, int64_t flags, int64_t zero, int64_t channels, int64_t height, int64_t width, int64_t outputs,
                        int64_t groups, int64_t kh, int64_t kw, int64_t rows, int64_t columns, int64_t sh, int64_t sw, int64_t dh, int64_t dw,
                        int64_t above, int64_t left, int64_t first, int64_t count) {
  int64_t right = (columns - 1) * sw + (kw - 1) * dw + 1 - left - width;
  int status = 0;
  while (count > 0 && !status) {
    int64_t image = first / rows, top = first % rows, images = 1, some = rows - top < count ? rows - top : count;
    if (!top && count >= rows) images = count / rows;
    int64_t begin = top * sh - above, end = (top + some - 1) * sh + (kh - 1) * dh + 1 - above;
    int64_t over = begin < 0 ? -begin : 0, under = end > height ? end - height : 0;
    begin += over, end -= under;
    int64_t key[KEY] = {CONVOLUTION, types, ops, low, high, flags, images, channels, end - begin, width, outputs, groups, kh, kw, some, columns, sh, sw,
                        dh - 1, dw - 1, over, left, under, right < 0 ? 0 : right};
    int64_t at = (image * rows + top) * columns * outputs * sizes[types >> 12 & 15];
    Operands o = {x + (image * height + begin) * width * channels * sizes[types & 15], w, bias, scale, other + at, y + at, zero};
    status = compute(key, &o);
    first += images * some, count -= images * some;
  }
  return status;
}

/* Rows first ... first + count of all matrices' rows. Panels are of few sizes, so that symbolic numbers of rows need few primitives. */
int32_t onednn_product(const void *x, const void *w, const void *bias, const void *scale, const void *other, void *y, int64_t types, int64_t ops, int64_t low,
                    int64_t high, int64_t flags, int64_t zero, int64_t rows, int64_t columns, int64_t depth, int64_t x_matrix, int64_t x_row,
                    int64_t x_column, int64_t w_matrix, int64_t w_row, int64_t w_column, int64_t constant, int64_t first, int64_t count) {
  int status = 0;
  while (count > 0 && !status) {
    int64_t matrix = first / rows, top = first % rows, some = rows - top < count ? rows - top : count;
    if (some >= 64) some = some >= 512 ? 512 : some >= 256 ? 256 : some >= 128 ? 128 : 64;
    int64_t key[KEY] = {MATMUL, types, ops, low, high, flags, some, columns, depth, x_row, x_column, w_row, w_column, constant};
    int64_t at = first * columns * sizes[types >> 12 & 15];
    Operands o = {x + (matrix * x_matrix + top * x_row) * sizes[types & 15], w + matrix * w_matrix * sizes[types >> 4 & 15], bias, scale, other + at, y + at,
                  zero};
    status = compute(key, &o);
    first += some, count -= some;
  }
  return status;
}

__attribute__((destructor)) static void forget(void) { /* with the model's file; the library may be gone already when a process ends */
  if (has_room_key) pthread_key_delete(room_key);
  for (int k = 0; k < BUCKETS; k++)
    for (Packed *p = packed_table[k], *next; p; p = next) next = p->next, free(p->memory), free(p);
}
"""
