// WRONG ON PURPOSE: bootstraps undiscounted
//
// iqn_target: targets of one branch's quantiles.
//
// Equation     DQN programme, 10: T_j = R + D theta'_j(s', a*), a* the best online action by the
//                mean of its quantiles, weighed by their cells; the lowest index among equals
// Reference    dqn.iqn_target
// Shapes       online, target (B, n_actions, 5); returns, discount (B); T (B, 5)
// Launch       1-D grid of ceil(B / block), any block size; one thread a sample
// Traffic      online is read once; of target the best action's quantiles alone
// Determinism  bitwise: a thread weighs its actions in order
// Numerics     float32; a NaN among the means is chosen, as an argmax does
#include "common.cuh"

namespace {

constexpr int kQuantiles = 5;

// Cells between the middles of the levels 0.05, 0.25, 0.5, 0.75, 0.95.
__device__ __forceinline__ float mean_of(const float* __restrict__ theta) {
  const float inner = fmaf(0.225f, theta[3], fmaf(0.25f, theta[2], 0.225f * theta[1]));
  return fmaf(0.15f, theta[4], fmaf(0.15f, theta[0], inner));
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256)
    iqn_target(const float* __restrict__ online, const float* __restrict__ target,
               const float* __restrict__ returns, const float* __restrict__ discount,
               float* __restrict__ T, int B, int n_actions) {
  const size_t row = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= static_cast<size_t>(B)) return;
  const size_t own = row * n_actions * kQuantiles;
  int best = 0;
  float top = mean_of(online + own);
  for (int a = 1; a < n_actions; ++a) {
    const float value = mean_of(online + own + static_cast<size_t>(a) * kQuantiles);
    if (value > top || (value != value && top == top)) {
      top = value;
      best = a;
    }
  }
  const float* const chosen = target + own + static_cast<size_t>(best) * kQuantiles;
#pragma unroll
  for (int j = 0; j < kQuantiles; ++j) {
    T[row * kQuantiles + j] = chosen[j] + returns[row];
  }
}
