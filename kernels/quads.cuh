// quads.cuh: four neighbours of a row stored or changed at once, for the tiles of gemm.cuh.
#pragma once

#include "common.cuh"

namespace trueup {

template <bool kVector>
__device__ __forceinline__ void store_four(float* row, unsigned i, unsigned n, float4 v) {
  if constexpr (kVector) {
    if (i < n) *reinterpret_cast<float4*>(row + i) = v;
  } else {
    if (i < n) row[i] = v.x;
    if (i + 1 < n) row[i + 1] = v.y;
    if (i + 2 < n) row[i + 2] = v.z;
    if (i + 3 < n) row[i + 3] = v.w;
  }
}

__device__ __forceinline__ float pick(float4 v, int place) {
  return place == 0 ? v.x : place == 1 ? v.y : place == 2 ? v.z : v.w;
}

// Changes four neighbours of a matrix with rows of c in place: change(offset, place of four, old).
struct Change {
  float* to;
  unsigned c;
  template <class New>
  __device__ __forceinline__ void operator()(unsigned row, unsigned column, New change) const {
    const size_t at = static_cast<size_t>(row) * c + column;
    if (c % 4 == 0 && aligned16(to)) {
      const float4 old = *reinterpret_cast<const float4*>(to + at);
      *reinterpret_cast<float4*>(to + at) = {change(at, 0, old.x), change(at + 1, 1, old.y),
                                             change(at + 2, 2, old.z), change(at + 3, 3, old.w)};
    } else {
#pragma unroll
      for (int place = 0; place < 4; ++place) {
        if (column + place < c) to[at + place] = change(at + place, place, to[at + place]);
      }
    }
  }
};

}  // namespace trueup
