/* SPDX-License-Identifier: Apache-2.0 */
/* POSIX: memory, files, threads, symbols; with a condition variable to wait on where there is no futex. */
#if !defined(_WIN32) && !defined(__wasm__)
#if defined(__linux__)
#define _GNU_SOURCE
#elif defined(__APPLE__)
#define _DARWIN_C_SOURCE
#endif
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#if defined(__APPLE__)
#include <sys/sysctl.h>
#endif
#include <time.h>
#include <unistd.h>

#include "os.h"

#define HUGE_PAGE ((size_t)2 << 20)

/* The bytes of a block that lie in huge pages: a last page that is three quarters full is one too, for which the block gets longer. */
static size_t in_huge_pages(size_t nbytes) { return (nbytes + HUGE_PAGE / 4) / HUGE_PAGE * HUGE_PAGE; }

void *os_alloc(size_t nbytes) {
  if (nbytes == 0) nbytes = 64;
  if (nbytes > SIZE_MAX - 2 * HUGE_PAGE) return NULL;
  size_t huge = in_huge_pages(nbytes);
  void *memory = NULL;
  if (posix_memalign(&memory, huge ? HUGE_PAGE : 64, nbytes > huge ? nbytes : huge) != 0) return NULL;
#ifdef MADV_HUGEPAGE
  if (huge) madvise(memory, huge, MADV_HUGEPAGE);
#endif
  return memory;
}

void os_free(void *memory, size_t nbytes) {
  (void)nbytes;
  free(memory);
}

static size_t within_page(uint64_t offset) { return (size_t)(offset % (uint64_t)sysconf(_SC_PAGESIZE)); }

const void *os_map_file(const char *path, uint64_t offset, size_t *nbytes) {
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a named pipe is opened without waiting for a writer */
  if (file < 0) return NULL;
  struct stat info;
  char *memory = MAP_FAILED;
  size_t before = within_page(offset), length = 0;
  if (fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0 && offset < (uint64_t)info.st_size) {
    length = (size_t)((uint64_t)info.st_size - offset);
    memory = mmap(NULL, before + length, PROT_READ, MAP_SHARED, file, (off_t)(offset - before));
  }
  close(file);
  if (memory == (char *)MAP_FAILED) return NULL;
#ifdef MADV_HUGEPAGE
  madvise(memory, before + length, MADV_HUGEPAGE); /* what is not in memory yet is read into huge pages */
#endif
  *nbytes = length;
  return memory + before;
}

void os_unmap_file(const void *memory, size_t nbytes) {
  size_t before = within_page((uintptr_t)memory);
  munmap((void *)((uintptr_t)memory - before), before + nbytes);
}

int os_thread_start(uint64_t *handle, OsThreadMain main, void *argument) {
  sigset_t all, before; /* signals go to the program's own threads */
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  int failed = pthread_create(&thread, NULL, main, argument);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (!failed) *handle = (uint64_t)(uintptr_t)thread;
  return failed;
}

void os_thread_join(uint64_t handle) { pthread_join((pthread_t)(uintptr_t)handle, NULL); }

void os_yield(void) { sched_yield(); }

void os_at_fork(void (*in_child)(void)) { pthread_atfork(NULL, NULL, in_child); }

int64_t os_time_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t os_coarse_time_ns(void) {
#ifdef CLOCK_MONOTONIC_COARSE
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
#else
  return os_time_ns();
#endif
}

uint64_t os_this_thread(void) { return (uint64_t)(uintptr_t)pthread_self(); }

void *os_find_symbol(const char *name) { return dlsym(RTLD_DEFAULT, name); }

int os_folder_of(const void *address, int behind_links, char *folder, size_t capacity) {
  Dl_info info;
  if (!dladdr(address, &info) || !info.dli_fname) return -1;
  char *real = behind_links ? realpath(info.dli_fname, NULL) : NULL;
  if (behind_links && !real) return -1;
  const char *path = real ? real : info.dli_fname, *slash = strrchr(path, '/');
  size_t length = slash ? (size_t)(slash - path) : 1;
  int fits = length + 1 <= capacity;
  if (fits) {
    memcpy(folder, slash ? path : ".", length);
    folder[length] = '\0';
  }
  free(real);
  return fits ? 0 : -1;
}

int os_exists(const char *path) { return access(path, F_OK) == 0; }

#if !defined(__linux__) || defined(RD_NO_FUTEX)
/* One lock and one condition for all words: a wake reaches every sleeper, which looks at its word again. */
static pthread_mutex_t wait_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wait_changed = PTHREAD_COND_INITIALIZER;

void os_wait(_Atomic uint32_t *word, uint32_t expected, uint32_t microseconds) {
  pthread_mutex_lock(&wait_lock);
  if (atomic_load(word) == expected) {
    if (microseconds) {
      struct timespec until;
      clock_gettime(CLOCK_REALTIME, &until);
      int64_t nanoseconds = until.tv_nsec + (int64_t)microseconds * 1000;
      until.tv_sec += (time_t)(nanoseconds / 1000000000);
      until.tv_nsec = (long)(nanoseconds % 1000000000);
      pthread_cond_timedwait(&wait_changed, &wait_lock, &until);
    } else {
      pthread_cond_wait(&wait_changed, &wait_lock);
    }
  }
  pthread_mutex_unlock(&wait_lock);
}

void os_wake(_Atomic uint32_t *word, int32_t count) {
  (void)word, (void)count;
  pthread_mutex_lock(&wait_lock);
  pthread_cond_broadcast(&wait_changed);
  pthread_mutex_unlock(&wait_lock);
}

void os_forget_waiters(void) {
  pthread_mutex_init(&wait_lock, NULL);
  pthread_cond_init(&wait_changed, NULL);
}
#endif

#if !defined(__linux__)
int os_allow_tiles(void) { return 1; } /* the system saves them, or the CPU says that it does not */

int os_num_cpus(void) {
#if defined(__APPLE__) /* the fast cores, where there are others */
  int cores = 0;
  size_t size = sizeof cores;
  if (!sysctlbyname("hw.perflevel0.physicalcpu", &cores, &size, NULL, 0) || !sysctlbyname("hw.physicalcpu", &cores, &size, NULL, 0))
    return cores > 0 ? cores : 1;
#endif
  long count = sysconf(_SC_NPROCESSORS_ONLN);
  return count > 0 ? (int)count : 1;
}
#endif
#else
typedef int roundel_no_posix; /* a translation unit may not be empty */
#endif
