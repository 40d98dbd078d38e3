/* SPDX-License-Identifier: Apache-2.0 */
/* program.c: the class of one picture, 3 x 32 x 32 numbers of float32 on standard input (or none: a picture of ones) */
#include <stdio.h>
#include "model.h"

static float picture[3 * 32 * 32];

int main(void) {
  int64_t shape[] = {1, 3, 32, 32};
  DLTensor x = model_run_input0(picture, shape), y = model_run_output0(NULL, NULL); /* no data: the model allocates it */
  if (fread(picture, sizeof picture, 1, stdin) != 1)
    for (size_t i = 0; i < sizeof picture / sizeof *picture; i++) picture[i] = 1;
  if (model_run(&x, &y)) return fprintf(stderr, "%s\n", model_last_error()), 1;
  const float *score = y.data;
  int best = 0;
  for (int i = 1; i < 10; i++)
    if (score[i] > score[best]) best = i;
  printf("class %d, score %.4f\n", best, score[best]);
  model_release(&y);
  return 0;
}
