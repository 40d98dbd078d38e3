/* SPDX-License-Identifier: Apache-2.0 */
/* What models call of math.h, for compilers that come without a C library. */
#pragma once
#define NAN __builtin_nanf("")
#define INFINITY __builtin_inff()
/* Instructions of many processors, of which such compilers, told that there is no library, would make calls. */
#define fma(x, y, z) __builtin_fma(x, y, z)
#define fmaf(x, y, z) __builtin_fmaf(x, y, z)
#define sqrt(x) __builtin_sqrt(x)
#define sqrtf(x) __builtin_sqrtf(x)
#define floor(x) __builtin_floor(x)
#define floorf(x) __builtin_floorf(x)
#define ceil(x) __builtin_ceil(x)
#define ceilf(x) __builtin_ceilf(x)
#define trunc(x) __builtin_trunc(x)
#define truncf(x) __builtin_truncf(x)
#define rint(x) __builtin_rint(x)
#define rintf(x) __builtin_rintf(x)
#define fabs(x) __builtin_fabs(x)
#define fabsf(x) __builtin_fabsf(x)
#define copysign(x, y) __builtin_copysign(x, y)
#define copysignf(x, y) __builtin_copysignf(x, y)
double exp(double);
float expf(float);
double exp2(double);
float exp2f(float);
double log(double);
float logf(float);
double log2(double);
float log2f(float);
double log10(double);
float log10f(float);
double log1p(double);
float log1pf(float);
double expm1(double);
float expm1f(float);
double sin(double);
float sinf(float);
double cos(double);
float cosf(float);
double tan(double);
float tanf(float);
double asin(double);
float asinf(float);
double acos(double);
float acosf(float);
double atan(double);
float atanf(float);
double sinh(double);
float sinhf(float);
double cosh(double);
float coshf(float);
double tanh(double);
float tanhf(float);
double asinh(double);
float asinhf(float);
double acosh(double);
float acoshf(float);
double atanh(double);
float atanhf(float);
double erf(double);
float erff(float);
double erfc(double);
float erfcf(float);
double lgamma(double);
float lgammaf(float);
double tgamma(double);
float tgammaf(float);
double pow(double, double);
float powf(float, float);
double atan2(double, double);
float atan2f(float, float);
double fmod(double, double);
float fmodf(float, float);
double hypot(double, double);
float hypotf(float, float);
double nextafter(double, double);
float nextafterf(float, float);
