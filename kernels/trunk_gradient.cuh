// trunk_gradient.cuh: what the four branches' gradients give to their heads and to the trunk.
#pragma once
#include "elementwise.cuh"

namespace trueup {

__device__ __forceinline__ float4 times(float s, float4 a) {
  return {s * a.x, s * a.y, s * a.z, s * a.w};
}

__device__ __forceinline__ float4 plus(float4 a, float4 b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}

// heads_k = weight g_k, trunk = scale sum_k heads_k; g and heads (4, n), trunk (n).
__device__ __forceinline__ void trunk_gradient_of(const float* __restrict__ gradients,
                                                  float weight, float scale,
                                                  float* __restrict__ heads,
                                                  float* __restrict__ trunk, size_t n) {
  const Four four(n);
  if (!four.any()) return;
  // Rows after the first are aligned where n is a multiple of 4.
  const bool aligned =
      n % 4 == 0 && aligned16(gradients) && aligned16(heads) && aligned16(trunk);
  float4 sum = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
  for (unsigned k = 0; k < 4; ++k) {
    const float4 head = times(weight, four.load(gradients + k * n, aligned));
    four.store(heads + k * n, head, aligned);
    sum = plus(sum, head);
  }
  four.store(trunk, times(scale, sum), aligned);
}

}  // namespace trueup
