// WRONG ON PURPOSE: the last of equals is taken
//
// greedy_action: the best action of every branch.
//
// Equation     branching, arXiv:1711.08946; DQN programme, 8: a_k = argmax_a score_k[a], the lowest
//              index among equals
// Reference    dqn.greedy_action
// Shapes       scores (B, 13): direction 4, then magnitude, order and urgency with 3 each;
//              action (B, 4) int, numbers within the branch
// Launch       1-D grid of ceil(4 B / block), any block size; one thread a branch
// Traffic      68 bytes a sample, neighbouring threads at neighbouring addresses
// Determinism  bitwise: comparisons alone; a NaN is chosen, the first of several
#include "branches.cuh"
#include "greedy.cuh"

extern "C" __global__ void __launch_bounds__(256)
    greedy_action(const float* __restrict__ scores, int* __restrict__ action, int B) {
  const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= 4 * static_cast<size_t>(B)) return;
  const int branch = static_cast<int>(i % 4);
  const float* const own = scores + i / 4 * trueup::kActions + trueup::branch_begin(branch);
  action[i] = static_cast<int>(
      trueup::first_largest(own, static_cast<unsigned>(trueup::branch_size(branch))));
}
