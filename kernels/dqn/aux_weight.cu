// aux_weight: the weight that both auxiliary losses share, from learning health and Sharpe ratio.
//
// Equation     DQN programme, 17:
//                w_aux = w_base clip(health, 0, 1) clip(1 - sharpe_ema / sharpe_ref, w_floor, 1)
// Reference    dqn.aux_weight
// Shapes       health, sharpe_ema, w_aux (1); w_base, sharpe_ref, w_floor scalars
// Launch       one block; thread 0 works
// Determinism  bitwise
// Numerics     float32; comparisons keep NaN
#include "common.cuh"

namespace {

__device__ __forceinline__ float clip(float v, float low, float high) {
  return v < low ? low : v > high ? high : v;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(32)
    aux_weight(const float* __restrict__ health, const float* __restrict__ sharpe_ema,
               float w_base, float sharpe_ref, float w_floor, float* __restrict__ w_aux) {
  if (threadIdx.x != 0) return;
  const float schedule = clip(1.0f - sharpe_ema[0] / sharpe_ref, w_floor, 1.0f);
  w_aux[0] = w_base * clip(health[0], 0.0f, 1.0f) * schedule;
}
