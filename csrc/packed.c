/* SPDX-License-Identifier: Apache-2.0 */
/* Calls from models to functions known by name: the embedding program's, then those of the process's tvm-ffi registry. */
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

typedef struct Entry Entry;
struct Entry { Entry *next; RdPacked function; void *user; char name[]; };

static _Atomic uint32_t lock;
static Entry *entries;

int roundel_register(const char *name, RdPacked function, void *user) {
  size_t size = strlen(name) + 1;
  Entry *made = function ? malloc(sizeof *made + size) : NULL;
  if (function && !made) return rd_set_error(RD_MEMORY_ERROR, "no memory to register '%s'", name);
  if (made) {
    made->function = function;
    made->user = user;
    memcpy(made->name, name, size);
  }
  rd_lock(&lock);
  Entry **at = &entries;
  while (*at && strcmp((*at)->name, name) != 0) at = &(*at)->next;
  Entry *before = *at;
  if (before) *at = before->next;
  if (made) {
    made->next = entries;
    entries = made;
  }
  rd_unlock(&lock);
  free(before);
  return RD_OK;
}

static int call(Context *ctx, const char *name, int32_t nargs, const RdArg *args, DLTensor *result) {
  RdPacked function = NULL;
  void *user = NULL;
  rd_lock(&lock);
  for (Entry *entry = entries; entry; entry = entry->next)
    if (strcmp(entry->name, name) == 0) {
      function = entry->function;
      user = entry->user;
    }
  rd_unlock(&lock);
  if (function) {
    RdArg *all = result ? malloc(((size_t)nargs + 1) * sizeof *all) : NULL;
    if (all) { /* the result is the last argument */
      memcpy(all, args, (size_t)nargs * sizeof *all);
      all[nargs] = (RdArg){.kind = RD_ARG_TENSOR, .value.tensor = result};
    }
    int32_t status = result && !all ? RD_MEMORY_ERROR : function(user, &ctx->shared, nargs + (all != NULL), all ? all : args);
    free(all);
    return status ? rd_context_error(ctx, RD_RUNTIME_ERROR, "function '%s' failed with status %d", name, (int)status) : 0;
  }
  int status = ffi_call_global(ctx, name, nargs, args, result);
  if (status >= 0) return status;
  return rd_context_error(ctx, RD_RUNTIME_ERROR, "the model calls '%s', which is not registered in this process; see roundel_register (C) or "
                          "roundel.register_func (Python)", name);
}

int32_t rd_call_packed(RdContext *ctx, const char *name, int32_t nargs, const RdArg *args) {
  return call((Context *)ctx, name, nargs, args, NULL);
}

int32_t rd_call_packed_into(RdContext *ctx, const char *name, int32_t nargs, const RdArg *args, DLTensor *result) {
  return call((Context *)ctx, name, nargs, args, result);
}
