// WRONG ON PURPOSE: a chunk of atoms misses the targets of the cell before its first atom
//
// c51_loss: cross-entropy of the projected C51 target of every branch, with its gradients.
//
// Equation     C51, arXiv:1707.06887, on a support for every row, with shifted atoms:
//                t_j = R + D z'_j clamped to the online atoms, in cell l with share w
//                m_l += p'_j (1 - w), m_{l+1} += p'_j w;   L = -sum m log p
//                d_logits = (weight / B)(1/4)(p - m);   d_shift = sum p'_j (dlog p)_l / delta_z
// Reference    dqn.c51_loss
// Shapes       logits, p_next, d_logits (B, 4, n_atoms); support, next_support (B, 4, 3); returns,
//              discount, shift, next_shift, loss, d_shift, invalid (B, 4); weight (B).
//              discount >= 0; n_atoms from 2 to 180 (the contract admits up to 96)
// Launch       1-D grid of ceil(B / 4), 128 threads: 16 rows a block, 8 lanes a row; 272 n_atoms
//              bytes of shared memory
// Traffic      logits and p_next are read once, d_logits is written once, in 16-byte accesses
// Degenerate   a support that is none puts all mass on atom 0; NaN targets make their row NaN;
//              both set invalid
// Determinism  bitwise: every atom adds its targets in order, a row's sums are trees of 8 lanes;
//              no atomics
// Numerics     float32; logarithms of probabilities as differences of logits; a share from
//              (t - z_0) - l delta_z, times the rounded 1 / delta_z
#include "c51.cuh"

extern "C" __global__ void __launch_bounds__(trueup::kC51Threads)
    c51_loss(const float* __restrict__ logits, const float* __restrict__ p_next,
             const float* __restrict__ support, const float* __restrict__ next_support,
             const float* __restrict__ returns, const float* __restrict__ discount,
             const float* __restrict__ weight, const float* __restrict__ shift,
             const float* __restrict__ next_shift, float* __restrict__ loss,
             float* __restrict__ d_logits, float* __restrict__ d_shift,
             int* __restrict__ invalid, int B, int n_atoms) {
  extern __shared__ __align__(16) float shared[];
  const trueup::C51Arrays arrays = {logits,   p_next, support, next_support, returns,
                                    discount, weight, nullptr, shift,        next_shift,
                                    loss,     d_logits, d_shift, invalid};
  trueup::c51_block<false>(arrays, shared, static_cast<unsigned>(B),
                           static_cast<unsigned>(n_atoms));
}
