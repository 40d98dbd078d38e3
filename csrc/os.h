/* SPDX-License-Identifier: Apache-2.0 */
/* What the runtime needs from an operating system. os_linux.c, os_posix.c and os_win32.c provide it. */
#ifndef ROUNDEL_OS_H_
#define ROUNDEL_OS_H_

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Memory, 64-byte aligned; large blocks ask for huge pages. NULL without memory. */
void *os_alloc(size_t nbytes);
void os_free(void *memory, size_t nbytes);

/* A regular file mapped read-only from a byte on to its end; NULL on failure. */
const void *os_map_file(const char *path, uint64_t offset, size_t *nbytes);
void os_unmap_file(const void *memory, size_t nbytes);

/* Sleep while *word == expected, until os_wake or about `microseconds` have passed (0: without limit); may wake early. */
void os_wait(_Atomic uint32_t *word, uint32_t expected, uint32_t microseconds);
void os_wake(_Atomic uint32_t *word, int32_t count);

typedef void *(*OsThreadMain)(void *);
int os_thread_start(uint64_t *handle, OsThreadMain main, void *argument); /* nonzero: no thread */
void os_thread_join(uint64_t handle);
void os_yield(void);
void os_at_fork(void (*in_child)(void)); /* once for each function */
void os_forget_waiters(void);            /* in a forked child, which has none of the threads that waited */

int64_t os_time_ns(void);
int64_t os_coarse_time_ns(void); /* the same clock, exact to some milliseconds, in less time */
uint64_t os_this_thread(void);   /* its number in the system's thread library */
int os_num_cpus(void); /* physical cores that this process may use */

int os_allow_tiles(void); /* whether this process may use the tile registers of AMX: asked of the system once */

void *os_find_symbol(const char *name);                                /* in what the process has loaded globally */
int os_folder_of(const void *address, int behind_links, char *folder, size_t capacity); /* of the loaded file with that address */
int os_exists(const char *path);

static inline void os_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb" ::: "memory");
#elif defined(__wasm_atomics__)
  for (volatile int i = 0; i < 16; i++) continue; /* it has no instruction for this; some 100 cycles */
#else
  __asm__ volatile("" ::: "memory");
#endif
}

#endif
