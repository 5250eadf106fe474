// WRONG ON PURPOSE: the deviation is divided by n
//
// sharpe: the Sharpe ratio of a series of returns, by year.
//
// Equation     DQN programme, reward scalars: mean(r) / std(r) sqrt(bars), one degree of freedom
//                taken; 0 where the deviation is at most 1e-5 of the mean
// Reference    dqn.sharpe
// Shapes       returns (n); sharpe (1); bars by value; workspace sum, square (blocks of the first
//              launch)
// Launch       sums, then squares: 256 threads, min(ceil(n / 256), 264) blocks, every block of the
//              second adding up the sums; then one block
// Traffic      returns are read twice
// Determinism  bitwise: fixed trees over a block, parts in a fixed order; no atomics
// Numerics     float32; the deviation from returns less their mean
#include "row_loss.cuh"

namespace {

__device__ __forceinline__ float mean_of(const float* __restrict__ sum, unsigned n, float* slots) {
  return trueup::sum_loss_parts(sum, trueup::loss_blocks(n), slots) / static_cast<float>(n);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(trueup::kLossThreads)
    sharpe_sums(const float* __restrict__ returns, float* __restrict__ sum, int n) {
  __shared__ float slots[trueup::kWarp];
  const float all = trueup::sum_rows(n, slots, [=](unsigned i) { return returns[i]; });
  if (threadIdx.x == 0) sum[blockIdx.x] = all;
}

extern "C" __global__ void __launch_bounds__(trueup::kLossThreads)
    sharpe_squares(const float* __restrict__ returns, const float* __restrict__ sum,
                   float* __restrict__ square, int n) {
  __shared__ float slots[2][trueup::kWarp];
  const float mean = mean_of(sum, n, slots[0]);
  const float all = trueup::sum_rows(n, slots[1], [=](unsigned i) {
    const float off = returns[i] - mean;
    return off * off;
  });
  if (threadIdx.x == 0) square[blockIdx.x] = all;
}

extern "C" __global__ void __launch_bounds__(trueup::kLossThreads)
    sharpe_ratio(const float* __restrict__ sum, const float* __restrict__ square, float bars,
                 float* __restrict__ sharpe, int n) {
  constexpr float kStill = 1e-5f;
  __shared__ float slots[2][trueup::kWarp];
  const float mean = mean_of(sum, n, slots[0]);
  const float squares = trueup::sum_loss_parts(square, trueup::loss_blocks(n), slots[1]);
  if (threadIdx.x != 0) return;
  const float deviation = sqrtf(squares / static_cast<float>(n));
  sharpe[0] = deviation <= kStill * fabsf(mean) ? 0.0f : mean / deviation * sqrtf(bars);
}
