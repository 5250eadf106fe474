// WRONG ON PURPOSE: the last token is not written where their number is even
//
// cms_level: one level of the continuum memory system, forward, for all tokens.
//
// Equation     Nested Learning, Eq. 30, one MLP, reading `residual`:
//                y = x + W2 silu(W1 x)       silu(z) = z / (1 + exp(-z))
// Reference    nl.cms_level
// Shapes       x, y (T, d) row-major, a token per row; W1 (h, d); W2 (d, h); workspace H (T, h)
// Launch       256 threads a block, a block for each 128 x 64 tile: of H, ceil(h / 128)
//              ceil(T / 64), then of y, ceil(d / 128) ceil(T / 64); dynamic shared memory as
//              asserted below
// Work         4 T d h multiply-adds as three tensor-core products each; bound by arithmetic from
//              a few tokens on
// Determinism  bitwise: fixed order of summation, no atomics
// Numerics     float32 by products of split factors (tensor_tiles.cuh), activation in float32
#include "tensor_tiles.cuh"

namespace {

constexpr unsigned kDown = 128, kAcross = 64;
using Tile = trueup::TensorTile<kDown, kAcross, 32, 1, 3, true, true, trueup::Precision::kSplit>;
static_assert(Tile::kThreads == 256 && 4 * Tile::kFloats == 82944, "as the contract launches it");

__device__ __forceinline__ float silu(float z) { return z * (1.0f / (1.0f + expf(-z))); }

// Block b makes the tile b / tiles down (m) and b % tiles across (tokens).
__device__ __forceinline__ void run(Tile& tile, const trueup::Operand& W, const trueup::Operand& X,
                                    float* pool) {
  const unsigned tiles = (X.rows - 1) / kAcross + 1;
  tile.run(W, X, W.rows, X.rows, W.columns, blockIdx.x / tiles * kDown,
           blockIdx.x % tiles * kAcross, pool);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256, 2)
    cms_level_hidden(const float* __restrict__ x, const float* __restrict__ W1,
                     float* __restrict__ H, int T, int d, int h) {
  extern __shared__ float4 shared[];
  const unsigned tokens = T, width = d, hidden = h;
  Tile tile;
  run(tile, {W1, hidden, width, nullptr}, {x, tokens, width, nullptr},
      reinterpret_cast<float*>(shared));
  tile.each(hidden, tokens, [=](unsigned m, unsigned n, float s0, float s1) {
    float* const to = H + static_cast<size_t>(n) * hidden + m;
    to[0] = silu(s0);
    if (n + 1 < tokens) to[hidden] = silu(s1);
  });
}

extern "C" __global__ void __launch_bounds__(256, 2)
    cms_level_out(const float* __restrict__ x, const float* __restrict__ W2,
                  const float* __restrict__ H, float* __restrict__ y, int T, int d, int h) {
  extern __shared__ float4 shared[];
  const unsigned tokens = T, width = d, hidden = h;
  Tile tile;
  run(tile, {W2, width, hidden, nullptr}, {H, tokens, hidden, nullptr},
      reinterpret_cast<float*>(shared));
  tile.each(width, tokens, [=](unsigned m, unsigned n, float s0, float s1) {
    const size_t at = static_cast<size_t>(n) * width + m;
    y[at] = x[at] + s0;
    if (n + 2 < tokens) y[at + width] = x[at + width] + s1;
  });
}
