// WRONG ON PURPOSE: the last step of the tree is left out: half of the sum is missing
//
// deep_momentum: deep momentum (DMGD) with a row-wise network as memory, and the weight step.
//
// Equation     Nested Learning, Eq. 23, F(g) = tanh(g A2^T) A1^T, reading `dot_self`:
//                A1' = alpha A1 - eta g^T S             S = tanh(g A2^T)
//                A2' = alpha A2 - eta Q^T g             Q = (g A1) * (1 - S^2)
//                W'  = W + tanh(g A2'^T) A1'^T          read after the step
// Reference    nl.deep_momentum
// Shapes       A1 (d_in, h), A2 (h, d_in), W (d_out, d_in) row-major, updated in place; g (d_out,
//              d_in); workspaces S, Q (d_out, h), left undefined
// Launch       five launches of 256 threads a block:
//                hidden  S, a block for each 32 x 64 tile of it
//                pull    Q likewise
//                step    A1', a block for each 32 x 64 tile of it, then A2' likewise
//                hidden  S with A2'
//                read    W', a block for each 128 x 128 tile of it
// Work         6 d_out d_in h multiply-adds; g is read five times, W once
// Determinism  bitwise: chains of fmaf in index order, eight of them for each element of S, Q and the
//              gradients, added in a fixed tree; no atomics
// Numerics     float32; tanhf; 1 - S^2 = fmaf(-S, S, 1)
#include "gemm.cuh"
#include "quads.cuh"

namespace {

using trueup::First;
using trueup::Second;

constexpr int kRows = 32, kColumns = 64, kDepth = 32, kSplits = 8;
using Thin = trueup::Tile<kRows, kColumns, kDepth, kSplits>;
constexpr int kEdge = 128;
using Wide = trueup::Tile<kEdge, kEdge, 16, 1>;

// One 32 x 64 tile of a product; emit(row, column, place of four, sum) for each element of it.
template <First kFirst, Second kSecond, class Emit>
__device__ __forceinline__ void thin(const float* A, const float* B, trueup::Sizes size,
                                     unsigned tile, bool vector, float4* pool, Emit emit) {
  const unsigned across = (size.n - 1) / kColumns + 1;
  const unsigned first_m = tile / across * kRows, first_n = tile % across * kColumns;
  const auto quad = [=](unsigned row, unsigned column, float4 s) {
#pragma unroll
    for (int place = 0; place < 4; ++place) {
      if (column + place < size.n) emit(row, column + place, trueup::pick(s, place));
    }
  };
  if (vector) {
    trueup::gemm_tile<kRows, kColumns, kDepth, kSplits, kFirst, kSecond, true>(
        A, B, size, first_m, first_n, pool, quad);
  } else {
    trueup::gemm_tile<kRows, kColumns, kDepth, kSplits, kFirst, kSecond, false>(
        A, B, size, first_m, first_n, pool, quad);
  }
}

// change(offset) for each element of the block's tile of S; tanhf beside the 64 sums of a
// product would need more registers than there are.
template <class Change>
__device__ __forceinline__ void each(unsigned d_out, unsigned h, Change change) {
  const unsigned across = (h - 1) / kColumns + 1;
#pragma unroll 1
  for (unsigned at = threadIdx.x; at < kRows * kColumns; at += Thin::kThreads) {
    const unsigned row = blockIdx.x / across * kRows + at / kColumns;
    const unsigned unit = blockIdx.x % across * kColumns + at % kColumns;
    if (row < d_out && unit < h) change(static_cast<size_t>(row) * h + unit);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(Thin::kThreads, 2)
    deep_momentum_hidden(const float* __restrict__ A2, const float* __restrict__ g, float* S,
                         int d_out, int d_in, int h) {
  __shared__ float4 pool[Thin::kQuadsShared];
  const unsigned rows = d_out, inputs = d_in, units = h;
  const bool vector = inputs % 4 == 0 && trueup::aligned16(g) && trueup::aligned16(A2);
  thin<First::kPlain, Second::kTransposed>(
      g, A2, {rows, units, inputs}, blockIdx.x, vector, pool,
      [=](unsigned row, unsigned unit, float s) { S[static_cast<size_t>(row) * units + unit] = s; });
  __syncthreads();  // the sums are there
  each(rows, units, [=](size_t at) { S[at] = tanhf(S[at]); });
}

extern "C" __global__ void __launch_bounds__(Thin::kThreads, 2)
    deep_momentum_pull(const float* __restrict__ A1, const float* __restrict__ g,
                       const float* __restrict__ S, float* __restrict__ Q, int d_out, int d_in,
                       int h) {
  __shared__ float4 pool[Thin::kQuadsShared];
  const unsigned rows = d_out, inputs = d_in, units = h;
  const bool vector = inputs % 4 == 0 && units % 4 == 0 && trueup::aligned16(g) &&
                      trueup::aligned16(A1);
  thin<First::kPlain, Second::kPlain>(
      g, A1, {rows, units, inputs}, blockIdx.x, vector, pool,
      [=](unsigned row, unsigned unit, float pulled) {
        const size_t at = static_cast<size_t>(row) * units + unit;
        Q[at] = pulled * fmaf(-S[at], S[at], 1.0f);
      });
}

extern "C" __global__ void __launch_bounds__(Thin::kThreads, 2)
    deep_momentum_step(float* __restrict__ A1, float* __restrict__ A2, const float* __restrict__ g,
                       const float* __restrict__ S, const float* __restrict__ Q, float alpha,
                       float eta, int d_out, int d_in, int h) {
  __shared__ float4 pool[Thin::kQuadsShared];
  const unsigned rows = d_out, inputs = d_in, units = h;
  const unsigned of_A1 = ((inputs - 1) / kRows + 1) * ((units - 1) / kColumns + 1);
  const bool chunked = inputs % 4 == 0 && units % 4 == 0 && trueup::aligned16(g);
  const auto step = [=](float* parameter, float gradient) {
    *parameter = fmaf(-eta, gradient, alpha * *parameter);
  };
  if (blockIdx.x < of_A1) {
    thin<First::kTransposed, Second::kPlain>(
        g, S, {inputs, units, rows}, blockIdx.x, chunked && trueup::aligned16(S), pool,
        [=](unsigned input, unsigned unit, float s) {
          step(A1 + static_cast<size_t>(input) * units + unit, s);
        });
  } else {
    thin<First::kTransposed, Second::kPlain>(
        Q, g, {units, inputs, rows}, blockIdx.x - of_A1, chunked && trueup::aligned16(Q), pool,
        [=](unsigned unit, unsigned input, float s) {
          step(A2 + static_cast<size_t>(unit) * inputs + input, s);
        });
  }
}

extern "C" __global__ void __launch_bounds__(Wide::kThreads, 2)
    deep_momentum_read(const float* __restrict__ A1, const float* __restrict__ S,
                       float* __restrict__ W, int d_out, int d_in, int h) {
  __shared__ float4 pool[Wide::kQuadsShared];
  const trueup::Sizes size = {static_cast<unsigned>(d_out), static_cast<unsigned>(d_in),
                              static_cast<unsigned>(h)};
  if (h % 4 == 0 && d_in % 4 == 0 && trueup::aligned16(S) && trueup::aligned16(A1) &&
      trueup::aligned16(W)) {
    const auto emit = [=](unsigned row, unsigned column, float4 s) {
      float4* const to = reinterpret_cast<float4*>(W + static_cast<size_t>(row) * size.n + column);
      const float4 w = trueup::load<trueup::Reuse::kOnce>(to);
      trueup::store_once(to, float4{w.x + s.x, w.y + s.y, w.z + s.z, w.w + s.w});
    };
    trueup::gemm<kEdge, kEdge, 16, 1, Second::kTransposed, true>(S, A1, size, pool, emit);
  } else {
    const auto emit = [=](unsigned row, unsigned column, float4 s) {
#pragma unroll 1
      for (int place = 0; place < 4 && column + place < size.n; ++place) {
        W[static_cast<size_t>(row) * size.n + column + place] += trueup::pick(s, place);
      }
    };
    trueup::gemm<kEdge, kEdge, 16, 1, Second::kTransposed, false>(S, A1, size, pool, emit);
  }
}
