// WRONG ON PURPOSE: every branch takes the discount of the first
//
// bdq_target: the double-DQN target of every branch, from its own value.
//
// Equation     branching, arXiv:1711.08946; DQN programme, 6, reading `per_branch`:
//                y_k = R_k + D_k Q'_k(s', argmax_a Q_k(s', a)), the lowest index among equals
// Reference    dqn.bdq_target
// Shapes       q_online, q_target (B, 13) at s'; returns, discount, target (B, 4)
// Launch       1-D grid of ceil(4 B / block), any block size; one thread a branch
// Traffic      at most 152 bytes a sample
// Determinism  bitwise: no branch sees another
// Numerics     float32, one fused step
#include "branches.cuh"
#include "greedy.cuh"

extern "C" __global__ void __launch_bounds__(256)
    bdq_target(const float* __restrict__ q_online, const float* __restrict__ q_target,
               const float* __restrict__ returns, const float* __restrict__ discount,
               float* __restrict__ target, int B) {
  const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= 4 * static_cast<size_t>(B)) return;
  const int branch = static_cast<int>(i % 4);
  const size_t own = i / 4 * trueup::kActions + trueup::branch_begin(branch);
  const unsigned best = trueup::first_largest(
      q_online + own, static_cast<unsigned>(trueup::branch_size(branch)));
  target[i] = fmaf(discount[i / 4 * 4], q_target[own + best], returns[i]);
}
