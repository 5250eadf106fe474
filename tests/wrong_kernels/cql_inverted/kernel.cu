// WRONG ON PURPOSE: conservative on the agent's own data
//
// cql_alpha: weight of the conservative term, from the share of seeded samples.
//
// Equation     ISV programme, cql_alpha seed-coupled: alpha = a_on + (a_seed - a_on) clip(s, 0, 1)
// Reference    isv.cql_alpha
// Slots        reads SEED_FRACTION_EMA, writes CQL_ALPHA
// Launch       one thread; capturable
// NaN          a NaN share gives a NaN weight
// Determinism  bitwise
// Numerics     float32; written as a lerp, so that s = 1 gives a_seed exactly
#include "bus.cuh"

extern "C" __global__ void cql_alpha(float* __restrict__ isv) {
  constexpr float kOnline = 0.1f;
  constexpr float kSeed = 1.0f;
  if (blockIdx.x != 0 || threadIdx.x != 0) return;
  const float s = trueup::clip(isv[SLOT_SEED_FRACTION_EMA], 0.0f, 1.0f);
  isv[SLOT_CQL_ALPHA] = fmaf(1.0f - s, kSeed, s * kOnline);
  __threadfence_system();
}
