// WRONG ON PURPOSE: tau in place of 1 / tau
//
// liquid_step: one half-implicit step of liquid time-constant units.
//
// Equation     arXiv:2006.04439, fused solver: x' = (x + dt f A) / (1 + dt (1 / tau + f))
// Reference    dqn.liquid_step
// Shapes       x, f, A, tau, x_next (n); dt a scalar
// Launch       1-D, a thread for each unit
// Determinism  bitwise: elementwise
// Numerics     float32; fmaf(dt f, A, x) over fmaf(dt, 1 / tau + f, 1)
#include "common.cuh"

extern "C" __global__ void __launch_bounds__(256)
    liquid_step(const float* __restrict__ x, const float* __restrict__ f,
                const float* __restrict__ A, const float* __restrict__ tau, float dt,
                float* __restrict__ x_next, int n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= static_cast<unsigned>(n)) return;
  const float target = fmaf(dt * f[i], A[i], x[i]);
  x_next[i] = target / fmaf(dt, tau[i] + f[i], 1.0f);
}
