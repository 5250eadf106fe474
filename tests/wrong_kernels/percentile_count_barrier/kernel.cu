// WRONG ON PURPOSE: counts are added before all warps have left theirs
//
// percentile_scaling: returns scaled down by the running range between two of their percentiles.
//
// Equation     DreamerV3, arXiv:2301.04104, Eq. 11-12; DQN programme, scalar transforms:
//                S = count > 0 ? S + rate (P95 - P5 - S) : P95 - P5;  y = returns / max(1, S),
//                percentiles between the neighbours of place q (B - 1) in the sorted returns
// Reference    dqn.percentile_scaling
// Shapes       returns, scaled (B); scale (1), count (1) int, both updated in place; rate by value
// Launch       range: one block, any multiple of 32 threads up to 1024; then scale: 1-D grid of
//              ceil(B / (4 block))
// Traffic      up to 16 returns a thread stay in registers (B = 16384 at 1024 threads); beyond that
//              they are read again, from L2, for each of 66 passes; the second launch reads and
//              writes once
// Determinism  bitwise: order statistics by counting, see order_statistics.cuh
// Numerics     order statistics are exact; places in float64; NaN counts as larger than everything
#include "elementwise.cuh"
#include "order_statistics.cuh"

namespace {

using Returns = trueup::Keys<16>;

__device__ __forceinline__ float percentile(const Returns& returns, double q, unsigned* slots) {
  const double place = q * static_cast<double>(returns.count() - 1);
  const unsigned rank = static_cast<unsigned>(place);
  const float2 at = trueup::neighbours_at(returns, rank, slots);
  return fmaf(static_cast<float>(place - static_cast<double>(rank)), at.y - at.x, at.x);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(1024)
    percentile_scaling_range(const float* __restrict__ returns, float rate,
                             float* __restrict__ scale, int* __restrict__ count, int B) {
  __shared__ unsigned slots[trueup::kWarp];
  const Returns keys(returns, static_cast<unsigned>(B));
  const float high = percentile(keys, 0.95, slots);
  const float spread = high - percentile(keys, 0.05, slots);
  if (threadIdx.x != 0) return;
  const int seen = *count;
  const float before = *scale;
  *scale = seen > 0 ? fmaf(rate, spread, (1.0f - rate) * before) : spread;
  *count = seen + 1;
}

extern "C" __global__ void __launch_bounds__(256)
    percentile_scaling_scale(const float* __restrict__ returns, const float* __restrict__ scale,
                             float* __restrict__ scaled, int B) {
  const trueup::Four four(static_cast<size_t>(B));
  if (!four.any()) return;
  const float range = *scale;
  const float by = range < 1.0f ? 1.0f : range;  // NaN stays
  const bool aligned = trueup::aligned16(returns) && trueup::aligned16(scaled);
  const float4 v = four.load(returns, aligned);
  four.store(scaled,
             float4{__fdiv_rn(v.x, by), __fdiv_rn(v.y, by), __fdiv_rn(v.z, by),
                    __fdiv_rn(v.w, by)},
             aligned);
}
