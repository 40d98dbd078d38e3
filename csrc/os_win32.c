/* SPDX-License-Identifier: Apache-2.0 */
/* Windows (Vista and newer): memory, files, threads, clock. */
#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#define _WIN32_WINNT 0x0600
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include "os.h"

void *os_alloc(size_t nbytes) { return _aligned_malloc(nbytes ? nbytes : 64, 64); }

void os_free(void *memory, size_t nbytes) {
  (void)nbytes;
  _aligned_free(memory);
}

/* Names of files are UTF-8 here and UTF-16 there; NULL without memory or where it is neither. */
static wchar_t *wide(const char *text) {
  int count = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, NULL, 0);
  wchar_t *made = count > 0 ? malloc((size_t)count * sizeof *made) : NULL;
  if (made) MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, made, count);
  return made;
}

static size_t within_grain(uint64_t offset) {
  SYSTEM_INFO info;
  GetSystemInfo(&info);
  return (size_t)(offset % info.dwAllocationGranularity);
}

const void *os_map_file(const char *path, uint64_t offset, size_t *nbytes) {
  wchar_t *name = wide(path);
  HANDLE file = name ? CreateFileW(name, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_DELETE, NULL, OPEN_EXISTING, 0, NULL) : INVALID_HANDLE_VALUE;
  free(name);
  if (file == INVALID_HANDLE_VALUE) return NULL;
  LARGE_INTEGER size = {0};
  char *memory = NULL;
  size_t before = within_grain(offset);
  if (GetFileType(file) == FILE_TYPE_DISK && GetFileSizeEx(file, &size) && offset < (uint64_t)size.QuadPart) {
    HANDLE mapping = CreateFileMappingW(file, NULL, PAGE_READONLY, 0, 0, NULL);
    uint64_t begin = offset - before;
    if (mapping) memory = MapViewOfFile(mapping, FILE_MAP_READ, (DWORD)(begin >> 32), (DWORD)begin, 0);
    if (mapping) CloseHandle(mapping); /* the view keeps it */
  }
  CloseHandle(file);
  if (!memory) return NULL;
  *nbytes = (size_t)((uint64_t)size.QuadPart - offset);
  return memory + before;
}

void os_unmap_file(const void *memory, size_t nbytes) {
  (void)nbytes;
  UnmapViewOfFile((const char *)memory - within_grain((uintptr_t)memory));
}

typedef struct { OsThreadMain main; void *argument; } Start;

static DWORD WINAPI run_thread(void *argument) {
  Start start = *(Start *)argument;
  free(argument);
  start.main(start.argument);
  return 0;
}

int os_thread_start(uint64_t *handle, OsThreadMain main, void *argument) {
  Start *start = malloc(sizeof *start);
  if (!start) return 1;
  *start = (Start){main, argument};
  HANDLE thread = CreateThread(NULL, 0, run_thread, start, 0, NULL);
  if (thread) *handle = (uint64_t)(uintptr_t)thread;
  else free(start);
  return !thread;
}

void os_thread_join(uint64_t handle) {
  WaitForSingleObject((HANDLE)(uintptr_t)handle, INFINITE);
  CloseHandle((HANDLE)(uintptr_t)handle);
}

void os_yield(void) { SwitchToThread(); }

void os_at_fork(void (*in_child)(void)) { (void)in_child; } /* processes are not copied */

void os_forget_waiters(void) {}

/* One lock and one condition for all words: a wake reaches every sleeper, which looks at its word again. */
static SRWLOCK wait_lock = SRWLOCK_INIT;
static CONDITION_VARIABLE wait_changed = CONDITION_VARIABLE_INIT;

void os_wait(_Atomic uint32_t *word, uint32_t expected, uint32_t microseconds) {
  AcquireSRWLockExclusive(&wait_lock);
  if (atomic_load(word) == expected) SleepConditionVariableSRW(&wait_changed, &wait_lock, microseconds ? (microseconds + 999) / 1000 : INFINITE, 0);
  ReleaseSRWLockExclusive(&wait_lock);
}

void os_wake(_Atomic uint32_t *word, int32_t count) {
  (void)word, (void)count;
  AcquireSRWLockExclusive(&wait_lock);
  ReleaseSRWLockExclusive(&wait_lock);
  WakeAllConditionVariable(&wait_changed);
}

int64_t os_time_ns(void) {
  LARGE_INTEGER rate, now;
  QueryPerformanceFrequency(&rate);
  QueryPerformanceCounter(&now);
  return now.QuadPart / rate.QuadPart * 1000000000 + now.QuadPart % rate.QuadPart * 1000000000 / rate.QuadPart;
}

int64_t os_coarse_time_ns(void) { return (int64_t)GetTickCount64() * 1000000; }

uint64_t os_this_thread(void) { return GetCurrentThreadId(); }

/* Cores of this process's group of processors with at least one processor that it may use. */
int os_num_cpus(void) {
  DWORD_PTR process, all;
  SYSTEM_LOGICAL_PROCESSOR_INFORMATION *cores = NULL;
  DWORD nbytes = 0;
  int count = 0, cpus = 0;
  if (!GetProcessAffinityMask(GetCurrentProcess(), &process, &all)) return 1;
  for (DWORD_PTR left = process; left; left &= left - 1) cpus++;
  GetLogicalProcessorInformation(NULL, &nbytes);
  if (nbytes) cores = malloc(nbytes);
  if (cores && GetLogicalProcessorInformation(cores, &nbytes))
    for (DWORD i = 0; i < nbytes / sizeof *cores; i++)
      if (cores[i].Relationship == RelationProcessorCore && (cores[i].ProcessorMask & process)) count++;
  free(cores);
  return count > 0 ? count : cpus > 0 ? cpus : 1;
}

int os_allow_tiles(void) { return 0; } /* Windows wants to be asked before it saves them, which newer versions alone let one do */

void *os_find_symbol(const char *name) {
  HMODULE module = GetModuleHandleW(L"tvm_ffi.dll");
  return module ? (void *)(uintptr_t)GetProcAddress(module, name) : NULL;
}

int os_folder_of(const void *address, int behind_links, char *folder, size_t capacity) {
  wchar_t path[4096];
  HMODULE module;
  (void)behind_links; /* the system tells the name by which a library was loaded, and follows links where it opens a file */
  if (!GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT, (const wchar_t *)address, &module))
    return -1;
  DWORD length = GetModuleFileNameW(module, path, 4096);
  while (length && path[length] != L'\\' && path[length] != L'/') length--;
  path[length] = L'\0';
  return length && WideCharToMultiByte(CP_UTF8, 0, path, -1, folder, (int)capacity, NULL, NULL) > 0 ? 0 : -1;
}

int os_exists(const char *path) {
  wchar_t *name = wide(path);
  int exists = name && GetFileAttributesW(name) != INVALID_FILE_ATTRIBUTES;
  free(name);
  return exists;
}
#else
typedef int roundel_no_win32;
#endif
