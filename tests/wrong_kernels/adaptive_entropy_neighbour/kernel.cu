// WRONG ON PURPOSE: each branch follows its neighbour's entropy
//
// adaptive_entropy: the weights of the branches' entropy, moved towards the entropy that is wanted.
//
// Equation     DQN programme, scalar transforms; soft actor-critic, arXiv:1812.05905, Eq. 18:
//                log_alpha += lr (H_target - H)
// Reference    dqn.adaptive_entropy
// Shapes       log_alpha (4), updated in place; entropy, target (4); lr by value
// Launch       one block, four threads or more: the weights stay on the device between steps
// Determinism  bitwise: no branch sees another
// Numerics     float32; one fused step
#include "common.cuh"

extern "C" __global__ void adaptive_entropy(float* __restrict__ log_alpha,
                                            const float* __restrict__ entropy,
                                            const float* __restrict__ target, float lr) {
  const unsigned k = threadIdx.x;
  if (k < 4) log_alpha[k] = fmaf(lr, target[k] - entropy[(k + 1) % 4], log_alpha[k]);
}
