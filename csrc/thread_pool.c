/* SPDX-License-Identifier: Apache-2.0 */
/* Each thread has a share of a loop: neighbouring iterations, as many as any other's to within one. Kernels that follow each
 * other are cut alike, so a thread finds in its own caches what it computed before. It claims its share from the front, a
 * grain at a time; when it is done it claims from the ends of the others' shares: a worker that is asleep or has lost its
 * core costs nothing, and the caller waits only for iterations that somebody has begun.
 *
 * A share holds what is left of it. A claim is one compare-and-swap that makes it smaller, and the fields of the job are read
 * only after it succeeded: they cannot change before those iterations are reported in `pending`. Idle workers spin for a while
 * during a run (waking a thread takes tens of microseconds), and for a part of that after it, as runs of small models follow each
 * other closely; then they sleep.
 *
 * ROUNDEL_SHUFFLE=seed is for tests: loops are cut as finely as they can be, and their parts run in a random order. */
#include <stdlib.h>
#include <string.h>

#include "os.h"
#include "thread_pool.h"

#define MAX_THREADS 256
#define NO_SHARING 64 /* fields that different threads write lie on different cache lines */
#define SHORTER 4     /* times as long do they spin during a run as after it */
#define MOST_UNITS ((1u << 24) - 1)

/* Threads allowed << 48 | the first unit left << 24 | the unit behind the last. */
typedef struct { _Alignas(NO_SHARING) _Atomic uint64_t left; } Share;

typedef struct {
  uint64_t thread;
  int id; /* 1, 2, ...: the caller is 0 */
  RdScratch scratch;
} Worker;

static struct {
  Share shares[MAX_THREADS]; /* by thread: 0 is the caller's */
  _Alignas(NO_SHARING) _Atomic uint32_t pending; /* units not finished */
  _Atomic uint32_t owner_sleeps;
  _Alignas(NO_SHARING) RdTask task;
  void **args;
  int64_t extent, unit;  /* iterations of the loop, and of a unit: one, unless that were too many units for a share */
  uint32_t units, grain; /* of the loop, and those claimed at once */
  int threads;           /* allowed */
  RdContext *ctx;        /* of the run, or NULL */
  uint32_t step, first;  /* unit k of the shares is unit (k * step + first) % units of the loop; step 0: the same one */
  _Alignas(NO_SHARING) _Atomic uint32_t signal; /* what sleeping workers wait on */
  _Atomic uint32_t sleepers;
  _Atomic uint32_t busy;   /* a job, or a change of the workers, is under way */
  _Atomic uint32_t active; /* runs under way */
  _Atomic uint32_t stop;
  _Atomic int64_t spin_ns;
  int num_workers;
  Worker workers[MAX_THREADS];
} pool;

static _Atomic int default_threads;
static _Thread_local int inside; /* this thread runs iterations of a loop */
static _Thread_local Worker *self;

static int from_environment(const char *name, int fallback) {
  const char *text = getenv(name);
  if (!text || !*text) return fallback;
  char *end;
  long value = strtol(text, &end, 10);
  return *end || value < 0 || value > 1000000000 ? fallback : (int)value;
}

int pool_environment_is_right(void) {
  const char *text = getenv("ROUNDEL_NUM_THREADS");
  return !text || !*text || from_environment("ROUNDEL_NUM_THREADS", -1) >= 0;
}

int pool_default_threads(void) {
  int count = atomic_load(&default_threads);
  if (count) return count;
  count = from_environment("ROUNDEL_NUM_THREADS", 0);
  if (count < 1) count = os_num_cpus();
  if (count > MAX_THREADS) count = MAX_THREADS;
  atomic_store(&default_threads, count);
  return count;
}

void pool_set_default_threads(int count) { atomic_store(&default_threads, count > MAX_THREADS ? MAX_THREADS : count); }

RdScratch *pool_worker_scratch(void) { return self ? &self->scratch : NULL; }

int pool_is_worker(void) { return self != NULL; }

static uint32_t place_of(uint32_t unit, uint32_t units, uint32_t step, uint32_t first) {
  return step ? (uint32_t)(((uint64_t)unit * step + first) % units) : unit;
}

static int failed(const RdContext *ctx) { return ctx && __atomic_load_n(&ctx->status, __ATOMIC_RELAXED) != 0; }

static uint32_t first_in(uint64_t share) { return (uint32_t)(share >> 24) & MOST_UNITS; }

static uint32_t end_of(uint64_t share) { return (uint32_t)share & MOST_UNITS; }

static int allowed_in(uint64_t share) { return (int)(share >> 48); }

static uint64_t share_of(int threads, uint32_t first, uint32_t end) {
  return (uint64_t)threads << 48 | (uint64_t)first << 24 | end;
}

static uint32_t count_of(uint64_t share) { return end_of(share) - first_in(share); }

static int may_claim(uint64_t share, int id) { return count_of(share) && id < allowed_in(share); }

/* The first share from `id`'s own on that it may claim from, or NULL. How many threads there are is only read to know where
 * to look: shares of threads that are not allowed have nothing left. */
static Share *share_for(int id) {
  int threads = allowed_in(atomic_load_explicit(&pool.shares[id].left, memory_order_acquire));
  for (int i = 0; i < threads; i++) {
    Share *share = &pool.shares[(id + i) % threads];
    if (may_claim(atomic_load(&share->left), id)) return share;
  }
  return NULL;
}

/* Claims the next units of its own share, else the last ones of another's, at most half of them; returns how many, 0 for none. */
static uint32_t claim(int id, uint32_t *first) {
  Share *share;
  while ((share = share_for(id)) != NULL) {
    uint64_t left = atomic_load_explicit(&share->left, memory_order_acquire);
    int own = share == &pool.shares[id];
    while (may_claim(left, id)) {
      uint32_t most = own ? count_of(left) : (count_of(left) + 1) / 2, grain = __atomic_load_n(&pool.grain, __ATOMIC_RELAXED);
      uint32_t count = grain < most ? grain : most;
      uint64_t rest = own ? left + ((uint64_t)count << 24) : left - count;
      if (!atomic_compare_exchange_weak_explicit(&share->left, &left, rest, memory_order_acq_rel, memory_order_acquire)) continue;
      *first = own ? first_in(left) : end_of(rest);
      return count;
    }
  }
  return 0;
}

/* Claims what is left of a job of which the caller has a part; returns how many units that are. */
static uint32_t claim_rest(void) {
  uint32_t count = 0;
  for (int i = 0; i < pool.threads; i++) {
    uint64_t left = atomic_load(&pool.shares[i].left);
    while (count_of(left) && !atomic_compare_exchange_weak(&pool.shares[i].left, &left, share_of(pool.threads, 0, 0))) continue;
    count += count_of(left);
  }
  return count;
}

/* Claim and run parts until none is left; returns whether there was one. */
static int run_parts(int id) {
  uint32_t done = 0, first, count;
  for (; (count = claim(id, &first)) != 0; done += count) {
    if (failed(pool.ctx)) {
      done += claim_rest();
      continue;
    }
    int64_t begin = place_of(first, pool.units, pool.step, pool.first) * pool.unit, end = begin + count * pool.unit;
    inside = 1;
    pool.task(begin, end < pool.extent ? end : pool.extent, pool.args);
    inside = 0;
    if (id == 0 && pool.ctx) rd_checkpoint(pool.ctx);
  }
  if (done && atomic_fetch_sub(&pool.pending, done) == done && atomic_load(&pool.owner_sleeps)) os_wake(&pool.pending, 1);
  return done != 0;
}

static void sleep_until_signal(int id) {
  uint32_t seen = atomic_load(&pool.signal);
  atomic_fetch_add(&pool.sleepers, 1);
  if (!share_for(id) && !atomic_load(&pool.stop)) os_wait(&pool.signal, seen, 0);
  atomic_fetch_sub(&pool.sleepers, 1);
}

static void *worker_main(void *argument) {
  Worker *worker = self = argument;
  int64_t idle_since = os_time_ns();
  while (!atomic_load_explicit(&pool.stop, memory_order_relaxed)) {
    if (run_parts(worker->id)) {
      idle_since = os_time_ns();
      continue;
    }
    for (int i = 0; i < 32; i++) os_pause();
    int64_t spin_ns = atomic_load_explicit(&pool.spin_ns, memory_order_relaxed);
    if (!atomic_load_explicit(&pool.active, memory_order_relaxed)) spin_ns /= SHORTER;
    if (os_time_ns() - idle_since < spin_ns) continue;
    sleep_until_signal(worker->id);
    idle_since = os_time_ns();
  }
  os_free(worker->scratch.memory, worker->scratch.capacity);
  worker->scratch = (RdScratch){0};
  return NULL;
}

/* A forked child has none of the threads and must not believe in them. */
static void after_fork(void) {
  int64_t spin_ns = atomic_load(&pool.spin_ns);
  memset(&pool, 0, sizeof pool);
  atomic_store(&pool.spin_ns, spin_ns);
  os_forget_waiters();
}

static void ensure_workers(int count) {
  static _Atomic int prepared;
  if (!atomic_exchange(&prepared, 1)) {
    os_at_fork(after_fork);
    atomic_store(&pool.spin_ns, (int64_t)from_environment("ROUNDEL_SPIN_US", 100) * 1000);
  }
  while (pool.num_workers < count) {
    Worker *worker = &pool.workers[pool.num_workers];
    *worker = (Worker){.id = pool.num_workers + 1};
    if (os_thread_start(&worker->thread, worker_main, worker)) return;
    pool.num_workers++;
  }
}

/* What others have begun: spin, then let them have this core, then sleep. */
static void wait_for_pending(void) {
  uint32_t left;
  for (int i = 0; (left = atomic_load_explicit(&pool.pending, memory_order_acquire)) != 0; i++) {
    if (i < 500) {
      os_pause();
    } else if (i < 600) {
      os_yield();
    } else {
      atomic_store(&pool.owner_sleeps, 1);
      if ((left = atomic_load(&pool.pending)) != 0) os_wait(&pool.pending, left, 1000);
      atomic_store(&pool.owner_sleeps, 0);
      if (left && pool.ctx) rd_checkpoint(pool.ctx);
    }
  }
}

#define MOST_SHUFFLED 4096

static int shuffled(void) {
  static _Atomic int seed = -1;
  if (atomic_load_explicit(&seed, memory_order_relaxed) < 0) atomic_store(&seed, from_environment("ROUNDEL_SHUFFLE", 0));
  return atomic_load_explicit(&seed, memory_order_relaxed);
}

/* Two random numbers that reorder so many units; returns 0, and zeros, unless ROUNDEL_SHUFFLE is set. */
static int shuffle(uint32_t units, uint32_t *step, uint32_t *first) {
  static _Atomic uint32_t counter;
  *step = *first = 0;
  if (!shuffled()) return 0;
  uint32_t random = (uint32_t)shuffled() * 2654435761u + atomic_fetch_add(&counter, 1) * 40503u;
  random = (random ^ random >> 15) * 2246822519u;
  *first = (random ^ random >> 13) % units;
  for (*step = random % units + 1;; ++*step) {
    uint32_t a = *step, b = units;
    while (b) {
      uint32_t rest = a % b;
      a = b;
      b = rest;
    }
    if (a == 1) return 1;
  }
}

static void run_here(RdTask task, void **args, int64_t extent) {
  int before = inside;
  inside = 1;
  int64_t unit = extent / MOST_SHUFFLED + 1;
  uint32_t step, first, units = (uint32_t)((extent + unit - 1) / unit);
  if (units < 2 || !shuffle(units, &step, &first)) {
    task(0, extent, args);
  } else {
    for (uint32_t k = 0; k < units; k++) {
      int64_t begin = place_of(k, units, step, first) * unit;
      task(begin, extent - begin < unit ? extent : begin + unit, args);
    }
  }
  inside = before;
}

/* Gives each of the first `sharers` threads its share of the job. */
static void share_out(int sharers) {
  for (int i = pool.threads - 1; i >= 0; i--) {
    uint64_t units = pool.units, first = (i * units + sharers - 1) / sharers, end = ((i + 1) * units + sharers - 1) / sharers;
    atomic_store(&pool.shares[i].left, i < sharers ? share_of(pool.threads, (uint32_t)first, (uint32_t)end) : share_of(pool.threads, 0, 0));
  }
}

void pool_run(RdTask task, void **args, int64_t extent, int64_t grain, int num_threads, RdContext *ctx) {
  if (extent <= 0) return;
  if (num_threads > MAX_THREADS) num_threads = MAX_THREADS;
  if (grain < 0) {
    int64_t share = (extent - 1) / (num_threads > 1 ? num_threads : 1) + 1;
    grain = share > -grain ? share : -grain;
  }
  if (grain == 0) grain = extent / ((int64_t)num_threads * 8) + 1;
  if (shuffled()) grain = 1;
  int64_t unit = extent / (shuffled() ? MOST_SHUFFLED : MOST_UNITS) + 1, sharers = (extent - 1) / grain + 1;
  if (sharers > num_threads) sharers = num_threads;
  if (sharers <= 1 || inside || atomic_exchange(&pool.busy, 1)) {
    run_here(task, args, extent);
    return;
  }
  ensure_workers(num_threads - 1);
  pool.task = task;
  pool.args = args;
  pool.ctx = ctx;
  pool.extent = extent;
  pool.unit = unit;
  pool.units = (uint32_t)((extent - 1) / unit + 1);
  __atomic_store_n(&pool.grain, grain > unit ? (uint32_t)(grain / unit) : 1, __ATOMIC_RELAXED);
  pool.threads = num_threads;
  shuffle(pool.units, &pool.step, &pool.first);
  atomic_store_explicit(&pool.pending, pool.units, memory_order_relaxed);
  share_out((int)sharers);
  if (atomic_load(&pool.sleepers)) {
    atomic_fetch_add(&pool.signal, 1);
    os_wake(&pool.signal, INT32_MAX);
  }
  run_parts(0);
  wait_for_pending();
  atomic_store(&pool.busy, 0);
}

void pool_begin_run(void) { atomic_fetch_add_explicit(&pool.active, 1, memory_order_relaxed); }

void pool_end_run(void) { atomic_fetch_sub_explicit(&pool.active, 1, memory_order_relaxed); }

void pool_shutdown(void) {
  while (atomic_exchange(&pool.busy, 1)) os_yield();
  atomic_store(&pool.stop, 1);
  atomic_fetch_add(&pool.signal, 1);
  os_wake(&pool.signal, INT32_MAX);
  for (int i = 0; i < pool.num_workers; i++) os_thread_join(pool.workers[i].thread);
  pool.num_workers = 0;
  atomic_store(&pool.stop, 0);
  atomic_store(&pool.busy, 0);
}
