/* SPDX-License-Identifier: Apache-2.0 */
/* A vector DSP: one memory of eight banks, DMA in and DMA out beside a vector unit, which multiplies 8 rows of 4 bytes by 64 columns in 8 cycles. A bank has one
   port: operands of an instruction that lie in the same bank take turns. */
#include "../engines.h"

enum { FETCH, VECTOR, DRAIN };
enum { SIZE = 256 << 10, BANKS = 8 };
static uint8_t tcm_bytes[SIZE] __attribute__((aligned(64)));
static place_t tcm_places[SIZE / GRAIN];
static memory_t tcm = {tcm_bytes, tcm_places, SIZE};

int32_t sim_begin(void) { chip_begin(&tcm, 1); return 0; }
int32_t sim_finish(void) { return chip_finish(); }
void sim_share(const void *memory, int64_t bytes) { chip_share(memory, bytes); }
void sim_signal(int64_t from, int64_t to, int64_t number) { chip_signal(from, to, number); }
void sim_wait(int64_t from, int64_t to, int64_t number) { chip_wait(from, to, number); }
const counters_t *sim_counters(void) { return &counters; }
void sim_reset(void) { memset(&counters, 0, sizeof counters); }

void sim_fetch(int64_t to, const void *from, int64_t bytes) { moved_in(&tcm, FETCH, to, from, bytes, 64, 32); }
void sim_drain(void *to, int64_t from, int64_t bytes) { moved_out(&tcm, DRAIN, to, from, bytes, 64, 32); }
void sim_zero(int64_t at, int64_t bytes) { cleared(&tcm, VECTOR, at, bytes, 64); }

void sim_multiply(int64_t a, int64_t b, int64_t c) { /* C[i][j] += sum over k < 4 of A[i][k] * B[j][k] */
  int64_t x_bank = a / (SIZE / BANKS), w_bank = b / (SIZE / BANKS), y_bank = c / (SIZE / BANKS);
  instruction(VECTOR, 8 + 8 * (x_bank == w_bank) + 8 * (y_bank == x_bank || y_bank == w_bank));
  const uint8_t *x = touched(&tcm, VECTOR, a, 32, 1, 0);
  const int8_t *w = (const int8_t *)touched(&tcm, VECTOR, b, 256, 1, 0);
  int32_t *y = (int32_t *)touched(&tcm, VECTOR, c, 2048, 1, 1);
  counters.products += 8 * 64 * 4;
  if (x && w && y)
    for (int i = 0; i < 8; i++)
      for (int j = 0; j < 64; j++)
        for (int k = 0; k < 4; k++) y[i * 64 + j] += x[i * 4 + k] * w[j * 4 + k];
}
