// newton_schulz_parts.cuh: what the float32 and the bf16 Newton-Schulz iterations share: the
// coefficients, the norm in a fixed order, and the tiles of a triangular grid.
#pragma once

#include "common.cuh"

namespace trueup {
namespace ns {

constexpr float kA = 3.4445f, kB = -4.7750f, kC = 2.0315f;

constexpr unsigned kMostPartials = 512;
constexpr unsigned kEach = 2048;  // elements of a block of the norm, until there are kMostPartials

__host__ __device__ constexpr unsigned partials_of(size_t elements) {
  const size_t blocks = (elements + kEach - 1) / kEach;
  return blocks < kMostPartials ? static_cast<unsigned>(blocks) : kMostPartials;
}

// The four values from i on, of which `left` there are; 0 beyond. `vector`: as one quad.
__device__ __forceinline__ float4 four(const float* from, size_t i, size_t left, bool vector) {
  if (vector) return load<Reuse::kOnce>(reinterpret_cast<const float4*>(from + i));
  return {from[i], left > 1 ? from[i + 1] : 0.0f, left > 2 ? from[i + 2] : 0.0f,
          left > 3 ? from[i + 3] : 0.0f};
}

__device__ __forceinline__ void put_four(float* to, size_t i, size_t left, bool vector, float4 v) {
  if (vector) {
    *reinterpret_cast<float4*>(to + i) = v;
  } else {
    to[i] = v.x;
    if (left > 1) to[i + 1] = v.y;
    if (left > 2) to[i + 2] = v.z;
    if (left > 3) to[i + 3] = v.w;
  }
}

// Sums squares over the block's share of `elements`, into partials[blockIdx.x]; the grid is
// partials_of(elements) blocks. four(i, left) gives the four values from i on, 0 beyond `left`.
template <class Four>
__device__ __forceinline__ void partial_squares(size_t elements, float* partials, float* slots,
                                                Four four) {
  float sum = 0.0f;
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x * 4;
#pragma unroll 4
  for (size_t i = (static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x) * 4; i < elements;
       i += stride) {
    const float4 v = four(i, elements - i);
    sum = dot_quad(v, v, sum);
  }
  sum = block_sum(sum, slots);
  if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}

// 1 / max(|G|, eps), the same bits in every thread of every block; NaN stays NaN.
__device__ __forceinline__ float inverse_norm(const float* partials, unsigned count, float eps,
                                              float* slots) {
  float sum = 0.0f;
  for (unsigned i = threadIdx.x; i < count; i += blockDim.x) sum += partials[i];
  const float norm = sqrtf(block_sum(sum, slots));
  return 1.0f / norm;
}

// The tile of a block of a triangular grid: (row, column) with column <= row.
struct Corner {
  unsigned row, column;
  __device__ __forceinline__ explicit Corner(unsigned block) {
    row = static_cast<unsigned>((sqrtf(8.0f * static_cast<float>(block) + 1.0f) - 1.0f) / 2.0f);
    while (row * (row + 1) / 2 > block) --row;
    while ((row + 1) * (row + 2) / 2 <= block) ++row;
    column = block - row * (row + 1) / 2;
  }
};

}  // namespace ns
}  // namespace trueup
