// compact.cuh: a chunk of tokens against a weight matrix, on tensor cores: read it, then move it.
//
// X (C, d_in) holds one token a row. Reading gives W x_t, and the scalar products of the tokens
// where they are wanted; moving gives W' = gamma W - E^T X for any E (C, d_out). Between the two
// a kernel works out E, token by token: W itself is read twice and written once whatever C is.
//
// Both are float32 products by mma.cuh, each element summed in a fixed order.
#pragma once

#include "mma.cuh"
#include "stage.cuh"

namespace trueup {

// Brings tiles kStages - 1 steps ahead of the work on them; one barrier a step.
template <int kStages, class Fetch, class Work>
__device__ __forceinline__ void pipeline(unsigned steps, Fetch fetch, Work work) {
#pragma unroll
  for (unsigned s = 0; s + 1 < kStages; ++s) {
    if (s < steps) fetch(s, s);
    transfers_commit();
  }
  for (unsigned step = 0; step < steps; ++step) {
    transfers_wait<kStages - 2>();
    const unsigned next = step + kStages - 1;
    if (next < steps) fetch(next, next % kStages);
    transfers_commit();
    work(step % kStages);
  }
}

// A warp's 32 x 32 sums over 16 k.
template <class TakeLeft, class TakeRight>
__device__ __forceinline__ void add_tiles(float (&sum)[2][4][4], TakeLeft take_left,
                                          TakeRight take_right) {
  Left left[2];
  take_left(left[0], 0);
  take_left(left[1], 1);
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    Right right;
    take_right(right, j);
    multiply_add(sum[0][j], left[0], right);
    multiply_add(sum[1][j], left[1], right);
  }
}

// The sizes of a chunk, and how its launches are cut.
struct Chunk {
  unsigned tokens, rows, inputs;  // C, d_out, d_in
};

// Reads: part (slices, C, d_out + gram), gram = C or 0, summed over the slices of d_in by its
// reader. part[s][t][r] is W_r x_t, and x_(r - d_out) . x_t beyond the rows of W, over slice s.
// A block makes 64 rows x 64 tokens of one slice of 512: ceil(C / 64) blocks for each of
// ceil(d_out / 64) + ceil(gram / 64) tiles of rows, for each slice. 128 threads.
struct Reading {
  static constexpr int kEdge = 64, kDepth = 16, kStride = 20, kStages = 4;
  static constexpr int kThreads = 128, kSlice = 512;
  static constexpr int kTile = kEdge * kStride;
  static constexpr int kShared = 2 * kStages * kTile;
};

template <bool kVector>
__device__ __forceinline__ void read_chunk(const float* W, const float* X, float* part,
                                           const Chunk& size, unsigned gram, float* pool) {
  using R = Reading;
  const unsigned tiles_t = (size.tokens - 1) / R::kEdge + 1;
  const unsigned tiles_w = (size.rows - 1) / R::kEdge + 1;
  const unsigned tiles = tiles_w + (gram + R::kEdge - 1) / R::kEdge;
  const unsigned token = blockIdx.x % tiles_t * R::kEdge;
  const unsigned tile = blockIdx.x / tiles_t % tiles;
  const unsigned slice = blockIdx.x / tiles_t / tiles;
  const bool of_tokens = tile >= tiles_w;
  const float* const source = of_tokens ? X : W;
  const unsigned row = (of_tokens ? tile - tiles_w : tile) * R::kEdge;
  const unsigned rows = of_tokens ? size.tokens : size.rows;
  const unsigned first = slice * R::kSlice;
  const unsigned width = size.inputs - first < R::kSlice ? size.inputs - first : R::kSlice;

  const Lane lane;
  const unsigned warp = threadIdx.x / kWarp;
  const unsigned at_row = warp / 2 * 32;
  const unsigned at_token = warp % 2 * 32;
  float sum[2][4][4] = {};
  const auto fetch = [=](unsigned step, unsigned buffer) {
    float* const a = pool + buffer * 2 * R::kTile;
    const unsigned k = first + step * R::kDepth;
    transfer_tile<kVector, R::kEdge, R::kDepth, R::kStride, R::kThreads>(
        a, source, row, k, rows, first + width, size.inputs);
    transfer_tile<kVector, R::kEdge, R::kDepth, R::kStride, R::kThreads>(
        a + R::kTile, X, token, k, size.tokens, first + width, size.inputs);
  };
  pipeline<R::kStages>((width - 1) / R::kDepth + 1, fetch, [&](unsigned buffer) {
    const float* const a = pool + buffer * 2 * R::kTile + at_row * R::kStride;
    const float* const b = pool + (buffer * 2 + 1) * R::kTile + at_token * R::kStride;
    add_tiles(
        sum,
        [&](Left& left, int i) { take_along(left, a + i * 16 * R::kStride, R::kStride, lane); },
        [&](Right& right, int j) { take_along(right, b + j * 8 * R::kStride, R::kStride, lane); });
  });

  const unsigned pitch = size.rows + gram;
#pragma unroll
  for (int n = 0; n < 32; ++n) {
    const unsigned r = row + at_row + n / 16 * 16 + n / 2 % 2 * 8 + lane.group;
    const unsigned t = token + at_token + n / 4 % 4 * 8 + lane.turn * 2 + n % 2;
    if (r >= rows || t >= size.tokens) continue;
    float* const to = part + (static_cast<size_t>(slice) * size.tokens + t) * pitch;
    to[of_tokens ? size.rows + r : r] = sum[n / 16][n / 4 % 4][n % 4];
  }
}

// Moves: a block does 64 rows x 64 columns of W, ceil(d_in / 64) blocks for each of
// ceil(d_out / 64) tiles of rows. 128 threads.
struct Moving {
  static constexpr int kRows = 64, kColumns = 64, kDepth = 16, kStages = 4, kThreads = 128;
  static constexpr int kStrideE = kRows + 4, kStrideX = kColumns + 4;
  static constexpr int kStage = kDepth * (kStrideE + kStrideX);
  static constexpr int kShared = kStages * kStage;
  static_assert(kRows * kStrideX <= kShared, "a block's sums fit into its tiles' memory");
};

// Whole pairs of a row, straight from the registers.
__device__ __forceinline__ void load_pairs(float (&sum)[2][4][4], const float* W, float gamma,
                                           unsigned row, unsigned column, const Chunk& size) {
#pragma unroll
  for (int n = 0; n < 16; ++n) {
    const unsigned r = row + n / 8 * 16 + n % 2 * 8;
    const unsigned c = column + n / 2 % 4 * 8;
    float2 w = {0.0f, 0.0f};
    if (r < size.rows && c < size.inputs) {
      const float* const from = W + static_cast<size_t>(r) * size.inputs + c;
      w = load<Reuse::kOnce>(reinterpret_cast<const float2*>(from));
    }
    sum[n / 8][n / 2 % 4][n % 2 * 2] = -gamma * w.x;
    sum[n / 8][n / 2 % 4][n % 2 * 2 + 1] = -gamma * w.y;
  }
}

__device__ __forceinline__ void store_pairs(float* W, const float (&sum)[2][4][4], unsigned row,
                                            unsigned column, const Chunk& size) {
#pragma unroll
  for (int n = 0; n < 16; ++n) {
    const unsigned r = row + n / 8 * 16 + n % 2 * 8;
    const unsigned c = column + n / 2 % 4 * 8;
    if (r >= size.rows || c >= size.inputs) continue;
    const float* const s = sum[n / 8][n / 2 % 4] + n % 2 * 2;
    float* const to = W + static_cast<size_t>(r) * size.inputs + c;
    store_once(reinterpret_cast<float2*>(to), float2{-s[0], -s[1]});
  }
}

// Ragged rows: the block's sums go through shared memory, so that the threads of a warp write
// neighbours. (row, column) is the warp's place in the tile at (first, second).
__device__ __forceinline__ void move_ragged(float* W, const float (&sum)[2][4][4], float gamma,
                                            unsigned first, unsigned second, unsigned row,
                                            unsigned column, const Chunk& size, float* pool) {
  using M = Moving;
  __syncthreads();  // the last tiles are no longer read
#pragma unroll
  for (int n = 0; n < 32; ++n) {
    const unsigned r = row + n / 16 * 16 + n / 2 % 2 * 8;
    const unsigned c = column + n / 4 % 4 * 8 + n % 2;
    pool[r * M::kStrideX + c] = sum[n / 16][n / 4 % 4][n % 4];
  }
  __syncthreads();
  for (unsigned at = threadIdx.x; at < M::kRows * M::kColumns; at += M::kThreads) {
    const unsigned r = at / M::kColumns;
    const unsigned c = at % M::kColumns;
    if (first + r >= size.rows || second + c >= size.inputs) continue;
    float* const w = W + static_cast<size_t>(first + r) * size.inputs + second + c;
    *w = fmaf(gamma, *w, -pool[r * M::kStrideX + c]);
  }
}

template <bool kVector>
__device__ __forceinline__ void move_chunk(float* W, const float* X, const float* E, float gamma,
                                           const Chunk& size, float* pool) {
  using M = Moving;
  const unsigned across = (size.inputs - 1) / M::kColumns + 1;
  const unsigned row = blockIdx.x / across * M::kRows;
  const unsigned column = blockIdx.x % across * M::kColumns;
  const Lane lane;
  const unsigned warp = threadIdx.x / kWarp;
  const unsigned at_row = warp / 2 * 32;
  const unsigned at_column = warp % 2 * 32;
  float sum[2][4][4] = {};
  if constexpr (kVector) {  // these loads are under way while tiles arrive
    load_pairs(sum, W, gamma, row + at_row + lane.group, column + at_column + 2 * lane.turn, size);
  }
  const auto fetch = [=](unsigned step, unsigned buffer) {
    float* const e = pool + buffer * M::kStage;
    const unsigned token = step * M::kDepth;
    transfer_tile<kVector, M::kDepth, M::kRows, M::kStrideE, M::kThreads>(
        e, E, token, row, size.tokens, size.rows, size.rows);
    transfer_tile<kVector, M::kDepth, M::kColumns, M::kStrideX, M::kThreads>(
        e + M::kDepth * M::kStrideE, X, token, column, size.tokens, size.inputs, size.inputs);
  };
  pipeline<M::kStages>((size.tokens - 1) / M::kDepth + 1, fetch, [&](unsigned buffer) {
    const float* const e = pool + buffer * M::kStage;
    const float* const x = e + M::kDepth * M::kStrideE + at_column;
    add_tiles(
        sum,
        [&](Left& left, int i) { take_across(left, e + at_row + i * 16, M::kStrideE, lane); },
        [&](Right& right, int j) { take_across(right, x + j * 8, M::kStrideX, lane); });
  });
  if constexpr (kVector) {
    store_pairs(W, sum, row + at_row + lane.group, column + at_column + 2 * lane.turn, size);
  } else {
    move_ragged(W, sum, gamma, row, column, at_row + lane.group, at_column + 2 * lane.turn, size,
                pool);
  }
}

}  // namespace trueup
