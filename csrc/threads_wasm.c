/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of WebAssembly: the host starts them before it opens the model, each with an instance of the module on the memory that all of them share.
 * They sleep here until the pool has work for them. A module without threads has one, which never waits. */
#if defined(__wasm__)
#include "os.h"
#include "os_wasm.h"

#if defined(__wasm_atomics__)
#define EXPORT(name) __attribute__((export_name(#name), used)) name
#define STACK ((size_t)1 << 20) /* bytes, as the first thread has */
#define MOST 255

typedef struct {
  char *stack, *locals; /* the end of its stack; its thread-local variables */
  _Atomic uint32_t works;
  OsThreadMain main;
  void *argument;
} Thread;

extern void __wasm_init_tls(void *memory); /* the linker's */
double wasm_now(void) __attribute__((import_module("env"), import_name("now"))); /* milliseconds */

static Thread *threads[MOST];
static int num_threads, num_used;
static _Atomic uint32_t is_broken; /* a thread ended by a trap: what waits for it would wait for ever */

/* Memory for one more thread, which the host has to start; NULL: there is no more. */
void *EXPORT(roundel_new_thread)(void) {
  size_t alignment = __builtin_wasm_tls_align(), locals = __builtin_wasm_tls_size() + (alignment > 64 ? alignment : 64);
  char *memory = num_threads < MOST ? os_alloc(STACK + locals + sizeof(Thread)) : NULL;
  if (!memory) return NULL;
  Thread *thread = (Thread *)memory;
  *thread = (Thread){.stack = memory + (sizeof(Thread) + STACK) / 64 * 64};
  thread->locals = thread->stack + (alignment - (size_t)thread->stack % alignment) % alignment;
  return threads[num_threads++] = thread;
}

__attribute__((noinline)) static void work(Thread *thread) {
  for (;;) {
    while (!atomic_load(&thread->works)) os_wait(&thread->works, 0, 0);
    thread->main(thread->argument);
    atomic_store(&thread->works, 0);
    os_wake(&thread->works, 1);
  }
}

/* What a thread calls in its own instance, and never returns from. */
void EXPORT(roundel_thread)(Thread *thread) {
  __asm__ volatile("local.get %0\nglobal.set __stack_pointer" ::"r"(thread->stack));
  __wasm_init_tls(thread->locals);
  work(thread);
}

/* Tells the others that a thread ended by a trap. */
void EXPORT(roundel_thread_broke)(void) { atomic_store(&is_broken, 1); }

int os_thread_start(uint64_t *handle, OsThreadMain main, void *argument) {
  if (num_used == num_threads) return 1;
  Thread *thread = threads[*handle = (uint64_t)num_used++];
  thread->main = main;
  thread->argument = argument;
  atomic_store(&thread->works, 1);
  os_wake(&thread->works, 1);
  return 0;
}

void os_thread_join(uint64_t handle) {
  while (atomic_load(&threads[handle]->works)) os_wait(&threads[handle]->works, 1, 0);
  num_used--;
}

/* A function of its own, in which nothing is needed after the wait: V8 (seen in 11.3, node 20) loses variables that a loop around the
 * instruction keeps in registers, and the next wait would be at address 0. */
__attribute__((noinline)) void os_wait(_Atomic uint32_t *word, uint32_t expected, uint32_t microseconds) {
  if (atomic_load(&is_broken)) __builtin_trap();
  __builtin_wasm_memory_atomic_wait32((int *)word, (int)expected, microseconds ? (int64_t)microseconds * 1000 : -1);
}

void os_wake(_Atomic uint32_t *word, int32_t count) { __builtin_wasm_memory_atomic_notify((int *)word, (unsigned)count); }

int64_t os_time_ns(void) { return (int64_t)(wasm_now() * 1e6); }
int os_num_cpus(void) { return num_threads + 1; }
#else
int os_thread_start(uint64_t *handle, OsThreadMain main, void *argument) { return (void)handle, (void)main, (void)argument, 1; }
void os_thread_join(uint64_t handle) { (void)handle; }
void os_wait(_Atomic uint32_t *word, uint32_t expected, uint32_t microseconds) { (void)word, (void)expected, (void)microseconds; }
void os_wake(_Atomic uint32_t *word, int32_t count) { (void)word, (void)count; }
int64_t os_time_ns(void) { return 0; }
int os_num_cpus(void) { return 1; }
#endif
int64_t os_coarse_time_ns(void) { return os_time_ns(); }
void os_yield(void) { os_pause(); }
void os_at_fork(void (*in_child)(void)) { (void)in_child; }
void os_forget_waiters(void) {}
uint64_t os_this_thread(void) { return 1; }
#endif
