// WRONG ON PURPOSE: the gradient without 1 / T
//
// entropy_term: entropy regularisation of one branch, and its gradient.
//
// Equation     DQN programme, 18, per branch, p = softmax(Q / T), H = -sum_a p log p:
//                L = -branch_weight / B sum_b w_b lambda H
//                dL/dQ = branch_weight / B w_b lambda / T p (log p + H)
// Reference    dqn.entropy_term
// Shapes       Q, dQ (B, A); w (B); loss (1); workspace part (blocks of the first launch)
// Launch       rows: 256 threads, min(ceil(B / 256), 264) blocks, a thread for each row in turn;
//              sum: one block
// Determinism  bitwise: fixed trees over a block, parts in a fixed order; no atomics
// Numerics     float32; z = Q / T - max; log p = z - log(sum exp z)
#include "row_loss.cuh"

extern "C" __global__ void __launch_bounds__(trueup::kLossThreads)
    entropy_term_rows(const float* __restrict__ Q, const float* __restrict__ w, float strength,
                      float T, float branch_weight, float* __restrict__ dQ,
                      float* __restrict__ part, int B, int A) {
  __shared__ float slots[trueup::kWarp];
  const float scale = strength * branch_weight / static_cast<float>(B);
  const unsigned actions = A;
  const float sum = trueup::sum_rows(B, slots, [=](unsigned row) {
    const float* const values = Q + static_cast<size_t>(row) * actions;
    float* const slope = dQ + static_cast<size_t>(row) * actions;
    float top = values[0] / T;
#pragma unroll 1
    for (unsigned a = 1; a < actions; ++a) top = fmaxf(top, values[a] / T);
    float total = 0.0f;
#pragma unroll 1
    for (unsigned a = 0; a < actions; ++a) total += expf(values[a] / T - top);
    const float log_total = logf(total);
    float H = 0.0f;
#pragma unroll 1
    for (unsigned a = 0; a < actions; ++a) {
      const float z = values[a] / T - top;
      H -= expf(z) / total * (z - log_total);
    }
    const float weight = w[row];
#pragma unroll 1
    for (unsigned a = 0; a < actions; ++a) {
      const float z = values[a] / T - top;
      const float p = expf(z) / total;
      slope[a] = scale * weight * (p * ((z - log_total) + H));
    }
    return weight * H;
  });
  if (threadIdx.x == 0) part[blockIdx.x] = sum;
}

extern "C" __global__ void __launch_bounds__(trueup::kLossThreads)
    entropy_term_sum(const float* __restrict__ part, float strength, float branch_weight,
                     float* __restrict__ loss, int B) {
  __shared__ float slots[trueup::kWarp];
  const float sum = trueup::sum_loss_parts(part, trueup::loss_blocks(B), slots);
  if (threadIdx.x == 0) loss[0] = -(strength * branch_weight / static_cast<float>(B)) * sum;
}
