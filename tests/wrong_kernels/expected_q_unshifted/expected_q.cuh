// expected_q.cuh: expected values of rows of atoms, evenly spaced or on given positions.
#pragma once
#include "atoms.cuh"

namespace trueup {

template <bool kPositions>
__device__ __forceinline__ void expected_q_rows(
    const float* __restrict__ logits, const float* __restrict__ support,
    const float* __restrict__ positions, const float* __restrict__ shift, float* __restrict__ q,
    int* __restrict__ invalid, size_t rows, unsigned n) {
  const unsigned lane = threadIdx.x % kGroup;
  const size_t stride = static_cast<size_t>(gridDim.x) * (blockDim.x / kGroup);
  // Rows by the warp's first: all its lanes go round together.
  const size_t warp_first = threadIdx.x / kWarp * (kWarp / kGroup);
  const unsigned own = threadIdx.x % kWarp / kGroup;
  for (size_t base = static_cast<size_t>(blockIdx.x) * (blockDim.x / kGroup) + warp_first;
       base < rows; base += stride) {
    const bool live = base + own < rows;
    const size_t r = live ? base + own : base;
    const float* const row = logits + r * n;
    float largest = -infinity();
    for (unsigned i = lane; i < n; i += kGroup) largest = fmaxf(largest, row[i]);
    largest = group_max(largest);
    float total = 0.0f;
    float moment = 0.0f;
    for (unsigned i = lane; i < n; i += kGroup) {
      const float grown = expf(row[i] - largest);
      total += grown;
      moment = fmaf(grown, kPositions ? positions[i] : static_cast<float>(i), moment);
    }
    total = group_sum(total);
    moment = group_sum(moment);
    if (!live || lane != 0) continue;
    const Support on = read_support(support + 3 * r, static_cast<float>(n - 1));
    const float first = on.low;
    const float scale = kPositions ? on.span : on.step;
    q[r] = on.valid ? fmaf(scale, moment / total, first) : first;
    invalid[r] = on.valid ? 0 : 1;
  }
}

}  // namespace trueup
