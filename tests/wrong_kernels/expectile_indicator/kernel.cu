// WRONG ON PURPOSE: the indicator looks at V - Q
//
// expectile: regression of the state value to an expectile of the values in the data, one branch.
//
// Equation     arXiv:2110.06169, per branch, u = Q[a_data] - V:
//                L = branch_weight / B sum_b w_b |tau - 1{u < 0}| u^2
//                dL/dV = -branch_weight / B w_b 2 |tau - 1{u < 0}| u
// Reference    dqn.expectile
// Shapes       Q (B, A); a_data (B), int; V, w, dV (B); loss (1); workspace part (blocks of the
//              first launch)
// Launch       rows: 256 threads, min(ceil(B / 256), 264) blocks, a thread for each row in turn;
//              sum: one block
// Determinism  bitwise: fixed trees over a block, parts in a fixed order; no atomics
// Numerics     float32
#include "row_loss.cuh"

extern "C" __global__ void __launch_bounds__(trueup::kLossThreads)
    expectile_rows(const float* __restrict__ Q, const int* __restrict__ a_data,
                   const float* __restrict__ V, const float* __restrict__ w, float tau,
                   float branch_weight, float* __restrict__ dV, float* __restrict__ part, int B,
                   int A) {
  __shared__ float slots[trueup::kWarp];
  const float scale = branch_weight / static_cast<float>(B);
  const unsigned actions = A;
  const float sum = trueup::sum_rows(B, slots, [=](unsigned row) {
    const float u = Q[static_cast<size_t>(row) * actions + a_data[row]] - V[row];
    const float leant = w[row] * (u > 0.0f ? 1.0f - tau : tau) * u;
    dV[row] = -2.0f * scale * leant;
    return leant * u;
  });
  if (threadIdx.x == 0) part[blockIdx.x] = sum;
}

extern "C" __global__ void __launch_bounds__(trueup::kLossThreads)
    expectile_sum(const float* __restrict__ part, float branch_weight, float* __restrict__ loss,
                  int B) {
  __shared__ float slots[trueup::kWarp];
  const float sum = trueup::sum_loss_parts(part, trueup::loss_blocks(B), slots);
  if (threadIdx.x == 0) loss[0] = branch_weight / static_cast<float>(B) * sum;
}
