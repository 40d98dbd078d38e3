/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a library: is it for this runtime and this CPU, where are its weights. What is open is shared by all runs. */
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

static _Atomic int open_models;

int roundel_num_threads(const RdModel *model) { return model ? atomic_load(&model->num_threads) : pool_default_threads(); }

int roundel_set_num_threads(RdModel *model, int num_threads) {
  if (num_threads < 0) return rd_set_error(RD_VALUE_ERROR, "the number of threads cannot be %d", num_threads);
  if (!model) pool_set_default_threads(num_threads);
  else atomic_store(&model->num_threads, num_threads ? num_threads : pool_default_threads());
  return RD_OK;
}

uint32_t roundel_abi(void) { return RD_ABI; }

static int find_function(const RdModel *model, const char *name) {
  for (int32_t i = 0; i < model->library->num_functions; i++)
    if (!name || strcmp(model->library->functions[i].name, name) == 0) return i;
  return -1;
}

const RdFunction *roundel_function(const RdModel *model, const char *name) {
  int index = find_function(model, name);
  return index < 0 ? NULL : &model->library->functions[index];
}

static int check_library(const RdLibrary *library) {
  char name[64];
  if (!library) return rd_set_error(RD_VALUE_ERROR, "there is no library to open");
  if (library->abi != RD_ABI)
    return rd_set_error(RD_VALUE_ERROR, "the library was built for version %u of the runtime's interface, this runtime has %u; build it again",
                        library->abi, RD_ABI);
  for (int32_t i = 0; i < library->num_functions; i++)
    if (library->functions[i].abi != RD_ABI)
      return rd_set_error(RD_VALUE_ERROR, "function '%s' was built for another runtime", library->functions[i].name);
  const RdFunction *function;
  if (!library_lacks(library, &function, name)) return 0;
  return rd_set_error(RD_MACHINE_ERROR, "'%s' was built for CPUs with %s, which this CPU does not have%s; build it for this CPU (target=)",
                      function->name, name, strncmp(name, "amx-", 4) ? "" : ", or the system does not let this process use");
}

static int find_weights(RdModel *model, const void **weights) {
  const RdOptions *options = &model->options;
  *weights = options->weights;
  if (options->weights || options->constants || !model->library->weights_nbytes) return 0;
  if (!options->weights_file) return rd_set_error(RD_VALUE_ERROR, "the model needs its weights; none were given");
  model->mapped = os_map_file(options->weights_file, options->weights_offset, &model->mapped_nbytes);
  if (!model->mapped) return rd_set_error(RD_RUNTIME_ERROR, "the weights file '%s' cannot be read", options->weights_file);
  if (model->mapped_nbytes < model->library->weights_nbytes)
    return rd_set_error(RD_VALUE_ERROR, "the weights file '%s' has %llu bytes, the model needs %llu", options->weights_file,
                        (unsigned long long)model->mapped_nbytes, (unsigned long long)model->library->weights_nbytes);
  *weights = model->mapped;
  return 0;
}

static int set_constants(RdModel *model, const void *weights) {
  const void *const *given = model->options.constants;
  for (int32_t i = 0; i < model->library->num_functions; i++) {
    const RdFunction *function = &model->library->functions[i];
    const void **constants = calloc((size_t)function->num_constants + 1, sizeof *constants);
    if (!constants) return rd_set_error(RD_MEMORY_ERROR, "no memory to open the model");
    model->functions[i].constants = constants;
    for (int32_t j = 0; j < function->num_constants; j++) {
      const RdConstant *constant = &function->constants[j];
      uint64_t limit = model->library->weights_nbytes;
      if (!given && (constant->offset > limit || constant->nbytes > limit - constant->offset))
        return rd_set_error(RD_VALUE_ERROR, "constant %d of '%s' lies outside of the weights", (int)j, function->name);
      constants[j] = given ? *given++ : (const char *)weights + constant->offset;
    }
  }
  return 0;
}

static int prepare_functions(RdModel *model) {
  for (int32_t i = 0; i < model->library->num_functions; i++) {
    const RdFunction *function = &model->library->functions[i];
    RdFunctionState *state = &model->functions[i];
    for (int32_t p = 0; p < function->num_inputs + function->num_outputs; p++)
      if (function->params[p].ndim > 0) state->num_dims += function->params[p].ndim;
    if (!model->options.profile || function->num_kernels <= 0) continue;
    state->nanoseconds = calloc((size_t)function->num_kernels, sizeof *state->nanoseconds);
    state->calls = calloc((size_t)function->num_kernels, sizeof *state->calls);
    if (!state->nanoseconds || !state->calls) return rd_set_error(RD_MEMORY_ERROR, "no memory to open the model");
  }
  return 0;
}

int roundel_open(const RdLibrary *library, const RdOptions *options, RdModel **out) {
  *out = NULL;
  int status = check_library(library);
  if (status) return status;
  if ((!options || options->num_threads <= 0) && !pool_environment_is_right())
    return rd_set_error(RD_VALUE_ERROR, "ROUNDEL_NUM_THREADS is '%.40s', a whole number is wanted", getenv("ROUNDEL_NUM_THREADS"));
  RdModel *model = calloc(1, sizeof *model);
  RdFunctionState *functions = calloc((size_t)library->num_functions + 1, sizeof *functions);
  if (!model || !functions) {
    free(model);
    free(functions);
    return rd_set_error(RD_MEMORY_ERROR, "no memory to open the model");
  }
  model->library = library;
  model->functions = functions;
  if (options) model->options = *options;
  atomic_store(&model->num_threads, model->options.num_threads > 0 ? model->options.num_threads : pool_default_threads());
  const char *poison = getenv("ROUNDEL_POISON");
  model->poison = poison && *poison && strcmp(poison, "0") != 0;
  atomic_fetch_add(&open_models, 1);
  const void *weights;
  if (!(status = find_weights(model, &weights)) && !(status = set_constants(model, weights)) && !(status = prepare_functions(model)))
    *out = model;
  else
    roundel_close(model);
  return status;
}

void roundel_close(RdModel *model) {
  if (!model) return;
  while (model->free_contexts) {
    Context *ctx = model->free_contexts;
    model->free_contexts = ctx->next_free;
    context_free(ctx);
  }
  for (int32_t i = 0; i < model->library->num_functions; i++) {
    free(model->functions[i].constants);
    free(model->functions[i].nanoseconds);
    free(model->functions[i].calls);
  }
  if (model->mapped) os_unmap_file(model->mapped, model->mapped_nbytes);
  free(model->functions);
  free(model);
  if (atomic_fetch_sub(&open_models, 1) == 1) pool_shutdown(); /* so that this code may be unloaded */
}

int roundel_run(RdModel *model, const char *function, const DLTensor *inputs, DLTensor *outputs) {
  int index = find_function(model, function);
  if (index < 0) return rd_set_error(RD_VALUE_ERROR, "the model has no function '%s'", function ? function : "");
  const RdFunction *f = &model->library->functions[index];
  const DLTensor *in_small[16], **in = in_small;
  DLTensor *out_small[16], **out = out_small;
  if (f->num_inputs > 16) in = malloc((size_t)f->num_inputs * sizeof *in);
  if (f->num_outputs > 16) out = malloc((size_t)f->num_outputs * sizeof *out);
  int status = in && out ? RD_OK : rd_set_error(RD_MEMORY_ERROR, "no memory to run the model");
  for (int32_t i = 0; i < f->num_inputs && !status; i++) in[i] = &inputs[i];
  for (int32_t i = 0; i < f->num_outputs && !status; i++) out[i] = &outputs[i];
  if (!status) status = rd_run(model, index, in, out, NULL);
  if (in != in_small) free(in);
  if (out != out_small) free(out);
  return status;
}

int roundel_profile(RdModel *model, const char *name, int64_t *nanoseconds, int64_t *calls, int reset) {
  int index = find_function(model, name);
  if (index < 0) return rd_set_error(RD_VALUE_ERROR, "the model has no function '%s'", name ? name : "");
  RdFunctionState *state = &model->functions[index];
  if (!state->nanoseconds) return rd_set_error(RD_VALUE_ERROR, "'%s' was not built and opened with profiling", model->library->functions[index].name);
  for (int32_t i = 0; i < model->library->functions[index].num_kernels; i++) {
    if (nanoseconds) nanoseconds[i] = atomic_load(&state->nanoseconds[i]);
    if (calls) calls[i] = atomic_load(&state->calls[i]);
    if (!reset) continue;
    atomic_store(&state->nanoseconds[i], 0);
    atomic_store(&state->calls[i], 0);
  }
  return RD_OK;
}
