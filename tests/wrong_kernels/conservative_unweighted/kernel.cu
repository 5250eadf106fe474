// WRONG ON PURPOSE: importance weights are dropped
//
// conservative: the conservative Q-learning term of one branch, and its gradient.
//
// Equation     arXiv:2006.04779, per branch:
//                L = branch_weight / B sum_b w_b alpha (logsumexp_a Q - Q[a_data])
//                dL/dQ = branch_weight / B w_b alpha (softmax(Q) - onehot)
// Reference    dqn.conservative
// Shapes       Q, dQ (B, A); a_data (B), int; w (B); loss (1); workspace part (blocks of the first
//              launch)
// Launch       rows: 256 threads, min(ceil(B / 256), 264) blocks, a thread for each row in turn;
//              sum: one block
// Determinism  bitwise: fixed trees over a block, parts in a fixed order; no atomics
// Numerics     float32; the largest Q is taken off both terms: log(sum exp) - (Q[a] - max)
#include "row_loss.cuh"

extern "C" __global__ void __launch_bounds__(trueup::kLossThreads)
    conservative_rows(const float* __restrict__ Q, const int* __restrict__ a_data,
                      const float* __restrict__ w, float alpha, float branch_weight,
                      float* __restrict__ dQ, float* __restrict__ part, int B, int A) {
  __shared__ float slots[trueup::kWarp];
  const float scale = alpha * branch_weight / static_cast<float>(B);
  const unsigned actions = A;
  const float sum = trueup::sum_rows(B, slots, [=](unsigned row) {
    const float* const values = Q + static_cast<size_t>(row) * actions;
    float* const slope = dQ + static_cast<size_t>(row) * actions;
    const trueup::Exponentials e(values, actions);
    const unsigned took = a_data[row];
    const float weight = 1.0f;
    for (unsigned a = 0; a < actions; ++a) {
      const float p = expf(values[a] - e.top) / e.total;
      slope[a] = scale * weight * (p - (a == took ? 1.0f : 0.0f));
    }
    return weight * (logf(e.total) - (values[took] - e.top));
  });
  if (threadIdx.x == 0) part[blockIdx.x] = sum;
}

extern "C" __global__ void __launch_bounds__(trueup::kLossThreads)
    conservative_sum(const float* __restrict__ part, float alpha, float branch_weight,
                     float* __restrict__ loss, int B) {
  __shared__ float slots[trueup::kWarp];
  const float sum = trueup::sum_loss_parts(part, trueup::loss_blocks(B), slots);
  if (threadIdx.x == 0) loss[0] = alpha * branch_weight / static_cast<float>(B) * sum;
}
