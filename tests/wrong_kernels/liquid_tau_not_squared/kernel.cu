// WRONG ON PURPOSE: dtau is divided by tau, not by its square
//
// liquid_step_backward: the gradients of a half-implicit step of liquid time-constant units.
//
// Equation     DQN programme, 15, den = 1 + dt (1 / tau + f), x' as forward, computed anew:
//                dx = d / den;  df = d dt (A - x') / den;  dA = d dt f / den
//                dtau = d x' dt / (tau^2 den)
// Reference    dqn.liquid_step_backward
// Shapes       d_next, x, f, A, tau, dx, df, dA, dtau (n); dt a scalar
// Launch       1-D, a thread for each unit
// Determinism  bitwise: elementwise
// Numerics     float32
#include "common.cuh"

extern "C" __global__ void __launch_bounds__(256)
    liquid_step_backward(const float* __restrict__ d_next, const float* __restrict__ x,
                         const float* __restrict__ f, const float* __restrict__ A,
                         const float* __restrict__ tau, float dt, float* __restrict__ dx,
                         float* __restrict__ df, float* __restrict__ dA,
                         float* __restrict__ dtau, int n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= static_cast<unsigned>(n)) return;
  const float den = fmaf(dt, 1.0f / tau[i] + f[i], 1.0f);
  const float moved = fmaf(dt * f[i], A[i], x[i]) / den;
  const float scaled = d_next[i] / den;
  dx[i] = scaled;
  df[i] = scaled * (dt * (A[i] - moved));
  dA[i] = scaled * (dt * f[i]);
  dtau[i] = scaled * moved * dt / tau[i];
}
