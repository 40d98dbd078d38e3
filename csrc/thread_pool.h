/* SPDX-License-Identifier: Apache-2.0 */
/* The threads that help with parallel loops: one pool for all models of the process that share this runtime. */
#ifndef ROUNDEL_THREAD_POOL_H_
#define ROUNDEL_THREAD_POOL_H_

#include "roundel.h"

typedef struct { void *memory; size_t capacity; } RdScratch;

int pool_default_threads(void);  /* ROUNDEL_NUM_THREADS, or the cores that this process may use */
void pool_begin_run(void);       /* between these two, idle workers spin a little before they sleep */
void pool_end_run(void);
void pool_set_default_threads(int count); /* 0: what the environment or the machine says */
int pool_environment_is_right(void);       /* whether ROUNDEL_NUM_THREADS is a whole number, or not given */
/* `ctx`: of the run; iterations that nobody has begun are left out when it has failed. NULL: none. */
void pool_run(RdTask task, void **args, int64_t extent, int64_t grain, int num_threads, RdContext *ctx);
void pool_shutdown(void);        /* ends the workers; the next pool_run starts new ones */
RdScratch *pool_worker_scratch(void); /* NULL on threads that are not workers */
int pool_is_worker(void);

#endif
