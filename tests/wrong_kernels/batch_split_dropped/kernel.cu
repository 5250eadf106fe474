// WRONG ON PURPOSE: the last step of the tree is left out: half of the sum is missing
//
// projected_descent_batch: gradient descent with an L2 inner objective, over a batch at once.
//
// Equation     Nested Learning, Eq. 27-29, reading `derived`, batch reduction `sum`; samples are
//              the rows of X and U here:
//                W' = W - eta (W X^T + U^T) X
//              computed as E = W X^T + U^T (first launch), W' = W - eta E X (second)
// Reference    nl.projected_descent_batch
// Shapes       W (d_out, d_in) row-major, updated in place; X (B, d_in); U (B, d_out);
//              workspace E (d_out, B), left undefined
// Launch       256 threads a block; first one block for each 32 x 64 tile of E, its eight warps
//              sharing out the sum over d_in, then one for each 128 x 128 tile of W:
//              ceil(d_out / 32) ceil(B / 64) blocks, then ceil(d_out / 128) ceil(d_in / 128)
// Work         2 B d_out d_in multiply-adds; W is read twice and written once
// Determinism  bitwise: chains of fmaf in index order, eight of them for each element of E, added
//              in a fixed tree; no atomics
// Numerics     float32; W' = fmaf(-eta, (E X)_ij, W_ij)
#include "gemm.cuh"

namespace {

constexpr int kTileRows = 32, kTileSamples = 64, kTileDepth = 32, kSplits = 8;
constexpr int kEdge = 128, kDepth = 16;
using ResidualTile = trueup::Tile<kTileRows, kTileSamples, kTileDepth, kSplits>;
using ApplyTile = trueup::Tile<kEdge, kEdge, kDepth, 1>;

template <bool kVector>
__device__ __forceinline__ void residual(const float* W, const float* X, const float* U, float* E,
                                         unsigned B, unsigned d_out, unsigned d_in, float4* pool) {
  const auto emit = [=](unsigned row, unsigned sample, float4 s) {
    float* const to = E + static_cast<size_t>(row) * B + sample;
    const float* const u = U + static_cast<size_t>(sample) * d_out + row;
    const unsigned left = B - sample;
    to[0] = s.x + u[0];
    if (left > 1) to[1] = s.y + u[d_out];
    if (left > 2) to[2] = s.z + u[static_cast<size_t>(d_out) * 2];
    if (left > 3) to[3] = s.w + u[static_cast<size_t>(d_out) * 3];
  };
  trueup::gemm<kTileRows, kTileSamples, kTileDepth, kSplits, trueup::Second::kTransposed,
               kVector>(W, X, {d_out, B, d_in}, pool, emit);
}

template <bool kVector>
__device__ __forceinline__ void apply(float* W, const float* X, const float* E, float eta,
                                      unsigned B, unsigned d_out, unsigned d_in, float4* pool) {
  const auto emit = [=](unsigned row, unsigned column, float4 s) {
    float* const W_at = W + static_cast<size_t>(row) * d_in + column;
    if constexpr (kVector) {
      float4* const W4 = reinterpret_cast<float4*>(W_at);
      trueup::store_once(W4, trueup::fma_quad(-eta, s, trueup::load<trueup::Reuse::kOnce>(W4)));
    } else {
      const unsigned left = d_in - column;
      W_at[0] = fmaf(-eta, s.x, W_at[0]);
      if (left > 1) W_at[1] = fmaf(-eta, s.y, W_at[1]);
      if (left > 2) W_at[2] = fmaf(-eta, s.z, W_at[2]);
      if (left > 3) W_at[3] = fmaf(-eta, s.w, W_at[3]);
    }
  };
  trueup::gemm<kEdge, kEdge, kDepth, 1, trueup::Second::kPlain, kVector>(
      E, X, {d_out, d_in, B}, pool, emit);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(ResidualTile::kThreads, 2)
    projected_descent_batch_residual(const float* __restrict__ W, const float* __restrict__ X,
                                     const float* __restrict__ U, float* __restrict__ E, int B,
                                     int d_out, int d_in) {
  __shared__ float4 pool[ResidualTile::kQuadsShared];
  if (d_in % 4 == 0 && trueup::aligned16(W) && trueup::aligned16(X)) {
    residual<true>(W, X, U, E, B, d_out, d_in, pool);
  } else {
    residual<false>(W, X, U, E, B, d_out, d_in, pool);
  }
}

extern "C" __global__ void __launch_bounds__(ApplyTile::kThreads, 2)
    projected_descent_batch_apply(float* __restrict__ W, const float* __restrict__ X,
                                  const float* __restrict__ E, float eta, int B, int d_out,
                                  int d_in) {
  __shared__ float4 pool[ApplyTile::kQuadsShared];
  const bool vector = d_in % 4 == 0 && B % 4 == 0 && trueup::aligned16(W) &&
                      trueup::aligned16(X) && trueup::aligned16(E);
  if (vector) {
    apply<true>(W, X, E, eta, B, d_out, d_in, pool);
  } else {
    apply<false>(W, X, E, eta, B, d_out, d_in, pool);
  }
}
