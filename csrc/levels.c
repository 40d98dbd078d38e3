/* SPDX-License-Identifier: Apache-2.0 */
/* One model built for several CPUs of a family: which of them runs. Nothing of a level is executed before it is chosen. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

static int unknown_level(const RdLevel *levels, int32_t count, const char *wanted) {
  char names[256] = "";
  for (int32_t i = 0; i < count; i++) {
    size_t used = strlen(names);
    snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", levels[i].name);
  }
  return rd_set_error(RD_VALUE_ERROR, "ROUNDEL_LEVEL is '%.40s', the model has the levels %s", wanted, names);
}

/* Where no level fits, the last is chosen: who opens it is told what the CPU lacks. */
int rd_package_level(const RdLevel *levels, int32_t count, int32_t *chosen) {
  const char *wanted = getenv("ROUNDEL_LEVEL");
  const RdFunction *function;
  char name[64];
  *chosen = count - 1;
  for (int32_t i = 0; i < count; i++) {
    int is_wanted = wanted && *wanted && strcmp(levels[i].name, wanted) == 0, fits = !library_lacks(levels[i].library, &function, name);
    if (is_wanted && !fits)
      return rd_set_error(RD_MACHINE_ERROR, "ROUNDEL_LEVEL asks for %s, which needs %s, and this CPU does not have that", wanted, name);
    if (is_wanted || (fits && !(wanted && *wanted))) {
      *chosen = i;
      return RD_OK;
    }
  }
  return wanted && *wanted ? unknown_level(levels, count, wanted) : RD_OK;
}
