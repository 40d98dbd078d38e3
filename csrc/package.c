/* SPDX-License-Identifier: Apache-2.0 */
/* A shipped file: a library together with its weights, embedded or in a file beside it. */
#include <stdio.h>
#include <string.h>

#include "runtime.h"

static int open_weights(const RdPackage *package, RdOptions *options, char path[4096]) {
  if (options->weights || options->weights_file || options->constants) return 0;
  options->weights = package->weights;
  if (package->weights || !package->weights_file) return 0;
  char folder[3072]; /* of the library as it was named; where that was a link and has no weights beside it, of the file that it leads to */
  if (os_folder_of(package, 0, folder, sizeof folder))
    return rd_set_error(RD_RUNTIME_ERROR, "the folder of the weights file '%s' is not known", package->weights_file);
  snprintf(path, 4096, "%s/%s", folder, package->weights_file);
  if (!os_exists(path) && !os_folder_of(package, 1, folder, sizeof folder)) snprintf(path, 4096, "%s/%s", folder, package->weights_file);
  options->weights_file = path;
  options->weights_offset = 0;
  return 0;
}

static int check_digest(const RdPackage *package, const RdModel *model) {
  uint64_t nbytes = package->weights_nbytes ? package->weights_nbytes : package->library->weights_nbytes;
  if (!model->mapped || !package->digest) return 0;
  if (model->mapped_nbytes == nbytes + 64 && memcmp((const char *)model->mapped + nbytes, package->digest, 64) == 0) return 0;
  return rd_set_error(RD_VALUE_ERROR, "the weights file '%s' belongs to another model", model->options.weights_file);
}

int rd_package_library(const RdPackage *package, const RdLibrary **library) {
  int32_t chosen;
  *library = package->library;
  if (!package->num_levels) return RD_OK;
  int status = rd_package_level(package->levels, package->num_levels, &chosen);
  if (!status) *library = package->levels[chosen].library;
  return status;
}

static int open_new(RdPackage *package, const RdOptions *given, RdModel **model) {
  char path[4096];
  RdOptions options = given ? *given : (RdOptions){0};
  const RdLibrary *library;
  *model = NULL;
  int status = rd_package_library(package, &library);
  if (!status) status = open_weights(package, &options, path);
  if (!status) status = roundel_open(library, &options, model);
  if (status) return status;
  status = check_digest(package, *model);
  (*model)->options.weights_file = NULL; /* `path` ends here */
  if (!status) return 0;
  roundel_close(*model);
  *model = NULL;
  return status;
}

/* With options: a model of one's own, to be closed. Without: the one that all such callers share, which stays open. */
int rd_package_open(RdPackage *package, const RdOptions *options, RdModel **model) {
  if (options) return open_new(package, options, model);
  *model = atomic_load(&package->model);
  if (*model) return 0;
  rd_lock(&package->lock);
  *model = atomic_load(&package->model);
  int status = *model ? 0 : open_new(package, NULL, model);
  if (!status) atomic_store(&package->model, *model);
  rd_unlock(&package->lock);
  return status;
}

void rd_package_close(RdPackage *package) {
  rd_lock(&package->lock);
  roundel_close(atomic_exchange(&package->model, NULL));
  rd_unlock(&package->lock);
}

int rd_package_set_num_threads(RdPackage *package, int num_threads) {
  rd_lock(&package->lock);
  RdModel *model = atomic_load(&package->model);
  int status = roundel_set_num_threads(NULL, num_threads);
  if (!status && model) status = roundel_set_num_threads(model, num_threads);
  rd_unlock(&package->lock);
  return status;
}

int rd_package_num_threads(RdPackage *package) {
  rd_lock(&package->lock);
  int count = roundel_num_threads(atomic_load(&package->model));
  rd_unlock(&package->lock);
  return count;
}

int rd_package_run(RdPackage *package, const char *function, const DLTensor *inputs, DLTensor *outputs) {
  RdModel *model;
  int status = rd_package_open(package, NULL, &model);
  return status ? status : roundel_run(model, function, inputs, outputs);
}
