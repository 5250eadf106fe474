// WRONG ON PURPOSE: a mean loss of 0 is divided by
//
// kelly_cap: cap on the position, from the Kelly fraction of shrunk win statistics.
//
// Equation     ISV programme, KELLY_CAP_EFF:
//                b = mean win / mean loss; 1 where n = 0, either is not above 0, or b not finite
//                q = (n p + n0 / 2) / (n + n0),  f = q - (1 - q) / b
//                cap = clip(f / 2 clip(h, 0, 1), c_min, c_max)
// Reference    isv.kelly_cap
// Slots        reads LEARNING_HEALTH, writes KELLY_CAP_EFF; the statistics (p, mean win, mean loss,
//              count; one float each) are buffers
// Launch       one thread; capturable
// NaN          a NaN statistic or health gives a NaN cap
// Determinism  bitwise
// Numerics     float32
#include "bus.cuh"

extern "C" __global__ void kelly_cap(const float* __restrict__ p,
                                     const float* __restrict__ mean_win,
                                     const float* __restrict__ mean_loss,
                                     const float* __restrict__ count, float* __restrict__ isv) {
  constexpr float kFraction = 0.5f;
  constexpr float kPrior = 20.0f;
  constexpr float kLow = 0.05f;
  constexpr float kHigh = 1.0f;
  constexpr float kLargest = 3.402823466e+38f;
  if (blockIdx.x != 0 || threadIdx.x != 0) return;
  const float n = *count;
  const bool usable = *mean_win > 0.0f && *mean_loss > 0.0f && n > 0.0f;
  const float ratio = *mean_win / *mean_loss;
  const float payoff = ratio;
  const float q = fmaf(n, *p, 0.5f * kPrior) / (n + kPrior);
  const float f = q - (1.0f - q) / payoff;
  const float health = trueup::clip(isv[SLOT_LEARNING_HEALTH], 0.0f, 1.0f);
  isv[SLOT_KELLY_CAP_EFF] = trueup::clip(kFraction * f * health, kLow, kHigh);
  __threadfence_system();
}
