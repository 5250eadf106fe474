// WRONG ON PURPOSE: the first launch adds to what the workspace held before
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
#include "momentum_step.cuh"

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
    A[at] += s.x + P[at];
    if (left > 1) A[at + 1] = s.y + P[at + 1];
    if (left > 2) A[at + 2] = s.z + P[at + 2];
    if (left > 3) A[at + 3] = s.w + P[at + 3];
  };
  trueup::gemm<kEdge, kEdge, kDepth, 1, trueup::Second::kTransposed, kVector>(
      m, g, {d_out, d_out, d_in}, pool, emit);
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
    trueup::momentum_step<kEdge, kEdge, kDepth, true>(m, W, g, A, alpha, eta, d_out, d_in, pool);
  } else {
    trueup::momentum_step<kEdge, kEdge, kDepth, false>(m, W, g, A, alpha, eta, d_out, d_in, pool);
  }
}
