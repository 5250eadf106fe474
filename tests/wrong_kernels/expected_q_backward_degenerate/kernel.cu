// WRONG ON PURPOSE: a support that is none has a gradient at its logits
//
// expected_q_backward: gradient of a distributional head's expected values at its logits.
//
// Equation     C51, arXiv:1707.06887, on a support for every row:
//                d_logits_i = d_q p_i (z_i - Q) = d_q delta_z p_i (i - sum_j j p_j),  d_shift = d_q
// Reference    dqn.expected_q_backward
// Shapes       d_q, d_shift (B, n_actions); logits, d_logits (B, n_actions, n_atoms); support
//              (B, n_actions, 3)
// Launch       1-D grid of any size, block any multiple of 32: 8 lanes a row
// Traffic      logits are read three times, after the first from L1; d_logits is written once
// Degenerate   a support that is none has no gradient at its logits; d_shift is d_q all the same
// Determinism  bitwise: a lane adds every eighth atom, then a tree of 8 lanes; no atomics
// Numerics     float32; distances from Q are counted in atoms, where v_min does not cancel
#include "atoms.cuh"

extern "C" __global__ void __launch_bounds__(256)
    expected_q_backward(const float* __restrict__ d_q, const float* __restrict__ logits,
                        const float* __restrict__ support, float* __restrict__ d_logits,
                        float* __restrict__ d_shift, int B, int n_actions, int n_atoms) {
  using trueup::kGroup;
  using trueup::kWarp;
  const unsigned n = static_cast<unsigned>(n_atoms);
  const unsigned lane = threadIdx.x % kGroup;
  const unsigned own = threadIdx.x % kWarp / kGroup;
  const size_t rows = static_cast<size_t>(B) * n_actions;
  const size_t stride = static_cast<size_t>(gridDim.x) * (blockDim.x / kGroup);
  // Rows by the warp's first: all its lanes go round together.
  for (size_t base = static_cast<size_t>(blockIdx.x) * (blockDim.x / kGroup) +
                     threadIdx.x / kWarp * (kWarp / kGroup);
       base < rows; base += stride) {
    const bool live = base + own < rows;
    const size_t r = live ? base + own : base;
    const float* const row = logits + r * n;
    float largest = -trueup::infinity();
    for (unsigned i = lane; i < n; i += kGroup) largest = fmaxf(largest, row[i]);
    largest = trueup::group_max(largest);
    float total = 0.0f;
    float moment = 0.0f;
    for (unsigned i = lane; i < n; i += kGroup) {
      const float grown = expf(row[i] - largest);
      total += grown;
      moment = fmaf(grown, static_cast<float>(i), moment);
    }
    total = trueup::group_sum(total);
    const float centre = trueup::group_sum(moment) / total;
    if (!live) continue;
    const trueup::Support on = trueup::read_support(support + 3 * r, static_cast<float>(n - 1));
    const float upstream = d_q[r];
    for (unsigned i = lane; i < n; i += kGroup) {
      const float p = expf(row[i] - largest) / total;
      const float away = (static_cast<float>(i) - centre) * on.step;
      d_logits[r * n + i] = upstream * (p * away);
    }
    if (lane == 0) d_shift[r] = upstream;
  }
}
