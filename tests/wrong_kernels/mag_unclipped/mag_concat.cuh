// mag_concat.cuh: the scale that matches the direction's values to the trunk's features.
#pragma once
#include "row_loss.cuh"

namespace trueup {

// Sums of squares of q_dir (B, 4), one part a block.
__device__ __forceinline__ void sum_squares(const float* __restrict__ q_dir,
                                            float* __restrict__ part, unsigned B) {
  __shared__ float slots[kWarp];
  const float sum = sum_rows(B, slots, [=](unsigned row) {
    float squares = 0.0f;
#pragma unroll
    for (unsigned a = 0; a < 4; ++a) {
      const float value = q_dir[4 * static_cast<size_t>(row) + a];
      squares = fmaf(value, value, squares);
    }
    return squares;
  });
  if (threadIdx.x == 0) part[blockIdx.x] = sum;
}

// c = min(h_rms / max(rms, 1e-6), c_max), to every thread of the block; NaN stays.
__device__ __forceinline__ float matched_scale(const float* __restrict__ part,
                                               const float* __restrict__ h_rms, float c_max,
                                               unsigned B) {
  __shared__ float slots[kWarp];
  constexpr float kLeastRms = 1e-6f;
  const float sum = sum_loss_parts(part, loss_blocks(B), slots);
  const float rms = sqrtf(sum / (4.0f * static_cast<float>(B)));
  const float c = *h_rms / (rms < kLeastRms ? kLeastRms : rms);
  return c;
}

// Calls element(row, column) for every element of (B, width), in turn over the grid.
template <class Element>
__device__ __forceinline__ void each_element(unsigned B, unsigned width, Element element) {
  const size_t all = static_cast<size_t>(B) * width;
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < all;
       i += stride) {
    element(i / width, static_cast<unsigned>(i % width));
  }
}

}  // namespace trueup
