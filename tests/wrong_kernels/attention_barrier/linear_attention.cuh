// linear_attention.cuh: unnormalised linear attention in chunks of 64 tokens, on tensor cores.
//
// Inside a chunk that starts from the memory M, with its tokens as rows of Q, K, V:
//   Y = Q M^T + tril(Q K^T) V        M <- M + V^T K
// the diagonal belongs to the triangle where a token reads after its own write. Storage is float
// (products by three of TF32's) or bf16 (M and the scores rounded to it where they are
// multiplied); sums, and M between chunks, are float32.
//
// A block does 64 of the d_v columns of one sequence, chunk after chunk, the next chunk's tiles on
// their way meanwhile. 256 threads: warp w computes rows 16 (w % 4) of a tile, half w / 4 of its
// columns. M stays in registers where d_k is at most 64; otherwise each 64 of its columns pass
// through them once a chunk, kept in the output in between.
#pragma once

#include "mma.cuh"
#include "stage.cuh"

namespace trueup {

constexpr unsigned kEdge = 64;  // tokens of a chunk, and columns of keys and of values at a time
constexpr unsigned kAttentionThreads = 256;

template <class T>
struct Operands;
template <>
struct Operands<float> {
  static constexpr unsigned kStride = kEdge + 4;
  using First = Left;
  struct Second {
    Right of[2];
  };
};
template <>
struct Operands<Bf16> {
  static constexpr unsigned kStride = kEdge + 8;
  using First = LeftHalf;
  using Second = RightHalf;
};

// 16 k of a left operand of 16 rows, of a right one of 16 columns, and their products' sums.
__device__ __forceinline__ void along(Left& a, const float* tile) {
  take_along(a, tile, Operands<float>::kStride, Lane());
}
__device__ __forceinline__ void across(Left& a, const float* tile) {
  take_across(a, tile, Operands<float>::kStride, Lane());
}
__device__ __forceinline__ void along(Operands<float>::Second& b, const float* tile) {
  take_along(b.of[0], tile, Operands<float>::kStride, Lane());
  take_along(b.of[1], tile + 8 * Operands<float>::kStride, Operands<float>::kStride, Lane());
}
__device__ __forceinline__ void across(Operands<float>::Second& b, const float* tile) {
  take_across(b.of[0], tile, Operands<float>::kStride, Lane());
  take_across(b.of[1], tile + 8, Operands<float>::kStride, Lane());
}
__device__ __forceinline__ void multiply(float (*c)[4], const Left& a,
                                         const Operands<float>::Second& b) {
  multiply_add(c[0], a, b.of[0]);
  multiply_add(c[1], a, b.of[1]);
}
template <class Half>
__device__ __forceinline__ void along(Half& a, const Bf16* tile) {
  take_along(a, tile, Operands<Bf16>::kStride);
}
template <class Half>
__device__ __forceinline__ void across(Half& a, const Bf16* tile) {
  take_across(a, tile, Operands<Bf16>::kStride);
}
__device__ __forceinline__ void multiply(float (*c)[4], const LeftHalf& a, const RightHalf& b) {
  mma_bf16(c[0], a, b.at[0]);
  mma_bf16(c[1], a, b.at[1]);
}

__device__ __forceinline__ void put_two(float* to, float first, float second) {
  to[0] = first, to[1] = second;
}
__device__ __forceinline__ void put_two(Bf16* to, float first, float second) {
  *reinterpret_cast<unsigned*>(to) = pair(first, second);
}
__device__ __forceinline__ void put_one(float* to, float value) { *to = value; }
__device__ __forceinline__ void put_one(Bf16* to, float value) {
  to->bits = static_cast<unsigned short>(pair(value, 0.0f));
}

// All sequences' arrays, the sizes, and which sequence it is. Where it starts is worked out at each
// use: a pointer kept for it would cost registers.
template <class T>
struct Sequence {
  const T *q, *k, *v;                // (N, T, d_k), (N, T, d_k), (N, T, d_v)
  const float* M_0;                  // (N, d_v, d_k)
  const unsigned char* mask;         // (N, T)
  T* y;                              // (N, T, d_v)
  float* M;                          // (N, d_v, d_k)
  unsigned tokens, d_k, d_v, first;  // first: of this block's columns of values
  unsigned number;

  __device__ __forceinline__ size_t row(unsigned token) const {
    return static_cast<size_t>(number) * tokens + token;
  }
};

// What one warp holds: 16 x 32 of the memory, 16 tokens' scores against the chunk, their reads.
struct Held {
  float memory[4][4], scores[8][4], reads[4][4];
};

// Where a warp works: its 16 rows of scores and reads, its 16 rows of the memory, its half of the
// columns. Both kinds of rows reach every scheduler, although later tokens have more scores.
struct Task {
  unsigned tokens, rows, half;
  __device__ __forceinline__ Task() {
    const unsigned warp = threadIdx.x / kWarp;
    half = warp / 4;
    rows = warp % 4;
    tokens = half == 0 ? rows : 3 - rows;
  }
};

template <class T>
struct Tiles {
  static constexpr unsigned kTile = kEdge * Operands<T>::kStride;
  static constexpr unsigned kShared = 2 * 4 * kTile;  // elements: q, k, v, M, twice
  T* pool;
  __device__ __forceinline__ T* tile(unsigned which, unsigned turn) const {
    return pool + (4 * turn + which) * kTile;
  }
};

// Moves a warp's part of the memory between registers and M, or into the tile of its products.
template <class T>
__device__ __forceinline__ void each_of_memory(const Sequence<T>& s, unsigned key, const Task& task,
                                               bool load, const float* from, float* to,
                                               Held& held) {
  const Lane lane;
#pragma unroll
  for (int n = 0; n < 16; ++n) {
    const unsigned row = s.first + 16 * task.rows + lane.group + n / 2 % 2 * 8;
    const unsigned column = key + 32 * task.half + n / 4 * 8 + 2 * lane.turn + n % 2;
    const bool there = row < s.d_v && column < s.d_k;
    const size_t at = (static_cast<size_t>(s.number) * s.d_v + row) * s.d_k + column;
    float& value = held.memory[n / 4][n % 4];
    if (load) {
      value = there ? from[at] : 0.0f;
    } else if (there) {
      to[at] = value;
    }
  }
}

template <class T>
__device__ __forceinline__ void put_memory(T* tile, const Task& task, const Held& held) {
  const Lane lane;
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    const unsigned row = 16 * task.rows + lane.group + n % 2 * 8;
    const unsigned column = 32 * task.half + n / 2 * 8 + 2 * lane.turn;
    const float* const m = held.memory[n / 2] + n % 2 * 2;
    put_two(tile + row * Operands<T>::kStride + column, m[0], m[1]);
  }
}

// scores += Q K^T up to the diagonal tile, reads += Q M^T.
template <class T>
__device__ __forceinline__ void query(const Tiles<T>& tiles, unsigned turn, const Task& task,
                                      Held& held) {
  constexpr unsigned kStride = Operands<T>::kStride;
  const T* const q = tiles.tile(0, turn) + 16 * task.tokens * kStride;
  const T* const k = tiles.tile(1, turn);
  const T* const M = tiles.tile(3, turn) + 32 * task.half * kStride;
#pragma unroll
  for (unsigned step = 0; step < 4; ++step) {
    typename Operands<T>::First a;
    along(a, q + 16 * step);
#pragma unroll
    for (unsigned j = 0; j < 4; ++j) {
      if (j > task.tokens) continue;
      typename Operands<T>::Second b;
      along(b, k + 16 * j * kStride + 16 * step);
      multiply(held.scores + 2 * j, a, b);
    }
#pragma unroll
    for (unsigned j = 0; j < 2; ++j) {
      typename Operands<T>::Second b;
      along(b, M + 16 * j * kStride + 16 * step);
      multiply(held.reads + 2 * j, a, b);
    }
  }
}

// reads += tril(scores) V
template <bool kPost, class T>
__device__ __forceinline__ void recall(const Tiles<T>& tiles, unsigned turn, const Task& task,
                                       Held& held) {
  constexpr unsigned kStride = Operands<T>::kStride;
  const T* const v = tiles.tile(2, turn) + 32 * task.half;
  const Lane lane;
#pragma unroll
  for (unsigned j = 0; j < 4; ++j) {
    if (j > task.tokens) continue;
    if (j == task.tokens) {
#pragma unroll
      for (unsigned n = 0; n < 8; ++n) {
        const unsigned row = lane.group + n / 2 % 2 * 8;
        const unsigned column = n / 4 * 8 + 2 * lane.turn + n % 2;
        if (kPost ? column > row : column >= row) held.scores[2 * j + n / 4][n % 4] = 0.0f;
      }
    }
    typename Operands<T>::First a;
    take_sums(a, held.scores[2 * j], held.scores[2 * j + 1]);
#pragma unroll
    for (unsigned i = 0; i < 2; ++i) {
      typename Operands<T>::Second b;
      across(b, v + 16 * j * kStride + 16 * i);
      multiply(held.reads + 2 * i, a, b);
    }
  }
}

// memory += V^T K
template <class T>
__device__ __forceinline__ void memorise(const Tiles<T>& tiles, unsigned turn, const Task& task,
                                         Held& held) {
  constexpr unsigned kStride = Operands<T>::kStride;
  const T* const v = tiles.tile(2, turn) + 16 * task.rows;
  const T* const k = tiles.tile(1, turn) + 32 * task.half;
  float sum[4][4] = {};  // of this chunk, so that the memory is added to by a rounding addition
#pragma unroll
  for (unsigned step = 0; step < 4; ++step) {
    typename Operands<T>::First a;
    across(a, v + 16 * step * kStride);
#pragma unroll
    for (unsigned j = 0; j < 2; ++j) {
      typename Operands<T>::Second b;
      across(b, k + 16 * step * kStride + 16 * j);
      multiply(sum + 2 * j, a, b);
    }
  }
#pragma unroll
  for (int n = 0; n < 16; ++n) held.memory[n / 4][n % 4] += sum[n / 4][n % 4];
}

template <bool kVector, class T>
__device__ __forceinline__ void put_reads(const Sequence<T>& s, unsigned token, const Task& task,
                                          const Held& held) {
  const Lane lane;
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    const unsigned row = token + 16 * task.tokens + lane.group + n % 2 * 8;
    const unsigned column = s.first + 32 * task.half + n / 2 * 8 + 2 * lane.turn;
    if (row >= s.tokens || column >= s.d_v) continue;
    T* const to = s.y + s.row(row) * s.d_v + column;
    const float* const y = held.reads[n / 2] + n % 2 * 2;
    if constexpr (kVector) {
      put_two(to, y[0], y[1]);
    } else {
      put_one(to, y[0]);
      if (column + 1 < s.d_v) put_one(to + 1, y[1]);
    }
  }
}

// Which rows of the tiles from `token` on may write, a bit for each piece of this thread.
template <class T>
__device__ __forceinline__ unsigned active_rows(const Sequence<T>& s, unsigned token) {
  constexpr unsigned kPieces = kEdge * kEdge / kPiece<T> / kAttentionThreads;
  unsigned bits = 0;
#pragma unroll
  for (unsigned p = 0; p < kPieces; ++p) {
    const unsigned row = token + piece_row<T, kEdge, kAttentionThreads>(p);
    if (row < s.tokens && s.mask[s.row(row)] != 0) bits |= 1u << p;
  }
  return bits;
}

template <bool kVector, class T>
__device__ __forceinline__ void fetch(const Sequence<T>& s, const Tiles<T>& tiles, unsigned token,
                                      unsigned key, unsigned turn, unsigned active) {
  constexpr int kStride = Operands<T>::kStride;
  const auto keep = [=](unsigned p) { return (active >> p & 1) != 0; };
  transfer_tile<kVector, kEdge, kEdge, kStride, kAttentionThreads>(
      tiles.tile(0, turn), s.q + s.row(0) * s.d_k, token, key, s.tokens, s.d_k, s.d_k);
  transfer_rows<kVector, kEdge, kEdge, kStride, kAttentionThreads>(
      tiles.tile(1, turn), s.k + s.row(0) * s.d_k, token, key, s.tokens, s.d_k, s.d_k, keep);
  transfer_rows<kVector, kEdge, kEdge, kStride, kAttentionThreads>(
      tiles.tile(2, turn), s.v + s.row(0) * s.d_v, token, s.first, s.tokens, s.d_v, s.d_v, keep);
  transfers_commit();
}

template <bool kPost, bool kVector, class T>
__device__ __forceinline__ void attend(const Sequence<T>& s, const Tiles<T>& tiles) {
  const Task task;
  const unsigned widths = (s.d_k - 1) / kEdge + 1;  // of 64 keys
  const unsigned steps = ((s.tokens - 1) / kEdge + 1) * widths;
  const bool resident = widths == 1;
  Held held = {};
  if (resident) each_of_memory(s, 0, task, true, s.M_0, s.M, held);
  unsigned active = active_rows(s, 0);
  fetch<kVector>(s, tiles, 0, 0, 0, active);
  active = active_rows(s, 1 / widths * kEdge);
  for (unsigned step = 0; step < steps; ++step) {
    const unsigned turn = step % 2;
    const unsigned token = step / widths * kEdge;
    const unsigned key = step % widths * kEdge;
    if (!resident) each_of_memory(s, key, task, true, token == 0 ? s.M_0 : s.M, s.M, held);
    put_memory(tiles.tile(3, turn), task, held);
    transfers_wait<0>();
    if (step + 1 < steps) {
      const unsigned next = step + 1;
      fetch<kVector>(s, tiles, next / widths * kEdge, next % widths * kEdge, turn ^ 1, active);
      active = active_rows(s, (next + 1) / widths * kEdge);
    }
    query(tiles, turn, task, held);
    if (step % widths == widths - 1) {
      recall<kPost>(tiles, turn, task, held);
      put_reads<kVector>(s, token, task, held);
#pragma unroll
      for (int n = 0; n < 32; ++n) held.scores[n / 4][n % 4] = 0.0f;
#pragma unroll
      for (int n = 0; n < 16; ++n) held.reads[n / 4][n % 4] = 0.0f;
    }
    memorise(tiles, turn, task, held);
    if (!resident) each_of_memory(s, key, task, false, s.M_0, s.M, held);
  }
  if (resident) each_of_memory(s, 0, task, false, s.M_0, s.M, held);
}

// The whole of a block: blocks count tiles of values first, then sequences.
template <bool kPost, class T>
__device__ __forceinline__ void attend_block(const T* q, const T* k, const T* v, const float* M_0,
                                             const unsigned char* mask, T* y, float* M, int tokens,
                                             int d_k, int d_v, void* pool) {
  const unsigned across = (static_cast<unsigned>(d_v) - 1) / kEdge + 1;
  const Sequence<T> s = {q,
                         k,
                         v,
                         M_0,
                         mask,
                         y,
                         M,
                         static_cast<unsigned>(tokens),
                         static_cast<unsigned>(d_k),
                         static_cast<unsigned>(d_v),
                         blockIdx.x % across * kEdge,
                         blockIdx.x / across};
  const Tiles<T> tiles = {static_cast<T*>(pool)};
  constexpr int kWhole = static_cast<int>(kPiece<T>);
  if (d_k % kWhole == 0 && d_v % kWhole == 0 && aligned16(q) && aligned16(k) && aligned16(v) &&
      aligned16(y)) {
    attend<kPost, true>(s, tiles);
  } else {
    attend<kPost, false>(s, tiles);
  }
}

}  // namespace trueup
