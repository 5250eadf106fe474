// WRONG ON PURPOSE: another activation than the declared one
//
// cms_level: one level of the continuum memory system, forward, for all tokens.
//
// Equation     Nested Learning, Eq. 30, one MLP, reading `residual`:
//                y = x + W2 silu(W1 x)       silu(z) = z / (1 + exp(-z))
// Reference    nl.cms_level
// Shapes       x, y (T, d) row-major, a token per row; W1 (h, d); W2 (d, h); workspaces
//              H (slices, T, h) and P (slices, T, d), left undefined
// Launch       128 threads for each tile of 128 rows and 64 tokens and slice of its sum, and 98304
//              bytes of shared memory; 256 threads, an element each; the same again for y. Where
//              tiles alone fill the device there is one slice, the activation or the residual is
//              made where the sum is, and the launch over elements has nothing to do: with two
//              slices there are at most 132 tiles, 4224 blocks of elements
// Work         2 T d h multiply-adds as three tensor-core products each; bound by arithmetic from
//              a few tokens on
// Determinism  bitwise: fixed order of summation, no atomics
// Numerics     float32 by products of split factors (warp_tiles.cuh), activation in float32
#include "compact.cuh"

namespace {

using trueup::Operand;

__device__ __forceinline__ float silu(float z) { return z > 0.0f ? z : 0.0f * z; }

__device__ __forceinline__ unsigned tiles(unsigned rows, unsigned tokens) {
  return trueup::tiles_of(rows, trueup::kBlockRows) *
         trueup::tiles_of(tokens, trueup::kBlockTokens);
}

// The block's tile of W X^T, or its part of it, finished by finish(at, sum) if it is all.
template <class Finish>
__device__ __forceinline__ void multiply(const Operand& W, const Operand& X, float* out,
                                         float* part, float* pool, Finish finish) {
  const unsigned all = tiles(W.rows, X.rows);
  const trueup::Slices slices(all, W.columns);
  const unsigned across = trueup::tiles_of(X.rows, trueup::kBlockTokens);
  const unsigned slice = blockIdx.x / all, begin = slice * slices.width;
  const bool whole = slices.count == 1;
  const trueup::IntoParts into = {
      whole ? out : part + static_cast<size_t>(slice) * X.rows * W.rows, W.rows, W.rows};
  const auto emit = [&](unsigned row, unsigned token, float4 sums) {
    if (whole) {
      const size_t at = static_cast<size_t>(token) * W.rows + row;
      sums.x = finish(at, sums.x);
      if (row + 1 < W.rows) sums.y = finish(at + 1, sums.y);
      if (row + 2 < W.rows) sums.z = finish(at + 2, sums.z);
      if (row + 3 < W.rows) sums.w = finish(at + 3, sums.w);
    }
    into(row, token, sums);
  };
  trueup::Reading<true, trueup::Precision::kSplit>::run(
      W, X, blockIdx.x % all / across * trueup::kBlockRows,
      blockIdx.x % across * trueup::kBlockTokens, begin, min(W.columns, begin + slices.width),
      pool, emit);
}

// Adds up what parts there are of an element, and finishes it.
template <class Finish>
__device__ __forceinline__ void add_up(float* out, const float* part, unsigned tokens,
                                       unsigned rows, unsigned k, Finish finish) {
  const trueup::Slices slices(tiles(rows, tokens), k);
  const size_t all = static_cast<size_t>(tokens) * rows;
  const size_t at = static_cast<size_t>(blockIdx.x) * 256 + threadIdx.x;
  if (slices.count == 1 || at >= all) return;
  out[at] = finish(at, trueup::add_parts(part, at, all, slices.count));
}

}  // namespace

extern "C" __global__ void __launch_bounds__(trueup::kBlockThreads, 2)
    cms_level_hidden(const float* __restrict__ x, const float* __restrict__ W1,
                     float* __restrict__ H, int T, int d, int h) {
  extern __shared__ float4 shared[];
  const unsigned tokens = T, width = d, hidden = h;
  multiply({W1, hidden, width, nullptr}, {x, tokens, width, nullptr}, H, H,
           reinterpret_cast<float*>(shared), [](size_t, float z) { return silu(z); });
}

extern "C" __global__ void __launch_bounds__(256)
    cms_level_activate(float* H, int T, int d, int h) {
  add_up(H, H, T, h, d, [](size_t, float z) { return silu(z); });
}

extern "C" __global__ void __launch_bounds__(trueup::kBlockThreads, 2)
    cms_level_out(const float* __restrict__ x, const float* __restrict__ W2,
                  const float* __restrict__ H, float* __restrict__ P, float* __restrict__ y, int T,
                  int d, int h) {
  extern __shared__ float4 shared[];
  const unsigned tokens = T, width = d, hidden = h;
  multiply({W2, width, hidden, nullptr}, {H, tokens, hidden, nullptr}, y, P,
           reinterpret_cast<float*>(shared), [=](size_t at, float s) { return x[at] + s; });
}

extern "C" __global__ void __launch_bounds__(256)
    cms_level_residual(const float* __restrict__ x, const float* __restrict__ P,
                       float* __restrict__ y, int T, int d, int h) {
  add_up(y, P, T, d, h, [=](size_t at, float s) { return x[at] + s; });
}
