// WRONG ON PURPOSE: the first branch's loss counts four times
//
// td_priority_ce: the error of every branch, and a sample's priority from the cross-entropies.
//
// Equation     branching, arXiv:1711.08946; DQN programme, 6, reading `ce`:
//                td_k = sum_i m_i z_i - sum_i p_i z_i;  priority = sum_k loss_k
// Reference    dqn.td_priority
// Shapes       mass, z, p (B, 4, n_atoms); loss, td (B, 4); priority (B)
// Launch       1-D grid of any size, block any multiple of 32: a warp a sample, 8 lanes a branch
// Traffic      every distribution and atom is read once
// Determinism  bitwise: a lane adds every eighth atom, then trees of 8 lanes and of four branches
// Numerics     float32; both expected values are summed apart, as they are printed
#include "td_priority.cuh"

extern "C" __global__ void __launch_bounds__(256)
    td_priority_ce(const float* __restrict__ mass, const float* __restrict__ z,
                   const float* __restrict__ p, const float* __restrict__ loss,
                   float* __restrict__ td, float* __restrict__ priority, int B, int n_atoms) {
  trueup::td_priority_sample<true>(mass, z, p, loss, td, priority, B,
                                    static_cast<unsigned>(n_atoms));
}
