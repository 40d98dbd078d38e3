/* SPDX-License-Identifier: Apache-2.0 */
/* WebAssembly: memory that grows, and one file (the weights that the host has given). Threads are in threads_wasm.c. */
#if defined(__wasm__)
#include "os_wasm.h"

#include <stdlib.h>
#include <string.h>

#include "os.h"

#define UNIT ((size_t)64) /* what sizes are multiples of; a block's header takes one, so that what lies behind it is aligned */
#define PAGE ((size_t)65536)

typedef struct Free Free; /* a block that nobody uses; lists are in the order of addresses */
struct Free { size_t nbytes; Free *next; };

extern unsigned char __heap_base; /* the linker's: where its data end */
static Free *first_free;
static size_t heap_end; /* 0: nothing was asked for yet */
static _Atomic uint32_t heap_lock; /* of these two, and the lists */
static const char *file;
static size_t file_nbytes;

static char *end_of(Free *block) { return (char *)block + block->nbytes; }

static void lock_heap(void) {
  while (atomic_exchange(&heap_lock, 1)) os_wait(&heap_lock, 1, 0);
}

static void unlock_heap(void) {
  atomic_store(&heap_lock, 0);
  os_wake(&heap_lock, 1);
}

/* Gives a block back, and makes one of it and its neighbours that are free as well. */
static void give_back(Free *block) {
  Free *before = NULL, *after = first_free;
  for (; after && after < block; after = after->next) before = after;
  block->next = after;
  if (after && end_of(block) == (char *)after) {
    block->nbytes += after->nbytes;
    block->next = after->next;
  }
  if (before && end_of(before) == (char *)block) {
    before->nbytes += block->nbytes;
    before->next = block->next;
  } else if (before) {
    before->next = block;
  } else {
    first_free = block;
  }
}

/* Lengthens the memory so that its end is free for so many bytes. Returns nonzero where there are no more. */
static int grow(size_t nbytes) {
  size_t end = __builtin_wasm_memory_size(0) * PAGE;
  if (!heap_end) heap_end = ((size_t)&__heap_base + UNIT - 1) / UNIT * UNIT;
  if (end < heap_end || end - heap_end < nbytes) {
    size_t pages = (nbytes - (end > heap_end ? end - heap_end : 0) + PAGE - 1) / PAGE;
    if (__builtin_wasm_memory_grow(0, pages) == SIZE_MAX) return 1;
    end += pages * PAGE;
  }
  Free *block = (Free *)heap_end;
  block->nbytes = (end - heap_end) / UNIT * UNIT;
  heap_end += block->nbytes;
  give_back(block);
  return 0;
}

static Free **find(size_t nbytes) {
  for (Free **at = &first_free; *at; at = &(*at)->next)
    if ((*at)->nbytes >= nbytes) return at;
  return NULL;
}

/* A block of so many bytes, a multiple of UNIT, its header among them. */
static Free *take(size_t nbytes) {
  Free **at = find(nbytes);
  if (!at && (grow(nbytes) || !(at = find(nbytes)))) return NULL;
  Free *block = *at;
  if (block->nbytes - nbytes >= 2 * UNIT) {
    Free *rest = (Free *)((char *)block + nbytes);
    rest->nbytes = block->nbytes - nbytes;
    rest->next = block->next;
    block->nbytes = nbytes;
    *at = rest;
  } else {
    *at = block->next;
  }
  return block;
}

void *os_alloc(size_t nbytes) {
  if (nbytes > SIZE_MAX - 4 * PAGE) return NULL;
  lock_heap();
  Free *block = take((nbytes + UNIT - 1) / UNIT * UNIT + UNIT);
  unlock_heap();
  return block ? (char *)block + UNIT : NULL;
}

void os_free(void *memory, size_t nbytes) {
  (void)nbytes;
  if (!memory) return;
  lock_heap();
  give_back((Free *)((char *)memory - UNIT));
  unlock_heap();
}

void *malloc(size_t nbytes) { return os_alloc(nbytes); }

void free(void *memory) { os_free(memory, 0); }

void *calloc(size_t count, size_t nbytes) {
  if (nbytes && count > SIZE_MAX / nbytes) return NULL;
  void *memory = os_alloc(count * nbytes);
  return memory ? memset(memory, 0, count * nbytes) : NULL;
}

void wasm_give_file(const void *content, size_t nbytes) {
  file = content;
  file_nbytes = nbytes;
}

const void *os_map_file(const char *path, uint64_t offset, size_t *nbytes) {
  if (!file) wasm_find_file(path);
  if (!file || offset > file_nbytes) return NULL;
  *nbytes = file_nbytes - (size_t)offset;
  return file + offset;
}

void os_unmap_file(const void *memory, size_t nbytes) { (void)memory, (void)nbytes; }

int os_folder_of(const void *address, int behind_links, char *folder, size_t capacity) {
  (void)address, (void)behind_links;
  folder[0] = '.';
  if (capacity > 1) folder[1] = '\0';
  return 0;
}

int os_exists(const char *path) {
  if (!file) wasm_find_file(path);
  return file != NULL;
}
void *os_find_symbol(const char *name) { return (void)name, NULL; }
int os_allow_tiles(void) { return 0; }
#endif
