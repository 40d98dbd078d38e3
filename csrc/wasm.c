/* SPDX-License-Identifier: Apache-2.0 */
/* What the host of a WebAssembly module calls: tensors are written to the module's memory, in what it was asked for. */
#if defined(__wasm__)
#include "os_wasm.h"
#include "runtime.h"

#define EXPORT(name) __attribute__((export_name(#name), used)) name

extern RdPackage roundel_package; /* the model */

/* Memory for tensors and names, 64-byte aligned; NULL: there is no more. */
void *EXPORT(roundel_allocate)(size_t nbytes) { return os_alloc(nbytes); }

void EXPORT(roundel_free)(void *memory) { os_free(memory, 0); }

/* The content of the weights' file, kept for as long as the model is used. */
void EXPORT(roundel_give_weights)(const void *content, size_t nbytes) { wasm_give_file(content, nbytes); }

/* Runs a function: as roundel_run. Outputs are to have no `data`. */
int EXPORT(roundel_call)(const char *function, const DLTensor *inputs, DLTensor *outputs) {
  return rd_package_run(&roundel_package, function, inputs, outputs);
}

/* Checks that the model can be run: its weights are there and are its own. */
int EXPORT(roundel_check)(void) {
  RdModel *model;
  return rd_package_open(&roundel_package, NULL, &model);
}

void EXPORT(roundel_release_output)(DLTensor *output) {
  RdModel *model;
  if (!rd_package_open(&roundel_package, NULL, &model)) roundel_release(model, output);
}

const char *EXPORT(roundel_error)(void) { return roundel_last_error(); }

const char *EXPORT(roundel_metadata)(void) { return roundel_package.library->metadata; }
#endif
