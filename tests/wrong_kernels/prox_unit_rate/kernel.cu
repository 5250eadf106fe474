// WRONG ON PURPOSE: the rate of the minimiser for |x| = 1 is used for every x
//
// projected_descent_prox: gradient descent with an L2 inner objective, one token, the exact minimiser.
//
// Equation     Nested Learning, Eq. 27-29, reading `prox`:
//                W' = W - eta / (1 + eta |x|^2) (W x + u) x^T
// Reference    nl.projected_descent
// Shapes       W (d_out, d_in) row-major, updated in place; x (d_in); u (d_out)
// Launch       1-D grid of any size (rows in grid strides); block any multiple of 32 up to 1024
// Traffic      W is read once and written once: 8 d_out d_in bytes
// Determinism  bitwise: sums run over a thread's elements in index order, then over lanes and
//              warps in trees that depend on the block size alone; no atomics
// Numerics     float32, explicit fmaf; W' = fmaf(-c, x, W), c = eta / (1 + eta |x|^2) ((W x)_i + u_i)
#include "descent_rows.cuh"

namespace {

struct Prox {
  static constexpr bool kDivides = false;
  static __device__ __forceinline__ float step(float dot, float u, float norm, float eta,
                                               float scale) {
    return eta / (eta + 1.0f) * (dot + u) * scale;  // scale is 1
  }
};

}  // namespace

extern "C" __global__ void __launch_bounds__(1024)
    projected_descent_prox(float* __restrict__ W, const float* __restrict__ x,
                           const float* __restrict__ u, float eta, int d_out, int d_in) {
  __shared__ float slots[4][32];
  trueup::descend<Prox>(W, x, u, eta, d_out, d_in, slots);
}
