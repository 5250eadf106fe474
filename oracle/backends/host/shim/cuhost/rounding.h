// Operations that name their rounding, conversions, and reinterpretation of bits.
#pragma once
#include <math.h>
#include <string.h>

namespace cuhost {

enum Rounding { NEAREST, TO_ZERO, UP, DOWN };

template <class To, class From> inline To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From), "the sizes differ");
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

// The neighbour of the nearest result that the direction asks for; `excess` has the sign of
// (exact - nearest).
inline float directed(float nearest, double excess, Rounding rounding) {
  if (excess == 0.0 || isnan(excess) || isnan(nearest)) return nearest;
  const bool below = excess < 0.0;
  if (below && (rounding == DOWN || (rounding == TO_ZERO && nearest > 0.0f)))
    return nextafterf(nearest, -INFINITY);
  if (!below && (rounding == UP || (rounding == TO_ZERO && nearest < 0.0f)))
    return nextafterf(nearest, INFINITY);
  return nearest;
}

// Opposite terms that cancel give +0, and -0 where the rounding is down.
inline bool cancels_to_minus(double a, double b, Rounding rounding) {
  return rounding == DOWN && a + b == 0.0 && signbit(a) != signbit(b);
}

inline float add(float a, float b, Rounding rounding) {
  if (cancels_to_minus(double(a), double(b), rounding)) return -0.0f;
  const float sum = a + b;
  const double wide = double(a) + double(b), part = wide - double(a);
  const double lost = (double(a) - (wide - part)) + (double(b) - part);  // exactly
  const double difference = wide - double(sum);
  return directed(sum, difference != 0.0 ? difference : lost, rounding);
}
inline float multiply(float a, float b, Rounding rounding) {
  const float product = a * b;
  return directed(product, double(a) * double(b) - double(product), rounding);
}
inline float divide(float a, float b, Rounding rounding) {
  const float quotient = a / b;
  const double rest = fma(-double(quotient), double(b), double(a));
  return directed(quotient, b < 0.0f ? -rest : rest, rounding);
}
inline float square_root(float x, Rounding rounding) {
  const float root = sqrtf(x);
  return directed(root, fma(-double(root), double(root), double(x)), rounding);
}
inline float multiply_add(float a, float b, float c, Rounding rounding) {
  const double product = double(a) * double(b), wide = product + double(c);
  if (cancels_to_minus(product, double(c), rounding)) return -0.0f;
  const float result = fmaf(a, b, c);
  const double part = wide - product;
  const double lost = (product - (wide - part)) + (double(c) - part);
  const double difference = wide - double(result);
  return directed(result, difference != 0.0 ? difference : lost, rounding);
}
inline float narrow(double x, Rounding rounding) {
  const float nearest = float(x);
  return directed(nearest, x - double(nearest), rounding);
}

inline double round_to_integer(double x, Rounding rounding) {
  switch (rounding) {
    case NEAREST: return nearbyint(x);
    case TO_ZERO: return trunc(x);
    case UP: return ceil(x);
    default: return floor(x);
  }
}

// The device's conversion: NaN gives 0, and what is out of range gives the nearest end of it.
template <class T> inline T to_integer(double x, Rounding rounding) {
  constexpr bool is_signed = T(-1) < T(0);
  constexpr int bits = 8 * sizeof(T) - is_signed;
  constexpr T top = is_signed ? T(~(T(1) << (bits - 1) << 1)) : T(-1);
  if (isnan(x)) return 0;
  const double whole = round_to_integer(x, rounding);
  if (whole >= ldexp(1.0, bits)) return top;
  if (whole < (is_signed ? -ldexp(1.0, bits) : 0.0)) return is_signed ? T(-top - 1) : T(0);
  return T(whole);
}

// An integer as a float, where the double between would round first.
template <class T> inline float to_float(T value, Rounding rounding) {
  const float nearest = float(value);
  const long double excess = (long double)value - (long double)nearest;
  return directed(nearest, excess < 0 ? -1.0 : excess > 0 ? 1.0 : 0.0, rounding);
}

}  // namespace cuhost

#define CUHOST_ROUNDED(SUFFIX, MODE)                                                             \
  inline float __fadd_##SUFFIX(float a, float b) { return cuhost::add(a, b, cuhost::MODE); }     \
  inline float __fsub_##SUFFIX(float a, float b) { return cuhost::add(a, -b, cuhost::MODE); }    \
  inline float __fmul_##SUFFIX(float a, float b) { return cuhost::multiply(a, b, cuhost::MODE); } \
  inline float __fdiv_##SUFFIX(float a, float b) { return cuhost::divide(a, b, cuhost::MODE); }  \
  inline float __frcp_##SUFFIX(float x) { return cuhost::divide(1.0f, x, cuhost::MODE); }        \
  inline float __fsqrt_##SUFFIX(float x) { return cuhost::square_root(x, cuhost::MODE); }        \
  inline float __fmaf_##SUFFIX(float a, float b, float c) {                                      \
    return cuhost::multiply_add(a, b, c, cuhost::MODE);                                          \
  }                                                                                              \
  inline float __double2float_##SUFFIX(double x) { return cuhost::narrow(x, cuhost::MODE); }     \
  inline float __int2float_##SUFFIX(int x) { return cuhost::to_float(x, cuhost::MODE); }         \
  inline float __uint2float_##SUFFIX(unsigned x) { return cuhost::to_float(x, cuhost::MODE); }   \
  inline float __ll2float_##SUFFIX(long long x) { return cuhost::to_float(x, cuhost::MODE); }    \
  inline float __ull2float_##SUFFIX(unsigned long long x) {                                      \
    return cuhost::to_float(x, cuhost::MODE);                                                    \
  }                                                                                              \
  CUHOST_TO_INTEGER(SUFFIX, MODE, int, int)                                                      \
  CUHOST_TO_INTEGER(SUFFIX, MODE, uint, unsigned)                                                \
  CUHOST_TO_INTEGER(SUFFIX, MODE, ll, long long)                                                 \
  CUHOST_TO_INTEGER(SUFFIX, MODE, ull, unsigned long long)

#define CUHOST_TO_INTEGER(SUFFIX, MODE, NAME, T)                                                \
  inline T __float2##NAME##_##SUFFIX(float x) {                                                 \
    return cuhost::to_integer<T>(double(x), cuhost::MODE);                                      \
  }                                                                                             \
  inline T __double2##NAME##_##SUFFIX(double x) { return cuhost::to_integer<T>(x, cuhost::MODE); }

CUHOST_ROUNDED(rn, NEAREST)
CUHOST_ROUNDED(rz, TO_ZERO)
CUHOST_ROUNDED(ru, UP)
CUHOST_ROUNDED(rd, DOWN)
#undef CUHOST_ROUNDED
#undef CUHOST_TO_INTEGER

inline float __frsqrt_rn(float x) { return float(1.0 / sqrt(double(x))); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __drcp_rn(double x) { return 1.0 / x; }
inline double __dsqrt_rn(double x) { return sqrt(x); }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
inline double __int2double_rn(int x) { return x; }
inline double __uint2double_rn(unsigned x) { return x; }
inline double __ll2double_rn(long long x) { return double(x); }
inline double __ull2double_rn(unsigned long long x) { return double(x); }

inline float __int_as_float(int x) { return cuhost::bit_cast<float>(x); }
inline int __float_as_int(float x) { return cuhost::bit_cast<int>(x); }
inline float __uint_as_float(unsigned x) { return cuhost::bit_cast<float>(x); }
inline unsigned __float_as_uint(float x) { return cuhost::bit_cast<unsigned>(x); }
inline double __longlong_as_double(long long x) { return cuhost::bit_cast<double>(x); }
inline long long __double_as_longlong(double x) { return cuhost::bit_cast<long long>(x); }
inline int __double2hiint(double x) { return int(cuhost::bit_cast<unsigned long long>(x) >> 32); }
inline int __double2loint(double x) {
  return int(unsigned(cuhost::bit_cast<unsigned long long>(x)));
}
inline double __hiloint2double(int high, int low) {
  return cuhost::bit_cast<double>((unsigned long long)unsigned(high) << 32 | unsigned(low));
}
