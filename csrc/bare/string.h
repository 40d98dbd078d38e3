/* SPDX-License-Identifier: Apache-2.0 */
/* What models call of string.h, for compilers that come without a C library. */
#pragma once
#include <stddef.h>
void *memcpy(void *to, const void *from, size_t nbytes);
void *memmove(void *to, const void *from, size_t nbytes);
void *memset(void *to, int value, size_t nbytes);
int memcmp(const void *a, const void *b, size_t nbytes);
size_t strlen(const char *text);
