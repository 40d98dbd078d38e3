/* SPDX-License-Identifier: Apache-2.0 */
/* The thread pool under load: every index once, nested loops, several callers, more threads than cores, forks, restarts. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime.h"

#define CHECK(x) do { if (!(x)) { printf("failed: %s, line %d\n", #x, __LINE__); exit(1); } } while (0)

static int threads = 8;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void count(int64_t begin, int64_t end, void **args) {
  _Atomic int *seen = args[0];
  for (int64_t i = begin; i < end; i++) atomic_fetch_add(&seen[i], 1);
}

static void cover(int64_t extent, int64_t grain) {
  _Atomic int *seen = calloc((size_t)extent + 1, sizeof *seen);
  void *args[] = {(void *)seen};
  pool_run(count, args, extent, grain, threads, NULL);
  for (int64_t i = 0; i < extent; i++) CHECK(seen[i] == 1);
  free((void *)seen);
}

static void nested(int64_t begin, int64_t end, void **args) {
  for (int64_t i = begin; i < end; i++) cover(17, 2);
  atomic_fetch_add((_Atomic int64_t *)args[0], end - begin);
}

static void fail_at(int64_t begin, int64_t end, void **args) {
  atomic_fetch_add((_Atomic int64_t *)args[0], end - begin);
  if (begin >= 1000) __atomic_store_n(&((RdContext *)args[1])->status, RD_RUNTIME_ERROR, __ATOMIC_RELAXED);
}

/* What nobody has begun when a run fails is left out, and the pool serves the next one. */
static void leave_out(void) {
  RdContext ctx = {0};
  _Atomic int64_t done = 0;
  void *args[] = {(void *)&done, &ctx};
  pool_run(fail_at, args, INT64_C(1) << 40, 1 << 10, threads, &ctx);
  CHECK(threads == 1 || (ctx.status && done < INT64_C(1) << 39)); /* one thread runs all as one chunk */
  cover(1000, 7);
}

static void *caller(void *argument) {
  unsigned seed = (unsigned)(uintptr_t)argument;
  for (int i = 0; i < 400; i++) {
    pool_begin_run();
    cover(rand_r(&seed) % 300, rand_r(&seed) % 40);
    pool_end_run();
    if (i % 50 == 0) usleep(rand_r(&seed) % 300);
  }
  return NULL;
}

static void in_child(void) {
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    alarm(20);
    for (int i = 0; i < 50; i++) cover(100, 3);
    _exit(0);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void nothing(int64_t begin, int64_t end, void **args) { (void)begin, (void)end, (void)args; }

static void measure(void) {
  double t = now();
  pool_begin_run();
  for (int i = 0; i < 20000; i++) pool_run(nothing, NULL, 16, 1, 2, NULL);
  pool_end_run();
  printf("%.2f us for an empty region of 16 chunks\n", (now() - t) / 20000 * 1e6);
}

int main(int argc, char **argv) {
  if (argc > 1) threads = atoi(argv[1]);
  for (int64_t extent = 0; extent < 70; extent++)
    for (int64_t grain = -1; grain < 9; grain++) cover(extent, grain);
  cover(1000000, 7);
  _Atomic int64_t done = 0;
  void *args[] = {(void *)&done};
  pool_run(nested, args, 50, 1, threads, NULL);
  CHECK(done == 50);
  for (int i = 0; i < 200; i++) leave_out();
  pthread_t callers[6];
  for (uintptr_t i = 0; i < 6; i++) CHECK(!pthread_create(&callers[i], NULL, caller, (void *)(i + 1)));
  for (int i = 0; i < 6; i++) pthread_join(callers[i], NULL);
  if (argc < 3) { /* "nofork" where a sanitizer does not follow */
    in_child();
    pool_begin_run();
    in_child();
    pool_end_run();
  }
  for (int i = 0; i < 20; i++) {
    pool_shutdown();
    cover(100, 5);
  }
  measure();
  pool_shutdown();
  puts("ok");
  return 0;
}
