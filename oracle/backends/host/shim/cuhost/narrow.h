// The 16-bit floating-point formats: one template for fp16 and bf16.
#pragma once
#include <math.h>
#include <string.h>
#include <type_traits>

#include "atomics.h"
#include "launch.h"
#include "rounding.h"

namespace cuhost {

struct HalfFormat {
  static constexpr int mantissa = 10, least_exponent = -14;
  static constexpr unsigned short infinity = 0x7c00;
  static constexpr int tag = 2;
};
struct BrainFormat {
  static constexpr int mantissa = 7, least_exponent = -126;
  static constexpr unsigned short infinity = 0x7f80;
  static constexpr int tag = -2;
};
constexpr unsigned short CANONICAL_NAN = 0x7fff;

// Any double, in one rounding.
template <class F> unsigned short encode(double x, Rounding rounding) {
  const unsigned short sign = signbit(x) ? 0x8000 : 0;
  if (isnan(x)) return CANONICAL_NAN;
  const double size = fabs(x);
  if (isinf(x)) return sign | F::infinity;
  if (size == 0.0) return sign;
  const int exponent = ilogb(size) < F::least_exponent ? F::least_exponent : ilogb(size);
  const double steps = scalbn(size, F::mantissa - exponent), whole = floor(steps);
  const double rest = steps - whole;
  unsigned count = unsigned(whole);
  if (rounding == NEAREST ? rest > 0.5 || (rest == 0.5 && (count & 1))
                          : rest > 0.0 && rounding == (sign ? DOWN : UP))
    ++count;
  const unsigned bits = (unsigned(exponent - F::least_exponent) << F::mantissa) + count;
  if (bits < F::infinity) return sign | (unsigned short)bits;
  const bool grows = rounding == NEAREST || rounding == (sign ? DOWN : UP);
  return sign | (unsigned short)(grows ? F::infinity : F::infinity - 1);
}

// A float to nearest even: the common case, in integer steps.
inline unsigned short encode_nearest(float x, HalfFormat) {
  unsigned u = bit_cast<unsigned>(x);
  const unsigned short sign = u >> 16 & 0x8000;
  u &= 0x7fffffffu;
  if (u > 0x7f800000u) return CANONICAL_NAN;
  if (u >= 0x47800000u) return sign | HalfFormat::infinity;
  if (u < 0x38800000u)  // below the normal range: adding 0.5 rounds at the right place
    return sign | (unsigned short)(bit_cast<unsigned>(bit_cast<float>(u) + 0.5f) - 0x3f000000u);
  u += 0xfffu + (u >> 13 & 1);
  return sign | (unsigned short)((u - 0x38000000u) >> 13);
}
inline unsigned short encode_nearest(float x, BrainFormat) {
  const unsigned u = bit_cast<unsigned>(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) return CANONICAL_NAN;
  return (unsigned short)((u + 0x7fffu + (u >> 16 & 1)) >> 16);
}

inline float decode(unsigned short bits, BrainFormat) {
  return bit_cast<float>(unsigned(bits) << 16);
}
inline float decode(unsigned short bits, HalfFormat) {
  const unsigned sign = unsigned(bits & 0x8000) << 16, size = unsigned(bits & 0x7fff) << 13;
  if (size >= 0x0f800000u) return bit_cast<float>(sign | size | 0x7f800000u);
  return bit_cast<float>(sign | bit_cast<unsigned>(bit_cast<float>(size) * 0x1p112f));
}

// a * b + c rounded to odd in double, which a second rounding to 16 bits cannot spoil.
inline double multiply_add_odd(double a, double b, double c) {
  const double product = a * b, sum = product + c;  // the product of two 16-bit floats is exact
  const double part = sum - product, lost = (product - (sum - part)) + (c - part);
  if (lost == 0.0 || !isfinite(sum) || (bit_cast<unsigned long long>(sum) & 1)) return sum;
  return nextafter(sum, lost > 0.0 ? double(INFINITY) : -double(INFINITY));
}

template <class F> struct Narrow {
  unsigned short bits;

  Narrow() = default;
  Narrow(float x) : bits(encode_nearest(x, F{})) {}
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  Narrow(T x) : bits(encode<F>(double(x), NEAREST)) {}
  static Narrow from_bits(unsigned short bits) {
    Narrow out;
    out.bits = bits;
    return out;
  }
  static Narrow rounded(double x, Rounding rounding) { return from_bits(encode<F>(x, rounding)); }
  operator float() const { return decode(bits, F{}); }
  Narrow& operator=(const Narrow&) = default;
  Narrow(const Narrow&) = default;

  friend Narrow operator+(Narrow a, Narrow b) { return Narrow(float(a) + float(b)); }
  friend Narrow operator-(Narrow a, Narrow b) { return Narrow(float(a) - float(b)); }
  friend Narrow operator*(Narrow a, Narrow b) { return Narrow(float(a) * float(b)); }
  friend Narrow operator/(Narrow a, Narrow b) { return Narrow(float(a) / float(b)); }
  friend Narrow operator+(Narrow a) { return a; }
  friend Narrow operator-(Narrow a) { return from_bits(a.bits ^ 0x8000); }
  Narrow& operator+=(Narrow b) { return *this = *this + b; }
  Narrow& operator-=(Narrow b) { return *this = *this - b; }
  Narrow& operator*=(Narrow b) { return *this = *this * b; }
  Narrow& operator/=(Narrow b) { return *this = *this / b; }
  friend bool operator==(Narrow a, Narrow b) { return float(a) == float(b); }
  friend bool operator!=(Narrow a, Narrow b) { return float(a) != float(b); }
  friend bool operator<(Narrow a, Narrow b) { return float(a) < float(b); }
  friend bool operator<=(Narrow a, Narrow b) { return float(a) <= float(b); }
  friend bool operator>(Narrow a, Narrow b) { return float(a) > float(b); }
  friend bool operator>=(Narrow a, Narrow b) { return float(a) >= float(b); }

#define CUHOST_BINARY(NAME, EXPRESSION)                                                         \
  friend Narrow NAME(Narrow a, Narrow b) { return EXPRESSION; }                                 \
  friend Narrow NAME##_rn(Narrow a, Narrow b) { return EXPRESSION; }                            \
  friend Narrow NAME##_sat(Narrow a, Narrow b) { return Narrow(__saturatef(float(EXPRESSION))); }
  CUHOST_BINARY(__hadd, a + b)
  CUHOST_BINARY(__hsub, a - b)
  CUHOST_BINARY(__hmul, a * b)
#undef CUHOST_BINARY
  friend Narrow __hdiv(Narrow a, Narrow b) { return a / b; }
  friend Narrow __hneg(Narrow a) { return -a; }
  friend Narrow __habs(Narrow a) { return from_bits(a.bits & 0x7fff); }
  friend Narrow __hfma(Narrow a, Narrow b, Narrow c) {
    return rounded(multiply_add_odd(double(float(a)), double(float(b)), double(float(c))), NEAREST);
  }
  friend Narrow __hfma_sat(Narrow a, Narrow b, Narrow c) {
    return Narrow(__saturatef(float(__hfma(a, b, c))));
  }
  friend Narrow __hfma_relu(Narrow a, Narrow b, Narrow c) {
    const Narrow r = __hfma(a, b, c);
    return float(r) < 0.0f ? Narrow(0.0f) : r;
  }

#define CUHOST_COMPARE(NAME, OP)                                                                \
  friend bool NAME(Narrow a, Narrow b) { return float(a) OP float(b); }                         \
  friend bool NAME##u(Narrow a, Narrow b) {                                                     \
    return isnan(float(a)) || isnan(float(b)) || float(a) OP float(b);                          \
  }
  CUHOST_COMPARE(__heq, ==)
  CUHOST_COMPARE(__hne, !=)
  CUHOST_COMPARE(__hlt, <)
  CUHOST_COMPARE(__hle, <=)
  CUHOST_COMPARE(__hgt, >)
  CUHOST_COMPARE(__hge, >=)
#undef CUHOST_COMPARE
  friend bool __hisnan(Narrow a) { return isnan(float(a)); }
  friend int __hisinf(Narrow a) { return isinf(float(a)) ? (a.bits & 0x8000 ? -1 : 1) : 0; }

  // The larger one; of a number and a NaN the number; +0 is larger than -0.
  friend Narrow __hmax(Narrow a, Narrow b) {
    if (__hisnan(a) || __hisnan(b)) return __hisnan(a) ? (__hisnan(b) ? quiet() : b) : a;
    return float(a) > float(b) || (float(a) == float(b) && !(a.bits & 0x8000)) ? a : b;
  }
  friend Narrow __hmin(Narrow a, Narrow b) {
    if (__hisnan(a) || __hisnan(b)) return __hisnan(a) ? (__hisnan(b) ? quiet() : b) : a;
    return float(a) < float(b) || (float(a) == float(b) && (a.bits & 0x8000)) ? a : b;
  }
  friend Narrow __hmax_nan(Narrow a, Narrow b) {
    return __hisnan(a) || __hisnan(b) ? quiet() : __hmax(a, b);
  }
  friend Narrow __hmin_nan(Narrow a, Narrow b) {
    return __hisnan(a) || __hisnan(b) ? quiet() : __hmin(a, b);
  }
  static Narrow quiet() { return from_bits(CANONICAL_NAN); }

#define CUHOST_UNARY(NAME, EXPRESSION)                                                          \
  friend Narrow NAME(Narrow a) {                                                                \
    const double x = double(float(a));                                                          \
    return rounded(EXPRESSION, NEAREST);                                                        \
  }
  CUHOST_UNARY(hexp, exp(x))
  CUHOST_UNARY(hexp2, exp2(x))
  CUHOST_UNARY(hexp10, pow(10.0, x))
  CUHOST_UNARY(hlog, log(x))
  CUHOST_UNARY(hlog2, log2(x))
  CUHOST_UNARY(hlog10, log10(x))
  CUHOST_UNARY(hsqrt, sqrt(x))
  CUHOST_UNARY(hrsqrt, 1.0 / sqrt(x))
  CUHOST_UNARY(hrcp, 1.0 / x)
  CUHOST_UNARY(hsin, sin(x))
  CUHOST_UNARY(hcos, cos(x))
  CUHOST_UNARY(htanh, tanh(x))
  CUHOST_UNARY(hceil, ceil(x))
  CUHOST_UNARY(hfloor, floor(x))
  CUHOST_UNARY(hrint, nearbyint(x))
  CUHOST_UNARY(htrunc, trunc(x))
#undef CUHOST_UNARY

  friend Narrow atomicAdd(Narrow* address, Narrow value) {
    return atomic_update(address, [=](Narrow old) { return old + value; });
  }
};

template <class F> struct floating<Narrow<F>> { static constexpr int bytes = F::tag; };

}  // namespace cuhost
