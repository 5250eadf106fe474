// momentum_step.cuh: one tile of  m' = alpha m - eta A g,  W' = W + m',  after the product A g.
//
// A is (d_out, d_out), g, m and W are (d_out, d_in), all row-major; m and W are updated in place.
// The product is gemm.cuh's: each element one chain of fmaf in index order. kVector: m and W are
// 16-byte aligned with rows of a multiple of 4 elements, besides what gemm.cuh asks.
#pragma once

#include "gemm.cuh"

namespace trueup {

// One element: s is its sum of the product.
__device__ __forceinline__ void step_one(float* m, float* W, float alpha, float eta, float s) {
  const float next = fmaf(-eta, s, alpha * *m);
  *m = next;
  *W += next;
}

// Four neighbours.
__device__ __forceinline__ void step_four(float* m_at, float* W_at, float alpha, float eta,
                                          float4 s) {
  const float4 m = load<Reuse::kOnce>(reinterpret_cast<float4*>(m_at));
  const float4 W = load<Reuse::kOnce>(reinterpret_cast<float4*>(W_at));
  const float4 next = fma_quad(-eta, s, {alpha * m.x, alpha * m.y, alpha * m.z, alpha * m.w});
  store_once(reinterpret_cast<float4*>(m_at), next);
  store_once(reinterpret_cast<float4*>(W_at),
             float4{W.x + next.x, W.y + next.y, W.z + next.z, W.w + next.w});
}

template <int kBlockM, int kBlockN, int kBlockK, bool kVector>
__device__ __forceinline__ void momentum_step(float* m, float* W, const float* g, const float* A,
                                              float alpha, float eta, unsigned d_out,
                                              unsigned d_in, float4* pool) {
  const auto emit = [=](unsigned row, unsigned column, float4 s) {
    float* const m_at = m + static_cast<size_t>(row) * d_in + column;
    float* const W_at = W + static_cast<size_t>(row) * d_in + column;
    if constexpr (kVector) {
      step_four(m_at, W_at, alpha, eta, s);
    } else {
      const unsigned left = d_in - column;
      step_one(m_at, W_at, alpha, eta, s.x);
      if (left > 1) step_one(m_at + 1, W_at + 1, alpha, eta, s.y);
      if (left > 2) step_one(m_at + 2, W_at + 2, alpha, eta, s.z);
      if (left > 3) step_one(m_at + 3, W_at + 3, alpha, eta, s.w);
    }
  };
  gemm<kBlockM, kBlockN, kBlockK, 1, Second::kPlain, kVector>(A, g, {d_out, d_in, d_out}, pool,
                                                              emit);
}

}  // namespace trueup
