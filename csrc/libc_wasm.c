/* SPDX-License-Identifier: Apache-2.0 */
/* What the runtime and generated code call of the C library, for WebAssembly, where there is none. Memory is os_wasm.c's. */
#if defined(__wasm__)
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Engines have instructions for these three, which the compiler takes for them. */
void *memcpy(void *restrict to, const void *restrict from, size_t nbytes) { return __builtin_memcpy(to, from, nbytes); }
void *memmove(void *to, const void *from, size_t nbytes) { return __builtin_memmove(to, from, nbytes); }
void *memset(void *to, int value, size_t nbytes) { return __builtin_memset(to, value, nbytes); }

/* The compiler must not take a loop for a call of the function that it is in. */
#define ALONE __attribute__((no_builtin))

ALONE int memcmp(const void *a, const void *b, size_t nbytes) {
  const unsigned char *p = a, *q = b;
  for (; nbytes; nbytes--, p++, q++)
    if (*p != *q) return *p - *q;
  return 0;
}

ALONE size_t strlen(const char *text) {
  const char *end = text;
  while (*end) end++;
  return (size_t)(end - text);
}

ALONE int strncmp(const char *a, const char *b, size_t most) {
  for (; most; most--, a++, b++)
    if (*a != *b || !*a) return (unsigned char)*a - (unsigned char)*b;
  return 0;
}

ALONE size_t strcspn(const char *text, const char *ends) {
  size_t length = 0;
  for (; text[length]; length++)
    for (const char *end = ends; *end; end++)
      if (text[length] == *end) return length;
  return length;
}

ALONE int strcmp(const char *a, const char *b) { return strncmp(a, b, SIZE_MAX); }

ALONE char *strchr(const char *text, int wanted) {
  for (;; text++) {
    if (*text == (char)wanted) return (char *)text;
    if (!*text) return NULL;
  }
}

/* The product of numbers of 128 bits, which compilers call to see whether one of 64 bits overflows. Optimised, it would call itself. */
typedef union { __int128 whole; struct { uint64_t low, high; } half; } Wide;
__attribute__((optnone, noinline)) __int128 __multi3(__int128 a, __int128 b) {
  const uint64_t mask = 0xffffffffu;
  Wide x = {a}, y = {b}, product;
  uint64_t x0 = x.half.low & mask, x1 = x.half.low >> 32, y0 = y.half.low & mask, y1 = y.half.low >> 32;
  uint64_t middle = x1 * y0 + (x0 * y0 >> 32), other = x0 * y1 + (middle & mask);
  product.half.low = x.half.low * y.half.low;
  product.half.high = x1 * y1 + (middle >> 32) + (other >> 32) + x.half.high * y.half.low + x.half.low * y.half.high;
  return product.whole;
}

char *getenv(const char *name) { return (void)name, NULL; }

long strtol(const char *text, char **end, int base) { /* of decimal digits: all that is asked for */
  long value = 0;
  for (; *text >= '0' && *text <= '9'; text++)
    value = value > (LONG_MAX - 9) / base ? LONG_MAX : value * base + (*text - '0');
  if (end) *end = (char *)text;
  return value;
}

typedef struct { char *text; size_t capacity, length; } Sink; /* length: of all that was put, also what there was no room for */

static void put(Sink *sink, char c) {
  if (sink->length + 1 < sink->capacity) sink->text[sink->length] = c;
  sink->length++;
}

static void put_text(Sink *sink, const char *text, int most) {
  for (; most && *text; most--) put(sink, *text++);
}

static void put_number(Sink *sink, uint64_t value, int is_negative) {
  char digits[20];
  int count = 0;
  do digits[count++] = (char)('0' + value % 10); while (value /= 10);
  if (is_negative) put(sink, '-');
  while (count) put(sink, digits[--count]);
}

/* The conversions that messages have: %d %u %lld %llu %zu %c %s, and %.*s or %.40s. */
int vsnprintf(char *text, size_t capacity, const char *format, va_list args) {
  Sink sink = {text, capacity, 0};
  for (; *format; format++) {
    if (*format != '%') {
      put(&sink, *format);
      continue;
    }
    int most = -1, is_long = 0;
    format++;
    if (*format == '.') {
      format++;
      if (*format == '*') most = va_arg(args, int), format++;
      else most = (int)strtol(format, (char **)&format, 10);
    }
    for (; *format == 'l' || *format == 'z'; format++) is_long += *format == 'l';
    int64_t value;
    switch (*format) {
      case 's': put_text(&sink, va_arg(args, const char *), most); break;
      case 'c': put(&sink, (char)va_arg(args, int)); break;
      case 'd':
        value = is_long > 1 ? va_arg(args, int64_t) : va_arg(args, int32_t);
        put_number(&sink, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, value < 0);
        break;
      case 'u': put_number(&sink, is_long > 1 ? va_arg(args, uint64_t) : va_arg(args, uint32_t), 0); break;
      default: put(&sink, *format);
    }
  }
  if (capacity) text[sink.length < capacity ? sink.length : capacity - 1] = '\0';
  return sink.length > INT_MAX ? INT_MAX : (int)sink.length;
}

int snprintf(char *text, size_t capacity, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int length = vsnprintf(text, capacity, format, args);
  va_end(args);
  return length;
}
#endif
