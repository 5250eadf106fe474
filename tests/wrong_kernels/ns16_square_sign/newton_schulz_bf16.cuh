// newton_schulz_bf16.cuh: the quintic Newton-Schulz iteration in bf16 on tensor cores, as launches
// that several contracts share.
//
//   A = X X^T (X^T X where r > c),  B = b A + c A^2,  X <- a X + B X (X B where r > c),  5 times
//
// X, A and B are stored in bf16, every sum is float32 and rounded once. A and B are symmetric and
// n x n, n = min(r, c): only tiles on and below the diagonal are computed, and each is stored twice.
// Nothing is transposed, and G / max(|G|, eps) is never stored (see newton_schulz.cuh).
// Launch: 128 threads a block, one block for each 128 x 128 tile: T (T + 1) / 2 blocks for gram and
// poly, T = ceil(n / 128); ceil(r / 128) ceil(c / 128) for apply. Two blocks share an SM.
// Determinism: each element is summed in the order of k in steps of 16; no atomics.
#pragma once

#include "newton_schulz_parts.cuh"
#include "tensor.cuh"

namespace trueup {
namespace ns16 {

using tensor::Bits;
using tensor::Operand;
using tensor::Rows;
using tensor::Sums;

// Eight neighbours of a row of n elements from i on, changed by change(sum, old) and stored.
// `chunk` says that rows may be read and written sixteen bytes at a time.
template <class Change>
__device__ __forceinline__ void change_eight(const Bits* from, Bits* to, unsigned i, unsigned n,
                                             bool chunk, const float* sums, unsigned step,
                                             Change change) {
  using tensor::widen;
  if (chunk) {
    const uint4 old = *reinterpret_cast<const uint4*>(from + i);
    const auto two = [&](unsigned both, unsigned at) {
      return tensor::pack(change(sums[at * step], widen(static_cast<Bits>(both))),
                          change(sums[(at + 1) * step], widen(static_cast<Bits>(both >> 16))));
    };
    *reinterpret_cast<uint4*>(to + i) = {two(old.x, 0), two(old.y, 2), two(old.z, 4),
                                         two(old.w, 6)};
  } else {
#pragma unroll 1
    for (unsigned at = 0; at < 8 && i + at < n; ++at) {
      const float next = change(sums[at * step], widen(from[i + at]));
      to[i + at] = static_cast<Bits>(tensor::pack(next, 0.0f));
    }
  }
}

// Stores change(sum, element of `old`) of a tile on or below the diagonal of the symmetric C, and
// its mirror image; `old` is symmetric as well.
template <class Change>
__device__ __forceinline__ void store_symmetric(const Sums& sum, uint4* pool, const Bits* old,
                                                Bits* C, unsigned n, ns::Corner corner,
                                                Change change) {
  const bool chunk = n % 8 == 0 && aligned16(C) && aligned16(old);
  const unsigned first_m = corner.row * tensor::kEdge, first_n = corner.column * tensor::kEdge;
  const auto store = [=](unsigned row, unsigned column, const float* s, unsigned step) {
    const size_t at = static_cast<size_t>(row) * n;
    change_eight(old + at, C + at, column, n, chunk, s, step, change);
  };
  tensor::hand_out(
      sum, pool, n - first_m, n - first_n, corner.row != corner.column,
      [=](unsigned row, unsigned column, const float* s, unsigned step) {
        store(first_m + row, first_n + column, s, step);
      },
      [=](unsigned row, unsigned column, const float* s, unsigned step) {
        store(first_n + row, first_m + column, s, step);
      });
}

// A tile of scale X X^T, or of scale X^T X where r > c.
__device__ __forceinline__ void gram(const Bits* X, Bits* A, float scale, unsigned r, unsigned c,
                                     uint4* pool) {
  const ns::Corner corner(blockIdx.x);
  const unsigned n = r > c ? c : r;
  const Operand x(X, n, c);
  Sums sum = {};
  const unsigned first_m = corner.row * tensor::kEdge, first_n = corner.column * tensor::kEdge;
  if (r > c) {
    tensor::gemm_sums<Rows::kAlongEdge, Rows::kAlongEdge>(sum, x, x, r, first_m, first_n, pool);
  } else {
    tensor::gemm_sums<Rows::kAlongK, Rows::kAlongK>(sum, x, x, c, first_m, first_n, pool);
  }
  const bool chunk = n % 8 == 0 && aligned16(A);
  const auto store = [=](unsigned row, unsigned column, const float* s, unsigned step) {
    Bits* const to = A + static_cast<size_t>(row) * n + column;
    const auto two = [=](unsigned at) {
      return tensor::pack(scale * s[at * step], scale * s[(at + 1) * step]);
    };
    if (chunk) {
      *reinterpret_cast<uint4*>(to) = {two(0), two(2), two(4), two(6)};
    } else {
#pragma unroll 1
      for (unsigned at = 0; at < 8 && column + at < n; ++at) {
        to[at] = static_cast<Bits>(tensor::pack(scale * s[at * step], 0.0f));
      }
    }
  };
  tensor::hand_out(
      sum, pool, n - first_m, n - first_n, corner.row != corner.column,
      [=](unsigned row, unsigned column, const float* s, unsigned step) {
        store(first_m + row, first_n + column, s, step);
      },
      [=](unsigned row, unsigned column, const float* s, unsigned step) {
        store(first_n + row, first_m + column, s, step);
      });
}

// A tile of b A + c A A.
__device__ __forceinline__ void poly(const Bits* A, Bits* B, unsigned n, uint4* pool) {
  const ns::Corner corner(blockIdx.x);
  const Operand a(A, n, n);
  Sums sum = {};
  tensor::gemm_sums<Rows::kAlongK, Rows::kAlongK>(sum, a, a, n, corner.row * tensor::kEdge,
                                                  corner.column * tensor::kEdge, pool);
  store_symmetric(sum, pool, A, B, n, corner, [](float product, float old) {
    return fmaf(ns::kB, old, -ns::kC * product);
  });
}

// A tile of a X + B X, or of a X + X B where r > c; emit(row, column, first of eight sums of B X,
// step between them) for each eight of it.
template <class Emit>
__device__ __forceinline__ void apply(const Bits* X, const Bits* B, unsigned r, unsigned c,
                                      uint4* pool, Emit emit) {
  const unsigned n = r > c ? c : r;
  const unsigned across = (c - 1) / tensor::kEdge + 1;
  const unsigned first_m = blockIdx.x / across * tensor::kEdge;
  const unsigned first_n = blockIdx.x % across * tensor::kEdge;
  Sums sum = {};
  if (r > c) {  // B is symmetric: its rows serve as columns
    tensor::gemm_sums<Rows::kAlongK, Rows::kAlongK>(sum, Operand(X, r, c), Operand(B, n, n), n,
                                                    first_m, first_n, pool);
  } else {
    tensor::gemm_sums<Rows::kAlongK, Rows::kAlongEdge>(sum, Operand(B, n, n), Operand(X, c, c), n,
                                                       first_m, first_n, pool);
  }
  tensor::hand_out(
      sum, pool, r - first_m, c - first_n, false,
      [=](unsigned row, unsigned column, const float* s, unsigned step) {
        emit(first_m + row, first_n + column, s, step);
      },
      [](unsigned, unsigned, const float*, unsigned) {});
}

// Stores scale (a X + B X) in bf16.
struct Store {
  const Bits* X;
  Bits* to;
  unsigned c;
  float scale;
  __device__ __forceinline__ void operator()(unsigned row, unsigned column, const float* s,
                                             unsigned step) const {
    const size_t at = static_cast<size_t>(row) * c;
    const float by = scale;
    change_eight(X + at, to + at, column, c, c % 8 == 0 && aligned16(X) && aligned16(to), s, step,
                 [by](float product, float old) { return by * fmaf(ns::kA, old, product); });
  }
};

// 1 / max(|G|, eps) for the block, through the pool, which is free afterwards.
__device__ __forceinline__ float inverse_norm(const float* partials, int r, int c, float eps,
                                              uint4* pool) {
  const unsigned count = ns::partials_of(static_cast<size_t>(r) * c);
  const float scale = ns::inverse_norm(partials, count, eps, reinterpret_cast<float*>(pool));
  __syncthreads();
  return scale;
}

}  // namespace ns16
}  // namespace trueup

extern "C" __global__ void __launch_bounds__(trueup::tensor::kThreads, 2)
    newton_schulz_bf16_gram_first(const unsigned short* __restrict__ G,
                                  const float* __restrict__ partials,
                                  unsigned short* __restrict__ A, float eps, int r, int c) {
  __shared__ uint4 pool[trueup::tensor::kPool];
  const float scale = trueup::ns16::inverse_norm(partials, r, c, eps, pool);
  trueup::ns16::gram(G, A, scale * scale, r, c, pool);
}

extern "C" __global__ void __launch_bounds__(trueup::tensor::kThreads, 2)
    newton_schulz_bf16_gram(const unsigned short* __restrict__ X, unsigned short* __restrict__ A,
                            int r, int c) {
  __shared__ uint4 pool[trueup::tensor::kPool];
  trueup::ns16::gram(X, A, 1.0f, r, c, pool);
}

extern "C" __global__ void __launch_bounds__(trueup::tensor::kThreads, 2)
    newton_schulz_bf16_poly(const unsigned short* __restrict__ A, unsigned short* __restrict__ B,
                            int r, int c) {
  __shared__ uint4 pool[trueup::tensor::kPool];
  trueup::ns16::poly(A, B, r > c ? c : r, pool);
}

extern "C" __global__ void __launch_bounds__(trueup::tensor::kThreads, 2)
    newton_schulz_bf16_apply_first(const unsigned short* __restrict__ G,
                                   const unsigned short* __restrict__ B,
                                   const float* __restrict__ partials,
                                   unsigned short* __restrict__ X, float eps, int r, int c) {
  __shared__ uint4 pool[trueup::tensor::kPool];
  const float scale = trueup::ns16::inverse_norm(partials, r, c, eps, pool);
  const trueup::ns16::Store store{G, X, static_cast<unsigned>(c), scale};
  trueup::ns16::apply(G, B, r, c, pool, store);
}

extern "C" __global__ void __launch_bounds__(trueup::tensor::kThreads, 2)
    newton_schulz_bf16_apply(const unsigned short* __restrict__ X,
                             const unsigned short* __restrict__ B,
                             unsigned short* __restrict__ Y, int r, int c) {
  __shared__ uint4 pool[trueup::tensor::kPool];
  const trueup::ns16::Store store{X, Y, static_cast<unsigned>(c), 1.0f};
  trueup::ns16::apply(X, B, r, c, pool, store);
}
