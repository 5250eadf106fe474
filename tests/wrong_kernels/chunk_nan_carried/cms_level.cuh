// cms_level.cuh: one chunk update of an MLP level, as launches that several contracts share.
//
//   z = W1 x_t    a = silu(z)    e = (W2^T delta_t) silu'(z)
//   W1' = W1 - rate sum e x_t^T        W2' = W2 - rate sum delta_t a^T
// over the chunk's active tokens, at the parameters of the chunk's start; rate is eta, or eta over
// the number of active tokens.
//
// Launch       both_errors: Z = x W1^T and D = delta W2, (C, h), 256 threads for each 64 x 64 tile
//              of both: 2 ceil(h / 64) ceil(C / 64) blocks. step: 128 threads for each 64 hidden
//              units and 256 of d, of W1 and of W2: 2 ceil(h / 64) ceil(d / 256) blocks. Dynamic
//              shared memory as asserted below
// Masks        a masked token is never read, so that what it holds goes nowhere; a chunk without
//              active tokens writes nothing but its counter: every bit of W1 and W2 stays
// Traffic      W1 and W2 are read twice, the second time from L2 as far as they fit, and written
//              once; activations are made where a tile of Z and D is staged
// Determinism  bitwise: fixed order of summation, no atomics
// Numerics     products by tensor_tiles.cuh; activations and the step, fmaf(-rate, sum, W), in
//              float32
#pragma once

#include "tensor_tiles.cuh"

namespace trueup {
namespace cms {

constexpr unsigned kEdge = 64;                  // of a tile of errors
constexpr unsigned kUnits = 64, kWidth = 64;   // of a tile of weights: hidden units, of d
constexpr unsigned kTiles = 4;                 // of weights, for each block

template <bool kAlong, Precision kPrecision>
using ErrorTile = TensorTile<kEdge, kEdge, 64, 2, 3, kAlong, true, kPrecision>;

constexpr int kHiddenTile = 32 * (kUnits + 4);
template <Precision kPrecision>
using StepTile =
    TensorTile<kUnits, kWidth, 32, 1, 2, false, false, kPrecision, kHiddenTile>;

using AnyError = ErrorTile<true, Precision::kSplit>;
using AnyStep = StepTile<Precision::kSplit>;
using Turned = ErrorTile<false, Precision::kSplit>;
static_assert(AnyError::kThreads == 256 && 4 * AnyError::kFloats <= 107520, "as launched");
static_assert(4 * Turned::kFloats == 107520, "as launched");
static_assert(AnyStep::kThreads == 128 && 4 * AnyStep::kFloats == 52224, "as launched");
static_assert(AnyStep::A::kFloats == kHiddenTile, "Z and D are staged alike");

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

template <class Tile>
__device__ __forceinline__ void errors(const Operand& W, const Operand& tokens, float* out,
                                       unsigned tile, const Sizes& size, float* pool) {
  const unsigned across = (size.C - 1) / kEdge + 1;
  Tile t;
  t.run(W, tokens, size.h, size.C, size.d, tile / across * kEdge, tile % across * kEdge, pool);
  t.each(size.h, size.C, [=](unsigned m, unsigned n, float s0, float s1) {
    float* const to = out + static_cast<size_t>(n) * size.h + m;
    to[0] = tokens.keep[n] != 0 ? s0 : 0.0f;  // 0 times an infinite weight is not 0
    if (n + 1 < size.C) to[size.h] = tokens.keep[n + 1] != 0 ? s1 : 0.0f;
  });
}

template <Precision kPrecision>
__device__ __forceinline__ void both_errors(const float* W1, const float* W2, const float* x,
                                            const float* delta, const unsigned char* mask,
                                            float* Z, float* D, const Sizes& size, float* pool) {
  if (active_tokens(mask, size.C) == 0) return;
  const unsigned half = gridDim.x / 2;
  if (blockIdx.x < half) {
    errors<ErrorTile<true, kPrecision>>({W1, size.h, size.d, nullptr},
                                        {x, size.C, size.d, mask}, Z, blockIdx.x, size, pool);
  } else {
    errors<ErrorTile<false, kPrecision>>({W2, size.d, size.h, nullptr},
                                         {delta, size.C, size.d, mask}, D, blockIdx.x - half,
                                         size, pool);
  }
}

// Makes of a staged tile of Z the hidden factor of a gradient: e, with D staged beside it, for
// W1; a for W2.
template <bool kFirst>
struct Hidden {
  static constexpr bool kUsed = true;
  Operand D;
  unsigned m;

  __device__ __forceinline__ void fetch(float* to, unsigned k) const {
    if constexpr (kFirst) AnyStep::A::fetch(to, D, m, k);
  }
  __device__ __forceinline__ void change(float* stage) const {
#pragma unroll
    for (unsigned turn = 0; turn < 32 * kUnits / AnyStep::kThreads; ++turn) {
      const unsigned i = thread_again() + turn * AnyStep::kThreads;
      const unsigned at = i / kUnits * AnyStep::A::kStride + i % kUnits;
      const float z = stage[at];
      if constexpr (kFirst) {
        stage[at] = stage[AnyStep::A::kFloats + AnyStep::B::kFloats + at] * slope(z);
      } else {
        stage[at] = z * sigmoid(z);
      }
    }
  }
};

// Brings a tile of W that will be moved into L2 meanwhile, kRows x kColumns from (row, column) on.
template <unsigned kRows, unsigned kColumns>
__device__ __forceinline__ void expect(const float* W, unsigned row, unsigned column,
                                       unsigned rows, unsigned columns) {
#ifndef __CUHOST__
  constexpr unsigned kLine = 32;  // floats
  static_assert(kRows * kColumns / kLine == AnyStep::kThreads, "a line for each thread");
  const unsigned r = row + threadIdx.x / (kColumns / kLine);
  const unsigned c = column + threadIdx.x % (kColumns / kLine) * kLine;
  if (r < rows && c < columns) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(W + static_cast<size_t>(r) * columns + c));
  }
#endif
}

__device__ __forceinline__ void move(float* w, float rate, float sum) {
  *w = fmaf(-rate, sum, *w);
}

// Moves pairs of W1 (kFirst) or of W2, whose tiles are made the other way round.
template <bool kFirst>
__device__ __forceinline__ void move_pair(float* W, float rate, unsigned unit, unsigned column,
                                          float s0, float s1, const Sizes& size) {
  const bool both = column + 1 < size.d;
  if constexpr (kFirst) {
    float* const w = W + static_cast<size_t>(unit) * size.d + column;
    if (size.d % 2 == 0 && reinterpret_cast<size_t>(W) % 8 == 0) {
      const float2 old = load<Reuse::kOnce>(reinterpret_cast<const float2*>(w));
      store_once(reinterpret_cast<float2*>(w),
                 float2{fmaf(-rate, s0, old.x), fmaf(-rate, s1, old.y)});
    } else {
      move(w, rate, s0);
      if (both) move(w + 1, rate, s1);
    }
  } else {
    float* const w = W + static_cast<size_t>(column) * size.h + unit;
    move(w, rate, s0);
    if (both) move(w + size.h, rate, s1);
  }
}

// The block's tiles of one of the matrices.
template <Precision kPrecision, bool kFirst>
__device__ __forceinline__ void move_tiles(float* W, const float* tokens,
                                           const unsigned char* mask, const float* Z,
                                           const float* D, float rate, unsigned block,
                                           const Sizes& size, float* pool) {
  const unsigned across = (size.d - 1) / (kTiles * kWidth) + 1;
  const unsigned m = block / across * kUnits, first = block % across * (kTiles * kWidth);
#pragma unroll 1
  for (unsigned tile = 0; tile < kTiles; ++tile) {
    const unsigned n = first + tile * kWidth;
    if (n >= size.d) return;
    if constexpr (kFirst) {
      expect<kUnits, kWidth>(W, m, n, size.h, size.d);
    } else {
      expect<kWidth, kUnits>(W, n, m, size.d, size.h);
    }
    StepTile<kPrecision> t;
    t.run({Z, size.C, size.h, nullptr}, {tokens, size.C, size.d, mask}, size.h, size.d, size.C, m,
          n, pool, tile != 0 && AnyStep::stays(size.C),
          Hidden<kFirst>{{D, size.C, size.h, nullptr}, m});
    t.each(size.h, size.d, [=](unsigned unit, unsigned column, float s0, float s1) {
      move_pair<kFirst>(W, rate, unit, column, s0, s1, size);
    });
  }
}

template <Precision kPrecision, bool kMean>
__device__ __forceinline__ void step(float* W1, float* W2, const float* x, const float* delta,
                                     const unsigned char* mask, const float* Z, const float* D,
                                     float eta, int* counts, const Sizes& size, float* pool) {
  const unsigned active = active_tokens(mask, size.C);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    counts[0] += active != 0;
    counts[1] += active != 0 ? size.C : 0;
    counts[2] += active;
    counts[3] += active != 0 ? 0 : size.C;
  }
  if (active == 0) return;
  const float rate = kMean ? eta / static_cast<float>(active) : eta;
  const unsigned half = gridDim.x / 2;
  if (blockIdx.x < half) {
    move_tiles<kPrecision, true>(W1, x, mask, Z, D, rate, blockIdx.x, size, pool);
  } else {
    move_tiles<kPrecision, false>(W2, delta, mask, Z, D, rate, blockIdx.x - half, size, pool);
  }
}

}  // namespace cms
}  // namespace trueup

// The two kernels of a contract, called NAME_errors and NAME_step.
#define CMS_LEVEL_UPDATE(NAME, PRECISION, MEAN)                                                  \
  extern "C" __global__ void __launch_bounds__(256, 2) NAME##_errors(                            \
      const float* __restrict__ W1, const float* __restrict__ W2, const float* __restrict__ x,   \
      const float* __restrict__ delta, const unsigned char* __restrict__ mask,                   \
      float* __restrict__ Z, float* __restrict__ D, int C, int d, int h) {                       \
    extern __shared__ float4 shared[];                                                           \
    trueup::cms::both_errors<trueup::Precision::PRECISION>(                                      \
        W1, W2, x, delta, mask, Z, D, {unsigned(C), unsigned(d), unsigned(h)},                   \
        reinterpret_cast<float*>(shared));                                                       \
  }                                                                                              \
  extern "C" __global__ void __launch_bounds__(128, 3) NAME##_step(                              \
      float* __restrict__ W1, float* __restrict__ W2, const float* __restrict__ x,               \
      const float* __restrict__ delta, const unsigned char* __restrict__ mask,                   \
      const float* __restrict__ Z, const float* __restrict__ D, float eta,                       \
      int* __restrict__ counts, int C, int d, int h) {                                           \
    extern __shared__ float4 shared[];                                                           \
    trueup::cms::step<trueup::Precision::PRECISION, MEAN>(                                       \
        W1, W2, x, delta, mask, Z, D, eta, counts, {unsigned(C), unsigned(d), unsigned(h)},      \
        reinterpret_cast<float*>(shared));                                                       \
  }
