// WRONG ON PURPOSE: the sign of the printed objective on the P-term
//
// delta_momentum: delta-rule momentum with a full matrix gradient, and the weight step.
//
// Equation     Nested Learning, Eq. 21-22, reading `derived`:
//                m' = m (alpha I - eta g^T g) - eta P g        W' = W + m'
//              computed as A = m g^T + P (first launch), m' = alpha m - eta A g (second): g^T g,
//              d_in x d_in, is never formed
// Reference    nl.delta_momentum
// Shapes       m, W (d_out, d_in) row-major, updated in place; g (d_out, d_in);
//              P (d_out, d_out); workspace A (d_out, d_out), left undefined
// Launch       256 threads a block, one block for each 128 x 128 tile of the result:
//              ceil(d_out / 128)^2 blocks, then ceil(d_out / 128) ceil(d_in / 128)
// Work         4 d_out^2 d_in multiply-adds: bound by arithmetic from d_out of about 64
// Determinism  bitwise: each element is one chain of fmaf in index order; no atomics
// Numerics     float32; m' = fmaf(-eta, (A g)_ij, alpha m_ij)
#include "gemm.cuh"

namespace {

constexpr int kEdge = 128;
constexpr int kDepth = 16;
using Tile = trueup::Tile<kEdge, kEdge, kDepth, 1>;

template <bool kVector>
__device__ __forceinline__ void residual(const float* m, const float* g, const float* P, float* A,
                                         unsigned d_out, unsigned d_in, float4* pool) {
  const auto emit = [=](unsigned row, unsigned column, float4 s) {
    const size_t at = static_cast<size_t>(row) * d_out + column;
    const unsigned left = d_out - column;
    A[at] = s.x - P[at];
    if (left > 1) A[at + 1] = s.y - P[at + 1];
    if (left > 2) A[at + 2] = s.z - P[at + 2];
    if (left > 3) A[at + 3] = s.w - P[at + 3];
  };
  trueup::gemm<kEdge, kEdge, kDepth, 1, trueup::Second::kTransposed, kVector>(
      m, g, {d_out, d_out, d_in}, pool, emit);
}

__device__ __forceinline__ void step_one(float* m, float* W, float alpha, float eta, float s) {
  const float next = fmaf(-eta, s, alpha * *m);
  *m = next;
  *W += next;
}

template <bool kVector>
__device__ __forceinline__ void apply(float* m, float* W, const float* g, const float* A,
                                      float alpha, float eta, unsigned d_out, unsigned d_in,
                                      float4* pool) {
  const auto emit = [=](unsigned row, unsigned column, float4 s) {
    float* const m_at = m + static_cast<size_t>(row) * d_in + column;
    float* const W_at = W + static_cast<size_t>(row) * d_in + column;
    if constexpr (kVector) {
      const float4 m4 = trueup::load<trueup::Reuse::kOnce>(reinterpret_cast<float4*>(m_at));
      const float4 W4 = trueup::load<trueup::Reuse::kOnce>(reinterpret_cast<float4*>(W_at));
      const float4 next = trueup::fma_quad(
          -eta, s, {alpha * m4.x, alpha * m4.y, alpha * m4.z, alpha * m4.w});
      trueup::store_once(reinterpret_cast<float4*>(m_at), next);
      trueup::store_once(reinterpret_cast<float4*>(W_at), float4{W4.x + next.x, W4.y + next.y,
                                                                 W4.z + next.z, W4.w + next.w});
    } else {
      const unsigned left = d_in - column;
      step_one(m_at, W_at, alpha, eta, s.x);
      if (left > 1) step_one(m_at + 1, W_at + 1, alpha, eta, s.y);
      if (left > 2) step_one(m_at + 2, W_at + 2, alpha, eta, s.z);
      if (left > 3) step_one(m_at + 3, W_at + 3, alpha, eta, s.w);
    }
  };
  trueup::gemm<kEdge, kEdge, kDepth, 1, trueup::Second::kPlain, kVector>(
      A, g, {d_out, d_in, d_out}, pool, emit);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(Tile::kThreads, 2)
    delta_momentum_residual(const float* __restrict__ m, const float* __restrict__ g,
                            const float* __restrict__ P, float* __restrict__ A, int d_out,
                            int d_in) {
  __shared__ float4 pool[Tile::kQuadsShared];
  if (d_in % 4 == 0 && trueup::aligned16(m) && trueup::aligned16(g)) {
    residual<true>(m, g, P, A, d_out, d_in, pool);
  } else {
    residual<false>(m, g, P, A, d_out, d_in, pool);
  }
}

extern "C" __global__ void __launch_bounds__(Tile::kThreads, 2)
    delta_momentum_apply(float* __restrict__ m, float* __restrict__ W,
                         const float* __restrict__ g, const float* __restrict__ A, float alpha,
                         float eta, int d_out, int d_in) {
  __shared__ float4 pool[Tile::kQuadsShared];
  const bool vector = d_in % 4 == 0 && d_out % 4 == 0 && trueup::aligned16(m) &&
                      trueup::aligned16(W) && trueup::aligned16(g) && trueup::aligned16(A);
  if (vector) {
    apply<true>(m, W, g, A, alpha, eta, d_out, d_in, pool);
  } else {
    apply<false>(m, W, g, A, alpha, eta, d_out, d_in, pool);
  }
}
