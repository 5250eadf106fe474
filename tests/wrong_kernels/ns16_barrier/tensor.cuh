// tensor.cuh: one block's tile of a bf16 product A B^T on tensor cores, summed in float32.
//
// A block is 128 threads, four warps, and computes 128 x 128 elements, 64 x 64 a warp, by
// mma.sync.m16n8k16. Tiles of 32 k go through three shared buffers (48 KB), two of them on their way
// by cp.async while the third is multiplied. An operand's rows may run along k or along its edge:
// ldmatrix reads either, so nothing is transposed. Chunks of eight elements are swizzled, so that no
// two of the eight rows that ldmatrix takes at once share a bank.
// On the host each thread sums its own elements in the order of k, from the same shared tiles; with
// TRUEUP_EMULATE_TENSOR it goes through the fragments instead, lane by lane as PTX lays them out.
#pragma once

#include "tensor_fragments.cuh"

#if defined(__CUHOST__) && !defined(TRUEUP_EMULATE_TENSOR)
#define TRUEUP_PLAIN_TENSOR 1
#endif

namespace trueup {
namespace tensor {

constexpr int kEdge = 128;
constexpr int kDepth = 32;
constexpr int kStages = 3;
constexpr int kThreads = 128;
constexpr int kTile = kEdge * kDepth;  // elements of one operand in one buffer
constexpr int kPool = kStages * 2 * kTile * static_cast<int>(sizeof(Bits)) / 16;  // in uint4

// Which way the rows of an operand run.
enum class Rows { kAlongK, kAlongEdge };

struct Operand {
  const Bits* at;
  unsigned extent;  // along its edge: M or N
  unsigned pitch;   // elements from row to row, and the length of a row
  bool chunked;     // rows are 16-byte aligned and a multiple of 8 elements long
  __device__ __forceinline__ Operand(const Bits* at, unsigned extent, unsigned pitch)
      : at(at), extent(extent), pitch(pitch), chunked(pitch % 8 == 0 && aligned16(at)) {}
};

// Where element i of the edge and k lies in a tile.
template <Rows kRows>
__device__ __forceinline__ unsigned place(unsigned i, unsigned k) {
  if constexpr (kRows == Rows::kAlongK) {
    return i * kDepth + ((k / 8) ^ (i / 2 % 4)) * 8 + k % 8;
  } else {
    return k * kEdge + ((i / 8) ^ (k % 8)) * 8 + i % 8;
  }
}

// Sixteen bytes to shared memory, in the background; zeros where they are not `inside`.
__device__ __forceinline__ void copy_chunk(Bits* to, const Bits* from, bool inside) {
#ifdef __CUHOST__
  for (int e = 0; e < 8; ++e) to[e] = inside ? from[e] : Bits{0};
#else
  const unsigned shared = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(from),
               "r"(inside ? 16 : 0)
               : "memory");
#endif
}

__device__ __forceinline__ void commit() {
#ifndef __CUHOST__
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

template <int kPending>
__device__ __forceinline__ void wait() {
#ifndef __CUHOST__
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
#endif
}

// The operand's tile from (first, k0) on; beyond its edge and beyond k, zeros.
template <Rows kRows>
__device__ __forceinline__ void fetch(Bits* tile, Operand x, unsigned first, unsigned k0,
                                      unsigned k_end) {
  constexpr bool kK = kRows == Rows::kAlongK;
#pragma unroll
  for (int q = 0; q < kTile / 8 / kThreads; ++q) {
    const unsigned chunk = threadIdx.x + q * kThreads;
    const unsigned i = kK ? chunk / (kDepth / 8) : chunk % (kEdge / 8) * 8;
    const unsigned k = kK ? chunk % (kDepth / 8) * 8 : chunk / (kEdge / 8);
    Bits* const to = tile + place<kRows>(i, k);
    const bool inside = first + i < x.extent && k0 + k < k_end;
    const size_t at = kK ? static_cast<size_t>(first + i) * x.pitch + k0 + k
                         : static_cast<size_t>(k0 + k) * x.pitch + first + i;
    if (x.chunked) {
      copy_chunk(to, inside ? x.at + at : x.at, inside);
    } else {
      const unsigned left = !inside ? 0 : kK ? k_end - k0 - k : x.extent - first - i;
#pragma unroll 1
      for (unsigned e = 0; e < 8; ++e) to[e] = e < left ? x.at[at + e] : Bits{0};
    }
  }
}

// Where a thread's elements lie: sum[i][j][e] is row `row` + 16 i + 8 (e / 2), column
// `column` + 8 j + e % 2 of the block's tile.
struct Spot {
  unsigned warp_row, warp_column, row, column;
  __device__ __forceinline__ Spot() {
    const unsigned warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    warp_row = warp / 2 * 64;
    warp_column = warp % 2 * 64;
    row = warp_row + lane / 4;
    column = warp_column + lane % 4 * 2;
  }
};

using Sums = float[4][8][4];

// Adds the product of two tiles; `rows` and `columns` are what of the block's tile there is.
template <Rows kLeft, Rows kRight>
__device__ __forceinline__ void multiply(Sums& sum, const Bits* left, const Bits* right,
                                         unsigned rows, unsigned columns) {
  const Spot spot;
#ifdef TRUEUP_PLAIN_TENSOR
  for (unsigned at = 0; at < 128; ++at) {
    const unsigned i = at / 32, j = at / 4 % 8, e = at % 4;
    const unsigned row = spot.row + 16 * i + e / 2 * 8, column = spot.column + 8 * j + e % 2;
    if (row >= rows || column >= columns) continue;
    for (unsigned k = 0; k < kDepth; ++k) {
      sum[i][j][e] = fmaf(widen(left[place<kLeft>(row, k)]),
                          widen(right[place<kRight>(column, k)]), sum[i][j][e]);
    }
  }
#else
  const unsigned lane = threadIdx.x % kWarp;
  const unsigned eight = lane % 8, second = lane / 8 % 2, fourth = lane / 16;
#pragma unroll
  for (unsigned k0 = 0; k0 < kDepth; k0 += 16) {
    unsigned a[4][4];
    unsigned b[8][2];
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) {
      // Matrices: the first eight rows, the next eight; then the same of the next eight k.
      constexpr bool kAlong = kLeft == Rows::kAlongK;
      const unsigned row = spot.warp_row + 16 * i + (kAlong ? eight : 0) + 8 * second;
      const unsigned k = k0 + (kAlong ? 0 : eight) + 8 * fourth;
      load_matrices<!kAlong>(a[i], left + place<kLeft>(row, k));
    }
#pragma unroll
    for (unsigned j = 0; j < 8; j += 2) {
      // Matrices: eight k, the next eight k; then the same of the next eight columns.
      constexpr bool kAlong = kRight == Rows::kAlongK;
      const unsigned column = spot.warp_column + 8 * j + (kAlong ? eight : 0) + 8 * fourth;
      const unsigned k = k0 + (kAlong ? 0 : eight) + 8 * second;
      unsigned both[4];
      load_matrices<!kAlong>(both, right + place<kRight>(column, k));
      b[j][0] = both[0], b[j][1] = both[1], b[j + 1][0] = both[2], b[j + 1][1] = both[3];
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int j = 0; j < 8; ++j) multiply_fragments(sum[i][j], a[i], b[j]);
    }
  }
#endif
}

// The sums of the tile of A B^T whose corner is (first_m, first_n), through `pool`: kPool uint4.
template <Rows kLeft, Rows kRight>
__device__ __forceinline__ void gemm_sums(Sums& sum, Operand A, Operand B, unsigned k_end,
                                          unsigned first_m, unsigned first_n, uint4* pool) {
  Bits* const buffers = reinterpret_cast<Bits*>(pool);
  const unsigned tiles = (k_end - 1) / kDepth + 1;
  const auto start = [&](unsigned tile) {
    if (tile < tiles) {
      Bits* const to = buffers + tile % kStages * 2 * kTile;
      fetch<kLeft>(to, A, first_m, tile * kDepth, k_end);
      fetch<kRight>(to + kTile, B, first_n, tile * kDepth, k_end);
    }
    commit();
  };
#pragma unroll
  for (unsigned tile = 0; tile < kStages - 1; ++tile) start(tile);
  for (unsigned tile = 0; tile < tiles; ++tile) {
    wait<kStages - 2>();
    start(tile + kStages - 1);
    const Bits* const from = buffers + tile % kStages * 2 * kTile;
    multiply<kLeft, kRight>(sum, from, from + kTile, A.extent - first_m, B.extent - first_n);
  }
}

constexpr unsigned kPitch = kEdge + 8;  // of the staged sums: a half warp's pairs meet no conflict
static_assert(64 * kPitch * 4 <= kPool * 16, "half a tile of sums fits the pool");

// Hands out the sums of the block's tile, of which there are `rows` and `columns`, eight neighbours
// at a time: emit(row, column, first of eight sums, step between them); with `mirrored` once more
// with row and column exchanged, by mirror(row, column, ...).
template <class Emit, class Mirror>
__device__ __forceinline__ void hand_out(const Sums& sum, uint4* pool, unsigned rows,
                                         unsigned columns, bool mirrored, Emit emit,
                                         Mirror mirror) {
  float* const stage = reinterpret_cast<float*>(pool);
  const Spot spot;
#pragma unroll 1
  for (unsigned top = 0; top < kEdge && top < rows; top += 64) {
    __syncthreads();  // the pool's last readers are done
    if (spot.warp_row == top) {
      float* const to = stage + (spot.row - top) * kPitch + spot.column;
#pragma unroll
      for (unsigned at = 0; at < 64; ++at) {
        const unsigned i = at / 16, j = at / 2 % 8, low = at % 2;
        *reinterpret_cast<float2*>(to + (16 * i + 8 * low) * kPitch + 8 * j) =
            float2{sum[i][j][2 * low], sum[i][j][2 * low + 1]};
      }
    }
    __syncthreads();
#pragma unroll 2
    for (unsigned at = threadIdx.x; at < 64 * kEdge / 8; at += kThreads) {
      const unsigned row = at / (kEdge / 8), column = at % (kEdge / 8) * 8;
      if (top + row < rows && column < columns) {
        emit(top + row, column, stage + row * kPitch + column, 1u);
      }
    }
    if (!mirrored) continue;
#pragma unroll 2
    for (unsigned at = threadIdx.x; at < 64 * kEdge / 8; at += kThreads) {
      const unsigned row = at % kEdge, column = at / kEdge * 8;  // of the mirror image
      if (row < columns && top + column < rows) {
        mirror(row, top + column, stage + column * kPitch + row, kPitch);
      }
    }
  }
}

}  // namespace tensor
}  // namespace trueup
