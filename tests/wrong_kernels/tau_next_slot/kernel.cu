// WRONG ON PURPOSE: the rate is written one slot too far
//
// tau: rate of the target network's average, from the learning health.
//
// Equation     ISV programme, TAU_EFF: tau = t_min + (t_max - t_min) clip(health, 0, 1)
// Reference    isv.tau
// Slots        reads LEARNING_HEALTH, writes TAU_EFF; no other word of the bus is touched
// Launch       one thread; capturable
// NaN          a NaN health gives a NaN rate: the clip is made of comparisons
// Visibility   a system-scope fence follows the store: host and other devices read the bus
// Determinism  bitwise
// Numerics     float32; t_max - t_min is rounded once, at compile time; the sum may be fused
#include "bus.cuh"

extern "C" __global__ void tau(float* __restrict__ isv) {
  constexpr float kLow = 1e-3f;
  constexpr float kHigh = 1e-2f;
  if (blockIdx.x != 0 || threadIdx.x != 0) return;
  const float health = trueup::clip(isv[SLOT_LEARNING_HEALTH], 0.0f, 1.0f);
  isv[SLOT_TAU_EFF + 1] = fmaf(kHigh - kLow, health, kLow);
  __threadfence_system();
}
