// compact.cuh: a chunk of tokens against a weight matrix, on tensor cores: read it, then move it.
//
// Reading gives W x_t for all tokens, in parts over slices of k; moving gives W' = gamma W - E^T X
// for factors E (C, rows) and X (C, columns) that a kernel works out between the two. W is read
// twice and written once whatever C is. Moving takes W's columns in the reverse order of reading,
// and writes past the caches, so that what was read last is still in L2.
//
// A block has four warps, each with a tile of warp_tiles.cuh; two blocks share an SM. Panels of 32
// k pass through four stages of shared memory, one barrier for each.
#pragma once

#include "warp_tiles.cuh"

namespace trueup {

constexpr unsigned kBlockThreads = 128, kBlockRows = 128, kBlockTokens = 64, kStages = 4;
constexpr unsigned kSlots = 264;  // of blocks: two for each SM of an H200

// Brings panels kStages - 1 steps ahead of the work on them; one barrier a step.
template <class Fetch, class Work>
__device__ __forceinline__ void pipeline(unsigned steps, Fetch fetch, Work work) {
#pragma unroll
  for (unsigned s = 0; s + 1 < kStages; ++s) {
    if (s < steps) fetch(s);
    transfers_commit();
  }
#pragma unroll 1
  for (unsigned step = 0; step < steps; ++step) {
    transfers_wait<kStages - 2>();
    __syncthreads();  // this step's panels are there, and the last step's are no longer read
    if (step + kStages - 1 < steps) fetch(step + kStages - 1);
    transfers_commit();
    work(step);
  }
}

// How the k of a product are cut where `tiles` blocks would not fill the device: into `count`
// slices of `width`, of which the last ones may be empty. Contracts have the same expression.
struct Slices {
  unsigned count, width;

  __device__ __forceinline__ Slices(unsigned tiles, unsigned k) {
    count = max(1u, min((k - 1) / 128 + 1, kSlots / tiles));
    width = ((k - 1) / 32 / count + 1) * 32;
  }
};

__device__ __forceinline__ unsigned tiles_of(unsigned rows, unsigned edge) {
  return (rows + edge - 1) / edge;
}

// A block's tile of W x_t over k from `begin` to `end`: 128 rows from m on, 64 tokens from n on.
// W lies along k or across it, the tokens along. emit(row, token, four rows' sums) is called for
// every fourth row, whose first one is inside.
template <bool kAlong, Precision kPrecision>
struct Reading {
  using W = Panel<kAlong, kBlockRows, kBlockThreads>;
  using X = Panel<true, kBlockTokens, kBlockThreads>;
  static constexpr unsigned kStage = W::kFloats + X::kFloats;
  static constexpr unsigned kFloats = kStages * kStage;

  template <class Emit>
  static __device__ __forceinline__ void run(const Operand& w, const Operand& x, unsigned m,
                                             unsigned n, unsigned begin, unsigned end, float* pool,
                                             Emit emit) {
    const unsigned rows = kAlong ? w.rows : w.columns, warp = threadIdx.x / kWarp * 32;
    const bool busy = m + warp < rows;
    const bool plain = kPrecision == Precision::kSplit && end < begin + kShortest;
    WarpTile<kPrecision, kAlong> tile;  // across k, small products of all k would not fit beside
    tile.clear();
    const auto fetch = [&](unsigned step) {
      float* const stage = pool + step % kStages * kStage;
      W::fetch(stage, w, m, begin + step * 32);
      X::fetch(stage + W::kFloats, x, n, begin + step * 32);
    };
    pipeline(plain || end <= begin ? 0 : (end - begin - 1) / 32 + 1, fetch, [&](unsigned step) {
      const float* const stage = pool + step % kStages * kStage;
      if (busy) tile.template add<W, X>(stage, warp, stage + W::kFloats, x.rows - n);
    });
    if (!busy) return;
    if (plain || !tile.settle()) {
      tile.template add_plainly<kAlong, true>(w, x, m + warp, n, begin, end);
    }
    const Lane lane(thread_again());
    const unsigned row = m + warp + tile.row(0, lane);
#pragma unroll
    for (unsigned c = 0; c < 16; ++c) {
      const unsigned token = n + tile.column(c / 2, c % 2, lane);
      if (row < rows && token < x.rows) emit(row, token, tile.down(c / 2, c % 2));
    }
  }
};

// Four rows' sums for one token, of `rows`, into a part where tokens lie `pitch` apart.
struct IntoParts {
  float* part;
  unsigned rows, pitch;

  __device__ __forceinline__ void operator()(unsigned row, unsigned token, float4 sums) const {
    float* const to = part + static_cast<size_t>(token) * pitch + row;
    if (pitch % 4 == 0 && rows % 4 == 0 && aligned16(to)) {
      *reinterpret_cast<float4*>(to) = sums;
    } else {
      store_some(to, sums, rows - row);
    }
  }
};

// Reads the tile of W and X, and of X and X beyond W's tiles where the tokens' scalar products are
// wanted too: part (slices, C, rows + gram), gram = C or 0. part[s][t][r] is W_r x_t, and
// x_(r - rows) . x_t beyond the rows of W, over slice s. ceil(C / 64) blocks for each of
// ceil(rows / 128) + ceil(gram / 128) tiles, for each slice.
__device__ __forceinline__ void read_chunk(const Operand& w, const Operand& x, float* part,
                                           unsigned gram, float* pool) {
  const unsigned across = tiles_of(x.rows, kBlockTokens), of_w = tiles_of(w.rows, kBlockRows);
  const unsigned tiles = across * (of_w + tiles_of(gram, kBlockRows));
  const Slices slices(tiles, x.columns);
  const unsigned tile = blockIdx.x % tiles / across, slice = blockIdx.x / tiles;
  const unsigned n = blockIdx.x % across * kBlockTokens, begin = slice * slices.width;
  const bool of_tokens = tile >= of_w;
  const Operand left = {of_tokens ? x.data : w.data, of_tokens ? x.rows : w.rows, x.columns,
                        of_tokens ? x.keep : w.keep};
  const unsigned pitch = w.rows + gram;
  const IntoParts into = {
      part + static_cast<size_t>(slice) * x.rows * pitch + (of_tokens ? w.rows : 0), left.rows,
      pitch};
  Reading<true, Precision::kSplit>::run(left, x, (of_tokens ? tile - of_w : tile) * kBlockRows, n,
                                        begin, min(x.columns, begin + slices.width), pool, into);
}

// What the parts have at `at` of a slice, added in the order of the slices.
__device__ __forceinline__ float add_parts(const float* part, size_t at, size_t slice,
                                           unsigned slices) {
  float sum = part[at];
#pragma unroll 4
  for (unsigned s = 1; s < slices; ++s) sum += part[at + s * slice];
  return sum;
}

// Moves a strip of W: 128 rows, and neighbouring tiles of 64 columns. `blocks` of them share out W,
// as many for each 128 rows. E and X lie across k, the tokens.
template <Precision kPrecision>
struct Moving {
  using E = Panel<false, kBlockRows, kBlockThreads>;
  using X = Panel<false, 64, kBlockThreads>;
  using Tile = WarpTile<kPrecision, false>;
  static constexpr unsigned kFloats = kStages * (E::kFloats + X::kFloats);

  // A tile's W, to L2, where it waits for its sums: two lines for each thread.
  static __device__ __forceinline__ void expect(const float* W, unsigned row, unsigned column,
                                                unsigned rows, unsigned columns) {
#ifndef __CUHOST__
    static_assert(kBlockThreads == kBlockRows, "a row for each thread");
    if (row + threadIdx.x >= rows) return;
    const float* const line = W + static_cast<size_t>(row + threadIdx.x) * columns + column;
    asm volatile("prefetch.global.L2 [%0];" ::"l"(line));
    if (column + 32 < columns) asm volatile("prefetch.global.L2 [%0];" ::"l"(line + 32));
#endif
  }

  template <class Work>
  static __device__ __forceinline__ void each_quad(unsigned row, unsigned column, unsigned rows,
                                                   unsigned columns, Work work) {
    const Lane lane(thread_again());
#pragma unroll
    for (unsigned n = 0; n < 16; ++n) {
      const unsigned q = n / 4, half = n / 2 % 2, p = n % 2;
      const unsigned r = row + Tile::row(q, lane), c = column + Tile::column(4 * half, p, lane);
      if (r < rows && c < columns) work(n, static_cast<size_t>(r) * columns + c, columns - c);
    }
  }

  static __device__ __forceinline__ void run(float* W, const Operand& e, const Operand& x,
                                             float gamma, unsigned block, unsigned blocks,
                                             float* pool) {
    const unsigned rows = e.columns, columns = x.columns, tokens = e.rows;
    const unsigned strips = max(1u, blocks / tiles_of(rows, kBlockRows));
    const unsigned across = tiles_of(columns, 64), per = (across - 1) / strips + 1;
    const unsigned row = block / strips * kBlockRows, first = block % strips * per;
    const unsigned count = row < rows && first < across ? min(per, across - first) : 0;
    const unsigned warp = threadIdx.x / kWarp * 32;
    const bool busy = row + warp < rows;
    const bool vector = columns % 4 == 0 && aligned16(W);
    const bool plain = kPrecision == Precision::kSplit && tokens < kShortest;
    const unsigned steps = plain ? 0 : (tokens - 1) / 32 + 1;
    const bool stays = steps <= kStages;  // E, over the whole strip
    float* const of_x = pool + kStages * E::kFloats;

    unsigned slot = 0, ahead_step = 0, ahead = plain ? 0 : count;
    const auto fetch = [&](unsigned into) {
      if (ahead != 0) {
        if (!stays || ahead == count) {
          const unsigned to = stays ? ahead_step : into;
          E::fetch(pool + to * E::kFloats, e, row, ahead_step * 32);
        }
        X::fetch(of_x + into * X::kFloats, x, (first + ahead - 1) * 64, ahead_step * 32);
        if (++ahead_step == steps) ahead_step = 0, --ahead;
      }
      transfers_commit();
    };
    for (unsigned s = 0; s + 1 < kStages; ++s) fetch(s);
#pragma unroll 1
    for (unsigned left = count; left > 0; --left) {
      const unsigned column = (first + left - 1) * 64;
      if (left == count) expect(W, row, column, rows, columns);
      if (left > 1) expect(W, row, column - 64, rows, columns);
      Tile tile;
      tile.clear();
#pragma unroll 1
      for (unsigned step = 0; step < steps; ++step) {
        transfers_wait<kStages - 2>();
        __syncthreads();  // these panels are there, and those refilled next are no longer read
        fetch((slot + kStages - 1) % kStages);
        if (busy) {
          tile.template add<E, X>(pool + (stays ? step : slot) * E::kFloats, warp,
                                  of_x + slot * X::kFloats, columns - column);
        }
        slot = (slot + 1) % kStages;
      }
      if (!busy) continue;
      if (plain || !tile.settle()) {
        tile.template add_plainly<false, false>(e, x, row + warp, column, 0, tokens);
      }
      float4 w[16] = {};
      if (vector) {
        each_quad(row + warp, column, rows, columns, [&](unsigned n, size_t at, unsigned) {
          w[n] = *reinterpret_cast<const float4*>(W + at);
        });
      } else {
        each_quad(row + warp, column, rows, columns, [&](unsigned n, size_t at, unsigned some) {
          w[n] = load_some(W + at, some);
        });
      }
#pragma unroll
      for (unsigned n = 0; n < 16; ++n) {
        const float4 sum = tile.across(n / 4, n / 2 % 2, n % 2);
        w[n] = {fmaf(gamma, w[n].x, -sum.x), fmaf(gamma, w[n].y, -sum.y),
                fmaf(gamma, w[n].z, -sum.z), fmaf(gamma, w[n].w, -sum.w)};
      }
      if (vector) {
        each_quad(row + warp, column, rows, columns, [&](unsigned n, size_t at, unsigned) {
          store_once(reinterpret_cast<float4*>(W + at), w[n]);
        });
      } else {
        each_quad(row + warp, column, rows, columns, [&](unsigned n, size_t at, unsigned some) {
          store_some(W + at, w[n], some);
        });
      }
    }
  }
};

}  // namespace trueup
