// WRONG ON PURPOSE: the workspace is not zeroed where long rows add up in it
//
// layer_norm_backward: gradient of LayerNorm, with the full Jacobian, and of its gain and bias.
//
// Equation     DQN programme, 11.3, with g = d_out gamma:
//                dy = rstd / D (D g - sum_d g - xhat sum_d (g xhat))
//                dgamma = sum_b d_out xhat        dbeta = sum_b d_out
// Reference    dqn.layer_norm_backward
// Shapes       d_out, xhat, dy (B, D) row-major; rstd (B); gamma, dgamma, dbeta (D);
//              workspaces part_gamma, part_beta (blocks of the first launch, D) and parts (1),
//              the number of those blocks
// Launch       first: 1-D grid of any size that the workspaces have rows for, block any multiple
//              of 32 up to 1024. A row belongs to the smallest power of two of warps that hold it
//              at 8 elements a thread (4 where 16-byte accesses cannot be): one warp up to D = 256;
//              a row longer than the block holds is read a second time, from L2.
//              Then the column sums: one block for 8 columns, any multiple of 32 threads up to
//              1024.
// Traffic      d_out and xhat are read once, dy is written once: 12 B D bytes, and 16 D bytes for
//              each block of the first launch
// Determinism  bitwise: rows go to blocks and warps by their number, every sum has a fixed order
//              given both launches; no atomics
// Numerics     float32; sums of g and g xhat by lanes, then trees; a mean is the sum times the
//              rounded 1 / D; dy = rstd fmaf(-xhat, mean(g xhat), g - mean(g)): D g, which could
//              overflow, is never formed
#include "common.cuh"

namespace {

using trueup::kWarp;
using trueup::Reuse;
constexpr unsigned kColumns = 8;

// Quads of d_out, and of xhat, that a thread keeps: as many as 64 registers hold, so that an SM is
// full of warps that each wait for a row.
template <bool kVector>
constexpr unsigned kQuads = kVector ? 2 : 1;

struct Arrays {
  const float* d_out;
  const float* xhat;
  const float* rstd;
  const float* gamma;
  float* dy;
  float* part_gamma;
  float* part_beta;
};

__device__ __forceinline__ float4 multiply(float4 a, float4 b) {
  // Rounded: contracted with the subtraction of the mean, a residue would stay where rstd is
  // infinite and the difference is 0.
  return {__fmul_rn(a.x, b.x), __fmul_rn(a.y, b.y), __fmul_rn(a.z, b.z), __fmul_rn(a.w, b.w)};
}

__device__ __forceinline__ float4 add(float4 a, float4 b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}

__device__ __forceinline__ float4 multiply_add(float4 a, float4 b, float4 c) {
  return {fmaf(a.x, b.x, c.x), fmaf(a.y, b.y, c.y), fmaf(a.z, b.z, c.z), fmaf(a.w, b.w, c.w)};
}

__device__ __forceinline__ float sum_quad(float4 a, float c) {
  return (((c + a.x) + a.y) + a.z) + a.w;
}

__device__ __forceinline__ float4 row_gradient(float4 g, float4 xhat, float rstd, float mean,
                                               float mean_xhat) {
  const float4 centred =
      trueup::fma_quad(-mean_xhat, xhat, {g.x - mean, g.y - mean, g.z - mean, g.w - mean});
  return {rstd * centred.x, rstd * centred.y, rstd * centred.z, rstd * centred.w};
}

// Both sums over the `warps` neighbouring warps from `first` on. With more than one warp, a
// barrier for the whole block.
__device__ __forceinline__ float2 group_sums(float2 sums, unsigned first, unsigned warps,
                                             float2* slots) {
  sums = {trueup::warp_sum(sums.x), trueup::warp_sum(sums.y)};
  if (warps == 1) return sums;
  const unsigned lane = threadIdx.x % kWarp;
  if (lane == 0) slots[threadIdx.x / kWarp] = sums;
  __syncthreads();
  sums = lane < warps ? slots[first + lane] : float2{0.0f, 0.0f};
  return {trueup::warp_sum(sums.x), trueup::warp_sum(sums.y)};
}

// Adds the groups' column sums in the order of their numbers; group 0 gets the result.
__device__ __forceinline__ float4 add_groups(float4 sum, unsigned group, unsigned groups,
                                             unsigned width, float4* pool) {
  if (groups == 1) return sum;
  pool[threadIdx.x] = sum;
  __syncthreads();
  if (group == 0) {
    for (unsigned other = 1; other < groups; ++other) {
      sum = add(sum, pool[other * width + threadIdx.x]);
    }
  }
  __syncthreads();
  return sum;
}

template <bool kVector>
__device__ __forceinline__ void rows_in_registers(const Arrays& p, unsigned B, unsigned D,
                                                  unsigned warps, float2 (*slots)[32],
                                                  float4* pool) {
  const unsigned width = warps * kWarp;
  const unsigned groups = blockDim.x / width;
  const unsigned group = threadIdx.x / width;  // `groups` for the warps left over
  const unsigned t = threadIdx.x % width;
  const unsigned first_warp = group * warps;
  float4 d_gain[kQuads<kVector>] = {};
  float4 d_bias[kQuads<kVector>] = {};
  const float per_column = 1.0f / static_cast<float>(D);
  unsigned turn = 0;
  const size_t stride = static_cast<size_t>(groups) * gridDim.x;
  for (size_t base = 0; base < B; base += stride, turn ^= 1) {
    const size_t row = base + static_cast<size_t>(group) * gridDim.x + blockIdx.x;
    const unsigned length = group < groups && row < B ? D : 0;  // 0: nothing to read or write
    float4 d[kQuads<kVector>];
    float4 xhat[kQuads<kVector>];
#pragma unroll
    for (unsigned q = 0; q < kQuads<kVector>; ++q) {
      d[q] = trueup::load_quad<kVector, Reuse::kOnce>(p.d_out + row * D, length, q, t, width);
      xhat[q] = trueup::load_quad<kVector, Reuse::kOnce>(p.xhat + row * D, length, q, t, width);
    }
    const float rstd = length != 0 ? p.rstd[row] : 0.0f;
    float2 sums = {0.0f, 0.0f};
#pragma unroll
    for (unsigned q = 0; q < kQuads<kVector>; ++q) {
      const float4 gain = trueup::load_quad<kVector, Reuse::kShared>(p.gamma, D, q, t, width);
      const float4 g = multiply(d[q], gain);
      sums.x = sum_quad(g, sums.x);
      sums.y = trueup::dot_quad(g, xhat[q], sums.y);
    }
    sums = group_sums(sums, first_warp, warps, slots[turn]);
    const float mean = per_column * sums.x;
    const float mean_xhat = per_column * sums.y;
#pragma unroll
    for (unsigned q = 0; q < kQuads<kVector>; ++q) {
      const float4 gain = trueup::load_quad<kVector, Reuse::kShared>(p.gamma, D, q, t, width);
      const float4 g = multiply(d[q], gain);
      trueup::store_quad<kVector>(p.dy + row * D, row_gradient(g, xhat[q], rstd, mean, mean_xhat),
                                  length, q, t, width);
      d_gain[q] = multiply_add(d[q], xhat[q], d_gain[q]);
      d_bias[q] = add(d_bias[q], d[q]);
    }
  }
  const size_t part = static_cast<size_t>(blockIdx.x) * D;
#pragma unroll
  for (unsigned q = 0; q < kQuads<kVector>; ++q) {
    const float4 gain_sum = add_groups(d_gain[q], group, groups, width, pool);
    const float4 bias_sum = add_groups(d_bias[q], group, groups, width, pool);
    if (group == 0) {
      trueup::store_quad<kVector>(p.part_gamma + part, gain_sum, D, q, t, width);
      trueup::store_quad<kVector>(p.part_beta + part, bias_sum, D, q, t, width);
    }
  }
}

// A row longer than the block's registers: the block goes over it twice, and keeps the column
// sums in its rows of the workspaces, where each thread reads back only what it wrote itself.
template <bool kVector>
__device__ __forceinline__ void rows_read_twice(const Arrays& p, unsigned B, unsigned D,
                                                float2 (*slots)[32]) {
  const unsigned width = blockDim.x;
  const unsigned t = threadIdx.x;
  float* const d_gain = p.part_gamma + static_cast<size_t>(blockIdx.x) * D;
  float* const d_bias = p.part_beta + static_cast<size_t>(blockIdx.x) * D;
  const float per_column = 1.0f / static_cast<float>(D);
  unsigned turn = 0;
  for (size_t row = blockIdx.x; row < B; row += gridDim.x, turn ^= 1) {
    const float* const d_row = p.d_out + row * D;
    const float* const xhat_row = p.xhat + row * D;
    float2 sums = {0.0f, 0.0f};
    for (unsigned q = 0; 4 * q * width < D; ++q) {
      const float4 d = trueup::load_quad<kVector, Reuse::kShared>(d_row, D, q, t, width);
      const float4 xhat = trueup::load_quad<kVector, Reuse::kShared>(xhat_row, D, q, t, width);
      const float4 gain = trueup::load_quad<kVector, Reuse::kShared>(p.gamma, D, q, t, width);
      const float4 g = multiply(d, gain);
      sums.x = sum_quad(g, sums.x);
      sums.y = trueup::dot_quad(g, xhat, sums.y);
    }
    sums = group_sums(sums, 0, width / kWarp, slots[turn]);
    const float mean = per_column * sums.x;
    const float mean_xhat = per_column * sums.y;
    for (unsigned q = 0; 4 * q * width < D; ++q) {
      const float4 d = trueup::load_quad<kVector, Reuse::kShared>(d_row, D, q, t, width);
      const float4 xhat = trueup::load_quad<kVector, Reuse::kShared>(xhat_row, D, q, t, width);
      const float4 gain = trueup::load_quad<kVector, Reuse::kShared>(p.gamma, D, q, t, width);
      trueup::store_quad<kVector>(
          p.dy + row * D, row_gradient(multiply(d, gain), xhat, p.rstd[row], mean, mean_xhat), D,
          q, t, width);
      const float4 gain_sum = trueup::load_quad<kVector, Reuse::kShared>(d_gain, D, q, t, width);
      const float4 bias_sum = trueup::load_quad<kVector, Reuse::kShared>(d_bias, D, q, t, width);
      trueup::store_quad<kVector>(d_gain, multiply_add(d, xhat, gain_sum), D, q, t, width);
      trueup::store_quad<kVector>(d_bias, add(bias_sum, d), D, q, t, width);
    }
  }
}

template <bool kVector>
__device__ __forceinline__ void rows(const Arrays& p, unsigned B, unsigned D, float2 (*slots)[32],
                                     float4* pool) {
  const unsigned held = 4 * kQuads<kVector> * kWarp;  // by one warp
  const unsigned all = blockDim.x / kWarp;
  unsigned warps = 1;
  while (warps < all && warps * held < D) warps *= 2;
  if (warps > all) warps = all;
  if (D <= warps * held) {
    rows_in_registers<kVector>(p, B, D, warps, slots, pool);
  } else {
    rows_read_twice<kVector>(p, B, D, slots);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(1024)
    layer_norm_backward_rows(const float* __restrict__ d_out, const float* __restrict__ xhat,
                             const float* __restrict__ rstd, const float* __restrict__ gamma,
                             float* __restrict__ dy, float* __restrict__ part_gamma,
                             float* __restrict__ part_beta, int* __restrict__ parts, int B,
                             int D) {
  __shared__ float2 slots[2][32];
  __shared__ float4 pool[1024];
  if (blockIdx.x == 0 && threadIdx.x == 0) *parts = static_cast<int>(gridDim.x);
  const Arrays p = {d_out, xhat, rstd, gamma, dy, part_gamma, part_beta};
  const bool vector = D % 4 == 0 && trueup::aligned16(d_out) && trueup::aligned16(xhat) &&
                      trueup::aligned16(gamma) && trueup::aligned16(dy) &&
                      trueup::aligned16(part_gamma) && trueup::aligned16(part_beta);
  if (vector) {
    rows<true>(p, static_cast<unsigned>(B), static_cast<unsigned>(D), slots, pool);
  } else {
    rows<false>(p, static_cast<unsigned>(B), static_cast<unsigned>(D), slots, pool);
  }
}

// Column c of a block is summed by every eighth thread from c on, over parts in strides; then over
// a warp's four such threads, then over the warps in order.
extern "C" __global__ void __launch_bounds__(1024)
    layer_norm_backward_columns(const float* __restrict__ part_gamma,
                                const float* __restrict__ part_beta,
                                const int* __restrict__ parts, float* __restrict__ dgamma,
                                float* __restrict__ dbeta, int D) {
  __shared__ float2 slots[32][kColumns];
  const size_t columns = static_cast<size_t>(D);
  const size_t column = static_cast<size_t>(blockIdx.x) * kColumns + threadIdx.x % kColumns;
  const unsigned rows = static_cast<unsigned>(*parts);
  float2 sum = {0.0f, 0.0f};
  if (column < columns) {
#pragma unroll 8  // the loads of as many parts are on the way together
    for (size_t row = threadIdx.x / kColumns; row < rows; row += blockDim.x / kColumns) {
      sum.x += part_gamma[row * columns + column];
      sum.y += part_beta[row * columns + column];
    }
  }
#pragma unroll
  for (int offset = 16; offset >= static_cast<int>(kColumns); offset /= 2) {
    sum.x += __shfl_xor_sync(trueup::kWholeWarp, sum.x, offset);
    sum.y += __shfl_xor_sync(trueup::kWholeWarp, sum.y, offset);
  }
  if (threadIdx.x % kWarp < kColumns) slots[threadIdx.x / kWarp][threadIdx.x % kWarp] = sum;
  __syncthreads();
  if (threadIdx.x >= kColumns || column >= columns) return;
  for (unsigned warp = 1; warp < blockDim.x / kWarp; ++warp) {
    sum.x += slots[warp][threadIdx.x].x;
    sum.y += slots[warp][threadIdx.x].y;
  }
  dgamma[column] = sum.x;
  dbeta[column] = sum.y;
}
