// WRONG ON PURPOSE: eps is added to the raised priority
//
// priorities: what a leaf of the replay tree holds, from the errors of four branches.
//
// Equation     DQN programme, prioritised replay: leaf = (sum_k |td_k| + eps)^alpha
// Reference    dqn.priorities
// Shapes       td (B, 4) row-major; leaf (B); alpha, eps by value
// Launch       1-D grid of ceil(B / block), any block size; one thread a transition
// Traffic      20 bytes a transition
// Determinism  bitwise: no transition sees another
// Numerics     float32; magnitudes are added in the order of the branches; raised once
#include "common.cuh"

extern "C" __global__ void priorities(const float* __restrict__ td, float* __restrict__ leaf,
                                      float alpha, float eps, int B) {
  const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= static_cast<size_t>(B)) return;
  float4 error;
  if (trueup::aligned16(td)) {
    error = reinterpret_cast<const float4*>(td)[i];
  } else {
    error = {td[4 * i], td[4 * i + 1], td[4 * i + 2], td[4 * i + 3]};
  }
  const float sum = ((fabsf(error.x) + fabsf(error.y)) + fabsf(error.z)) + fabsf(error.w);
  leaf[i] = powf(sum, alpha) + eps;
}
