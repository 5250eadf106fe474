// gemm.cuh: one block's tile of a float32 product A B, any shape, in a fixed order of summation.
//
// A is (M, K) row-major, or (K, M) for A^T B. B is (K, N) row-major, or (N, K) for A B^T. Tiles of
// K steps go through two shared buffers: while one is multiplied, the next is on its way in
// registers. Each element is a chain of fmaf in the order of k; with kSplits > 1, the chain is cut
// into kSplits chains inside the block (each tile's k in turn), added in a fixed tree.
// A block is kThreads threads; in `gemm` its number decides its tile: blockIdx.x counts tiles along
// N first. kVector: 16-byte loads, for operands that are 16-byte aligned with rows of a multiple
// of 4 elements.
#pragma once

#include "common.cuh"

namespace trueup {

enum class First { kPlain, kTransposed };   // A as (M, K), or as (K, M)
enum class Second { kPlain, kTransposed };  // B as (K, N), or as (N, K)

template <bool kFirst, class A, class B>
struct Select {
  using type = A;
};
template <class A, class B>
struct Select<false, A, B> {
  using type = B;
};

struct Sizes {
  unsigned m, n, k;
};

template <int kBlockM, int kBlockN, int kBlockK, int kSplits>
struct Tile {
  static constexpr int kRows = 8, kColumns = 8;  // of one thread, as 2 x 2 quads of 4 x 4
  static constexpr int kThreadRows = kBlockM / kRows;
  static constexpr int kThreadColumns = kBlockN / kColumns;
  static constexpr int kGroup = kThreadRows * kThreadColumns;  // threads of one split
  static constexpr int kThreads = kGroup * kSplits;
  static constexpr int kStrideA = kBlockM + 4;  // padded: a transposing store meets few conflicts
  static constexpr int kStrideB = kBlockN + 4;
  static constexpr int kStage = kBlockK * (kStrideA + kStrideB);
  static constexpr int kPartial = kSplits / 2 * kGroup * kRows * kColumns;
  static constexpr int kQuadsShared = (2 * kStage > kPartial ? 2 * kStage : kPartial) / 4;
  static constexpr int kQuadsA = kBlockM * kBlockK / 4 / kThreads;
  static constexpr int kQuadsB = kBlockN * kBlockK / 4 / kThreads;
  static_assert(kThreadRows % 4 == 0 && kThreadColumns % 8 == 0, "a warp is 4 x 8 threads");
  static_assert(kQuadsA * kThreads * 4 == kBlockM * kBlockK, "A's tile is shared out evenly");
  static_assert(kQuadsB * kThreads * 4 == kBlockN * kBlockK, "B's tile is shared out evenly");
  static_assert(kBlockK % kSplits == 0, "each split takes as many k of a tile");
};

// Where a thread's 8 x 8 elements lie in its block's tile: rows row + {0..3} and, half a tile
// below, row + kBlockM / 2 + {0..3}; columns alike. The split it works for is `group`.
template <class T>
struct Place {
  unsigned group, row, column;
  __device__ __forceinline__ Place() {
    constexpr unsigned kWarpColumns = T::kThreadColumns / 8;
    const unsigned t = threadIdx.x % T::kGroup;
    const unsigned warp = t / kWarp;
    const unsigned lane = t % kWarp;
    group = threadIdx.x / T::kGroup;
    row = 4 * (warp / kWarpColumns * 4 + lane / 8);
    column = 4 * (warp % kWarpColumns * 8 + lane % 8);
  }
};

// Four neighbours of a row of n elements, from i on; beyond the row, 0.
template <bool kVector>
__device__ __forceinline__ float4 load_four(const float* row, unsigned i, unsigned n) {
  float4 v = {0.0f, 0.0f, 0.0f, 0.0f};
  if constexpr (kVector) {
    if (i < n) v = *reinterpret_cast<const float4*>(row + i);
  } else {
    if (i < n) v.x = row[i];
    if (i + 1 < n) v.y = row[i + 1];
    if (i + 2 < n) v.z = row[i + 2];
    if (i + 3 < n) v.w = row[i + 3];
  }
  return v;
}

// A tile of kMajor rows x kBlockK, from a matrix whose rows run along k; stored k-major.
template <bool kVector, int kQuads, int kThreads, int kBlockK>
struct AlongK {
  float4 staged[kQuads];
  __device__ __forceinline__ void fetch(const float* source, unsigned first, unsigned rows,
                                        unsigned k0, unsigned k) {
#pragma unroll
    for (int q = 0; q < kQuads; ++q) {
      const unsigned at = threadIdx.x + q * kThreads;
      const unsigned row = first + at / (kBlockK / 4);
      const unsigned i = k0 + at % (kBlockK / 4) * 4;
      staged[q] = row < rows ? load_four<kVector>(source + static_cast<size_t>(row) * k, i, k)
                             : float4{0.0f, 0.0f, 0.0f, 0.0f};
    }
  }
  template <int kStride>
  __device__ __forceinline__ void put(float* tile) const {
#pragma unroll
    for (int q = 0; q < kQuads; ++q) {
      const unsigned at = threadIdx.x + q * kThreads;
      float* const to = tile + at % (kBlockK / 4) * 4 * kStride + at / (kBlockK / 4);
      to[0] = staged[q].x;
      to[kStride] = staged[q].y;
      to[2 * kStride] = staged[q].z;
      to[3 * kStride] = staged[q].w;
    }
  }
};

// A tile of kBlockK rows x kWidth, from a matrix whose rows run along n.
template <bool kVector, int kQuads, int kThreads, int kWidth>
struct AcrossK {
  float4 staged[kQuads];
  __device__ __forceinline__ void fetch(const float* source, unsigned first, unsigned n,
                                        unsigned k0, unsigned k) {
#pragma unroll
    for (int q = 0; q < kQuads; ++q) {
      const unsigned at = threadIdx.x + q * kThreads;
      const unsigned row = k0 + at / (kWidth / 4);
      const unsigned i = first + at % (kWidth / 4) * 4;
      staged[q] = row < k ? load_four<kVector>(source + static_cast<size_t>(row) * n, i, n)
                          : float4{0.0f, 0.0f, 0.0f, 0.0f};
    }
  }
  template <int kStride>
  __device__ __forceinline__ void put(float* tile) const {
#pragma unroll
    for (int q = 0; q < kQuads; ++q) {
      const unsigned at = threadIdx.x + q * kThreads;
      float* const to = tile + at / (kWidth / 4) * kStride + at % (kWidth / 4) * 4;
      *reinterpret_cast<float4*>(to) = staged[q];
    }
  }
};

template <int kHalf>
__device__ __forceinline__ void take8(float (&to)[8], const float* from) {
  const float4 low = *reinterpret_cast<const float4*>(from);
  const float4 high = *reinterpret_cast<const float4*>(from + kHalf);
  to[0] = low.x, to[1] = low.y, to[2] = low.z, to[3] = low.w;
  to[4] = high.x, to[5] = high.y, to[6] = high.z, to[7] = high.w;
}

template <class T, int kBlockM, int kBlockN, int kSteps>
__device__ __forceinline__ void multiply(float (&sum)[8][8], const float* a, const float* b) {
#pragma unroll 2  // more would hoist loads beyond 128 registers, the limit for two blocks on an SM
  for (int k = 0; k < kSteps; ++k) {
    float left[8];
    float right[8];
    take8<kBlockM / 2>(left, a + k * T::kStrideA);
    take8<kBlockN / 2>(right, b + k * T::kStrideB);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
#pragma unroll
      for (int j = 0; j < 8; ++j) sum[i][j] = fmaf(left[i], right[j], sum[i][j]);
    }
  }
}

// Adds the splits' sums into those of group 0: s and s + half, half = kSplits / 2, ..., 1.
template <class T, int kSplits>
__device__ __forceinline__ void add_splits(float (&sum)[8][8], float* pool, unsigned group) {
  const unsigned t = threadIdx.x % T::kGroup;
#pragma unroll
  for (int half = kSplits / 2; half > 0; half /= 2) {
    __syncthreads();  // the pool's last readers are done
    if (group >= half && group < 2 * half) {
      float* const to = pool + (group - half) * T::kGroup * 64 + t;
#pragma unroll
      for (int i = 0; i < 64; ++i) to[i * T::kGroup] = sum[i / 8][i % 8];
    }
    if (group < half) {
      const float* const from = pool + group * T::kGroup * 64 + t;
#pragma unroll
      for (int i = 0; i < 64; ++i) sum[i / 8][i % 8] += from[i * T::kGroup];
    }
  }
}

// The sums of one tile of A B, whose corner is (first_m, first_n), through `pool`:
// Tile::kQuadsShared quads of shared memory. They are whole in the threads of group 0. Between two
// calls with one pool, the caller puts a barrier.
template <int kBlockM, int kBlockN, int kBlockK, int kSplits, First kFirst, Second kSecond,
          bool kVector>
__device__ __forceinline__ void gemm_sums(float (&sum)[8][8], const float* A, const float* B,
                                          Sizes size, unsigned first_m, unsigned first_n,
                                          float4* pool4) {
  using T = Tile<kBlockM, kBlockN, kBlockK, kSplits>;
  float* const pool = reinterpret_cast<float*>(pool4);
  constexpr bool kPlainA = kFirst == First::kPlain;
  typename Select<kPlainA, AlongK<kVector, T::kQuadsA, T::kThreads, kBlockK>,
                  AcrossK<kVector, T::kQuadsA, T::kThreads, kBlockM>>::type left;
  constexpr bool kPlain = kSecond == Second::kPlain;
  typename Select<kPlain, AcrossK<kVector, T::kQuadsB, T::kThreads, kBlockN>,
                  AlongK<kVector, T::kQuadsB, T::kThreads, kBlockK>>::type right;

  const Place<T> place;
#ifdef __CUHOST__  // there every thread takes its turn: one without an element need not multiply
  const bool busy = first_m + place.row < size.m && first_n + place.column < size.n;
#else
  constexpr bool busy = true;
#endif
  left.fetch(A, first_m, size.m, 0, size.k);
  right.fetch(B, first_n, size.n, 0, size.k);
  left.template put<T::kStrideA>(pool);
  right.template put<T::kStrideB>(pool + kBlockK * T::kStrideA);
  __syncthreads();
  unsigned turn = 0;
  for (unsigned k0 = 0; k0 < size.k; k0 += kBlockK) {
    const bool more = size.k - k0 > kBlockK;
    if (more) {
      left.fetch(A, first_m, size.m, k0 + kBlockK, size.k);
      right.fetch(B, first_n, size.n, k0 + kBlockK, size.k);
    }
    constexpr int kSteps = kBlockK / kSplits;
    const float* const a = pool + turn * T::kStage + place.group * kSteps * T::kStrideA;
    const float* const b = pool + turn * T::kStage + kBlockK * T::kStrideA +
                           place.group * kSteps * T::kStrideB;
    if (busy) multiply<T, kBlockM, kBlockN, kSteps>(sum, a + place.row, b + place.column);
    if (more) {
      turn ^= 1;
      left.template put<T::kStrideA>(pool + turn * T::kStage);
      right.template put<T::kStrideB>(pool + turn * T::kStage + kBlockK * T::kStrideA);
      __syncthreads();
    }
  }
  add_splits<T, kSplits>(sum, pool, place.group);
}

// One tile of A B. emit(row, column, quad of sums) is called for each quad with its row and first
// column inside (M, N).
template <int kBlockM, int kBlockN, int kBlockK, int kSplits, First kFirst, Second kSecond,
          bool kVector, class Emit>
__device__ __forceinline__ void gemm_tile(const float* A, const float* B, Sizes size,
                                          unsigned first_m, unsigned first_n, float4* pool,
                                          Emit emit) {
  const Place<Tile<kBlockM, kBlockN, kBlockK, kSplits>> place;
  float sum[8][8] = {};
  gemm_sums<kBlockM, kBlockN, kBlockK, kSplits, kFirst, kSecond, kVector>(sum, A, B, size, first_m,
                                                                          first_n, pool);
  if (place.group != 0) return;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const unsigned row = first_m + place.row + i % 4 + i / 4 * (kBlockM / 2);
    if (row >= size.m) continue;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const unsigned column = first_n + place.column + half * (kBlockN / 2);
      const float* const s = sum[i] + 4 * half;
      if (column < size.n) emit(row, column, float4{s[0], s[1], s[2], s[3]});
    }
  }
}

// The block's tile of A B.
template <int kBlockM, int kBlockN, int kBlockK, int kSplits, Second kSecond, bool kVector,
          class Emit>
__device__ __forceinline__ void gemm(const float* A, const float* B, Sizes size, float4* pool,
                                     Emit emit) {
  const unsigned tiles_n = (size.n - 1) / kBlockN + 1;
  gemm_tile<kBlockM, kBlockN, kBlockK, kSplits, First::kPlain, kSecond, kVector>(
      A, B, size, blockIdx.x / tiles_n * kBlockM, blockIdx.x % tiles_n * kBlockN, pool, emit);
}

}  // namespace trueup
