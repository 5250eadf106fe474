// WRONG ON PURPOSE: the decay is divided by |x| instead of |x|^2
//
// projected_descent_normalized: gradient descent with an L2 inner objective, one token, a true projection.
//
// Equation     Nested Learning, Eq. 27-29, reading `normalized`:
//                W' = W - (W x / |x|^2 + eta u) x^T; at x = 0, W' = W
// Reference    nl.projected_descent
// Shapes       W (d_out, d_in) row-major, updated in place; x (d_in); u (d_out)
// Launch       1-D grid of any size (rows in grid strides); block any multiple of 32 up to 1024
// Traffic      W is read once and written once: 8 d_out d_in bytes
// Determinism  bitwise: sums run over a thread's elements in index order, then over lanes and
//              warps in trees that depend on the block size alone; no atomics
// Numerics     float32, explicit fmaf; |x|^2 below 2^-60 is summed of x scaled by 2^80
#include "descent_rows.cuh"

namespace {

struct Normalized {
  static constexpr bool kDivides = true;
  // Both sums are of the scaled x; what is returned is multiplied by x itself.
  static __device__ __forceinline__ float step(float dot, float u, float norm, float eta,
                                               float scale) {
    const float inverse = norm > 0.0f ? scale / sqrtf(norm) : 0.0f;
    return fmaf(eta, u, inverse * dot);
  }
};

}  // namespace

extern "C" __global__ void __launch_bounds__(1024)
    projected_descent_normalized(float* __restrict__ W, const float* __restrict__ x,
                                 const float* __restrict__ u, float eta, int d_out, int d_in) {
  __shared__ float slots[4][32];
  trueup::descend<Normalized>(W, x, u, eta, d_out, d_in, slots);
}
