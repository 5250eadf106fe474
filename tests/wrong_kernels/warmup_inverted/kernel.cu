// WRONG ON PURPOSE: a spike speeds training up
//
// fold_warmup: factor that damps training at the start of a fold, while the gradient norm spikes.
//
// Equation     ISV programme, fold_warmup_factor:
//                r = fast, slow > 0 ? clip(slow / fast, f_min, 1) : 1,  s = clip(steps / W, 0, 1)
//                factor = s + (1 - s) r
// Reference    isv.fold_warmup
// Slots        writes FOLD_WARMUP_FACTOR; fast, slow (1) and steps (1, int) are buffers
// Launch       one thread; capturable
// Determinism  bitwise
// Numerics     float32; from step W on the factor is 1 exactly
#include "bus.cuh"

extern "C" __global__ void fold_warmup(const float* __restrict__ fast,
                                       const float* __restrict__ slow,
                                       const int* __restrict__ steps, float* __restrict__ isv) {
  constexpr float kLow = 0.1f;
  constexpr float kSteps = 1000.0f;
  if (blockIdx.x != 0 || threadIdx.x != 0) return;
  const bool known = *fast > 0.0f && *slow > 0.0f;
  const float ratio = known ? trueup::clip(*fast / *slow, kLow, 1.0f) : 1.0f;
  const float ramp = trueup::clip(static_cast<float>(*steps) / kSteps, 0.0f, 1.0f);
  isv[SLOT_FOLD_WARMUP_FACTOR] = fmaf(1.0f - ramp, ratio, ramp);
  __threadfence_system();
}
