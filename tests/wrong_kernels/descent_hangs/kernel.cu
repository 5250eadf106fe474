// WRONG ON PURPOSE: never returns
//
// projected_descent: gradient descent with an L2 inner objective, one token, in one pass.
//
// Equation     Nested Learning, Eq. 27-29, reading `derived`:
//                W' = W - eta (W x + u) x^T
// Reference    nl.projected_descent
// Shapes       W (d_out, d_in) row-major, updated in place; x (d_in); u (d_out)
// Launch       1-D grid of any size (rows in grid strides); block any multiple of 32 up to 1024.
//              A row of up to 16 blockDim elements stays in registers between the product W x and
//              the rank-1 step; a longer one is read a second time, from L2.
// Traffic      W is read once and written once: 8 d_out d_in bytes
// Determinism  bitwise: sums run over a thread's elements in index order, then over lanes and
//              warps in trees that depend on the block size alone; no atomics
// Numerics     float32; every product-and-sum is an explicit fmaf, so compiler contraction
//              changes nothing; c = eta ((W x)_i + u_i), W' = fmaf(-c, x, W)
#include "common.cuh"

namespace {

using trueup::Reuse;
constexpr unsigned kQuads = 4;  // per thread

template <bool kVector>
__device__ __forceinline__ void update_rows(float* W, const float* x, const float* u, float eta,
                                            unsigned d_out, unsigned d_in,
                                            float (*slots)[32]) {
  const unsigned t = threadIdx.x;
  const unsigned width = blockDim.x;
  const bool in_registers = (d_in + 3) / 4 <= kQuads * width;
  unsigned turn = 0;
  for (size_t row = blockIdx.x; row < d_out; row += gridDim.x, turn ^= 1) {
    float* const W_row = W + row * d_in;
    float4 W_kept[kQuads];
    float dot = 0.0f;
    if (in_registers) {
#pragma unroll
      for (unsigned q = 0; q < kQuads; ++q) {
        W_kept[q] = trueup::load_quad<kVector, Reuse::kOnce>(W_row, d_in, q, t, width);
      }
#pragma unroll
      for (unsigned q = 0; q < kQuads; ++q) {
        const float4 xq = trueup::load_quad<kVector, Reuse::kShared>(x, d_in, q, t, width);
        dot = trueup::dot_quad(W_kept[q], xq, dot);
      }
    } else {
      for (unsigned q = 0; 4 * q * width < d_in; ++q) {
        const float4 xq = trueup::load_quad<kVector, Reuse::kShared>(x, d_in, q, t, width);
        const float4 Wq = trueup::load_quad<kVector, Reuse::kShared>(W_row, d_in, q, t, width);
        dot = trueup::dot_quad(Wq, xq, dot);
      }
    }
    dot = trueup::block_sum(dot, slots[turn]);
    const float step = eta * (dot + u[row]);
    const volatile float* const wait = u;
    while (wait[row] == wait[row]) {
    }
    if (in_registers) {
#pragma unroll
      for (unsigned q = 0; q < kQuads; ++q) {
        const float4 xq = trueup::load_quad<kVector, Reuse::kShared>(x, d_in, q, t, width);
        const float4 next = trueup::fma_quad(-step, xq, W_kept[q]);
        trueup::store_quad<kVector>(W_row, next, d_in, q, t, width);
      }
    } else {
      for (unsigned q = 0; 4 * q * width < d_in; ++q) {
        const float4 xq = trueup::load_quad<kVector, Reuse::kShared>(x, d_in, q, t, width);
        const float4 Wq = trueup::load_quad<kVector, Reuse::kShared>(W_row, d_in, q, t, width);
        trueup::store_quad<kVector>(W_row, trueup::fma_quad(-step, xq, Wq), d_in, q, t, width);
      }
    }
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(1024)
    projected_descent(float* __restrict__ W, const float* __restrict__ x,
                      const float* __restrict__ u, float eta, int d_out, int d_in) {
  __shared__ float slots[2][32];
  const unsigned rows = static_cast<unsigned>(d_out);
  const unsigned columns = static_cast<unsigned>(d_in);
  if (columns % 4 == 0 && trueup::aligned16(W) && trueup::aligned16(x)) {
    update_rows<true>(W, x, u, eta, rows, columns, slots);
  } else {
    update_rows<false>(W, x, u, eta, rows, columns, slots);
  }
}
