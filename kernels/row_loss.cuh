// row_loss.cuh: a loss that is a mean over rows of a few values, one thread a row, and its sum.
//
// Rows go to threads in turn over a grid of at most kLossBlocks blocks; each block leaves its sum
// in a part, and one block adds the parts in a fixed order.
#pragma once

#include "common.cuh"

namespace trueup {

constexpr unsigned kLossThreads = 256, kLossBlocks = 264;

// Blocks of the launch over rows.
__device__ __forceinline__ unsigned loss_blocks(unsigned rows) {
  const unsigned wanted = (rows - 1) / kLossThreads + 1;
  return wanted < kLossBlocks ? wanted : kLossBlocks;
}

// Calls row(number) for this thread's rows; what it gives is summed over the block, to thread 0.
template <class Row>
__device__ __forceinline__ float sum_rows(unsigned rows, float* slots, Row row) {
  float sum = 0.0f;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < rows; i += gridDim.x * blockDim.x) {
    sum += row(i);
  }
  return block_sum(sum, slots);
}

// The sum of all parts, to every thread of the block.
__device__ __forceinline__ float sum_loss_parts(const float* part, unsigned parts, float* slots) {
  float sum = 0.0f;
  for (unsigned i = threadIdx.x; i < parts; i += blockDim.x) sum += part[i];
  return block_sum(sum, slots);
}

// The largest of n values, and the sum of exp(scale (value - largest)).
struct Exponentials {
  float top, total;
  __device__ __forceinline__ Exponentials(const float* values, unsigned n, float scale = 1.0f) {
    top = values[0];
    for (unsigned i = 1; i < n; ++i) top = fmaxf(top, values[i]);
    total = 0.0f;
    for (unsigned i = 0; i < n; ++i) total += expf(scale * (values[i] - top));
  }
};

}  // namespace trueup
