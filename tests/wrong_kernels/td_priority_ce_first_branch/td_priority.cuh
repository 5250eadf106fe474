// td_priority.cuh: the error of every branch and the priority of a sample, a warp each.
#pragma once
#include "atoms.cuh"

namespace trueup {

// The sum over the four groups of a warp, to every lane.
__device__ __forceinline__ float groups_sum(float value) {
  value += __shfl_xor_sync(kWholeWarp, value, kGroup);
  value += __shfl_xor_sync(kWholeWarp, value, 2 * kGroup);
  return value;
}

// Four branches of 8 lanes are one warp. kOfLosses: the priority is the sum of the losses.
template <bool kOfLosses>
__device__ __forceinline__ void td_priority_sample(
    const float* __restrict__ mass, const float* __restrict__ z, const float* __restrict__ p,
    const float* __restrict__ loss, float* __restrict__ td, float* __restrict__ priority, int B,
    unsigned n) {
  const size_t stride = static_cast<size_t>(gridDim.x) * (blockDim.x / kWarp);
  const unsigned lane = threadIdx.x % kGroup;
  const unsigned branch = threadIdx.x % kWarp / kGroup;
  for (size_t b = static_cast<size_t>(blockIdx.x) * (blockDim.x / kWarp) + threadIdx.x / kWarp;
       b < static_cast<size_t>(B); b += stride) {
    const size_t row = 4 * b + branch;
    float wanted = 0.0f;
    float given = 0.0f;
    for (unsigned i = lane; i < n; i += kGroup) {
      const size_t at = row * n + i;
      const float atom = load<Reuse::kOnce>(z + at);
      wanted = fmaf(load<Reuse::kOnce>(mass + at), atom, wanted);
      given = fmaf(load<Reuse::kOnce>(p + at), atom, given);
    }
    const float error = group_sum(wanted) - group_sum(given);
    const float sum = groups_sum(kOfLosses ? loss[4 * b] : fabsf(error));
    if (lane == 0) td[row] = error;
    if (threadIdx.x % kWarp == 0) priority[b] = sum;
  }
}

}  // namespace trueup
