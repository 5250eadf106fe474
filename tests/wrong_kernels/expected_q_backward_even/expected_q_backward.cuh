// expected_q_backward.cuh: gradients of expected values at rows of logits, on evenly spaced atoms
// or on given positions.
#pragma once
#include "atoms.cuh"

namespace trueup {

template <bool kPositions>
__device__ __forceinline__ void expected_q_backward_rows(
    const float* __restrict__ d_q, const float* __restrict__ logits,
    const float* __restrict__ support, const float* __restrict__ positions,
    float* __restrict__ d_logits, float* __restrict__ d_shift, size_t rows, unsigned n) {
  const unsigned lane = threadIdx.x % kGroup;
  const unsigned own = threadIdx.x % kWarp / kGroup;
  const size_t stride = static_cast<size_t>(gridDim.x) * (blockDim.x / kGroup);
  // Rows by the warp's first: all its lanes go round together.
  for (size_t base = static_cast<size_t>(blockIdx.x) * (blockDim.x / kGroup) +
                     threadIdx.x / kWarp * (kWarp / kGroup);
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
    const float centre = group_sum(moment) / total;
    if (!live) continue;
    const Support on = read_support(support + 3 * r, static_cast<float>(n - 1));
    const float scale = kPositions ? on.span : on.step;
    const float upstream = d_q[r];
    for (unsigned i = lane; i < n; i += kGroup) {
      const float p = expf(row[i] - largest) / total;
      const float place = kPositions ? static_cast<float>(i) / static_cast<float>(n - 1)
                                     : static_cast<float>(i);
      const float away = (place - centre) * scale;
      d_logits[r * n + i] = on.valid ? upstream * (p * away) : 0.0f;
    }
    if (lane == 0) d_shift[r] = upstream;
  }
}

}  // namespace trueup
