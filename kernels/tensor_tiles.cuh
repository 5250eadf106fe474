// tensor_tiles.cuh: one block's tile of a float32 product A B^T on tensor cores, any shape.
//
// A is (M, K), B is (N, K). Each lies in memory along k (element (m, k) at m * pitch + k) or across
// k (at k * pitch + m); rows of memory whose `keep` is 0 read as 0, whatever they hold. Tiles of
// kDepth k pass through kStages stages of shared memory; every warp sums 32 x 32 elements by
// mma.cuh, in kGroups groups of warps that share out the k of a tile and are added in a fixed tree.
//
// Precision::kSplit: products of split factors, float32 to about 22 bits. Fewer than kShortest k
// are summed by fmaf instead: bounds on short sums are too tight for that. Precision::kTf32: the
// factors rounded to tf32.
// Split factors turn infinity into NaN: where a block finds a sum that is not finite, it sums its
// tile again by fmaf, and so gives NaN and infinity as float32 arithmetic does.
#pragma once

#include "mma.cuh"
#include "stage.cuh"

namespace trueup {

enum class Precision { kSplit, kTf32 };

constexpr unsigned kShortest = 32;

// A matrix as it lies in memory: `rows` rows of `columns` elements.
struct Operand {
  const float* data;
  unsigned rows, columns;
  const unsigned char* keep;  // one for each row; null: all are kept

  __device__ __forceinline__ bool vector() const {
    return columns % 4 == 0 && aligned16(data);
  }
};

// The thread's number, read anew: places worked out from it are not kept in registers meanwhile.
__device__ __forceinline__ unsigned thread_again() {
#ifdef __CUHOST__
  return threadIdx.x;
#else
  unsigned thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread;
#endif
}

template <bool kVector, int kRows, int kColumns, int kStride, int kThreads>
__device__ __forceinline__ void transfer_kept(float* tile, const Operand& from, unsigned row,
                                              unsigned column) {
  constexpr unsigned kAcross = kColumns / 4, kPieces = kRows * kAcross / kThreads;
  static_assert(kPieces * kThreads == kRows * kAcross, "a tile is shared out evenly");
#pragma unroll 1
  for (unsigned p = 0; p < kPieces; ++p) {
    const unsigned at = thread_again() + p * kThreads;
    const unsigned r = at / kAcross, c = at % kAcross * 4;
    unsigned there = 0;
    const float* source = from.data;
    if (row + r < from.rows && column + c < from.columns &&
        (from.keep == nullptr || from.keep[row + r] != 0)) {
      there = min(from.columns - column - c, 4u);
      source = from.data + static_cast<size_t>(row + r) * from.columns + column + c;
    }
    transfer<kVector>(tile + r * kStride + c, source, there);
  }
}

template <int kRows, int kColumns, int kStride, int kThreads>
__device__ __forceinline__ void transfer_kept(float* tile, const Operand& from, unsigned row,
                                              unsigned column) {
  if (from.vector()) {
    transfer_kept<true, kRows, kColumns, kStride, kThreads>(tile, from, row, column);
  } else {
    transfer_kept<false, kRows, kColumns, kStride, kThreads>(tile, from, row, column);
  }
}

// How an operand's tile lies in shared memory: kSize rows or columns of it, kDepth k. kMixed: the
// other operand lies the other way, so that both take their k in the order of `along`.
template <bool kAlong, bool kMixed, int kSize, int kDepth, int kThreads>
struct Staged {
  static constexpr int kRows = kAlong ? kSize : kDepth, kColumns = kAlong ? kDepth : kSize;
  static constexpr int kStride = kColumns + (kMixed && !kAlong ? 8 : 4);  // no bank is met twice
  static constexpr int kFloats = kRows * kStride;

  static __device__ __forceinline__ void fetch(float* tile, const Operand& from, unsigned first,
                                               unsigned k) {
    transfer_kept<kRows, kColumns, kStride, kThreads>(tile, from, kAlong ? first : k,
                                                      kAlong ? k : first);
  }
  static __device__ __forceinline__ float at(const float* tile, unsigned i, unsigned k) {
    return kAlong ? tile[i * kStride + k] : tile[k * kStride + i];
  }
  static __device__ __forceinline__ void take_in_order(Left& to, const float* tile,
                                                       const Lane& lane) {
#pragma unroll
    for (int s = 0; s < 2; ++s) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const unsigned k = 8 * s + lane.turn + e / 2 * 4;
        to.at[s][e].set(tile[k * kStride + lane.group + e % 2 * 8]);
      }
    }
  }
  static __device__ __forceinline__ void take_in_order(Right& to, const float* tile,
                                                       const Lane& lane) {
#pragma unroll
    for (int s = 0; s < 2; ++s) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        to.at[s][e].set(tile[(8 * s + lane.turn + e * 4) * kStride + lane.group]);
      }
    }
  }
  template <class Fragment>
  static __device__ __forceinline__ void take(Fragment& to, const float* tile, unsigned i,
                                              unsigned k, const Lane& lane) {
    if constexpr (kAlong) {
      take_along(to, tile + i * kStride + k, kStride, lane);
    } else if constexpr (kMixed) {
      take_in_order(to, tile + k * kStride + i, lane);
    } else {
      take_across(to, tile + k * kStride + i, kStride, lane);
    }
  }
};

// c += a b over 16 k, the factors rounded to tf32.
__device__ __forceinline__ void multiply_add_tf32(float (&c)[4], const Left& a, const Right& b) {
  float large[4] = {};
#ifdef __CUHOST__
  float small[4] = {};
  multiply_steps(small, large, a, b);
#else
#pragma unroll
  for (int s = 0; s < 2; ++s) {
    const Split(&x)[4] = a.at[s];
    mma_tf32(large, x[0].high, x[1].high, x[2].high, x[3].high, b.at[s][0].high,
             b.at[s][1].high);
  }
#endif
#pragma unroll
  for (int i = 0; i < 4; ++i) c[i] += large[i];
}

// What a stage goes through before it is multiplied: nothing.
struct AsItIs {
  static constexpr bool kUsed = false;
  __device__ __forceinline__ void fetch(float*, unsigned) const {}
  __device__ __forceinline__ void change(float*) const {}
};

template <int kM, int kN, int kDepth, int kGroups, int kStages, bool kAlongA, bool kAlongB,
          Precision kPrecision, int kExtra = 0>
struct TensorTile {
  static constexpr int kWarpsN = kN / 32;
  static constexpr int kGroup = kM / 32 * kWarpsN * 32;  // threads of a group
  static constexpr int kThreads = kGroup * kGroups;
  static constexpr bool kMixed = kAlongA != kAlongB;
  using A = Staged<kAlongA, kMixed, kM, kDepth, kThreads>;
  using B = Staged<kAlongB, kMixed, kN, kDepth, kThreads>;
  static constexpr int kStage = A::kFloats + B::kFloats + kExtra;
  static constexpr int kShare = kDepth / kGroups;  // k of a tile, of one group
  static constexpr int kPartial = kGroups / 2 * kGroup * 32;
  static constexpr int kFloats = kStages * kStage > kPartial ? kStages * kStage : kPartial;
  static_assert(kShare % 16 == 0, "a group takes 16 k at a time");

  float sum[4][2][4];  // of four tiles across, two down, of 16 x 8
  unsigned first_m, first_n;

  static __device__ __forceinline__ unsigned group() { return thread_again() / kGroup; }
  static __device__ __forceinline__ unsigned warp_m() {
    return thread_again() % kGroup / kWarp / kWarpsN * 32;
  }
  static __device__ __forceinline__ unsigned warp_n() {
    return thread_again() % kGroup / kWarp % kWarpsN * 32;
  }
  // Where sum[e / 8][e / 4 % 2][e % 4] lies in the block's tile.
  static __device__ __forceinline__ unsigned m_of(int e, const Lane& lane) {
    return warp_m() + e / 4 % 2 * 16 + e / 2 % 2 * 8 + lane.group;
  }
  static __device__ __forceinline__ unsigned n_of(int e, const Lane& lane) {
    return warp_n() + e / 8 * 8 + 2 * lane.turn + e % 2;
  }
  __device__ __forceinline__ float& at(int e) { return sum[e / 8][e / 4 % 2][e % 4]; }

  __device__ __forceinline__ void multiply(const float* stage) {
    const Lane lane;
#pragma unroll 1  // more would hoist loads beyond the 128 registers of two blocks on an SM
    for (int step = 0; step < kShare / 16; ++step) {
      const unsigned k = group() * kShare + step * 16;
      Left left[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) A::take(left[i], stage, warp_m() + 16 * i, k, lane);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        Right right;
        B::take(right, stage + A::kFloats, warp_n() + 8 * j, k, lane);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          if constexpr (kPrecision == Precision::kSplit) {
            multiply_add(sum[j][i], left[i], right);
          } else {
            multiply_add_tf32(sum[j][i], left[i], right);
          }
        }
      }
    }
  }

  // The same by fmaf, in the order of k; `depth` of the tile's k exist.
  __device__ __forceinline__ void multiply_plain(const float* stage, unsigned depth) {
    const Lane lane;
    const unsigned end = min(depth, (group() + 1) * kShare);
    for (unsigned k = group() * kShare; k < end; ++k) {
#pragma unroll
      for (int e = 0; e < 32; ++e) {
        at(e) = fmaf(A::at(stage, m_of(e, lane), k),
                     B::at(stage + A::kFloats, n_of(e, lane), k), at(e));
      }
    }
  }

  // Adds the groups' sums into those of group 0: s and s + half, half = kGroups / 2, ..., 1.
  __device__ __forceinline__ void add_groups(float* pool) {
    const unsigned t = threadIdx.x % kGroup;
#pragma unroll
    for (int half = kGroups / 2; half > 0; half /= 2) {
      __syncthreads();  // the pool's last readers are done
      if (group() >= half && group() < 2 * half) {
        float* const to = pool + (group() - half) * kGroup * 32 + t;
#pragma unroll
        for (int e = 0; e < 32; ++e) to[e * kGroup] = at(e);
      }
      __syncthreads();
      if (group() < half) {
        const float* const from = pool + group() * kGroup * 32 + t;
#pragma unroll
        for (int e = 0; e < 32; ++e) at(e) += from[e * kGroup];
      }
    }
  }

  // Whether all of A's tiles stay in the stages: a further tile of the same rows may reuse them.
  static __device__ __forceinline__ bool stays(unsigned K) {
    return kGroups == 1 && K <= kStages * kDepth;
  }

  template <class Stage>
  __device__ __forceinline__ void add_up(const Operand& a, const Operand& b, unsigned M,
                                         unsigned N, unsigned K, float* pool, bool plain,
                                         bool reuse, const Stage& hook) {
#pragma unroll
    for (int e = 0; e < 32; ++e) at(e) = 0.0f;
    const auto fetch = [&](float* stage, unsigned k) {
      if (k < K) {
        if (!reuse) {
          A::fetch(stage, a, first_m, k);
          hook.fetch(stage + A::kFloats + B::kFloats, k);
        }
        B::fetch(stage + A::kFloats, b, first_n, k);
      }
      transfers_commit();
    };
    __syncthreads();  // of an earlier turn, or of what the caller kept in the pool
    for (unsigned s = 0; s < kStages - 1; ++s) fetch(pool + s * kStage, s * kDepth);
    float* stage = pool;
    for (unsigned k = 0; k < K; k += kDepth) {
      transfers_wait<kStages - 2>();
      __syncthreads();  // the tile is there for all, and the stage refilled next is read no more
      float* const last = stage == pool ? pool + (kStages - 1) * kStage : stage - kStage;
      fetch(last, k + (kStages - 1) * kDepth);
      if constexpr (Stage::kUsed) {
        if (!reuse) {
          hook.change(stage);
          __syncthreads();
        }
      }
      if (first_m + warp_m() < M && first_n + warp_n() < N && group() * kShare < K - k) {
        if (plain) {
          multiply_plain(stage, K - k);
        } else {
          multiply(stage);
        }
      }
      stage = stage == pool + (kStages - 1) * kStage ? pool : stage + kStage;
    }
    add_groups(pool);
  }

  // The block's tile of A B^T, from (m, n) on; all threads of the block call it. `hook` may fetch
  // something more into each stage, and change A's tile before it is multiplied. `reuse`: the call
  // before was for the same rows of A, all of which stay.
  template <class Stage = AsItIs>
  __device__ __forceinline__ void run(const Operand& a, const Operand& b, unsigned M, unsigned N,
                                      unsigned K, unsigned m, unsigned n, float* pool,
                                      bool reuse = false, const Stage& hook = Stage()) {
    first_m = m, first_n = n;
    const bool plain = kPrecision == Precision::kSplit && K < kShortest;
    add_up(a, b, M, N, K, pool, plain, reuse, hook);
    if (plain) return;
    bool finite = true;
#pragma unroll
    for (int e = 0; e < 32; ++e) finite = finite && isfinite(at(e));
    if (__syncthreads_or(group() == 0 && !finite)) add_up(a, b, M, N, K, pool, true, reuse, hook);
  }

  // emit(m, n, sum at n, sum at n + 1) for each pair of columns whose first is inside (M, N).
  template <class Emit>
  __device__ __forceinline__ void each(unsigned M, unsigned N, Emit emit) {
    if (group() != 0) return;
    const Lane lane;
#pragma unroll
    for (int e = 0; e < 32; e += 2) {
      const unsigned m = first_m + m_of(e, lane), n = first_n + n_of(e, lane);
      if (m < M && n < N) emit(m, n, at(e), at(e + 1));
    }
  }
};

}  // namespace trueup
