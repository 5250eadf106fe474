// WRONG ON PURPOSE: the gradient of the state is written over
//
// atom_shift_gradient: gradient of the weights of the atoms' shift, and of its signal.
//
// Equation     DQN programme, 7.4: with omega_b = (weight_b / B)(1/4)
//                dW[a] = sum_{b: a_b = a} omega_b g_b s_b;   d_state_b += omega_b g_b W[a_b]
// Reference    dqn.atom_shift_gradient
// Shapes       d_shift, action, signal, weight, d_state, d_state_next (B); W, d_W (n_actions);
//              workspace part (blocks of the first launch, n_actions); n_actions up to 64, for each
//              four of which the samples are read once more
// Launch       first: 1-D grid of as many blocks as the workspace has rows, 256 threads; then one
//              warp for each action
// Determinism  bitwise: a thread adds its samples in order, a block and the parts are fixed trees;
//              no atomics
// Numerics     float32
#include "common.cuh"

namespace {

constexpr unsigned kThreads = 256;
constexpr int kParts = 264;  // rows of the workspace at most, as the launch has it
constexpr int kTogether = 4;  // actions summed in one pass over the samples

__device__ __forceinline__ float weighted(const float* __restrict__ d_shift,
                                          const float* __restrict__ weight, size_t b, int B) {
  return weight[b] * (0.25f / static_cast<float>(B)) * d_shift[b];
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256)
    atom_shift_gradient_parts(const float* __restrict__ d_shift, const int* __restrict__ action,
                              const float* __restrict__ signal, const float* __restrict__ weight,
                              const float* __restrict__ W, const float* __restrict__ d_state,
                              float* __restrict__ d_state_next, float* __restrict__ part, int B,
                              int n_actions) {
  __shared__ float slots[2][32];
  const size_t stride = static_cast<size_t>(gridDim.x) * kThreads;
  const size_t begin = static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x;
  for (size_t b = begin; b < static_cast<size_t>(B); b += stride) {
    const float g = weighted(d_shift, weight, b, B);
    d_state_next[b] = g * W[action[b]];
  }
  unsigned turn = 0;
  for (int first = 0; first < n_actions; first += kTogether) {
    float sums[kTogether] = {};
    for (size_t b = begin; b < static_cast<size_t>(B); b += stride) {
      const float term = weighted(d_shift, weight, b, B) * signal[b];
      const int own = action[b] - first;
#pragma unroll
      for (int a = 0; a < kTogether; ++a) {
        if (own == a) sums[a] += term;
      }
    }
#pragma unroll
    for (int a = 0; a < kTogether; ++a, turn ^= 1) {
      const float sum = trueup::block_sum(sums[a], slots[turn]);
      if (threadIdx.x == 0 && first + a < n_actions) {
        part[static_cast<size_t>(blockIdx.x) * n_actions + first + a] = sum;
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(32)
    atom_shift_gradient_sum(const float* __restrict__ part, float* __restrict__ d_W, int B,
                            int n_actions) {
  const int parts = min((B + static_cast<int>(kThreads) - 1) / static_cast<int>(kThreads), kParts);
  float sum = 0.0f;
  for (int row = static_cast<int>(threadIdx.x); row < parts; row += 32) {
    sum += part[static_cast<size_t>(row) * n_actions + blockIdx.x];
  }
  sum = trueup::warp_sum(sum);
  if (threadIdx.x == 0) d_W[blockIdx.x] = sum;
}
