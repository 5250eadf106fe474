// WRONG ON PURPOSE: the modulation is divided by where it should multiply
//
// liquid_mod_rate: the modulation of an averaging rate by how strongly inputs drive the unit.
//
// Equation     DQN programme, 15, reading `on_rate`: mod = 1 / (1 + tau f);  tau_eff = tau;
//                rate_eff = rate mod
// Reference    dqn.liquid_mod
// Shapes       f, tau, rate, mod, tau_eff, rate_eff (n)
// Launch       1-D, a thread for each unit
// Determinism  bitwise: elementwise
// Numerics     float32
#include "common.cuh"

extern "C" __global__ void __launch_bounds__(256)
    liquid_mod_rate(const float* __restrict__ f, const float* __restrict__ tau,
                    const float* __restrict__ rate, float* __restrict__ mod,
                    float* __restrict__ tau_eff, float* __restrict__ rate_eff, int n) {
  const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= static_cast<size_t>(n)) return;
  const float share = fmaf(tau[i], f[i], 1.0f);
  mod[i] = share;
  tau_eff[i] = tau[i];
  rate_eff[i] = rate[i] * share;
}
