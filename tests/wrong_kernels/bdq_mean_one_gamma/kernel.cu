// WRONG ON PURPOSE: every branch takes the discount of the first
//
// bdq_target_mean: the double-DQN target of every branch, from the mean over the branches.
//
// Equation     branching, arXiv:1711.08946, reading `mean_target`:
//                y_k = R_k + D_k (1/4) sum_j Q'_j(s', argmax_a Q_j(s', a))
// Reference    dqn.bdq_target
// Shapes       q_online, q_target (B, 13) at s'; returns, discount, target (B, 4)
// Launch       1-D grid of ceil(B / block), any block size; one thread a sample
// Traffic      at most 152 bytes a sample
// Determinism  bitwise: the four values are added in order
// Numerics     float32, one fused step at the end
#include "branches.cuh"
#include "greedy.cuh"

extern "C" __global__ void __launch_bounds__(256)
    bdq_target_mean(const float* __restrict__ q_online, const float* __restrict__ q_target,
                    const float* __restrict__ returns, const float* __restrict__ discount,
                    float* __restrict__ target, int B) {
  const size_t row = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= static_cast<size_t>(B)) return;
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const size_t own = row * trueup::kActions + trueup::branch_begin(k);
    sum += q_target[own + trueup::first_largest(q_online + own,
                                                static_cast<unsigned>(trueup::branch_size(k)))];
  }
  const float mean = 0.25f * sum;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    target[4 * row + k] = fmaf(discount[4 * row], mean, returns[4 * row + k]);
  }
}
