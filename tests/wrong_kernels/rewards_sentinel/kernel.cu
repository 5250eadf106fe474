// WRONG ON PURPOSE: a negative average counts as not set, and is assigned in every step
//
// reward_emas: running averages of the six components of the reward.
//
// Equation     ISV programme, REWARD_TRAIL_EMA to REWARD_BONUS_EMA:
//                ema = count > 0 ? (1 - a) ema + a rc : rc,   count = count + 1
// Reference    isv.reward_emas
// Slots        reads and writes the six REWARD slots; reward (6) and count (1, int) are buffers
// Launch       one block of six threads or more, one a component; capturable
// NaN          a NaN component makes its own average NaN
// Determinism  bitwise: no component sees another
// Numerics     float32; products and sum are rounded one by one, so that every build agrees
#include "bus.cuh"

extern "C" __global__ void reward_emas(const float* __restrict__ reward, int* __restrict__ count,
                                       float* __restrict__ isv) {
  constexpr float kAlpha = 0.05f;
  const unsigned component = threadIdx.x;
  if (blockIdx.x != 0) return;
  const int seen = *count;
  __syncthreads();  // everyone has read the count before one thread raises it
  if (component < 6) {
    const float obs = reward[component];
    float* ema = isv + SLOT_REWARD_TRAIL_EMA + component;
    *ema = *ema > 0.0f ? trueup::blend(*ema, obs, kAlpha) : obs;
  }
  if (component == 0) *count = seen + 1;
  __threadfence_system();
}
