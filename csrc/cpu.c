/* SPDX-License-Identifier: Apache-2.0 */
/* Does this CPU have the named features? A file built for a newer one gives an error, not an illegal instruction. */
#include <stdlib.h>
#include <string.h>

#include "os.h"
#include "runtime.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

enum { EAX, EBX, ECX, EDX };
/* Leaf, subleaf, register and bit of cpuid; `state`: the bits of XCR0 by which the operating system saves the registers. */
typedef struct { const char *name; uint32_t leaf, subleaf; uint8_t reg, bit; uint32_t state; } Feature;
#define YMM 0x06
#define ZMM 0xE6
#define TILES 0x60000

static const Feature features_known[] = {
    {"sse3", 1, 0, ECX, 0, 0},           {"pclmul", 1, 0, ECX, 1, 0},          {"ssse3", 1, 0, ECX, 9, 0},
    {"fma", 1, 0, ECX, 12, YMM},         {"cx16", 1, 0, ECX, 13, 0},           {"sse4.1", 1, 0, ECX, 19, 0},
    {"sse4.2", 1, 0, ECX, 20, 0},        {"movbe", 1, 0, ECX, 22, 0},          {"popcnt", 1, 0, ECX, 23, 0},
    {"aes", 1, 0, ECX, 25, 0},           {"avx", 1, 0, ECX, 28, YMM},          {"f16c", 1, 0, ECX, 29, YMM},
    {"bmi", 7, 0, EBX, 3, 0},            {"avx2", 7, 0, EBX, 5, YMM},          {"bmi2", 7, 0, EBX, 8, 0},
    {"avx512f", 7, 0, EBX, 16, ZMM},     {"avx512dq", 7, 0, EBX, 17, ZMM},     {"avx512ifma", 7, 0, EBX, 21, ZMM},
    {"avx512cd", 7, 0, EBX, 28, ZMM},    {"avx512bw", 7, 0, EBX, 30, ZMM},     {"avx512vl", 7, 0, EBX, 31, ZMM},
    {"avx512vbmi", 7, 0, ECX, 1, ZMM},   {"avx512vbmi2", 7, 0, ECX, 6, ZMM},   {"gfni", 7, 0, ECX, 8, 0},
    {"vaes", 7, 0, ECX, 9, YMM},         {"vpclmulqdq", 7, 0, ECX, 10, YMM},   {"avx512vnni", 7, 0, ECX, 11, ZMM},
    {"avx512bitalg", 7, 0, ECX, 12, ZMM}, {"avx512vpopcntdq", 7, 0, ECX, 14, ZMM}, {"avx512vp2intersect", 7, 0, EDX, 8, ZMM},
    {"amx-bf16", 7, 0, EDX, 22, TILES},      {"avx512fp16", 7, 0, EDX, 23, ZMM},   {"amx-tile", 7, 0, EDX, 24, TILES},
    {"amx-int8", 7, 0, EDX, 25, TILES},      {"avxvnni", 7, 1, EAX, 4, YMM},       {"avx512bf16", 7, 1, EAX, 5, ZMM},
    {"avxifma", 7, 1, EAX, 23, YMM},     {"avxvnniint8", 7, 1, EDX, 4, YMM},   {"avxneconvert", 7, 1, EDX, 5, YMM},
    {"sse2", 1, 0, EDX, 26, 0},
    {"lzcnt", 0x80000001u, 0, ECX, 5, 0}, {"xop", 0x80000001u, 0, ECX, 11, YMM}, {"fma4", 0x80000001u, 0, ECX, 16, YMM},
};

static uint64_t saved_state(void) {
  uint32_t r[4] = {0}, low, high;
  if (!__get_cpuid(1, &r[EAX], &r[EBX], &r[ECX], &r[EDX]) || !(r[ECX] >> 27 & 1)) return 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | low;
}

static int has_feature(const char *name) {
  for (size_t i = 0; i < sizeof features_known / sizeof *features_known; i++) {
    const Feature *f = &features_known[i];
    if (strcmp(f->name, name) != 0) continue;
    uint32_t r[4] = {0};
    if (!__get_cpuid_count(f->leaf, f->subleaf, &r[EAX], &r[EBX], &r[ECX], &r[EDX])) return 0;
    if (!(r[f->reg] >> f->bit & 1) || (saved_state() & f->state) != f->state) return 0;
    return f->state != TILES || os_allow_tiles();
  }
  return 1; /* not one that code generation relies on */
}
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#include <sys/prctl.h>

static int has_feature(const char *name) {
  if (strncmp(name, "sve", 3) == 0 && strlen(name) >= 6) { /* sve256: vectors of just so many bits */
    int length = prctl(51 /* PR_SVE_GET_VL */);
    return length >= 0 && (length & 0xFFFF) * 8 == atoi(name + 3);
  }
  static const struct { const char *name; uint32_t bit; int second; } known[] = {
      {"neon", 1, 0},   {"aes", 3, 0},  {"crc", 7, 0}, {"lse", 8, 0},   {"fullfp16", 10, 0}, {"rdm", 12, 0},
      {"dotprod", 20, 0}, {"sve", 22, 0}, {"sve2", 1, 1}, {"i8mm", 13, 1}, {"bf16", 14, 1},
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp(known[i].name, name) == 0)
      return (int)(getauxval(known[i].second ? 26 /* AT_HWCAP2 */ : 16 /* AT_HWCAP */) >> known[i].bit & 1);
  return 1;
}
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>

static int has_feature(const char *name) {
  static const char *const known[][2] = {{"fullfp16", "FP16"}, {"dotprod", "DotProd"}, {"i8mm", "I8MM"}, {"bf16", "BF16"}, {"lse", "LSE"}, {"rdm", "RDM"}};
  if (strncmp(name, "sve", 3) == 0) return 0;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (strcmp(known[i][0], name) != 0) continue;
    char asked[64] = "hw.optional.arm.FEAT_";
    int there = 0;
    size_t size = sizeof there;
    strcat(asked, known[i][1]);
    return !sysctlbyname(asked, &there, &size, NULL, 0) && there;
  }
  return 1;
}
#elif defined(__riscv) && defined(__linux__)
#include <sys/auxv.h>

static int has_feature(const char *name) { /* extensions of one letter have a bit each; others cannot be asked for so */
  return name[1] || name[0] < 'a' || name[0] > 'z' || (getauxval(16 /* AT_HWCAP */) >> (name[0] - 'a') & 1);
}
#elif defined(__arm__) && defined(__linux__)
#include <sys/auxv.h>

static int has_feature(const char *name) {
  static const struct { const char *name; uint32_t bit; } known[] = {{"neon", 12}, {"vfp3", 13}, {"vfp4", 16}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp(known[i].name, name) == 0) return (int)(getauxval(16 /* AT_HWCAP */) >> known[i].bit & 1);
  return 1;
}
#else
static int has_feature(const char *name) {
  (void)name;
  return 1;
}
#endif

const char *cpu_lacks(const char *features, char name[64]) {
  while (features && *features) {
    size_t length = strcspn(features, ",");
    const char *start = *features == '+' ? features + 1 : features;
    size_t count = length - (size_t)(start - features);
    if (count < 64 && *features != '-') {
      memcpy(name, start, count);
      name[count] = '\0';
      if (count && !has_feature(name)) return name;
    }
    features += length + (features[length] == ',');
  }
  return NULL;
}

const char *library_lacks(const RdLibrary *library, const RdFunction **function, char name[64]) {
  for (int32_t i = 0; i < library->num_functions; i++) {
    *function = &library->functions[i];
    if (cpu_lacks((*function)->cpu_features, name)) return name;
  }
  return NULL;
}
