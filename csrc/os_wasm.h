/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the runtime that only WebAssembly has offer each other. */
#ifndef ROUNDEL_OS_WASM_H_
#define ROUNDEL_OS_WASM_H_

#include <stddef.h>

void wasm_give_file(const void *content, size_t nbytes); /* the one file that there is: kept by the caller, 64-byte aligned */
#if defined(ROUNDEL_WASI)
void wasm_find_file(const char *path); /* gives it, where the system has it */
#else
static inline void wasm_find_file(const char *path) { (void)path; }
#endif

#endif
