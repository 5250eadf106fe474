// What the kernels on the internal-state bus share.
//
// The bus is read and written by slot, each word by one plain load or store. Nothing here, and
// nothing in a kernel, passes over the bus as an array: its last two words are the fingerprint's
// bits, which any float operation may change.
#pragma once
#include "isv_layout.h"

namespace trueup {

// By comparisons: fminf and fmaxf would turn a NaN into a bound.
__device__ __forceinline__ float clip(float x, float low, float high) {
  return x < low ? low : (x > high ? high : x);
}

// (1 - alpha) prev + alpha obs, each step rounded by itself: never fused, so every build agrees.
__device__ __forceinline__ float blend(float prev, float obs, float alpha) {
  return __fadd_rn(__fmul_rn(1.0f - alpha, prev), __fmul_rn(alpha, obs));
}

}  // namespace trueup
