// vsn.cuh: variable selection over six feature groups: a row of features in a warp's registers.
//
// A lane holds kHeld columns of a row, of W and of its gradient: four neighbours where 16-byte
// accesses can be, else every 32nd. Rows that are longer are a block's work, column by column.
#pragma once

#include "common.cuh"

namespace trueup {
namespace vsn {

constexpr unsigned kGroups = 6, kSlots = 8;  // a group's sum for each lane of eight
constexpr unsigned kHeld = 4, kShortRow = kHeld * kWarp;
constexpr unsigned kThreads = 256, kWarps = kThreads / kWarp;
constexpr unsigned kOutside = kGroups;

// The group of a column, kOutside where it is in none.
__device__ __forceinline__ unsigned group_of(unsigned column, const int* gb) {
  unsigned group = kOutside;
#pragma unroll
  for (unsigned g = 0; g < kGroups; ++g) {
    const int at = static_cast<int>(column);
    if (at >= gb[g] && at < gb[g + 1] - (g == kGroups - 1)) group = g;
  }
  return group;
}

template <bool kVector>
__device__ __forceinline__ unsigned column_of(unsigned i) {
  const unsigned lane = threadIdx.x % kWarp;
  return kVector ? kHeld * lane + i : lane + i * kWarp;
}

template <bool kVector, Reuse kReuse>
__device__ __forceinline__ void load_row(float (&to)[kHeld], const float* row, unsigned D) {
  const float4 v = load_quad<kVector, kReuse>(row, D, 0, threadIdx.x % kWarp, kWarp);
  to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
}

template <bool kVector>
__device__ __forceinline__ void store_row(float* row, const float (&v)[kHeld], unsigned D) {
  store_quad<kVector>(row, {v[0], v[1], v[2], v[3]}, D, 0, threadIdx.x % kWarp, kWarp);
}

// Six values of each lane, summed over the warp: lane l gets the sum of number slot(l), 0 for the
// two numbers beyond.
__device__ __forceinline__ unsigned slot_of_lane() {
  const unsigned lane = threadIdx.x % kWarp;
  return lane / 16 * 4 + lane / 8 % 2 * 2 + lane / 4 % 2;
}

__device__ __forceinline__ unsigned lane_of_slot(unsigned slot) {
  return slot / 4 * 16 + slot / 2 % 2 * 8 + slot % 2 * 4;
}

__device__ __forceinline__ float sum_six(const float (&v)[kGroups]) {
  const bool upper = threadIdx.x & 16;
  const bool middle = threadIdx.x & 8;
  const bool lower = threadIdx.x & 4;
  float four[4];
#pragma unroll
  for (unsigned i = 0; i < 4; ++i) {
    const float high = i + 4 < kGroups ? v[(i + 4) % kGroups] : 0.0f;
    four[i] = (upper ? high : v[i]) + __shfl_xor_sync(kWholeWarp, upper ? v[i] : high, 16);
  }
  float two[2];
#pragma unroll
  for (unsigned i = 0; i < 2; ++i) {
    two[i] = (middle ? four[i + 2] : four[i]) +
             __shfl_xor_sync(kWholeWarp, middle ? four[i] : four[i + 2], 8);
  }
  float sum = (lower ? two[1] : two[0]) + __shfl_xor_sync(kWholeWarp, lower ? two[0] : two[1], 4);
  sum += __shfl_xor_sync(kWholeWarp, sum, 2);
  return sum + __shfl_xor_sync(kWholeWarp, sum, 1);
}

// Over the eight slots: lanes that differ in bits 4, 8 and 16.
__device__ __forceinline__ float slots_sum(float v) {
#pragma unroll
  for (unsigned offset = 4; offset < kWarp; offset *= 2) {
    v += __shfl_xor_sync(kWholeWarp, v, offset);
  }
  return v;
}

__device__ __forceinline__ float slots_max(float v) {
#pragma unroll
  for (unsigned offset = 4; offset < kWarp; offset *= 2) {
    v = fmaxf(v, __shfl_xor_sync(kWholeWarp, v, offset));
  }
  return v;
}

// Softmax over six slots, one logit in each lane; the two slots beyond repeat the first.
__device__ __forceinline__ float softmax_slot(float logit) {
  const bool real = slot_of_lane() < kGroups;
  const float first = __shfl_sync(kWholeWarp, logit, lane_of_slot(0));
  const float top = slots_max(real ? logit : first);
  const float weight = real ? expf(logit - top) : 0.0f;
  return weight / slots_sum(weight);
}

__device__ __forceinline__ float of_slot(float v, unsigned slot) {
  return __shfl_sync(kWholeWarp, v, lane_of_slot(slot));
}

}  // namespace vsn
}  // namespace trueup
