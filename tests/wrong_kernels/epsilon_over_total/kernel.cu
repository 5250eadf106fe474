// WRONG ON PURPOSE: the last epoch still explores
//
// epsilon: exploration rate, from the epoch and the learning health.
//
// Equation     ISV programme, EPSILON_EFF:
//                eps = e_min + (e_0 - e_min) (1 - min(1, e / max(1, T - 1))) (1 - c clip(h, 0, 1))
// Reference    isv.epsilon
// Slots        reads EPOCH_IDX, TOTAL_EPOCHS, LEARNING_HEALTH, writes EPSILON_EFF
// Launch       one thread; capturable
// NaN          a NaN health gives a NaN rate
// Determinism  bitwise
// Numerics     float32; the last epoch gives e_min exactly: 1 - 1 is 0
#include "bus.cuh"

extern "C" __global__ void epsilon(float* __restrict__ isv) {
  constexpr float kLeast = 0.02f;
  constexpr float kStart = 1.0f;
  constexpr float kWeight = 0.5f;
  if (blockIdx.x != 0 || threadIdx.x != 0) return;
  const float last = isv[SLOT_TOTAL_EPOCHS];
  const float ratio = isv[SLOT_EPOCH_IDX] / (last < 1.0f ? 1.0f : last);
  const float left = 1.0f - (ratio > 1.0f ? 1.0f : ratio);
  const float damping = 1.0f - kWeight * trueup::clip(isv[SLOT_LEARNING_HEALTH], 0.0f, 1.0f);
  isv[SLOT_EPSILON_EFF] = fmaf((kStart - kLeast) * left, damping, kLeast);
  __threadfence_system();
}
