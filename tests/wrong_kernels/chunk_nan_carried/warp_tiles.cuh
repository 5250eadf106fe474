// warp_tiles.cuh: sums of 32 x 64 products A B^T, one warp's, on tensor cores, from staged panels.
//
// A warp takes 32 rows of A and 64 of B, so that a number is brought from shared memory and split
// as seldom as registers allow: 48 accesses' worth of banks and 3 instructions of splitting for
// each two products. A panel holds 32 k of one operand. Group g of a fragment's lanes stands for
// the neighbours place(g) to place(g) + 3 of each 32 rows, and turn t for k = 4 t to 4 t + 3 of
// each 16: every access to a panel is one of 16 bytes and meets no bank twice, and a lane's sums
// are neighbours of four rows and of four columns, for accesses of 16 bytes to global memory too.
//
// Precision::kSplit: float32 to about 22 bits (mma.cuh); Precision::kTf32: the factors rounded.
// kLong: the small products stay on the tensor core for all k, for sums of many k.
// Where split factors will not do (fewer than kShortest k, sums that are not finite), the warp
// sums again by fmaf in the order of k, straight from global memory.
#pragma once

#include "tensor_tiles.cuh"

namespace trueup {

__device__ __forceinline__ unsigned place(unsigned group) {
  return group % 2 * 16 + group / 2 * 4;
}

// Element (i, k) of an operand that lies along k or across it; 0 beyond it and where not kept.
template <bool kAlong>
__device__ __forceinline__ float element(const Operand& from, unsigned i, unsigned k) {
  const unsigned row = kAlong ? i : k, column = kAlong ? k : i;
  if (row >= from.rows || column >= from.columns) return 0.0f;
  if (from.keep != nullptr && from.keep[row] == 0) return 0.0f;
  return from.data[static_cast<size_t>(row) * from.columns + column];
}

// 32 k of kSize rows of an operand, fetched by kThreads threads.
template <bool kAlongK, int kSize, int kThreads>
struct Panel {
  static constexpr bool kAlong = kAlongK;
  static constexpr unsigned kDepth = 32;
  static constexpr unsigned kColumns = kAlong ? kDepth : kSize;  // of memory
  static constexpr unsigned kFloats = kDepth * kSize;
  static constexpr unsigned kAcross = kColumns / 4, kPieces = kFloats / 4 / kThreads;
  static_assert(kPieces * kThreads * 4 == kFloats, "a panel is shared out evenly");

  // Four neighbours stay together.
  static __device__ __forceinline__ unsigned at(unsigned row, unsigned column) {
    return row * kColumns + (column ^ (kAlong ? row / 16 % 2 * 16 : row / 4 % 4 * 4));
  }

  template <bool kVector>
  static __device__ __forceinline__ void fetch(float* panel, const Operand& from, unsigned row,
                                               unsigned column) {
    const unsigned r = threadIdx.x / kAcross, c = threadIdx.x % kAcross * 4;
#pragma unroll
    for (unsigned p = 0; p < kPieces; ++p) {
      const unsigned here = r + p * (kThreads / kAcross);
      unsigned there = 0;
      const float* source = from.data;
      if (row + here < from.rows && column + c < from.columns &&
          (from.keep == nullptr || from.keep[row + here] != 0)) {
        there = min(from.columns - column - c, 4u);
        source += static_cast<size_t>(row + here) * from.columns + column + c;
      }
      transfer<kVector>(panel + at(here, c), source, there);
    }
  }

  // Rows of the operand from `first` on, from k on.
  static __device__ __forceinline__ void fetch(float* panel, const Operand& from, unsigned first,
                                               unsigned k) {
    if (from.vector()) {
      fetch<true>(panel, from, kAlong ? first : k, kAlong ? k : first);
    } else {
      fetch<false>(panel, from, kAlong ? first : k, kAlong ? k : first);
    }
  }

  // v[q][x]: of the row place(group) + q from `first` on, k = 4 turn + x of a half of the panel.
  static __device__ __forceinline__ void take(float (&v)[4][4], const float* panel, unsigned first,
                                              unsigned half, const Lane& lane) {
#pragma unroll
    for (unsigned n = 0; n < 4; ++n) {
      const unsigned i = first + place(lane.group), k = 16 * half + 4 * lane.turn;
      const float4 quad =
          *reinterpret_cast<const float4*>(panel + (kAlong ? at(i + n, k) : at(k + n, i)));
      if constexpr (kAlong) {
        v[n][0] = quad.x, v[n][1] = quad.y, v[n][2] = quad.z, v[n][3] = quad.w;
      } else {
        v[0][n] = quad.x, v[1][n] = quad.y, v[2][n] = quad.z, v[3][n] = quad.w;
      }
    }
  }
};

// (row, column) from the warp's first row and the tile's first column on.
template <Precision kPrecision, bool kLong>
struct WarpTile {
  static constexpr unsigned kRows = 32, kColumns = 64;
  float sum[2][8][4];
  float small[2][8][4];  // if kLong

  // Where the lane's element (q, j, p) is: rows 0 to 3, columns 0 to 7, and 16 columns on if p.
  static __device__ __forceinline__ unsigned row(unsigned q, const Lane& lane) {
    return place(lane.group) + q;
  }
  static __device__ __forceinline__ unsigned column(unsigned j, unsigned p, const Lane& lane) {
    return j / 4 * 32 + p * 16 + 4 * lane.turn + j % 4;
  }
  __device__ __forceinline__ float& at(unsigned q, unsigned j, unsigned p) {
    return sum[q / 2][j][q % 2 * 2 + p];
  }
  __device__ __forceinline__ float4 down(unsigned j, unsigned p) {
    return {at(0, j, p), at(1, j, p), at(2, j, p), at(3, j, p)};
  }
  __device__ __forceinline__ float4 across(unsigned q, unsigned half, unsigned p) {
    return {at(q, 4 * half, p), at(q, 4 * half + 1, p), at(q, 4 * half + 2, p),
            at(q, 4 * half + 3, p)};
  }

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int e = 0; e < 64; ++e) {
      sum[e / 32][e / 4 % 8][e % 4] = 0.0f;
      if constexpr (kLong) small[e / 32][e / 4 % 8][e % 4] = 0.0f;
    }
  }

  static __device__ __forceinline__ void set(Split& to, float x) {
    if constexpr (kPrecision == Precision::kSplit) {
      to.set_both(x);
    } else {
      to.set(x);
    }
  }

  __device__ __forceinline__ void multiply(int i, int j, const Left& left, const Right& right) {
    if constexpr (kPrecision == Precision::kTf32) {
      multiply_add_tf32(sum[i][j], left, right);
    } else if constexpr (kLong) {
      float large[4] = {};
      multiply_steps(small[i][j], large, left, right);
#pragma unroll
      for (int e = 0; e < 4; ++e) sum[i][j][e] += large[e];
    } else {
      multiply_add(sum[i][j], left, right);
    }
  }

  // Adds the products of two panels, A's rows from `first` on; `columns` of the 64 exist.
  template <class A, class B>
  __device__ __forceinline__ void add(const float* a, unsigned first, const float* b,
                                      unsigned columns) {
    const Lane lane;
#pragma unroll 1  // more would hoist loads beyond the registers that there are
    for (unsigned half = 0; half < 2; ++half) {
      float v[4][4];
      Left left[2];
      A::take(v, a, first, half, lane);
#pragma unroll
      for (int e = 0; e < 16; ++e) {
        set(left[e / 8].at[e / 2 % 2][e / 4 % 2 + e % 2 * 2], v[e / 4][e % 4]);
      }
#pragma unroll
      for (int group = 0; group < 2; ++group) {
        if (32u * group >= columns) break;
        B::take(v, b, 32 * group, half, lane);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          Right right;
#pragma unroll
          for (int e = 0; e < 4; ++e) set(right.at[e / 2][e % 2], v[j][e]);
          multiply(0, 4 * group + j, left[0], right);
          multiply(1, 4 * group + j, left[1], right);
        }
      }
    }
  }

  // Brings the small products in, which ends the sums. False where one is not finite.
  __device__ __forceinline__ bool settle() {
    bool finite = true;
#pragma unroll
    for (int e = 0; e < 64; ++e) {
      float& s = sum[e / 32][e / 4 % 8][e % 4];
      if constexpr (kLong && kPrecision == Precision::kSplit) {
        s = fmaf(small[e / 32][e / 4 % 8][e % 4], 1.0f / kLow, s);
      }
      finite = finite && isfinite(s);
    }
    return __all_sync(kWholeWarp, finite);
  }

  // The same sums by fmaf, over k from `begin` to `end`.
  template <bool kAlongA, bool kAlongB>
  __device__ __forceinline__ void add_plainly(const Operand& a, const Operand& b, unsigned m,
                                              unsigned n, unsigned begin, unsigned end) {
    const Lane lane;
    clear();
#pragma unroll 1
    for (unsigned k = begin; k < end; ++k) {
      float of_a[4];
#pragma unroll
      for (unsigned q = 0; q < 4; ++q) of_a[q] = element<kAlongA>(a, m + row(q, lane), k);
#pragma unroll
      for (unsigned c = 0; c < 16; ++c) {
        const float of_b = element<kAlongB>(b, n + column(c / 2, c % 2, lane), k);
#pragma unroll
        for (unsigned q = 0; q < 4; ++q) {
          at(q, c / 2, c % 2) = fmaf(of_a[q], of_b, at(q, c / 2, c % 2));
        }
      }
    }
  }
};

// Up to four neighbours.
__device__ __forceinline__ float4 load_some(const float* from, unsigned some) {
  return {from[0], some > 1 ? from[1] : 0.0f, some > 2 ? from[2] : 0.0f,
          some > 3 ? from[3] : 0.0f};
}

__device__ __forceinline__ void store_some(float* to, float4 v, unsigned some) {
  to[0] = v.x;
  if (some > 1) to[1] = v.y;
  if (some > 2) to[2] = v.z;
  if (some > 3) to[3] = v.w;
}

}  // namespace trueup
