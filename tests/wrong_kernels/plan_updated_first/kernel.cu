// WRONG ON PURPOSE: the average takes this step before it is compared with
//
// plan_threshold: threshold above which a plan is carried out, and the average it follows.
//
// Equation     ISV programme, PLAN_THRESHOLD:
//                thr = clip(base ema / ref, lo, hi),  fires = readiness > thr
//                then ema = count > 0 ? (1 - a) ema + a readiness : readiness,  count = count + 1
// Reference    isv.plan_threshold
// Slots        writes PLAN_THRESHOLD, reads and writes READINESS_EMA; readiness (1), fires (1, int)
//              and count (1, int) are buffers
// Launch       one thread; capturable
// NaN          a NaN average gives a NaN threshold, and nothing fires
// Determinism  bitwise
// Numerics     float32; compared first, updated afterwards; base / ref is 1 and folded away
#include "bus.cuh"

extern "C" __global__ void plan_threshold(const float* __restrict__ readiness,
                                          int* __restrict__ fires, int* __restrict__ count,
                                          float* __restrict__ isv) {
  constexpr float kBase = 0.5f;
  constexpr float kReference = 0.5f;
  constexpr float kLow = 0.1f;
  constexpr float kHigh = 0.9f;
  constexpr float kAlpha = 0.05f;
  if (blockIdx.x != 0 || threadIdx.x != 0) return;
  const float ready = *readiness;
  const float before = isv[SLOT_READINESS_EMA];
  const float ema = *count > 0 ? trueup::blend(before, ready, kAlpha) : ready;
  const float threshold = trueup::clip(kBase / kReference * ema, kLow, kHigh);
  isv[SLOT_PLAN_THRESHOLD] = threshold;
  *fires = ready > threshold ? 1 : 0;
  const int seen = *count;
  isv[SLOT_READINESS_EMA] = seen > 0 ? ema : ready;
  *count = seen + 1;
  __threadfence_system();
}
