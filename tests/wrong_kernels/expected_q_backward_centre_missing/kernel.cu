// WRONG ON PURPOSE: the expected value is not taken off the atoms
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
#include "expected_q_backward.cuh"

extern "C" __global__ void __launch_bounds__(256)
    expected_q_backward(const float* __restrict__ d_q, const float* __restrict__ logits,
                        const float* __restrict__ support, float* __restrict__ d_logits,
                        float* __restrict__ d_shift, int B, int n_actions, int n_atoms) {
  trueup::expected_q_backward_rows<false>(d_q, logits, support, nullptr, d_logits, d_shift,
                                          static_cast<size_t>(B) * n_actions,
                                          static_cast<unsigned>(n_atoms));
}
