// atoms.cuh: what the kernels of distributional heads share: supports, groups of lanes, rows.
//
// A row of atoms belongs to a group of 8 neighbouring lanes, so that a warp holds four rows and
// what a row does once is done four times at once. A group never leaves its warp: shuffles and
// __syncwarp are enough, and every lane of the warp takes part in them, with a row or without.
#pragma once
#include "common.cuh"

namespace trueup {

constexpr unsigned kGroup = 8;  // lanes of a row
constexpr float kSupportSlack = 3.814697265625e-6f;  // 2^-18
constexpr float kLeastStep = 1.17549435e-38f;  // 2^-126: the reciprocal of a lesser one overflows

// NVRTC knows no INFINITY and no NAN.
__device__ __forceinline__ float infinity() { return __int_as_float(0x7f800000); }

__device__ __forceinline__ float not_a_number() { return __int_as_float(0x7fffffff); }

// A row's support, and whether it can be used: v_min < v_max, a normal step that fits, all finite.
struct Support {
  float low;
  float span;  // v_max - v_min
  float step;
  bool valid;
};

__device__ __forceinline__ Support read_support(const float* __restrict__ row, float gaps) {
  const float low = row[0];
  const float high = row[1];
  const float step = row[2];
  const float span = high - low;
  const float off = fabsf(fmaf(step, gaps, -span));
  const bool fits = off <= kSupportSlack * (fabsf(high) + fabsf(low));
  return {low, span, step, high > low && step >= kLeastStep && span < infinity() && fits};
}

// A shift of 0 is skipped: adding +0 would change an atom at -0.
__device__ __forceinline__ float shifted(float atom, float shift) {
  return shift == 0.0f ? atom : atom + shift;
}

__device__ __forceinline__ float group_sum(float value) {
#pragma unroll
  for (unsigned offset = kGroup / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(kWholeWarp, value, offset);
  }
  return value;
}

// The largest; NaN is dropped, and the sum of exponentials that follows has it.
__device__ __forceinline__ float group_max(float value) {
#pragma unroll
  for (unsigned offset = kGroup / 2; offset > 0; offset /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kWholeWarp, value, offset));
  }
  return value;
}

__device__ __forceinline__ bool group_any(bool value) {
  const unsigned lanes = __ballot_sync(kWholeWarp, value);
  const unsigned first = threadIdx.x % kWarp / kGroup * kGroup;
  return (lanes >> first & 0xffu) != 0;
}

// Copies `count` floats, which begin 16-byte aligned in shared memory, by the whole block.
__device__ __forceinline__ void stage(float* __restrict__ to, const float* __restrict__ from,
                                      unsigned count) {
  unsigned first = 0;
  if (aligned16(from)) {
    const unsigned quads = count / 4;
    for (unsigned q = threadIdx.x; q < quads; q += blockDim.x) {
      reinterpret_cast<float4*>(to)[q] =
          load<Reuse::kOnce>(reinterpret_cast<const float4*>(from) + q);
    }
    first = 4 * quads;
  }
  for (unsigned i = first + threadIdx.x; i < count; i += blockDim.x) {
    to[i] = load<Reuse::kOnce>(from + i);
  }
}

// The same the other way.
__device__ __forceinline__ void unstage(float* __restrict__ to, const float* __restrict__ from,
                                        unsigned count) {
  unsigned first = 0;
  if (aligned16(to)) {
    const unsigned quads = count / 4;
    for (unsigned q = threadIdx.x; q < quads; q += blockDim.x) {
      store_once(reinterpret_cast<float4*>(to) + q, reinterpret_cast<const float4*>(from)[q]);
    }
    first = 4 * quads;
  }
  for (unsigned i = first + threadIdx.x; i < count; i += blockDim.x) {
    store_once(to + i, from[i]);
  }
}

}  // namespace trueup
