// cms_level.cuh: one chunk update of an MLP level, as launches that several contracts share.
//
//   z = W1 x_t    a = silu(z)    e = (W2^T delta_t) silu'(z)
//   W1' = W1 - rate sum e x_t^T        W2' = W2 - rate sum delta_t a^T
// over the chunk's active tokens, at the parameters of the chunk's start; rate is eta, or eta over
// the number of active tokens.
//
// Launch       read: Z = x W1^T and D = delta W2, in parts (slices, C, h), 128 threads for each
//              tile of 128 hidden units and 64 tokens of both, and each slice of d. factors: 256
//              threads, an element of both each; rate e and rate a take the place of D's and Z's
//              first slices. move: 128 threads for each 128 rows and strip of columns, half of the
//              blocks for W1, half for W2. 98304 bytes of shared memory for reading and moving
// Masks        a masked token is never read, so that what it holds goes nowhere; a chunk without
//              active tokens writes nothing but its counter: every bit of W1 and W2 stays
// Traffic      W1 and W2 are read twice, the second time from L2 as far as they stayed there, and
//              written once
// Determinism  bitwise: fixed order of summation, no atomics
// Numerics     products by warp_tiles.cuh; activations, and the step fmaf(1, W, -sum) by factors
//              that hold the rate, in float32
#pragma once

#include "compact.cuh"

namespace trueup {
namespace cms {

struct Sizes {
  unsigned C, d, h;
};

__device__ __forceinline__ float sigmoid(float z) { return 1.0f / (1.0f + expf(-z)); }

// silu'(z) = s (1 + z (1 - s))
__device__ __forceinline__ float slope(float z) {
  const float s = sigmoid(z);
  return s * fmaf(z, 1.0f - s, 1.0f);
}

// To every thread of the block.
__device__ __forceinline__ unsigned active_tokens(const unsigned char* mask, unsigned C) {
  unsigned active = 0;
  for (unsigned first = 0; first < C; first += blockDim.x) {
    const unsigned token = first + threadIdx.x;
    active += __syncthreads_count(token < C && mask[token] != 0);
  }
  return active;
}

// Tiles of Z, and as many of D.
__device__ __forceinline__ unsigned tiles(const Sizes& size) {
  return tiles_of(size.h, kBlockRows) * tiles_of(size.C, kBlockTokens);
}

__device__ __forceinline__ Slices slices(const Sizes& size) {
  return Slices(2 * tiles(size), size.d);
}

template <Precision kPrecision>
__device__ __forceinline__ void read(const float* W1, const float* W2, const float* x,
                                     const float* delta, const unsigned char* mask, float* Z,
                                     float* D, const Sizes& size, float* pool) {
  if (active_tokens(mask, size.C) == 0) return;
  const Slices cut = slices(size);
  const unsigned across = tiles_of(size.C, kBlockTokens), all = tiles(size);
  const bool first = blockIdx.x < gridDim.x / 2;
  const unsigned block = first ? blockIdx.x : blockIdx.x - gridDim.x / 2;
  const unsigned m = block % all / across * kBlockRows, n = block % across * kBlockTokens;
  const unsigned slice = block / all, begin = slice * cut.width;
  const unsigned end = min(size.d, begin + cut.width);
  const IntoParts into = {(first ? Z : D) + static_cast<size_t>(slice) * size.C * size.h, size.h,
                          size.h};
  if (first) {
    Reading<true, kPrecision>::run({W1, size.h, size.d, nullptr}, {x, size.C, size.d, mask}, m, n,
                                   begin, end, pool, into);
  } else {
    Reading<false, kPrecision>::run({W2, size.d, size.h, nullptr}, {delta, size.C, size.d, mask},
                                    m, n, begin, end, pool, into);
  }
}

template <bool kMean>
__device__ __forceinline__ void factors(const unsigned char* mask, float* Z, float* D, float eta,
                                        int* counts, const Sizes& size) {
  const unsigned active = active_tokens(mask, size.C);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    counts[0] += active != 0;
    counts[1] += active != 0 ? size.C : 0;
    counts[2] += active;
    counts[3] += active != 0 ? 0 : size.C;
  }
  const size_t all = static_cast<size_t>(size.C) * size.h;
  const size_t at = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (active == 0 || at >= all) return;
  const float rate = kMean ? eta / static_cast<float>(active) : eta;
  if (mask[at / size.h] == 0) {  // 0 times an infinite weight is not 0
    D[at] = Z[at] = 0.0f;
    return;
  }
  const unsigned parts = slices(size).count;
  const float z = add_parts(Z, at, all, parts);
  D[at] = rate * (add_parts(D, at, all, parts) * slope(z));
  Z[at] = rate * (z * sigmoid(z));
}

template <Precision kPrecision>
__device__ __forceinline__ void move(float* W1, float* W2, const float* x, const float* delta,
                                     const unsigned char* mask, const float* Z, const float* D,
                                     const Sizes& size, float* pool) {
  if (active_tokens(mask, size.C) == 0) return;
  const unsigned half = gridDim.x / 2;
  const bool first = blockIdx.x < half;
  const Operand e = {first ? D : delta, size.C, first ? size.h : size.d, first ? nullptr : mask};
  const Operand other = {first ? x : Z, size.C, first ? size.d : size.h, first ? mask : nullptr};
  Moving<kPrecision>::run(first ? W1 : W2, e, other, 1.0f, first ? blockIdx.x : blockIdx.x - half,
                          half, pool);
}

}  // namespace cms
}  // namespace trueup

// The three kernels of a contract, called NAME_read, NAME_factors and NAME_move.
#define CMS_LEVEL_UPDATE(NAME, PRECISION, MEAN)                                                  \
  extern "C" __global__ void __launch_bounds__(trueup::kBlockThreads, 2) NAME##_read(            \
      const float* __restrict__ W1, const float* __restrict__ W2, const float* __restrict__ x,   \
      const float* __restrict__ delta, const unsigned char* __restrict__ mask,                   \
      float* __restrict__ Z, float* __restrict__ D, int C, int d, int h) {                       \
    extern __shared__ float4 shared[];                                                           \
    trueup::cms::read<trueup::Precision::PRECISION>(W1, W2, x, delta, mask, Z, D,                \
                                                    {unsigned(C), unsigned(d), unsigned(h)},     \
                                                    reinterpret_cast<float*>(shared));           \
  }                                                                                              \
  extern "C" __global__ void __launch_bounds__(256) NAME##_factors(                              \
      const unsigned char* __restrict__ mask, float* __restrict__ Z, float* __restrict__ D,      \
      float eta, int* __restrict__ counts, int C, int d, int h) {                                \
    trueup::cms::factors<MEAN>(mask, Z, D, eta, counts,                                          \
                               {unsigned(C), unsigned(d), unsigned(h)});                         \
  }                                                                                              \
  extern "C" __global__ void __launch_bounds__(trueup::kBlockThreads, 2) NAME##_move(            \
      float* __restrict__ W1, float* __restrict__ W2, const float* __restrict__ x,               \
      const float* __restrict__ delta, const unsigned char* __restrict__ mask,                   \
      const float* __restrict__ Z, const float* __restrict__ D, int C, int d, int h) {           \
    extern __shared__ float4 shared[];                                                           \
    trueup::cms::move<trueup::Precision::PRECISION>(W1, W2, x, delta, mask, Z, D,                \
                                                    {unsigned(C), unsigned(d), unsigned(h)},     \
                                                    reinterpret_cast<float*>(shared));           \
  }
