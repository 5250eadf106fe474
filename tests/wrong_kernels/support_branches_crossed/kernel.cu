// WRONG ON PURPOSE: every branch takes its neighbour's quantiles
//
// atom_support: the support of every sample and branch, from the quantiles of the batch.
//
// Equation     DQN programme, 9: mid = (lo + hi) / 2,
//                half = max(half_min, (1 + margin)(hi - lo) / 2)
//                wide = half (1 + widening std_b);  v_min, v_max = mid -+ wide,
//                delta_z = 2 wide / (n_atoms - 1)
// Reference    dqn.atom_support
// Shapes       quantiles (8): 0.05 of the four branches, then 0.95; q (B, 13); support (B, 4, 3);
//              n_atoms, widening, margin, half_min by value
// Launch       1-D grid of ceil(4 B / block), any block size; one thread a branch of a sample
// Traffic      100 bytes a sample
// Determinism  bitwise: a thread adds its three or four values in order
// Numerics     float32; the population deviation, from values less their mean; NaN stays
#include "branches.cuh"
#include "common.cuh"

namespace {

__device__ __forceinline__ float deviation(const float* __restrict__ values, int size) {
  float sum = 0.0f;
#pragma unroll
  for (int a = 0; a < 4; ++a) sum += a < size ? values[a] : 0.0f;
  const float mean = sum / static_cast<float>(size);
  float squares = 0.0f;
#pragma unroll
  for (int a = 0; a < 4; ++a) {
    const float off = a < size ? values[a] - mean : 0.0f;
    squares = fmaf(off, off, squares);
  }
  return sqrtf(squares / static_cast<float>(size));
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256)
    atom_support(const float* __restrict__ quantiles, const float* __restrict__ q, int n_atoms,
                 float widening, float margin, float half_min, float* __restrict__ support,
                 int B) {
  const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= 4 * static_cast<size_t>(B)) return;
  const int branch = static_cast<int>(i % 4);
  const float low = quantiles[(branch + 1) % 4];
  const float high = quantiles[(branch + 1) % 4 + 4];
  const float half = (1.0f + margin) * (high - low) / 2.0f;
  const float spread = deviation(q + i / 4 * trueup::kActions + trueup::branch_begin(branch),
                                 trueup::branch_size(branch));
  const float wide = (half < half_min ? half_min : half) * fmaf(widening, spread, 1.0f);
  const float middle = (low + high) / 2.0f;
  support[3 * i] = middle - wide;
  support[3 * i + 1] = middle + wide;
  support[3 * i + 2] = 2.0f * wide / static_cast<float>(n_atoms - 1);
}
