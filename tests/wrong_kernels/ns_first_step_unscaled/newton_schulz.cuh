// newton_schulz.cuh: the quintic Newton-Schulz iteration in float32, as launches that several
// contracts share.
//
//   A = X X^T (X^T X where r > c),  B = b A + c A^2,  X <- a X + B X (X B where r > c),  5 times
//
// A and B are symmetric and n x n, n = min(r, c): only tiles on and below the diagonal are computed,
// and each is stored twice, so that two of the three products cost half. Nothing is transposed.
// G / max(|G|, eps) is never stored: the first step works on G, and scales where its sums are done.
// The kernels of a contract, in order: one that gives partial sums of |G|^2 (its own, see
// `partial_squares`), then gram_first, poly, apply_first, and four times gram, poly, apply; the last
// apply may be its own as well (see `apply_tile`).
// Launch: 256 threads a block, one block for each 128 x 128 tile: T (T + 1) / 2 blocks for gram and
// poly, T = ceil(n / 128); ceil(r / 128) ceil(c / 128) for apply.
// Determinism: chains of fmaf in index order; |G|^2 in a tree that depends on the sizes alone.
#pragma once

#include "gemm.cuh"
#include "newton_schulz_parts.cuh"
#include "quads.cuh"

namespace trueup {
namespace ns {

constexpr int kEdge = 128;
constexpr int kDepth = 16;
using Square = Tile<kEdge, kEdge, kDepth, 1>;

// Stores value(row, column, quad of sums) of a tile below the diagonal, and its mirror image.
template <class Value>
__device__ __forceinline__ void store_symmetric(const float (&sum)[8][8], float* C, unsigned n,
                                                Corner corner, Value value) {
  const Place<Square> place;
  const bool mirrored = corner.row != corner.column;
  const bool vector = n % 4 == 0 && aligned16(C);
  const auto store = [&](unsigned row, unsigned column, float4 v) {
    float* const to = C + static_cast<size_t>(row) * n;
    if (vector) {
      store_four<true>(to, column, n, v);
    } else {
      store_four<false>(to, column, n, v);
    }
  };
#pragma unroll
  for (int quarter = 0; quarter < 4; ++quarter) {
    const unsigned row = corner.row * kEdge + place.row + quarter / 2 * (kEdge / 2);
    const unsigned column = corner.column * kEdge + place.column + quarter % 2 * (kEdge / 2);
    if (row >= n || column >= n) continue;
    float4 v[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float* const s = sum[4 * (quarter / 2) + i] + 4 * (quarter % 2);
      v[i] = row + i < n ? value(row + i, column, float4{s[0], s[1], s[2], s[3]})
                         : float4{0.0f, 0.0f, 0.0f, 0.0f};
      if (row + i < n) store(row + i, column, v[i]);
    }
    if (!mirrored) continue;
    store(column, row, {v[0].x, v[1].x, v[2].x, v[3].x});
    if (column + 1 < n) store(column + 1, row, {v[0].y, v[1].y, v[2].y, v[3].y});
    if (column + 2 < n) store(column + 2, row, {v[0].z, v[1].z, v[2].z, v[3].z});
    if (column + 3 < n) store(column + 3, row, {v[0].w, v[1].w, v[2].w, v[3].w});
  }
}

// A tile of scale X X^T, or of scale X^T X where r > c.
template <bool kVector>
__device__ __forceinline__ void gram_tile(const float* X, float* A, float scale, unsigned r,
                                          unsigned c, float4* pool) {
  const Corner corner(blockIdx.x);
  float sum[8][8] = {};
  if (r > c) {
    gemm_sums<kEdge, kEdge, kDepth, 1, First::kTransposed, Second::kPlain, kVector>(
        sum, X, X, {c, c, r}, corner.row * kEdge, corner.column * kEdge, pool);
  } else {
    gemm_sums<kEdge, kEdge, kDepth, 1, First::kPlain, Second::kTransposed, kVector>(
        sum, X, X, {r, r, c}, corner.row * kEdge, corner.column * kEdge, pool);
  }
  store_symmetric(sum, A, r > c ? c : r, corner, [scale](unsigned, unsigned, float4 s) {
    return float4{scale * s.x, scale * s.y, scale * s.z, scale * s.w};
  });
}

__device__ __forceinline__ void gram(const float* X, float* A, float scale, unsigned r, unsigned c,
                                     float4* pool) {
  if (c % 4 == 0 && aligned16(X)) {
    gram_tile<true>(X, A, scale, r, c, pool);
  } else {
    gram_tile<false>(X, A, scale, r, c, pool);
  }
}

// A tile of b A + c A A.
template <bool kVector>
__device__ __forceinline__ void poly_tile(const float* A, float* B, unsigned n, float4* pool) {
  const Corner corner(blockIdx.x);
  float sum[8][8] = {};
  gemm_sums<kEdge, kEdge, kDepth, 1, First::kPlain, Second::kTransposed, kVector>(
      sum, A, A, {n, n, n}, corner.row * kEdge, corner.column * kEdge, pool);
  store_symmetric(sum, B, n, corner, [=](unsigned row, unsigned column, float4 s) {
    const float4 a = load_four<kVector>(A + static_cast<size_t>(row) * n, column, n);
    return fma_quad(kB, a, {kC * s.x, kC * s.y, kC * s.z, kC * s.w});
  });
}

// A tile of a X + B X, or of a X + X B where r > c; emit(row, column, quad) for each quad of it.
template <class Emit>
__device__ __forceinline__ void apply_tile(const float* X, const float* B, unsigned r, unsigned c,
                                           float4* pool, Emit emit) {
  const unsigned n = r > c ? c : r;
  const bool vector = c % 4 == 0 && n % 4 == 0 && aligned16(X) && aligned16(B);
  const float* const left = r > c ? X : B;
  const float* const right = r > c ? B : X;
  const unsigned across = (c - 1) / kEdge + 1;
  const unsigned first_m = blockIdx.x / across * kEdge, first_n = blockIdx.x % across * kEdge;
  if (vector) {
    gemm_tile<kEdge, kEdge, kDepth, 1, First::kPlain, Second::kPlain, true>(
        left, right, {r, c, n}, first_m, first_n, pool,
        [=](unsigned row, unsigned column, float4 s) {
          const float* const from = X + static_cast<size_t>(row) * c;
          emit(row, column, fma_quad(kA, load_four<true>(from, column, c), s));
        });
  } else {
    gemm_tile<kEdge, kEdge, kDepth, 1, First::kPlain, Second::kPlain, false>(
        left, right, {r, c, n}, first_m, first_n, pool,
        [=](unsigned row, unsigned column, float4 s) {
          const float* const from = X + static_cast<size_t>(row) * c;
          emit(row, column, fma_quad(kA, load_four<false>(from, column, c), s));
        });
  }
}

// Stores quads of a matrix with rows of c.
struct Store {
  float* to;
  unsigned c;
  float scale;
  __device__ __forceinline__ void operator()(unsigned row, unsigned column, float4 v) const {
    float* const at = to + static_cast<size_t>(row) * c;
    v = {scale * v.x, scale * v.y, scale * v.z, scale * v.w};
    if (c % 4 == 0 && aligned16(to)) {
      store_four<true>(at, column, c, v);
    } else {
      store_four<false>(at, column, c, v);
    }
  }
};

}  // namespace ns
}  // namespace trueup

extern "C" __global__ void __launch_bounds__(trueup::ns::Square::kThreads, 2)
    newton_schulz_gram_first(const float* __restrict__ G, const float* __restrict__ partials,
                             float* __restrict__ A, float eps, int r, int c) {
  __shared__ float4 pool[trueup::ns::Square::kQuadsShared];
  __shared__ float slots[32];
  const unsigned count = trueup::ns::partials_of(static_cast<size_t>(r) * c);
  const float scale = trueup::ns::inverse_norm(partials, count, eps, slots);
  trueup::ns::gram(G, A, scale * scale, r, c, pool);
}

extern "C" __global__ void __launch_bounds__(trueup::ns::Square::kThreads, 2)
    newton_schulz_gram(const float* __restrict__ X, float* __restrict__ A, int r, int c) {
  __shared__ float4 pool[trueup::ns::Square::kQuadsShared];
  trueup::ns::gram(X, A, 1.0f, r, c, pool);
}

extern "C" __global__ void __launch_bounds__(trueup::ns::Square::kThreads, 2)
    newton_schulz_poly(const float* __restrict__ A, float* __restrict__ B, int r, int c) {
  __shared__ float4 pool[trueup::ns::Square::kQuadsShared];
  const unsigned n = r > c ? c : r;
  if (n % 4 == 0 && trueup::aligned16(A)) {
    trueup::ns::poly_tile<true>(A, B, n, pool);
  } else {
    trueup::ns::poly_tile<false>(A, B, n, pool);
  }
}

extern "C" __global__ void __launch_bounds__(trueup::ns::Square::kThreads, 2)
    newton_schulz_apply_first(const float* __restrict__ G, const float* __restrict__ B,
                              const float* __restrict__ partials, float* __restrict__ X, float eps,
                              int r, int c) {
  __shared__ float4 pool[trueup::ns::Square::kQuadsShared];
  __shared__ float slots[32];
  const unsigned count = trueup::ns::partials_of(static_cast<size_t>(r) * c);
  const float scale = trueup::ns::inverse_norm(partials, count, eps, slots);
  const trueup::ns::Store store{X, static_cast<unsigned>(c), 1.0f};
  trueup::ns::apply_tile(G, B, r, c, pool, store);
}

extern "C" __global__ void __launch_bounds__(trueup::ns::Square::kThreads, 2)
    newton_schulz_apply(const float* __restrict__ X, const float* __restrict__ B,
                        float* __restrict__ Y, int r, int c) {
  __shared__ float4 pool[trueup::ns::Square::kQuadsShared];
  const trueup::ns::Store store{Y, static_cast<unsigned>(c), 1.0f};
  trueup::ns::apply_tile(X, B, r, c, pool, store);
}
