/* SPDX-License-Identifier: Apache-2.0 */
/* A loop is cut into chunks, and each thread has a share of them: neighbouring chunks, about as many as any other's. Kernels
 * that follow each other are cut alike, so a thread finds in its own caches what it computed before. A thread that is done
 * with its share claims from the ends of the others' shares: a worker that is asleep or has lost its core costs nothing, and
 * the caller waits only for chunks that somebody has begun.
 *
 * A share holds what is left of it. A claim is one compare-and-swap that makes it smaller, and the fields of the job are read
 * only after it succeeded: they cannot change before that chunk is reported in `pending`. Idle workers spin for a while
 * during a run (waking a thread takes tens of microseconds) and sleep otherwise.
 *
 * ROUNDEL_SHUFFLE=seed is for tests: loops are cut as finely as they can be, and chunks run in a random order. */
#include <stdlib.h>
#include <string.h>

#include "os.h"
#include "thread_pool.h"

#define MAX_THREADS 256
#define NO_SHARING 64 /* fields that different threads write lie on different cache lines */
#define MOST_CHUNKS ((1u << 24) - 1)

/* Threads allowed << 48 | the first chunk left << 24 | the chunk behind the last. */
typedef struct { _Alignas(NO_SHARING) _Atomic uint64_t left; } Share;

typedef struct {
  uint64_t thread;
  int id; /* 1, 2, ...: the caller is 0 */
  RdScratch scratch;
} Worker;

static struct {
  Share shares[MAX_THREADS]; /* by thread: 0 is the caller's */
  _Alignas(NO_SHARING) _Atomic uint32_t pending; /* chunks not finished */
  _Atomic uint32_t owner_sleeps;
  _Alignas(NO_SHARING) RdTask task;
  void **args;
  int64_t extent, grain;
  uint32_t chunks;
  int threads; /* allowed */
  RdContext *ctx; /* of the run, or NULL */
  uint32_t step, first; /* chunk k of the shares is chunk (k * step + first) % chunks of the loop; step 0: the same one */
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
static _Thread_local int inside; /* this thread runs a chunk */
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

static uint32_t place_of(uint32_t chunk, uint32_t chunks, uint32_t step, uint32_t first) {
  return step ? (uint32_t)(((uint64_t)chunk * step + first) % chunks) : chunk;
}

static int failed(const RdContext *ctx) { return ctx && __atomic_load_n(&ctx->status, __ATOMIC_RELAXED) != 0; }

static uint32_t first_in(uint64_t share) { return (uint32_t)(share >> 24) & MOST_CHUNKS; }

static uint32_t end_of(uint64_t share) { return (uint32_t)share & MOST_CHUNKS; }

static int allowed_in(uint64_t share) { return (int)(share >> 48); }

static uint64_t share_of(int threads, uint32_t first, uint32_t end) {
  return (uint64_t)threads << 48 | (uint64_t)first << 24 | end;
}

static int may_claim(uint64_t share, int id) { return first_in(share) < end_of(share) && id < allowed_in(share); }

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

/* Claims the next chunk of its own share, else the last of another's; returns its number, or -1 if there is none. */
static int64_t claim(int id) {
  Share *share;
  while ((share = share_for(id)) != NULL) {
    uint64_t left = atomic_load_explicit(&share->left, memory_order_acquire);
    int own = share == &pool.shares[id];
    while (may_claim(left, id)) {
      uint64_t rest = own ? left + (1 << 24) : left - 1;
      if (atomic_compare_exchange_weak_explicit(&share->left, &left, rest, memory_order_acq_rel, memory_order_acquire))
        return own ? first_in(left) : end_of(rest);
    }
  }
  return -1;
}

/* Claims what is left of a job of which the caller has a chunk; returns how many chunks that are. */
static uint32_t claim_rest(int threads) {
  uint32_t count = 0;
  for (int i = 0; i < threads; i++) {
    uint64_t left = atomic_load(&pool.shares[i].left);
    while (first_in(left) < end_of(left) &&
           !atomic_compare_exchange_weak(&pool.shares[i].left, &left, share_of(threads, 0, 0)))
      continue;
    count += end_of(left) - first_in(left);
  }
  return count;
}

/* Claim and run chunks until none is left; returns whether there was one. */
static int run_chunks(int id) {
  uint32_t done = 0;
  for (int64_t chunk; (chunk = claim(id)) >= 0; done++) {
    if (failed(pool.ctx)) {
      done += claim_rest(pool.threads);
      continue;
    }
    int64_t begin = (int64_t)place_of((uint32_t)chunk, pool.chunks, pool.step, pool.first) * pool.grain;
    int64_t end = pool.extent - begin < pool.grain ? pool.extent : begin + pool.grain;
    inside = 1;
    pool.task(begin, end, pool.args);
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
    if (run_chunks(worker->id)) {
      idle_since = os_time_ns();
      continue;
    }
    for (int i = 0; i < 32; i++) os_pause();
    if (atomic_load_explicit(&pool.active, memory_order_relaxed) &&
        os_time_ns() - idle_since < atomic_load_explicit(&pool.spin_ns, memory_order_relaxed))
      continue;
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

/* Chunks that others have begun: spin, then let them have this core, then sleep. */
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

/* Two random numbers that reorder `chunks` chunks; returns 0, and zeros, unless ROUNDEL_SHUFFLE is set. */
static int shuffle(uint32_t chunks, uint32_t *step, uint32_t *first) {
  static _Atomic uint32_t counter;
  *step = *first = 0;
  if (!shuffled()) return 0;
  uint32_t random = (uint32_t)shuffled() * 2654435761u + atomic_fetch_add(&counter, 1) * 40503u;
  random = (random ^ random >> 15) * 2246822519u;
  *first = (random ^ random >> 13) % chunks;
  for (*step = random % chunks + 1;; ++*step) {
    uint32_t a = *step, b = chunks;
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
  int64_t grain = extent / MOST_SHUFFLED + 1;
  uint32_t step, first, chunks = (uint32_t)((extent + grain - 1) / grain);
  if (chunks < 2 || !shuffle(chunks, &step, &first)) {
    task(0, extent, args);
  } else {
    for (uint32_t k = 0; k < chunks; k++) {
      int64_t begin = (int64_t)place_of(k, chunks, step, first) * grain;
      task(begin, extent - begin < grain ? extent : begin + grain, args);
    }
  }
  inside = before;
}

/* The first chunk of a thread's share. Where chunks are few it is the first threads that have one: the caller is awake. */
static uint32_t share_begin(int id, int threads, int64_t chunks) { return (uint32_t)((id * chunks + threads - 1) / threads); }

void pool_run(RdTask task, void **args, int64_t extent, int64_t grain, int num_threads, RdContext *ctx) {
  if (extent <= 0) return;
  if (num_threads > MAX_THREADS) num_threads = MAX_THREADS;
  if (grain < 0) {
    int64_t share = (extent - 1) / (num_threads > 1 ? num_threads : 1) + 1;
    grain = share > -grain ? share : -grain;
  }
  if (grain == 0) grain = extent / ((int64_t)num_threads * 8) + 1;
  if (shuffled()) grain = extent / MOST_SHUFFLED + 1;
  if (extent / grain >= MOST_CHUNKS) grain = extent / MOST_CHUNKS + 1;
  int64_t chunks = extent / grain + (extent % grain != 0);
  if (num_threads <= 1 || chunks <= 1 || inside || atomic_exchange(&pool.busy, 1)) {
    run_here(task, args, extent);
    return;
  }
  ensure_workers(num_threads - 1);
  pool.task = task;
  pool.args = args;
  pool.ctx = ctx;
  pool.extent = extent;
  pool.grain = grain;
  pool.chunks = (uint32_t)chunks;
  pool.threads = num_threads;
  shuffle(pool.chunks, &pool.step, &pool.first);
  atomic_store_explicit(&pool.pending, (uint32_t)chunks, memory_order_relaxed);
  for (int i = num_threads - 1; i >= 0; i--)
    atomic_store(&pool.shares[i].left, share_of(num_threads, share_begin(i, num_threads, chunks), share_begin(i + 1, num_threads, chunks)));
  if (atomic_load(&pool.sleepers)) {
    atomic_fetch_add(&pool.signal, 1);
    os_wake(&pool.signal, INT32_MAX);
  }
  run_chunks(0);
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
