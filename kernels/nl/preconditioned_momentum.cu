// preconditioned_momentum: momentum over gradients multiplied from the left, and the weight step.
//
// Equation     Nested Learning, Eq. 19-20, reading `left`:
//                m' = alpha m - eta P g        W' = W + m'
// Reference    nl.preconditioned_momentum
// Shapes       m, W (d_out, d_in) row-major, updated in place; g (d_out, d_in);
//              P (d_out, d_out), which need not be symmetric
// Launch       256 threads a block, one block for each 128 x 128 tile:
//              ceil(d_out / 128) ceil(d_in / 128) blocks
// Work         d_out^2 d_in multiply-adds: bound by arithmetic from d_out of about 128; below that
//              by m and W, read once and written once
// Determinism  bitwise: each element is one chain of fmaf in index order; no atomics
// Numerics     float32; m' = fmaf(-eta, (P g)_ij, alpha m_ij)
#include "momentum_step.cuh"

namespace {

constexpr int kEdge = 128;
constexpr int kDepth = 16;
using Tile = trueup::Tile<kEdge, kEdge, kDepth, 1>;

}  // namespace

extern "C" __global__ void __launch_bounds__(Tile::kThreads, 2)
    preconditioned_momentum(float* __restrict__ m, float* __restrict__ W,
                            const float* __restrict__ g, const float* __restrict__ P, float alpha,
                            float eta, int d_out, int d_in) {
  __shared__ float4 pool[Tile::kQuadsShared];
  const bool vector = d_in % 4 == 0 && d_out % 4 == 0 && trueup::aligned16(m) &&
                      trueup::aligned16(W) && trueup::aligned16(g) && trueup::aligned16(P);
  if (vector) {
    trueup::momentum_step<kEdge, kEdge, kDepth, true>(m, W, g, P, alpha, eta, d_out, d_in, pool);
  } else {
    trueup::momentum_step<kEdge, kEdge, kDepth, false>(m, W, g, P, alpha, eta, d_out, d_in, pool);
  }
}
