// WRONG ON PURPOSE: atoms in the middle of their cells
//
// expected_q: expected value of every action of a distributional head.
//
// Equation     C51, arXiv:1707.06887, on a support for every row:
//                Q = v_min + delta_z (sum_i i e_i) / (sum_i e_i),  e = exp(logits - max)
// Reference    dqn.expected_q
// Shapes       logits (B, n_actions, n_atoms); support (B, n_actions, 3); q, invalid (B, n_actions)
// Launch       1-D grid of any size, block any multiple of 32: 8 lanes a row
// Traffic      logits are read twice, the second time from L1
// Degenerate   Q = v_min, and invalid is set
// Determinism  bitwise: a lane adds every eighth atom, then a tree of 8 lanes; no atomics
// Numerics     float32; the sum is taken relative to v_min, where it does not cancel
#include "expected_q.cuh"

extern "C" __global__ void __launch_bounds__(256)
    expected_q(const float* __restrict__ logits, const float* __restrict__ support,
               float* __restrict__ q, int* __restrict__ invalid, int B, int n_actions,
               int n_atoms) {
  trueup::expected_q_rows<false>(logits, support, nullptr, nullptr, q, invalid,
                                 static_cast<size_t>(B) * n_actions,
                                 static_cast<unsigned>(n_atoms));
}
