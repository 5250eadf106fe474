// WRONG ON PURPOSE: the first value is judged
//
// hold_quality: a bonus for leaving a position near the best that it had.
//
// Equation     DQN programme, reward scalars: q = (pnl_exit - min) / (max - min), 0.5 where flat;
//                reward = bonus (2 q - 1)
// Reference    dqn.hold_quality
// Shapes       pnl (B, T), the last column is the exit; reward (B); bonus by value
// Launch       1-D grid of any size, block any multiple of 32: 8 lanes a row
// Traffic      pnl is read once
// Determinism  bitwise: smallest and largest do not depend on an order
// Numerics     float32; NaN in a row makes its reward NaN
#include "atoms.cuh"

extern "C" __global__ void __launch_bounds__(256)
    hold_quality(const float* __restrict__ pnl, float bonus, float* __restrict__ reward, int B,
                 int T) {
  using trueup::kGroup;
  using trueup::kWarp;
  const unsigned bars = static_cast<unsigned>(T);
  const unsigned lane = threadIdx.x % kGroup;
  const unsigned own = threadIdx.x % kWarp / kGroup;
  const size_t rows = static_cast<size_t>(B);
  const size_t stride = static_cast<size_t>(gridDim.x) * (blockDim.x / kGroup);
  // Rows by the warp's first: all its lanes go round together.
  for (size_t base = static_cast<size_t>(blockIdx.x) * (blockDim.x / kGroup) +
                     threadIdx.x / kWarp * (kWarp / kGroup);
       base < rows; base += stride) {
    const bool live = base + own < rows;
    const float* const path = pnl + (live ? base + own : base) * bars;
    float high = -trueup::infinity();
    float fall = -trueup::infinity();  // the largest of -pnl
    bool unknown = false;
    for (unsigned i = lane; i < bars; i += kGroup) {
      const float value = trueup::load<trueup::Reuse::kOnce>(path + i);
      high = fmaxf(high, value);
      fall = fmaxf(fall, -value);
      unknown |= value != value;
    }
    high = trueup::group_max(high);
    const float low = -trueup::group_max(fall);
    unknown = trueup::group_any(unknown);
    if (!live || lane != 0) continue;
    const float span = unknown ? trueup::not_a_number() : high - low;
    const float q = span == 0.0f ? 0.5f : (path[0] - low) / span;
    reward[base + own] = bonus * fmaf(2.0f, q, -1.0f);
  }
}
