// WRONG ON PURPOSE: every branch gets the discount of the first
//
// gamma: discount of each branch, from the range of its support and the learning health.
//
// Equation     ISV programme, GAMMA_DIR_EFF to GAMMA_URG_EFF:
//                g_hat = clip(1 - r / (range / 2), g_lo, g_hi)
//                gamma = g_lo + clip(h, 0, 1) (g_hat - g_lo);   g_lo where range <= 0
// Reference    isv.gamma
// Slots        reads LEARNING_HEALTH, writes the four GAMMA slots; v_range (4) is a buffer
// Launch       one block of four threads or more, one a branch; capturable
// NaN          a NaN health makes all four NaN, a NaN range its own branch
// Determinism  bitwise: no branch sees another
// Numerics     float32
#include "bus.cuh"

extern "C" __global__ void gamma_per_branch(const float* __restrict__ v_range, float* __restrict__ isv) {
  constexpr float kScale = 0.2f;
  constexpr float kLow = 0.8f;
  constexpr float kHigh = 0.995f;
  const unsigned branch = threadIdx.x;
  if (blockIdx.x != 0 || branch >= 4) return;
  const float range = v_range[0];
  const float health = trueup::clip(isv[SLOT_LEARNING_HEALTH], 0.0f, 1.0f);
  const bool unusable = range <= 0.0f;
  const float half = 0.5f * (unusable ? 1.0f : range);
  const float target = trueup::clip(1.0f - kScale / half, kLow, kHigh);
  isv[SLOT_GAMMA_DIR_EFF + branch] = fmaf(health, unusable ? 0.0f : target - kLow, kLow);
  __threadfence_system();
}
