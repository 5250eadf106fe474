// WRONG ON PURPOSE: the target keeps tau of itself
//
// polyak: the target network's parameters move towards those in training.
//
// Equation     ISV programme, TAU_EFF: th' = (1 - tau) th' + tau th
//              a copy at tau = 1 and nothing at tau = 0, bit for bit
// Reference    isv.polyak
// Slots        reads TAU_EFF; target (n), in place, and online (n) are buffers
// Launch       1-D grid of any size, any block; capturable
// NaN          a NaN rate makes the target NaN
// Traffic      12 n bytes
// Determinism  bitwise
// Numerics     float32; tau th is rounded, the sum fused
#include "bus.cuh"

extern "C" __global__ void polyak(float* __restrict__ target, const float* __restrict__ online,
                                  const float* __restrict__ isv, int n) {
  const float tau = isv[SLOT_TAU_EFF];
  if (tau == 0.0f) return;
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < static_cast<size_t>(n); i += stride) {
    const float moved = online[i];
    target[i] = tau == 1.0f ? moved : fmaf(tau, target[i], (1.0f - tau) * moved);
  }
}
