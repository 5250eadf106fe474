// WRONG ON PURPOSE: the trunk's budget is the sum of the four
//
// branch_budgets: how much of each auxiliary gradient a branch, and the trunk, may take.
//
// Equation     DQN programme, per-branch adaptive budgets:
//                beta[c,k] = clip(frac_c n_ref[k] / max(n[c,k], 1e-12), lo_c, hi_c)
//                trunk_c = (((beta[c,0] + beta[c,1]) + beta[c,2]) + beta[c,3]) / 4
// Reference    dqn.branch_budgets
// Shapes       norm, beta (c, 4); reference (4); frac, lo, hi, trunk (c)
// Launch       1-D grid of ceil(c / block), any block size; one thread a component
// Determinism  bitwise: the four are added in order; equal budgets give the trunk the same bits
// Numerics     float32; a limit is a comparison, so that NaN stays
#include "common.cuh"

extern "C" __global__ void __launch_bounds__(256)
    branch_budgets(const float* __restrict__ norm, const float* __restrict__ reference,
                   const float* __restrict__ frac, const float* __restrict__ lo,
                   const float* __restrict__ hi, float* __restrict__ beta,
                   float* __restrict__ trunk, int c) {
  constexpr float kFloor = 1e-12f;
  const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= static_cast<size_t>(c)) return;
  const float share = frac[i];
  const float low = lo[i];
  const float high = hi[i];
  float sum = 0.0f;
#pragma unroll
  for (unsigned k = 0; k < 4; ++k) {
    const float size = norm[4 * i + k];
    const float raw = share * (reference[k] / (size > kFloor ? size : kFloor));
    const float budget = raw < low ? low : raw > high ? high : raw;
    beta[4 * i + k] = budget;
    sum = k == 0 ? budget : sum + budget;
  }
  trunk[i] = sum;
}
