/* SPDX-License-Identifier: Apache-2.0 */
/* Linux: futexes, and how many cores this process may use (affinity, cgroups, hyperthreads). */
#if defined(__linux__)
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "os.h"

#if !defined(RD_NO_FUTEX)
void os_wait(_Atomic uint32_t *word, uint32_t expected, uint32_t microseconds) {
  struct timespec limit = {microseconds / 1000000, (long)(microseconds % 1000000) * 1000};
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, microseconds ? &limit : NULL, NULL, 0);
}

void os_wake(_Atomic uint32_t *word, int32_t count) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

void os_forget_waiters(void) {}
#endif

/* The state of a thread that uses them is 8 KB larger, so Linux wants to be asked (ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA); all threads may then. */
int os_allow_tiles(void) {
#if defined(__x86_64__)
  static _Atomic int known; /* 1: they may not be used, 2: they may */
  if (!known) known = syscall(SYS_arch_prctl, 0x1023, 18) == 0 ? 2 : 1;
  return known == 2;
#else
  return 0;
#endif
}

/* The CPU itself, or the first of its hyperthread siblings that this process may use. */
static int first_sibling(int cpu, const cpu_set_t *allowed) {
  char path[96], list[256];
  snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
  FILE *file = fopen(path, "re");
  if (!file) return cpu;
  char *text = fgets(list, sizeof list, file);
  fclose(file);
  while (text && *text) { /* "0,8" or "0-1" */
    char *end;
    long low = strtol(text, &end, 10);
    if (end == text) break;
    long high = *end == '-' ? strtol(end + 1, &end, 10) : low;
    for (long i = low; i <= high && i < CPU_SETSIZE; i++)
      if (i >= 0 && CPU_ISSET((int)i, allowed)) return (int)i;
    text = *end == ',' ? end + 1 : NULL;
  }
  return cpu;
}

static int cores_by_affinity(void) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? (int)count : 1;
  }
  int cores = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
    if (CPU_ISSET(cpu, &allowed) && first_sibling(cpu, &allowed) == cpu) cores++;
  return cores > 0 ? cores : 1;
}

/* Quota and period of one control group, in microseconds: version 2 in one file, version 1 in two. */
static int read_quota(const char *folder, double *cores) {
  char path[768], quota[32];
  long long period = 0, limit = 0;
  int found = 0;
  snprintf(path, sizeof path, "%s/cpu.max", folder);
  FILE *file = fopen(path, "re");
  if (file) {
    found = fscanf(file, "%31s %lld", quota, &period) == 2 && strcmp(quota, "max") != 0;
    fclose(file);
    limit = found ? atoll(quota) : 0;
  } else {
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
    if ((file = fopen(path, "re"))) {
      found = fscanf(file, "%lld", &limit) == 1;
      fclose(file);
    }
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    if (found && (file = fopen(path, "re"))) {
      if (fscanf(file, "%lld", &period) != 1) period = 0;
      fclose(file);
    }
  }
  if (!found || limit <= 0 || period <= 0) return 0;
  *cores = (double)limit / (double)period;
  return 1;
}

/* The tightest quota of this process's control group and those that enclose it; 0: none. */
static double cores_by_quota(void) {
  char line[512], folder[640];
  double tightest = 0, cores;
  FILE *file = fopen("/proc/self/cgroup", "re");
  if (!file) return 0;
  while (fgets(line, sizeof line, file)) {
    line[strcspn(line, "\n")] = '\0';
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group) continue;
    *group++ = '\0';
    int version2 = controllers[1] == '\0';
    if (!version2 && !strstr(controllers, "cpu")) continue;
    for (;;) {
      snprintf(folder, sizeof folder, version2 ? "/sys/fs/cgroup%s" : "/sys/fs/cgroup/cpu%s", group);
      if (read_quota(folder, &cores) && (tightest == 0 || cores < tightest)) tightest = cores;
      char *slash = strrchr(group, '/');
      if (!slash || group[0] == '\0') break;
      *slash = '\0';
    }
  }
  fclose(file);
  return tightest;
}

int os_num_cpus(void) {
  int cores = cores_by_affinity();
  double quota = cores_by_quota();
  if (quota > 0 && quota < cores) cores = quota < 1 ? 1 : (int)(quota + 0.5);
  return cores;
}
#else
typedef int roundel_no_linux;
#endif
