// descent_rows.cuh: W' = W - (c W x + b u) x^T in one pass, where c and b depend on |x|^2.
//
// A block does rows in grid strides. A row of up to 16 blockDim elements stays in registers between
// the product W x and the step; a longer one is read a second time, from L2. |x|^2 is summed along
// with W x of the block's first row. Rule::step(W x, u, |x|^2, eta, scale) gives what is multiplied
// by x: where |x|^2 would underflow, both sums are taken of x scaled by 2^80, and scale says so.
#pragma once

#include "common.cuh"

namespace trueup {

constexpr unsigned kRowQuads = 4;  // of a row, in one thread

struct RowSums {
  float dot, norm;
};

template <bool kVector>
__device__ __forceinline__ void keep_row(float4 (&kept)[kRowQuads], const float* row, unsigned n) {
#pragma unroll
  for (unsigned q = 0; q < kRowQuads; ++q) {
    kept[q] = load_quad<kVector, Reuse::kOnce>(row, n, q, threadIdx.x, blockDim.x);
  }
}

__device__ __forceinline__ float4 times(float s, float4 a) {
  return {s * a.x, s * a.y, s * a.z, s * a.w};
}

template <bool kVector>
__device__ __forceinline__ RowSums sum_row(const float4 (&kept)[kRowQuads], const float* row,
                                           const float* x, unsigned n, bool held, float scale) {
  RowSums sums = {0.0f, 0.0f};
  const auto add = [&](float4 w, float4 xq) {
    xq = times(scale, xq);
    sums.dot = dot_quad(w, xq, sums.dot);
    sums.norm = dot_quad(xq, xq, sums.norm);
  };
  if (held) {
#pragma unroll
    for (unsigned q = 0; q < kRowQuads; ++q) {
      add(kept[q], load_quad<kVector, Reuse::kShared>(x, n, q, threadIdx.x, blockDim.x));
    }
  } else {
    for (unsigned q = 0; 4 * q * blockDim.x < n; ++q) {
      add(load_quad<kVector, Reuse::kShared>(row, n, q, threadIdx.x, blockDim.x),
          load_quad<kVector, Reuse::kShared>(x, n, q, threadIdx.x, blockDim.x));
    }
  }
  return sums;
}

template <bool kVector>
__device__ __forceinline__ void move_row(const float4 (&kept)[kRowQuads], float* row,
                                         const float* x, unsigned n, bool held, float step) {
  if (held) {
#pragma unroll
    for (unsigned q = 0; q < kRowQuads; ++q) {
      const float4 xq = load_quad<kVector, Reuse::kShared>(x, n, q, threadIdx.x, blockDim.x);
      store_quad<kVector>(row, fma_quad(-step, xq, kept[q]), n, q, threadIdx.x, blockDim.x);
    }
  } else {
    for (unsigned q = 0; 4 * q * blockDim.x < n; ++q) {
      const float4 xq = load_quad<kVector, Reuse::kShared>(x, n, q, threadIdx.x, blockDim.x);
      const float4 wq = load_quad<kVector, Reuse::kShared>(row, n, q, threadIdx.x, blockDim.x);
      store_quad<kVector>(row, fma_quad(-step, xq, wq), n, q, threadIdx.x, blockDim.x);
    }
  }
}

template <class Rule, bool kVector>
__device__ __forceinline__ void descend_rows(float* W, const float* x, const float* u, float eta,
                                             unsigned d_out, unsigned d_in, float (*slots)[32]) {
  constexpr float kSmall = 8.6736174e-19f;   // 2^-60
  constexpr float kScale = 1.2089258e+24f;   // 2^80
  const bool held = (d_in + 3) / 4 <= kRowQuads * blockDim.x;
  float norm = 0.0f;
  float scale = 1.0f;
  unsigned turn = 0;
  for (size_t row = blockIdx.x; row < d_out; row += gridDim.x, turn ^= 1) {
    float* const W_row = W + row * d_in;
    float4 kept[kRowQuads];
    if (held) keep_row<kVector>(kept, W_row, d_in);
    RowSums sums = sum_row<kVector>(kept, W_row, x, d_in, held, scale);
    if (row == blockIdx.x) {
      norm = block_sum(sums.norm, slots[2]);
      if (Rule::kDivides && norm < kSmall) {  // the same in every thread
        scale = kScale;
        sums = sum_row<kVector>(kept, W_row, x, d_in, held, scale);
        norm = block_sum(sums.norm, slots[3]);
      }
    }
    const float dot = block_sum(sums.dot, slots[turn]);
    move_row<kVector>(kept, W_row, x, d_in, held, Rule::step(dot, u[row], norm, eta, scale));
  }
}

template <class Rule>
__device__ __forceinline__ void descend(float* W, const float* x, const float* u, float eta,
                                        int d_out, int d_in, float (*slots)[32]) {
  const unsigned rows = static_cast<unsigned>(d_out);
  const unsigned columns = static_cast<unsigned>(d_in);
  if (columns % 4 == 0 && aligned16(W) && aligned16(x)) {
    descend_rows<Rule, true>(W, x, u, eta, rows, columns, slots);
  } else {
    descend_rows<Rule, false>(W, x, u, eta, rows, columns, slots);
  }
}

}  // namespace trueup
