/* SPDX-License-Identifier: Apache-2.0 */
/* Errors: the first one of a run stays in its context; at the end it becomes the calling thread's last error. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime.h"

static _Thread_local char last_error[RD_MESSAGE];

const char *roundel_last_error(void) { return last_error; }

int rd_whole_characters(const char *text, int most) {
  int length = 0;
  while (length < most && text[length]) length++;
  if (!text[length]) return length;
  while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80) length--;
  return length;
}

/* Cuts a message that fills its memory behind a whole character. */
static void end_whole(char *text, int capacity) { text[rd_whole_characters(text, capacity - 4)] = '\0'; }

int rd_set_error(int status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(last_error, sizeof last_error, format, args);
  end_whole(last_error, sizeof last_error);
  va_end(args);
  return status;
}

int rd_context_error(Context *ctx, int status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  rd_lock(&ctx->lock);
  if (!ctx->shared.status) {
    vsnprintf(ctx->message, sizeof ctx->message, format, args);
    end_whole(ctx->message, sizeof ctx->message);
    __atomic_store_n(&ctx->shared.status, status, __ATOMIC_RELAXED); /* other threads look at it */
  }
  status = ctx->shared.status;
  rd_unlock(&ctx->lock);
  va_end(args);
  return status;
}

int rd_publish_error(Context *ctx) {
  snprintf(last_error, sizeof last_error, "%s", ctx->message);
  return ctx->shared.status;
}

int32_t rd_fail(RdContext *ctx, const char *message) {
  return rd_context_error((Context *)ctx, RD_RUNTIME_ERROR, "%s", message);
}

int32_t rd_failf(RdContext *ctx, const char *format, int32_t nargs, const int64_t *args) {
  char text[RD_MESSAGE];
  size_t used = 0;
  for (const char *at = format; *at && used + 1 < sizeof text;) {
    int number = at[0] == '{' && at[1] >= '0' && at[1] <= '9' && at[2] == '}' ? at[1] - '0' : nargs;
    if (number < nargs) {
      int written = snprintf(text + used, sizeof text - used, "%lld", (long long)args[number]);
      used += (size_t)written < sizeof text - used ? (size_t)written : sizeof text - used - 1;
      at += 3;
    } else {
      text[used++] = *at++;
    }
  }
  text[used] = '\0';
  return rd_fail(ctx, text);
}
