// selective_scan.cuh: what the forward and the backward scan share: step sizes and decays.
#pragma once

#include "common.cuh"

namespace trueup {

__device__ __forceinline__ float softplus(float z) {
  return fmaxf(z, 0.0f) + log1pf(expf(-fabsf(z)));
}

struct Scan {
  unsigned batch, steps, heads, width, states;  // B, T, H, P, M
  __device__ __forceinline__ unsigned lanes() const { return heads * width; }
};

// delta, a (B, T, H): Delta = softplus(dt_raw + dt_bias) dur, a = exp(-Delta exp(A_log)).
__device__ __forceinline__ void discretise(const float* dt_raw, const float* dt_bias,
                                           const float* A_log, const float* dur, float* delta,
                                           float* a, unsigned rows, unsigned heads) {
  const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= static_cast<size_t>(rows) * heads) return;
  const unsigned head = static_cast<unsigned>(i % heads);
  const float size = softplus(dt_raw[i] + dt_bias[head]) * dur[i / heads];
  delta[i] = size;
  a[i] = 1.0f - size * expf(A_log[head]);
}

}  // namespace trueup
