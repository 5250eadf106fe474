// epsilon_greedy: explore each branch on its own, by a draw of its own.
//
// Equation     DQN programme, 8: a_k = random_k where u_k < epsilon, else greedy_k
// Reference    dqn.epsilon_greedy
// Shapes       greedy, random_action, action (B, 4) int; u (B, 4), in [0, 1); epsilon (1), on the
//              device
// Launch       1-D grid of ceil(B / block), any block size; one thread a sample
// Traffic      64 bytes a sample, in 16-byte accesses where all four arrays are aligned to that
// Determinism  bitwise: a comparison; draws come from outside
#include "common.cuh"

namespace {

__device__ __forceinline__ int chosen(int greedy, int random, float u, float epsilon) {
  return u < epsilon ? random : greedy;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256)
    epsilon_greedy(const int* __restrict__ greedy, const int* __restrict__ random_action,
                   const float* __restrict__ u, const float* __restrict__ epsilon,
                   int* __restrict__ action, int B) {
  const size_t row = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= static_cast<size_t>(B)) return;
  const float rate = *epsilon;
  if (trueup::aligned16(greedy) && trueup::aligned16(random_action) && trueup::aligned16(u) &&
      trueup::aligned16(action)) {
    const int4 g = reinterpret_cast<const int4*>(greedy)[row];
    const int4 r = reinterpret_cast<const int4*>(random_action)[row];
    const float4 d = reinterpret_cast<const float4*>(u)[row];
    reinterpret_cast<int4*>(action)[row] = {
        chosen(g.x, r.x, d.x, rate), chosen(g.y, r.y, d.y, rate), chosen(g.z, r.z, d.z, rate),
        chosen(g.w, r.w, d.w, rate)};
    return;
  }
#pragma unroll
  for (unsigned k = 0; k < 4; ++k) {
    const size_t i = 4 * row + k;
    action[i] = chosen(greedy[i], random_action[i], u[i], rate);
  }
}
