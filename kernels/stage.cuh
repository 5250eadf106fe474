// stage.cuh: tiles on their way from global to shared memory while others are worked on.
//
// A transfer is issued, committed with others as a batch, and waited for; on the host, and where
// rows are not whole 16-byte pieces, it is done at once. What lies outside the matrix is 0.
#pragma once

#include "common.cuh"

namespace trueup {

__device__ __forceinline__ void transfers_commit() {
#ifndef __CUHOST__
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until all but the kLeft youngest batches of this thread have arrived.
template <int kLeft>
__device__ __forceinline__ void transfers_wait() {
#ifndef __CUHOST__
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
#endif
}

template <class T>
constexpr unsigned kPiece = 16 / sizeof(T);  // elements of 16 bytes

// Brings kPiece<T> elements of which the first `there` exist; `from` need not be valid if none do.
// kVector: all of them or none, and both sides 16-byte aligned.
template <bool kVector, class T>
__device__ __forceinline__ void transfer(T* to, const T* from, unsigned there) {
  if constexpr (kVector) {
#ifdef __CUHOST__
    const uint4 none = {0, 0, 0, 0};
    *reinterpret_cast<uint4*>(to) = there ? *reinterpret_cast<const uint4*>(from) : none;
#else
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    const unsigned bytes = there ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from),
                 "r"(bytes)
                 : "memory");
#endif
  } else {
#pragma unroll
    for (unsigned i = 0; i < kPiece<T>; ++i) to[i] = i < there ? from[i] : T{};
  }
}

// A tile of kRows x kColumns from (row, column) on, of a matrix of rows x columns whose rows lie
// `pitch` elements apart, by kThreads threads; a tile's row takes kStride elements. The p-th piece
// of a thread lies in the tile's row piece_row(p); rows of which keep(p) is false become 0.
template <class T, int kColumns, int kThreads>
__device__ __forceinline__ unsigned piece_row(unsigned p) {
  return (threadIdx.x + p * kThreads) / (kColumns / kPiece<T>);
}

template <bool kVector, int kRows, int kColumns, int kStride, int kThreads, class T, class Keep>
__device__ __forceinline__ void transfer_rows(T* tile, const T* matrix, unsigned row,
                                              unsigned column, unsigned rows, unsigned columns,
                                              size_t pitch, Keep keep) {
  constexpr unsigned kAcross = kColumns / kPiece<T>;
  constexpr unsigned kPieces = kRows * kAcross / kThreads;
  static_assert(kPieces * kThreads == kRows * kAcross, "a tile is shared out evenly");
#pragma unroll
  for (unsigned p = 0; p < kPieces; ++p) {
    const unsigned r = piece_row<T, kColumns, kThreads>(p);
    const unsigned c = (threadIdx.x + p * kThreads) % kAcross * kPiece<T>;
    unsigned there = 0;
    const T* from = matrix;
    if (row + r < rows && column + c < columns && keep(p)) {
      const unsigned left = columns - column - c;
      there = left < kPiece<T> ? left : kPiece<T>;
      from = matrix + (row + r) * pitch + column + c;
    }
    transfer<kVector>(tile + r * kStride + c, from, there);
  }
}

template <bool kVector, int kRows, int kColumns, int kStride, int kThreads, class T>
__device__ __forceinline__ void transfer_tile(T* tile, const T* matrix, unsigned row,
                                              unsigned column, unsigned rows, unsigned columns,
                                              size_t pitch) {
  transfer_rows<kVector, kRows, kColumns, kStride, kThreads>(tile, matrix, row, column, rows,
                                                             columns, pitch,
                                                             [](unsigned) { return true; });
}

}  // namespace trueup
