// The vector types and built-in variables of CUDA C++.
#pragma once

#define CUHOST_VECTOR(NAME, T, A2, A4)                                                          \
  struct NAME##1 { T x; };                                                                      \
  struct alignas(A2) NAME##2 { T x, y; };                                                       \
  struct NAME##3 { T x, y, z; };                                                                \
  struct alignas(A4) NAME##4 { T x, y, z, w; };                                                 \
  constexpr NAME##1 make_##NAME##1(T x) { return {x}; }                                         \
  constexpr NAME##2 make_##NAME##2(T x, T y) { return {x, y}; }                                 \
  constexpr NAME##3 make_##NAME##3(T x, T y, T z) { return {x, y, z}; }                         \
  constexpr NAME##4 make_##NAME##4(T x, T y, T z, T w) { return {x, y, z, w}; }

CUHOST_VECTOR(char, signed char, 2, 4)
CUHOST_VECTOR(uchar, unsigned char, 2, 4)
CUHOST_VECTOR(short, short, 4, 8)
CUHOST_VECTOR(ushort, unsigned short, 4, 8)
CUHOST_VECTOR(int, int, 8, 16)
CUHOST_VECTOR(uint, unsigned int, 8, 16)
CUHOST_VECTOR(long, long, 16, 16)
CUHOST_VECTOR(ulong, unsigned long, 16, 16)
CUHOST_VECTOR(longlong, long long, 16, 16)
CUHOST_VECTOR(ulonglong, unsigned long long, 16, 16)
CUHOST_VECTOR(float, float, 8, 16)
CUHOST_VECTOR(double, double, 16, 16)
#undef CUHOST_VECTOR

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};

// Set by the scheduler before a thread runs on; not const, or the compiler would keep old values
// across a barrier.
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
constexpr int warpSize = 32;
