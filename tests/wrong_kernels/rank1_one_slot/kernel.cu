// WRONG ON PURPOSE: the slots of the sums do not alternate: a fast warp overwrites what a slow one still reads
//
// delta_momentum_rank1: delta-rule momentum and the weight step, for the gradient u x^T of one
// sample.
//
// Equation     Nested Learning, Eq. 21-22, reading `derived`, P = I, g = u x^T:
//                m' = alpha m - eta ||u||^2 (m x) x^T - eta u x^T        W' = W + m'
// Reference    nl.delta_momentum_rank1
// Shapes       m, W (d_out, d_in) row-major, updated in place; u (d_out); x (d_in)
// Launch       1-D grid of any size (rows in grid strides); block any multiple of 32 up to 1024.
//              A row of up to 16 blockDim elements stays in registers between the product m x and
//              the update; a longer one is read a second time, from L2.
// Traffic      m and W are read once and written once: 16 d_out d_in bytes. Every block sums
//              ||u||^2 for itself, from L2, while its first row is on the way.
// Determinism  bitwise: sums run over a thread's elements in index order, then over lanes and
//              warps in trees that depend on the block size alone; no atomics
// Numerics     float32; every product-and-sum is an explicit fmaf, so compiler contraction
//              changes nothing but alpha m - c x, which is fmaf(-c, x, alpha m) everywhere;
//              c = eta (||u||^2 (m x)_i + u_i)
#include "common.cuh"

namespace {

using trueup::Reuse;
constexpr unsigned kQuads = 4;  // per thread, of m and of W

__device__ __forceinline__ float4 decay_and_step(float alpha, float4 m, float step, float4 x) {
  return trueup::fma_quad(-step, x, {alpha * m.x, alpha * m.y, alpha * m.z, alpha * m.w});
}

__device__ __forceinline__ float4 add(float4 a, float4 b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}

template <bool kVector>
__device__ __forceinline__ void update_rows(float* m, float* W, const float* u, const float* x,
                                            float alpha, float eta, unsigned d_out,
                                            unsigned d_in, float (*slots)[32]) {
  const unsigned t = threadIdx.x;
  const unsigned width = blockDim.x;
  const bool in_registers = (d_in + 3) / 4 <= kQuads * width;
  float norm = 0.0f;
  unsigned turn = 0;
  for (size_t row = blockIdx.x; row < d_out; row += gridDim.x, turn ^= 1) {
    float* const m_row = m + row * d_in;
    float* const W_row = W + row * d_in;
    float4 m_kept[kQuads];
    float4 W_kept[kQuads];
    float dot = 0.0f;
    if (in_registers) {
#pragma unroll
      for (unsigned q = 0; q < kQuads; ++q) {
        m_kept[q] = trueup::load_quad<kVector, Reuse::kOnce>(m_row, d_in, q, t, width);
      }
#pragma unroll
      for (unsigned q = 0; q < kQuads; ++q) {
        W_kept[q] = trueup::load_quad<kVector, Reuse::kOnce>(W_row, d_in, q, t, width);
      }
    }
    if (row == blockIdx.x) {  // once a block
      float square = 0.0f;
#pragma unroll 8
      for (size_t i = t; i < d_out; i += width) square = fmaf(u[i], u[i], square);
      norm = trueup::block_sum(square, slots[2]);
    }
    if (in_registers) {
#pragma unroll
      for (unsigned q = 0; q < kQuads; ++q) {
        const float4 xq = trueup::load_quad<kVector, Reuse::kShared>(x, d_in, q, t, width);
        dot = trueup::dot_quad(m_kept[q], xq, dot);
      }
    } else {
      for (unsigned q = 0; 4 * q * width < d_in; ++q) {
        const float4 xq = trueup::load_quad<kVector, Reuse::kShared>(x, d_in, q, t, width);
        const float4 mq = trueup::load_quad<kVector, Reuse::kShared>(m_row, d_in, q, t, width);
        dot = trueup::dot_quad(mq, xq, dot);
      }
    }
    dot = trueup::block_sum(dot, slots[0]);
    const float step = eta * fmaf(norm, dot, u[row]);
    if (in_registers) {
#pragma unroll
      for (unsigned q = 0; q < kQuads; ++q) {
        const float4 xq = trueup::load_quad<kVector, Reuse::kShared>(x, d_in, q, t, width);
        const float4 next = decay_and_step(alpha, m_kept[q], step, xq);
        trueup::store_quad<kVector>(m_row, next, d_in, q, t, width);
        trueup::store_quad<kVector>(W_row, add(W_kept[q], next), d_in, q, t, width);
      }
    } else {
      for (unsigned q = 0; 4 * q * width < d_in; ++q) {
        const float4 xq = trueup::load_quad<kVector, Reuse::kShared>(x, d_in, q, t, width);
        const float4 mq = trueup::load_quad<kVector, Reuse::kShared>(m_row, d_in, q, t, width);
        const float4 Wq = trueup::load_quad<kVector, Reuse::kOnce>(W_row, d_in, q, t, width);
        const float4 next = decay_and_step(alpha, mq, step, xq);
        trueup::store_quad<kVector>(m_row, next, d_in, q, t, width);
        trueup::store_quad<kVector>(W_row, add(Wq, next), d_in, q, t, width);
      }
    }
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(1024)
    delta_momentum_rank1(float* __restrict__ m, float* __restrict__ W,
                         const float* __restrict__ u, const float* __restrict__ x, float alpha,
                         float eta, int d_out, int d_in) {
  __shared__ float slots[3][32];
  const unsigned rows = static_cast<unsigned>(d_out);
  const unsigned columns = static_cast<unsigned>(d_in);
  const bool vector = columns % 4 == 0 && trueup::aligned16(m) && trueup::aligned16(W) &&
                      trueup::aligned16(x);
  if (vector) {
    update_rows<true>(m, W, u, x, alpha, eta, rows, columns, slots);
  } else {
    update_rows<false>(m, W, u, x, alpha, eta, rows, columns, slots);
  }
}
