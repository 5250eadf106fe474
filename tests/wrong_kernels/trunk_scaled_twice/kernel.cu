// WRONG ON PURPOSE: the factor of the trunk is applied twice
//
// trunk_gradient: the gradients of the C51 heads and of the shared trunk.
//
// Equation     branching, arXiv:1711.08946 (1 / (branches + 1)); DQN programme, 6, reading `c51`:
//                heads_k = g_k / 4,  trunk = trunk_scale_c51 sum_k heads_k
// Reference    dqn.trunk_gradient
// Shapes       gradients, heads (4, n); trunk (n); trunk_scale_c51 by value, 1/5 as published
// Launch       1-D grid of ceil(n / (4 block)), any block size; a thread takes four neighbours
// Traffic      36 n bytes
// Determinism  bitwise: the four branches are added in order
// Numerics     float32
#include "trunk_gradient.cuh"

extern "C" __global__ void __launch_bounds__(256)
    trunk_gradient(const float* __restrict__ gradients, float trunk_scale_c51,
                   float* __restrict__ heads, float* __restrict__ trunk, int n) {
  trueup::trunk_gradient_of(gradients, 0.25f, trunk_scale_c51 * trunk_scale_c51, heads, trunk,
                            static_cast<size_t>(n));
}
