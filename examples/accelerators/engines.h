/* SPDX-License-Identifier: Apache-2.0 */
/* What simulators of accelerators share: engines that run beside each other, semaphores, memories that notice races, and counters.

   Instructions are computed when they are given, and their times are worked out: an engine begins with one when it has ended the one before and what it
   waits for has been signalled. Each engine knows which instructions of the others were over when it was signalled (a vector clock). A place of a memory
   remembers who wrote and who read it last: an access that is not known to come after another engine's is a race, whatever the times happened to be. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define MOST_ENGINES 4
#define SEMAPHORES 16
#define MOST_TOKENS 64
#define MOST_SHARED 16
#define GRAIN 16 /* bytes of a place that is watched, and that instructions are aligned to */

enum { SOUND, OUT_OF_BOUNDS, RACE, UNWRITTEN, DEADLOCK, MISALIGNED, LEFT_OVER };

typedef struct { uint64_t cycles, products, bytes_in, bytes_out, instructions, busy[MOST_ENGINES]; } counters_t;
typedef struct { uint64_t time, done[MOST_ENGINES]; } token_t;
typedef struct { token_t tokens[MOST_TOKENS]; unsigned first, count; } semaphore_t;
typedef struct { token_t now; } engine_t;
typedef struct { uint64_t writer_at, read_at[MOST_ENGINES]; uint8_t written, writer; } place_t;
typedef struct { uint8_t *bytes; place_t *places; int64_t size; } memory_t;

static engine_t engines[MOST_ENGINES];
static semaphore_t semaphores[MOST_ENGINES][MOST_ENGINES][SEMAPHORES];
static struct { uintptr_t at, bytes; } shared[MOST_SHARED];
static unsigned shared_count;
static counters_t counters;
static int32_t trap;
static char trap_text[160];
static pthread_mutex_t one_user = PTHREAD_MUTEX_INITIALIZER;

static void trapped(int32_t what, const char *text, int64_t number) {
  if (!trap) snprintf(trap_text, sizeof trap_text, "%s %lld", text, (long long)number);
  if (!trap) trap = what;
}

/* The chip is one for all threads: whoever begins has it until the end. */
static void chip_begin(memory_t *memories, unsigned count) {
  pthread_mutex_lock(&one_user);
  memset(engines, 0, sizeof engines);
  memset(semaphores, 0, sizeof semaphores);
  for (unsigned m = 0; m < count; m++) memset(memories[m].places, 0, memories[m].size / GRAIN * sizeof(place_t));
  shared_count = 0;
  trap = SOUND;
}

static int32_t chip_finish(void) {
  uint64_t end = 0;
  for (unsigned e = 0; e < MOST_ENGINES; e++) if (engines[e].now.time > end) end = engines[e].now.time;
  for (unsigned a = 0; a < MOST_ENGINES; a++)
    for (unsigned b = 0; b < MOST_ENGINES; b++)
      for (unsigned s = 0; s < SEMAPHORES; s++) if (semaphores[a][b][s].count) trapped(LEFT_OVER, "a semaphore is left with", semaphores[a][b][s].count);
  counters.cycles += end;
  int32_t status = trap;
  if (status) fprintf(stderr, "the simulated chip: %s\n", trap_text);
  pthread_mutex_unlock(&one_user);
  return status;
}

static void chip_share(const void *memory, int64_t bytes) {
  if (shared_count == MOST_SHARED) trapped(OUT_OF_BOUNDS, "more memory is shared than the chip can map", shared_count);
  else shared[shared_count].at = (uintptr_t)memory, shared[shared_count++].bytes = bytes;
}

static int is_shared(const void *memory, int64_t bytes) {
  for (unsigned s = 0; s < shared_count; s++)
    if ((uintptr_t)memory >= shared[s].at && (uintptr_t)memory + bytes <= shared[s].at + shared[s].bytes) return 1;
  trapped(OUT_OF_BOUNDS, "DMA outside of what is shared, bytes", bytes);
  return 0;
}

static void chip_signal(int64_t from, int64_t to, int64_t number) {
  semaphore_t *s = &semaphores[from][to][number];
  if (s->count == MOST_TOKENS) { trapped(DEADLOCK, "a semaphore counts no further than", MOST_TOKENS); return; }
  s->tokens[(s->first + s->count++) % MOST_TOKENS] = engines[from].now;
}

static void chip_wait(int64_t from, int64_t to, int64_t number) {
  semaphore_t *s = &semaphores[from][to][number];
  if (!s->count) { trapped(DEADLOCK, "nothing will ever signal semaphore", number); return; }
  token_t *mine = &engines[to].now, *sent = &s->tokens[s->first];
  s->first = (s->first + 1) % MOST_TOKENS, s->count--;
  if (sent->time > mine->time) mine->time = sent->time;
  for (unsigned e = 0; e < MOST_ENGINES; e++) if (sent->done[e] > mine->done[e]) mine->done[e] = sent->done[e];
}

/* An instruction begins on an engine. */
static void instruction(unsigned engine, uint64_t cycles) {
  engines[engine].now.time += cycles;
  engines[engine].now.done[engine]++;
  counters.busy[engine] += cycles;
  counters.instructions++;
}

/* The bytes at an address, which the instruction that an engine has begun reads, writes or both; NULL where that is a fault. */
static uint8_t *touched(memory_t *memory, unsigned engine, int64_t at, int64_t bytes, int reads, int writes) {
  if (at < 0 || bytes < 0 || at + bytes > memory->size) { trapped(OUT_OF_BOUNDS, "an address outside of a memory:", at); return NULL; }
  if (at % GRAIN) { trapped(MISALIGNED, "an address that is not aligned:", at); return NULL; }
  uint64_t *done = engines[engine].now.done;
  for (int64_t p = at / GRAIN; p < (at + bytes + GRAIN - 1) / GRAIN; p++) {
    place_t *place = &memory->places[p];
    if (place->written && place->writer_at > done[place->writer]) { trapped(RACE, "another engine may still write at", p * GRAIN); return NULL; }
    if (reads && !place->written) { trapped(UNWRITTEN, "nothing was written at", p * GRAIN); return NULL; }
    if (writes) {
      for (unsigned e = 0; e < MOST_ENGINES; e++)
        if (place->read_at[e] > done[e]) { trapped(RACE, "another engine may still read at", p * GRAIN); return NULL; }
      place->written = 1, place->writer = engine, place->writer_at = done[engine];
    }
    if (reads) place->read_at[engine] = done[engine];
  }
  return memory->bytes + at;
}

/* DMA: a transfer takes so many cycles to start, and one for each `rate` bytes. */
static void moved_in(memory_t *memory, unsigned engine, int64_t to, const void *from, int64_t bytes, unsigned start, unsigned rate) {
  instruction(engine, start + (bytes + rate - 1) / rate);
  uint8_t *place = touched(memory, engine, to, bytes, 0, 1);
  counters.bytes_in += bytes;
  if (place && is_shared(from, bytes)) memcpy(place, from, bytes);
}

static void moved_out(memory_t *memory, unsigned engine, void *to, int64_t from, int64_t bytes, unsigned start, unsigned rate) {
  instruction(engine, start + (bytes + rate - 1) / rate);
  uint8_t *place = touched(memory, engine, from, bytes, 1, 0);
  counters.bytes_out += bytes;
  if (place && is_shared(to, bytes)) memcpy(to, place, bytes);
}

static void cleared(memory_t *memory, unsigned engine, int64_t at, int64_t bytes, unsigned rate) {
  instruction(engine, 1 + (bytes + rate - 1) / rate);
  uint8_t *place = touched(memory, engine, at, bytes, 0, 1);
  if (place) memset(place, 0, bytes);
}
