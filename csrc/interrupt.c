/* SPDX-License-Identifier: Apache-2.0 */
/* Ending a run before it is done: the thread that runs a model asks the program now and then whether to go on. */
#include "runtime.h"

#define BETWEEN_NS 200000000 /* from one question of a run to the next */
#define MOST_PASSED 31

static struct {
  _Atomic(RdInterrupt) ask;
  void *_Atomic user;
  _Atomic uint64_t thread; /* the only one that asks; 0: every thread that called a model */
} question;

int roundel_set_interrupt(RdInterrupt ask, void *user) {
  rd_set_interrupt(ask, user, 0);
  return RD_OK;
}

void rd_set_interrupt(RdInterrupt ask, void *user, uint64_t thread) {
  atomic_store(&question.ask, NULL);
  atomic_store(&question.user, user);
  atomic_store(&question.thread, thread);
  atomic_store(&question.ask, ask);
}

/* Whether this is one of the checkpoints at which the clock is left alone: as long as it stands still, ever more are. */
static int passes(Context *ctx) {
  int32_t left = atomic_load_explicit(&ctx->passing, memory_order_relaxed);
  if (left > 0) atomic_store_explicit(&ctx->passing, left - 1, memory_order_relaxed);
  return left > 0;
}

static int ends(Context *ctx, RdInterrupt ask) {
  uint64_t thread = atomic_load(&question.thread);
  int64_t now = os_coarse_time_ns(), due = ctx->ask_at;
  ctx->pass = now != ctx->looked_at ? 0 : ctx->pass < MOST_PASSED ? 2 * ctx->pass + 1 : ctx->pass;
  ctx->looked_at = now;
  atomic_store_explicit(&ctx->passing, ctx->pass, memory_order_relaxed);
  if (now < due) return 0;
  ctx->ask_at = now + BETWEEN_NS;
  return due && (!thread || thread == os_this_thread()) && ask(atomic_load(&question.user));
}

int32_t rd_checkpoint(RdContext *shared) {
  RdInterrupt ask = atomic_load_explicit(&question.ask, memory_order_acquire);
  int32_t status = rd_status_of(shared);
  if (status || !ask || passes((Context *)shared) || pool_is_worker() || !ends((Context *)shared, ask)) return status;
  return rd_context_error((Context *)shared, RD_INTERRUPTED, "the run was interrupted");
}

/* Python: its functions are given as addresses, so that nothing is linked with it. An exception of a signal's handler waits here for the
 * thread that called the model, the only one that runs handlers. */
static RdPython python;
static void *raised[3];

static int ask_python(void *user) {
  (void)user;
  int state = python.take_lock();
  int failed = python.check_signals();
  if (failed) python.fetch(&raised[0], &raised[1], &raised[2]);
  python.release_lock(state);
  return failed;
}

void rd_python_signals(const RdPython *functions, uint64_t thread) {
  if (functions) python = *functions;
  rd_set_interrupt(functions ? ask_python : NULL, NULL, thread);
}

int rd_python_raise(void) {
  if (!raised[0]) return 0;
  int state = python.take_lock();
  python.restore(raised[0], raised[1], raised[2]);
  raised[0] = raised[1] = raised[2] = NULL;
  python.release_lock(state);
  return 1;
}
