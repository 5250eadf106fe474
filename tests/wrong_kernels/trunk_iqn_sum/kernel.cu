// WRONG ON PURPOSE: the trunk receives the sum of the branches
//
// trunk_gradient_iqn: the gradients of the quantile heads and of the shared trunk.
//
// Equation     DQN programme, 10, reading `iqn`: heads_k = g_k,  trunk = trunk_scale_iqn sum_k g_k
// Reference    dqn.trunk_gradient
// Shapes       gradients, heads (4, n); trunk (n); trunk_scale_iqn by value, 1/4
// Launch       1-D grid of ceil(n / (4 block)), any block size; a thread takes four neighbours
// Traffic      36 n bytes
// Determinism  bitwise: the four branches are added in order
// Numerics     float32
#include "trunk_gradient.cuh"

extern "C" __global__ void __launch_bounds__(256)
    trunk_gradient_iqn(const float* __restrict__ gradients, float trunk_scale_iqn,
                       float* __restrict__ heads, float* __restrict__ trunk, int n) {
  trueup::trunk_gradient_of(gradients, 1.0f, 1.0f, heads, trunk,
                            static_cast<size_t>(n));
}
