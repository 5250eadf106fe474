// WRONG ON PURPOSE: the expected value of atoms without their shift
//
// expected_q_positions: expected value on unevenly spaced atoms that are shifted.
//
// Equation     C51, arXiv:1707.06887, on a support for every row:
//                Q = v_min + shift + (v_max - v_min) (sum_i positions_i e_i) / (sum_i e_i)
// Reference    dqn.expected_q
// Shapes       logits (B, n_actions, n_atoms); support (B, n_actions, 3); positions (n_atoms);
//              shift, q, invalid (B, n_actions)
// Launch       as expected_q
// Determinism  bitwise: a lane adds every eighth atom, then a tree of 8 lanes; no atomics
// Numerics     float32; a shift of 0 is skipped
#include "expected_q.cuh"

extern "C" __global__ void __launch_bounds__(256)
    expected_q_positions(const float* __restrict__ logits, const float* __restrict__ support,
                         const float* __restrict__ positions, const float* __restrict__ shift,
                         float* __restrict__ q, int* __restrict__ invalid, int B, int n_actions,
                         int n_atoms) {
  trueup::expected_q_rows<true>(logits, support, positions, shift, q, invalid,
                                static_cast<size_t>(B) * n_actions,
                                static_cast<unsigned>(n_atoms));
}
