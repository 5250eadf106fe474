// WRONG ON PURPOSE: the sum begins at 0, as printed, where 1 was declared
//
// cosine_embedding: the embedding of quantile levels by cosines.
//
// Equation     IQN, arXiv:1806.06923, Eq. 4, the sum from 1 (reading `from_1`):
//                phi_j(tau) = ReLU(sum_{i=1}^{n_cos} cos(pi i tau) w_ij + b_j)
// Reference    dqn.cosine_embedding
// Shapes       tau (n); weight (n_cos, D) row-major; bias (D); phi (n, D)
// Launch       grid (ceil(D / 128), ceil(n / 8)), 128 threads: 8 levels by 128 columns a block
// Traffic      a block reads its columns of weight once for all of its levels, forms each cosine
//              once, and writes phi once
// Determinism  bitwise: a thread adds the cosines in order; no atomics
// Numerics     float32; cospif reduces its argument exactly, so pi is never rounded; NaN stays
#include "common.cuh"

namespace {

constexpr unsigned kColumns = 128, kLevels = 8, kOrders = 32;  // cosines in shared memory at once

}  // namespace

extern "C" __global__ void __launch_bounds__(kColumns)
    cosine_embedding(const float* __restrict__ tau, const float* __restrict__ weight,
                     const float* __restrict__ bias, float* __restrict__ phi, int n, int n_cos,
                     int D) {
  __shared__ __align__(16) float wave[kOrders][kLevels];
  const unsigned levels = n;
  const unsigned orders = n_cos;
  const unsigned width = D;
  const unsigned j = blockIdx.x * kColumns + threadIdx.x;
  const unsigned first = blockIdx.y * kLevels;
  float sum[kLevels] = {};
  for (unsigned from = 0; from < orders; from += kOrders) {
    const unsigned here = min(kOrders, orders - from);
    __syncthreads();  // the cosines before have been read
    for (unsigned e = threadIdx.x; e < kOrders * kLevels; e += kColumns) {
      const unsigned level = first + e % kLevels;
      const float order = static_cast<float>(from + e / kLevels);
      wave[e / kLevels][e % kLevels] = level < levels ? cospif(order * tau[level]) : 0.0f;
    }
    __syncthreads();
    if (j >= width) continue;
    for (unsigned i = 0; i < here; ++i) {
      const float w = weight[static_cast<size_t>(from + i) * width + j];
#pragma unroll
      for (unsigned l = 0; l < kLevels; ++l) sum[l] = fmaf(wave[i][l], w, sum[l]);
    }
  }
  if (j >= width) return;
#pragma unroll
  for (unsigned l = 0; l < kLevels; ++l) {
    const float mixed = sum[l] + bias[j];
    if (first + l < levels) {
      phi[static_cast<size_t>(first + l) * width + j] = mixed < 0.0f ? 0.0f : mixed;
    }
  }
}
