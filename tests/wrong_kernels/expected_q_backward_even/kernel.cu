// WRONG ON PURPOSE: positions are taken as evenly spaced
//
// expected_q_backward_positions: gradient of expected values on given positions at their logits.
//
// Equation     C51, arXiv:1707.06887, atoms at positions x in [0, 1] of a row's support:
//                d_logits_i = d_q p_i (z_i - Q) = d_q (v_max - v_min) p_i (x_i - sum_j x_j p_j),
//                d_shift = d_q; the shift itself moves Q and no gradient
// Reference    dqn.expected_q_backward
// Shapes       d_q, d_shift (B, n_actions); logits, d_logits (B, n_actions, n_atoms); support
//              (B, n_actions, 3); positions (n_atoms)
// Launch       1-D grid of any size, block any multiple of 32: 8 lanes a row
// Traffic      logits are read three times, after the first from L1; d_logits is written once
// Degenerate   a support that is none has no gradient at its logits; d_shift is d_q all the same
// Determinism  bitwise: a lane adds every eighth atom, then a tree of 8 lanes; no atomics
// Numerics     float32; distances from Q are taken in positions, where v_min does not cancel
#include "expected_q_backward.cuh"

extern "C" __global__ void __launch_bounds__(256)
    expected_q_backward_positions(const float* __restrict__ d_q, const float* __restrict__ logits,
                                  const float* __restrict__ support,
                                  const float* __restrict__ positions, float* __restrict__ d_logits,
                                  float* __restrict__ d_shift, int B, int n_actions, int n_atoms) {
  trueup::expected_q_backward_rows<true>(d_q, logits, support, positions, d_logits, d_shift,
                                         static_cast<size_t>(B) * n_actions,
                                         static_cast<unsigned>(n_atoms));
}
