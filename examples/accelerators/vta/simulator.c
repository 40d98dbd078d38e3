/* SPDX-License-Identifier: Apache-2.0 */
/* A chip like VTA (Moreau et al., 2018): three engines (load, compute, store) that wait for each other by dependence queues, a memory each for data, weights
   and sums, and an array that multiplies 16 pixels of 16 channels by 16 x 16 weights in 16 cycles. */
#include "../engines.h"

enum { LOAD, COMPUTE, STORE };
#define MEMORY(name, n) static uint8_t name##_bytes[n] __attribute__((aligned(64))); static place_t name##_places[(n) / GRAIN]
MEMORY(data, 32 << 10);
MEMORY(weights, 256 << 10);
MEMORY(sums, 128 << 10);
static memory_t memories[] = {{data_bytes, data_places, sizeof data_bytes}, {weights_bytes, weights_places, sizeof weights_bytes},
                              {sums_bytes, sums_places, sizeof sums_bytes}};

int32_t sim_begin(void) { chip_begin(memories, 3); return 0; }
int32_t sim_finish(void) { return chip_finish(); }
void sim_share(const void *memory, int64_t bytes) { chip_share(memory, bytes); }
void sim_signal(int64_t from, int64_t to, int64_t number) { chip_signal(from, to, number); }
void sim_wait(int64_t from, int64_t to, int64_t number) { chip_wait(from, to, number); }
const counters_t *sim_counters(void) { return &counters; }
void sim_reset(void) { memset(&counters, 0, sizeof counters); }

void sim_load_data(int64_t to, const void *from, int64_t bytes) { moved_in(&memories[0], LOAD, to, from, bytes, 32, 16); }
void sim_load_weights(int64_t to, const void *from, int64_t bytes) { moved_in(&memories[1], LOAD, to, from, bytes, 32, 16); }
void sim_store(void *to, int64_t from, int64_t bytes) { moved_out(&memories[2], STORE, to, from, bytes, 32, 16); }
void sim_clear(int64_t at, int64_t bytes) { cleared(&memories[2], COMPUTE, at, bytes, 64); }

void sim_gemm(int64_t a, int64_t b, int64_t c) { /* C[i][j] += A[i][k] * B[j][k] */
  instruction(COMPUTE, 16);
  const uint8_t *x = touched(&memories[0], COMPUTE, a, 256, 1, 0);
  const int8_t *w = (const int8_t *)touched(&memories[1], COMPUTE, b, 256, 1, 0);
  int32_t *y = (int32_t *)touched(&memories[2], COMPUTE, c, 1024, 1, 1);
  counters.products += 16 * 16 * 16;
  if (x && w && y)
    for (int i = 0; i < 16; i++)
      for (int j = 0; j < 16; j++) {
        int32_t sum = 0;
        for (int k = 0; k < 16; k++) sum += x[i * 16 + k] * w[j * 16 + k];
        y[i * 16 + j] += sum;
      }
}
