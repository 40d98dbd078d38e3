/* SPDX-License-Identifier: Apache-2.0 */
/* A WebAssembly module as a program, for hosts with the system interface WASI (preview 1):
 *
 *   model.wasm [--function NAME] input.npy ... -o output.npy ...
 *
 * Tensors are files of NumPy's format (numpy.lib.format, versions 1 and 2) in directories that the host has opened for it; without inputs the
 * program writes what it knows of the model, as JSON. It ends with the kind of error as its status. */
#if defined(__wasm__) && defined(ROUNDEL_WASI)
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os.h"
#include "os_wasm.h"
#include "runtime.h"

#define IMPORT(name) __attribute__((import_module("wasi_snapshot_preview1"), import_name(#name))) wasi_##name
#define FIRST_OPENED 3 /* descriptor of a directory, behind the three streams */
#define CAN_READ ((uint64_t)(1 << 1 | 1 << 21)) /* and ask for the size */
#define CAN_WRITE ((uint64_t)(1 << 6))
#define CREATE_EMPTY (1 | 8)
#define MOST 256  /* tensors */
#define PART ((size_t)1 << 24) /* bytes that are read or written at once; hosts refuse some hundred million */

typedef struct { const void *data; size_t nbytes; } Span;
typedef struct { uint8_t kind; uint32_t name_length; } Opened;
typedef struct { uint64_t device, file; uint8_t kind; uint64_t links, nbytes, times[3]; } FileStatus;
typedef struct { const char *paths[MOST]; DLTensor tensors[MOST]; int count; } Files;

uint32_t IMPORT(args_sizes_get)(uint32_t *count, size_t *nbytes);
uint32_t IMPORT(args_get)(char **args, char *texts);
uint32_t IMPORT(fd_prestat_get)(uint32_t fd, Opened *opened);
uint32_t IMPORT(fd_prestat_dir_name)(uint32_t fd, char *name, size_t capacity);
uint32_t IMPORT(path_open)(uint32_t fd, uint32_t lookup, const char *path, size_t length, uint32_t how, uint64_t rights, uint64_t inherited, uint32_t flags,
                           uint32_t *file);
uint32_t IMPORT(fd_filestat_get)(uint32_t fd, FileStatus *status);
uint32_t IMPORT(fd_read)(uint32_t fd, const Span *spans, uint32_t count, size_t *nbytes);
uint32_t IMPORT(fd_write)(uint32_t fd, const Span *spans, uint32_t count, size_t *nbytes);
uint32_t IMPORT(fd_close)(uint32_t fd);
_Noreturn void IMPORT(proc_exit)(uint32_t status);

extern RdPackage roundel_package; /* the model */

/* ---- files ------------------------------------------------------------------------------------------------------ */

/* What a path is inside of an opened directory; NULL: it is not there. */
static const char *inside(const char *path, const char *folder) {
  while (strncmp(path, "./", 2) == 0) path += 2;
  while (strncmp(folder, "./", 2) == 0) folder += 2;
  if (!*folder || strcmp(folder, ".") == 0) return *path == '/' ? NULL : path;
  size_t length = strlen(folder);
  while (length && folder[length - 1] == '/') length--;
  if (strncmp(path, folder, length) || path[length] != '/') return NULL;
  while (path[length] == '/') length++;
  return path + length;
}

/* Opens a file in the first directory that has it, or can have it; nonzero: none. */
static int open_file(const char *path, int to_write, uint32_t *file) {
  Opened opened;
  for (uint32_t fd = FIRST_OPENED; !wasi_fd_prestat_get(fd, &opened); fd++) {
    char folder[4096];
    if (opened.kind || opened.name_length >= sizeof folder || wasi_fd_prestat_dir_name(fd, folder, opened.name_length)) continue;
    folder[opened.name_length] = '\0';
    const char *rest = inside(path, folder);
    if (rest && !wasi_path_open(fd, 1, rest, strlen(rest), to_write ? CREATE_EMPTY : 0, to_write ? CAN_WRITE : CAN_READ, 0, 0, file)) return 0;
  }
  return 1;
}

/* The content of a file, 64-byte aligned; NULL: there is none, or no memory for it. */
static char *read_file(const char *path, size_t *nbytes) {
  uint32_t fd;
  FileStatus status;
  char *content = NULL;
  if (open_file(path, 0, &fd)) return NULL;
  if (!wasi_fd_filestat_get(fd, &status) && is_addressable((int64_t)status.nbytes)) content = os_alloc((size_t)status.nbytes + 1);
  *nbytes = content ? (size_t)status.nbytes : 0;
  for (size_t done = 0, got; content && done < *nbytes; done += got) {
    Span span = {content + done, *nbytes - done < PART ? *nbytes - done : PART};
    if (!wasi_fd_read(fd, &span, 1, &got) && got) continue;
    os_free(content, 0);
    content = NULL;
  }
  wasi_fd_close(fd);
  return content;
}

static int write_all(uint32_t fd, const void *data, size_t nbytes) {
  for (size_t done = 0, put; done < nbytes; done += put) {
    Span span = {(const char *)data + done, nbytes - done < PART ? nbytes - done : PART};
    if (wasi_fd_write(fd, &span, 1, &put) || !put) return 1;
  }
  return 0;
}

void wasm_find_file(const char *path) {
  size_t nbytes;
  char *content = read_file(path, &nbytes);
  if (content) wasm_give_file(content, nbytes);
}

/* ---- NumPy's format --------------------------------------------------------------------------------------------- */

/* The letter of a type is NumPy's; bfloat16 has none, and is raw bytes there (V). */
static const struct { char letter; uint8_t code; } kinds[] = {{'f', kDLFloat}, {'i', kDLInt}, {'u', kDLUInt}, {'b', kDLBool}, {'V', kDLBfloat}, {'c', kDLComplex}};

/* What stands behind a key of the header; NULL: it does not have it. */
static const char *behind(const char *header, const char *end, const char *key) {
  for (size_t length = strlen(key); header + length < end; header++)
    if (memcmp(header, key, length) == 0) {
      for (header += length; header < end && (*header == ':' || *header == ' '); header++) continue;
      return header;
    }
  return NULL;
}

/* Reads the type and the shape of a header; nonzero: it is none that this program knows. */
static int read_header(const char *header, const char *end, DLTensor *tensor) {
  const char *type = behind(header, end, "'descr'"), *order = behind(header, end, "'fortran_order'"), *shape = behind(header, end, "'shape'");
  if (!type || !order || !shape || strncmp(order, "False", 5) || *type != '\'' || !strchr("<|", type[1]) || *shape != '(') return 1;
  size_t kind = 0;
  while (kind < sizeof kinds / sizeof *kinds && kinds[kind].letter != type[2]) kind++;
  if (kind == sizeof kinds / sizeof *kinds) return 1;
  char *at = (char *)type + 3;
  tensor->dtype = (DLDataType){kinds[kind].code, (uint8_t)(8 * strtol(at, &at, 10)), 1};
  int64_t *sizes = tensor->shape = malloc(64 * sizeof *sizes);
  for (shape++; sizes && shape < end && *shape != ')'; shape = at) {
    for (; shape < end && (*shape == ' ' || *shape == ','); shape++) continue;
    if (*shape == ')') break;
    sizes[tensor->ndim++] = strtol(shape, &at, 10);
    if (at == shape || tensor->ndim == 64) return 1;
  }
  return !sizes || shape >= end;
}

static int read_tensor(const char *path, DLTensor *tensor) {
  size_t nbytes;
  int64_t wanted;
  char *content = read_file(path, &nbytes);
  *tensor = (DLTensor){.device = {kDLCPU, 0}};
  if (!content) return rd_set_error(RD_RUNTIME_ERROR, "%.400s cannot be read, or there is no memory for it", path);
  size_t start = nbytes > 12 && content[6] > 1 ? 12 : 10, length = 0;
  if (nbytes > 12 && memcmp(content, "\x93NUMPY", 6) == 0)
    for (size_t k = start; k-- > 8;) length = length << 8 | (unsigned char)content[k];
  if (!length || length > nbytes - start || read_header(content + start, content + start + length, tensor))
    return rd_set_error(RD_VALUE_ERROR, "%.400s is no file of NumPy's format with numbers in the order of rows", path);
  if (tensor_nbytes(tensor->ndim, tensor->shape, tensor->dtype, &wanted) || wanted != (int64_t)(nbytes - start - length))
    return rd_set_error(RD_VALUE_ERROR, "%.400s is cut off, or too long", path);
  tensor->data = content + start + length;
  return 0;
}

static int write_tensor(const char *path, const DLTensor *tensor) {
  char header[2048];
  size_t kind = 0, at;
  while (kind + 1 < sizeof kinds / sizeof *kinds && kinds[kind].code != tensor->dtype.code) kind++;
  at = (size_t)snprintf(header + 10, 200, "{'descr': '%c%c%d', 'fortran_order': False, 'shape': (", tensor->dtype.bits == 8 ? '|' : '<', kinds[kind].letter,
                        tensor->dtype.bits / 8) + 10;
  for (int32_t k = 0; k < tensor->ndim; k++) at += (size_t)snprintf(header + at, 30, "%lld, ", (long long)tensor->shape[k]);
  at += (size_t)snprintf(header + at, 30, "), }");
  size_t whole = (at + 1 + 63) / 64 * 64;
  memset(header + at, ' ', whole - at);
  header[whole - 1] = '\n';
  memcpy(header, "\x93NUMPY\1\0", 8);
  header[8] = (char)((whole - 10) & 255);
  header[9] = (char)((whole - 10) >> 8);
  uint32_t fd;
  int64_t nbytes;
  if (open_file(path, 1, &fd)) return rd_set_error(RD_RUNTIME_ERROR, "%.400s cannot be written: has the host opened its directory?", path);
  int failed = tensor_nbytes(tensor->ndim, tensor->shape, tensor->dtype, &nbytes) || write_all(fd, header, whole) ||
               write_all(fd, tensor_data(tensor), (size_t)nbytes);
  wasi_fd_close(fd);
  return failed ? rd_set_error(RD_RUNTIME_ERROR, "%.400s was not written whole", path) : 0;
}

/* ---- the program ------------------------------------------------------------------------------------------------ */

static int add(Files *files, const char *path) {
  if (files->count == MOST) return rd_set_error(RD_VALUE_ERROR, "these are more than %d files", MOST);
  files->paths[files->count++] = path;
  return 0;
}

static int run(const char *name, Files *inputs, Files *outputs) {
  RdModel *model;
  int status = rd_package_open(&roundel_package, NULL, &model);
  const RdFunction *f = status ? NULL : roundel_function(model, name);
  if (!status && !f) status = rd_set_error(RD_VALUE_ERROR, "the model has no function '%s'", name ? name : "");
  if (!status && inputs->count != f->num_inputs)
    status = rd_set_error(RD_VALUE_ERROR, "%d inputs are wanted, %d were given", f->num_inputs, inputs->count);
  if (!status && (outputs->count > f->num_outputs || f->num_outputs > MOST))
    status = rd_set_error(RD_VALUE_ERROR, "there are %d outputs, and names for %d", f->num_outputs, outputs->count);
  for (int k = 0; k < inputs->count && !status; k++) status = read_tensor(inputs->paths[k], &inputs->tensors[k]);
  for (int k = 0; !status && k < f->num_outputs; k++) outputs->tensors[k] = (DLTensor){.device = {kDLCPU, 0}};
  if (!status) status = rd_package_run(&roundel_package, f->name, inputs->tensors, outputs->tensors);
  for (int k = 0; k < outputs->count && !status; k++) status = write_tensor(outputs->paths[k], &outputs->tensors[k]);
  return status;
}

static int started(int count, char **args) {
  static Files inputs, outputs;
  const char *name = NULL;
  int status = 0;
  for (int k = 1; k < count && !status; k++) {
    int is_output = strcmp(args[k], "-o") == 0, is_name = strcmp(args[k], "--function") == 0;
    if ((is_output || is_name) && k + 1 == count) return rd_set_error(RD_VALUE_ERROR, "behind %s a name is wanted", args[k]);
    if (is_name) name = args[++k];
    else status = is_output ? add(&outputs, args[++k]) : add(&inputs, args[k]);
  }
  if (status || count > 1) return status ? status : run(name, &inputs, &outputs);
  const char *told = roundel_package.library->metadata;
  return write_all(1, told, strlen(told)) || write_all(1, "\n", 1);
}

void __attribute__((export_name("_start"), used)) roundel_wasi_start(void) {
  uint32_t count = 0;
  size_t nbytes = 0;
  wasi_args_sizes_get(&count, &nbytes);
  char **args = malloc((count + 1) * sizeof *args), *texts = malloc(nbytes + 1);
  if (!args || !texts || wasi_args_get(args, texts)) wasi_proc_exit(RD_MEMORY_ERROR);
  int status = started((int)count, args);
  const char *why = status ? roundel_last_error() : "";
  if (status && (write_all(2, why, strlen(why)) || write_all(2, "\n", 1))) status = RD_RUNTIME_ERROR;
  if (status) wasi_proc_exit((uint32_t)status);
}
#endif
