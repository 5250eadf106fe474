// WRONG ON PURPOSE: the slope of the shift divides by delta_z, not by the cell's own width
//
// c51_loss_positions: the C51 loss and its gradients on atoms that are unevenly spaced.
//
// Equation     as c51_loss, with z_i = v_min + positions_i (v_max - v_min) + shift and the width of
//              a cell (positions_{l+1} - positions_l) (v_max - v_min) in place of delta_z
// Reference    dqn.c51_loss
// Shapes       as c51_loss; positions (n_atoms), increasing from 0 to 1
// Launch       as c51_loss
// Ties         z_l <= t < z_{l+1}: the slope of the shift jumps at an atom, and a target on one
//              takes that of the cell above it
// Determinism  bitwise: every atom adds its targets in order; no atomics
// Numerics     float32; a cell by binary search among positions times the range, its width as a
//              difference of positions times the range: atoms far from 0 would cancel
#include "c51.cuh"

extern "C" __global__ void __launch_bounds__(trueup::kC51Threads)
    c51_loss_positions(const float* __restrict__ logits, const float* __restrict__ p_next,
                       const float* __restrict__ support, const float* __restrict__ next_support,
                       const float* __restrict__ returns, const float* __restrict__ discount,
                       const float* __restrict__ weight, const float* __restrict__ positions,
                       const float* __restrict__ shift, const float* __restrict__ next_shift,
                       float* __restrict__ loss, float* __restrict__ d_logits,
                       float* __restrict__ d_shift, int* __restrict__ invalid, int B,
                       int n_atoms) {
  extern __shared__ __align__(16) float shared[];
  const trueup::C51Arrays arrays = {logits,   p_next, support,   next_support, returns,
                                    discount, weight, positions, shift,        next_shift,
                                    loss,     d_logits, d_shift, invalid};
  trueup::c51_block<true>(arrays, shared, static_cast<unsigned>(B),
                          static_cast<unsigned>(n_atoms));
}
