// Two 16-bit floats side by side: __half2 and __nv_bfloat162.
#pragma once
#include "narrow.h"
#include "types.h"

namespace cuhost {

template <class F> struct alignas(4) Pair {
  using N = Narrow<F>;
  N x, y;

  Pair() = default;
  Pair(N x_, N y_) : x(x_), y(y_) {}
  static Pair flags(bool a, bool b) { return {N(a ? 1.0f : 0.0f), N(b ? 1.0f : 0.0f)}; }

  friend Pair operator+(Pair a, Pair b) { return {a.x + b.x, a.y + b.y}; }
  friend Pair operator-(Pair a, Pair b) { return {a.x - b.x, a.y - b.y}; }
  friend Pair operator*(Pair a, Pair b) { return {a.x * b.x, a.y * b.y}; }
  friend Pair operator/(Pair a, Pair b) { return {a.x / b.x, a.y / b.y}; }
  friend Pair operator-(Pair a) { return {-a.x, -a.y}; }
  Pair& operator+=(Pair b) { return *this = *this + b; }
  Pair& operator-=(Pair b) { return *this = *this - b; }
  Pair& operator*=(Pair b) { return *this = *this * b; }
  Pair& operator/=(Pair b) { return *this = *this / b; }
  friend bool operator==(Pair a, Pair b) { return a.x == b.x && a.y == b.y; }
  friend bool operator!=(Pair a, Pair b) { return a.x != b.x || a.y != b.y; }

#define CUHOST_BINARY(NAME, ONE)                                                                \
  friend Pair NAME(Pair a, Pair b) { return {ONE(a.x, b.x), ONE(a.y, b.y)}; }
  CUHOST_BINARY(__hadd2, __hadd)
  CUHOST_BINARY(__hsub2, __hsub)
  CUHOST_BINARY(__hmul2, __hmul)
  CUHOST_BINARY(__hadd2_rn, __hadd)
  CUHOST_BINARY(__hsub2_rn, __hsub)
  CUHOST_BINARY(__hmul2_rn, __hmul)
  CUHOST_BINARY(__hadd2_sat, __hadd_sat)
  CUHOST_BINARY(__hsub2_sat, __hsub_sat)
  CUHOST_BINARY(__hmul2_sat, __hmul_sat)
  CUHOST_BINARY(__h2div, __hdiv)
  CUHOST_BINARY(__hmax2, __hmax)
  CUHOST_BINARY(__hmin2, __hmin)
  CUHOST_BINARY(__hmax2_nan, __hmax_nan)
  CUHOST_BINARY(__hmin2_nan, __hmin_nan)
#undef CUHOST_BINARY
  friend Pair __hfma2(Pair a, Pair b, Pair c) {
    return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
  }
  friend Pair __hfma2_sat(Pair a, Pair b, Pair c) {
    return {__hfma_sat(a.x, b.x, c.x), __hfma_sat(a.y, b.y, c.y)};
  }
  friend Pair __hfma2_relu(Pair a, Pair b, Pair c) {
    return {__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y)};
  }

#define CUHOST_COMPARE(NAME)                                                                    \
  friend Pair __h##NAME##2(Pair a, Pair b) {                                                    \
    return flags(__h##NAME(a.x, b.x), __h##NAME(a.y, b.y));                                     \
  }                                                                                             \
  friend bool __hb##NAME##2(Pair a, Pair b) { return __h##NAME(a.x, b.x) && __h##NAME(a.y, b.y); }
  CUHOST_COMPARE(eq)
  CUHOST_COMPARE(ne)
  CUHOST_COMPARE(lt)
  CUHOST_COMPARE(le)
  CUHOST_COMPARE(gt)
  CUHOST_COMPARE(ge)
#undef CUHOST_COMPARE
  friend Pair __hisnan2(Pair a) { return flags(__hisnan(a.x), __hisnan(a.y)); }

#define CUHOST_UNARY(NAME, ONE)                                                                 \
  friend Pair NAME(Pair a) { return {ONE(a.x), ONE(a.y)}; }
  CUHOST_UNARY(__hneg2, __hneg)
  CUHOST_UNARY(__habs2, __habs)
  CUHOST_UNARY(h2exp, hexp)
  CUHOST_UNARY(h2exp2, hexp2)
  CUHOST_UNARY(h2exp10, hexp10)
  CUHOST_UNARY(h2log, hlog)
  CUHOST_UNARY(h2log2, hlog2)
  CUHOST_UNARY(h2log10, hlog10)
  CUHOST_UNARY(h2sqrt, hsqrt)
  CUHOST_UNARY(h2rsqrt, hrsqrt)
  CUHOST_UNARY(h2rcp, hrcp)
  CUHOST_UNARY(h2sin, hsin)
  CUHOST_UNARY(h2cos, hcos)
  CUHOST_UNARY(h2tanh, htanh)
  CUHOST_UNARY(h2ceil, hceil)
  CUHOST_UNARY(h2floor, hfloor)
  CUHOST_UNARY(h2rint, hrint)
  CUHOST_UNARY(h2trunc, htrunc)
#undef CUHOST_UNARY

  friend float __low2float(Pair a) { return float(a.x); }
  friend float __high2float(Pair a) { return float(a.y); }
  friend Pair __lowhigh2highlow(Pair a) { return {a.y, a.x}; }
  friend Pair atomicAdd(Pair* address, Pair value) {
    return atomic_update(address, [=](Pair old) { return old + value; });
  }
};

}  // namespace cuhost

// The conversions whose names hold the format's: ONE and TWO are its parts of
// them, T1 and T2 the types.
#define CUHOST_NARROW_ROUNDED(ONE, T1, SUFFIX, MODE)                                            \
  inline T1 __float2##ONE##_##SUFFIX(float x) { return T1::rounded(x, cuhost::MODE); }          \
  inline T1 __int2##ONE##_##SUFFIX(int x) { return T1::rounded(x, cuhost::MODE); }              \
  inline T1 __uint2##ONE##_##SUFFIX(unsigned x) { return T1::rounded(x, cuhost::MODE); }        \
  inline T1 __short2##ONE##_##SUFFIX(short x) { return T1::rounded(x, cuhost::MODE); }          \
  inline T1 __ushort2##ONE##_##SUFFIX(unsigned short x) {                                       \
    return T1::rounded(x, cuhost::MODE);                                                        \
  }                                                                                             \
  CUHOST_NARROW_INTEGER(ONE, T1, SUFFIX, MODE, int, int)                                        \
  CUHOST_NARROW_INTEGER(ONE, T1, SUFFIX, MODE, uint, unsigned)                                  \
  CUHOST_NARROW_INTEGER(ONE, T1, SUFFIX, MODE, short, short)                                    \
  CUHOST_NARROW_INTEGER(ONE, T1, SUFFIX, MODE, ushort, unsigned short)                          \
  CUHOST_NARROW_INTEGER(ONE, T1, SUFFIX, MODE, ll, long long)                                   \
  CUHOST_NARROW_INTEGER(ONE, T1, SUFFIX, MODE, ull, unsigned long long)

#define CUHOST_NARROW_INTEGER(ONE, T1, SUFFIX, MODE, NAME, T)                                   \
  inline T __##ONE##2##NAME##_##SUFFIX(T1 x) {                                                  \
    return cuhost::to_integer<T>(double(float(x)), cuhost::MODE);                               \
  }

#define CUHOST_NARROW_NAMES(ONE, TWO, T1, T2)                                                   \
  CUHOST_NARROW_ROUNDED(ONE, T1, rn, NEAREST)                                                   \
  CUHOST_NARROW_ROUNDED(ONE, T1, rz, TO_ZERO)                                                   \
  CUHOST_NARROW_ROUNDED(ONE, T1, ru, UP)                                                        \
  CUHOST_NARROW_ROUNDED(ONE, T1, rd, DOWN)                                                      \
  inline T1 __float2##ONE(float x) { return T1(x); }                                            \
  inline T1 __double2##ONE(double x) { return T1(x); }                                          \
  inline float __##ONE##2float(T1 x) { return float(x); }                                       \
  inline T2 __##ONE##2##TWO(T1 x) { return {x, x}; }                                            \
  inline T2 __float2##TWO##_rn(float x) { return {T1(x), T1(x)}; }                              \
  inline T2 __floats2##TWO##_rn(float x, float y) { return {T1(x), T1(y)}; }                    \
  inline T2 __float22##TWO##_rn(float2 v) { return {T1(v.x), T1(v.y)}; }                        \
  inline float2 __##TWO##2float2(T2 v) { return {float(v.x), float(v.y)}; }                     \
  inline T1 __low2##ONE(T2 v) { return v.x; }                                                   \
  inline T1 __high2##ONE(T2 v) { return v.y; }                                                  \
  inline T2 __low2##TWO(T2 v) { return {v.x, v.x}; }                                            \
  inline T2 __high2##TWO(T2 v) { return {v.y, v.y}; }                                           \
  inline T2 __lows2##TWO(T2 a, T2 b) { return {a.x, b.x}; }                                     \
  inline T2 __highs2##TWO(T2 a, T2 b) { return {a.y, b.y}; }                                    \
  inline T2 __halves2##TWO(T1 x, T1 y) { return {x, y}; }                                       \
  inline T2 make_##TWO(T1 x, T1 y) { return {x, y}; }                                           \
  inline unsigned short __##ONE##_as_ushort(T1 x) { return x.bits; }                            \
  inline short __##ONE##_as_short(T1 x) { return short(x.bits); }                               \
  inline T1 __ushort_as_##ONE(unsigned short bits) { return T1::from_bits(bits); }              \
  inline T1 __short_as_##ONE(short bits) {                                                      \
    return T1::from_bits((unsigned short)bits);                                                 \
  }
