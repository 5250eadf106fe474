// WRONG ON PURPOSE: a batch without labels divides by 0
//
// aux_heads: next-bar squared error and regime cross-entropy under one mask, with gradients.
//
// Equation     DQN programme, 17, v the rows with label >= 0, B_v = max(1, their number):
//                l_mse = sum_v (pred - target)^2 / B_v
//                l_ce = -sum_v log softmax(logits)_label / B_v
//                loss = w_aux (l_mse + l_ce);  dpred = w_aux 2 (pred - target) / B_v
//                dlogits = w_aux (softmax - onehot) / B_v; both 0 on the other rows
// Reference    dqn.aux_heads
// Shapes       pred, target, dpred (B); logits, dlogits (B, K); label (B), int; l_mse, l_ce, loss
//              (1); workspaces counts, part_mse, part_ce (blocks of the first two launches)
// Launch       count and rows: 256 threads, min(ceil(B / 256), 264) blocks, a thread for each row
//              in turn; sum: one block
// Determinism  bitwise: counts are whole numbers; fixed trees, parts in a fixed order; no atomics
// Numerics     float32; -log softmax as log(sum exp) - (logit - max)
#include "row_loss.cuh"

namespace {

__device__ __forceinline__ float valid_rows(const float* counts, unsigned B, float* slots) {
  const float count = trueup::sum_loss_parts(counts, trueup::loss_blocks(B), slots);
  return count;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(trueup::kLossThreads)
    aux_heads_count(const int* __restrict__ label, float* __restrict__ counts, int B) {
  __shared__ float slots[trueup::kWarp];
  const float count = trueup::sum_rows(
      B, slots, [=](unsigned row) { return label[row] >= 0 ? 1.0f : 0.0f; });
  if (threadIdx.x == 0) counts[blockIdx.x] = count;
}

extern "C" __global__ void __launch_bounds__(trueup::kLossThreads)
    aux_heads_rows(const float* __restrict__ pred, const float* __restrict__ target,
                   const float* __restrict__ logits, const int* __restrict__ label, float w_aux,
                   const float* __restrict__ counts, float* __restrict__ dpred,
                   float* __restrict__ dlogits, float* __restrict__ part_mse,
                   float* __restrict__ part_ce, int B, int K) {
  __shared__ float slots[3][trueup::kWarp];
  const float per_row = w_aux / valid_rows(counts, B, slots[0]);
  const unsigned classes = K;
  float ce = 0.0f;
  const float mse = trueup::sum_rows(B, slots[1], [=, &ce](unsigned row) {
    const float* const z = logits + static_cast<size_t>(row) * classes;
    float* const slope = dlogits + static_cast<size_t>(row) * classes;
    const int chosen = label[row];
    if (chosen < 0) {
      for (unsigned k = 0; k < classes; ++k) slope[k] = 0.0f;
      dpred[row] = 0.0f;
      return 0.0f;
    }
    const trueup::Exponentials e(z, classes);
    for (unsigned k = 0; k < classes; ++k) {
      const float p = expf(z[k] - e.top) / e.total;
      slope[k] = (p - (k == static_cast<unsigned>(chosen) ? 1.0f : 0.0f)) * per_row;
    }
    ce += logf(e.total) - (z[chosen] - e.top);
    const float residual = pred[row] - target[row];
    dpred[row] = 2.0f * residual * per_row;
    return residual * residual;
  });
  ce = trueup::block_sum(ce, slots[2]);
  if (threadIdx.x != 0) return;
  part_mse[blockIdx.x] = mse;
  part_ce[blockIdx.x] = ce;
}

extern "C" __global__ void __launch_bounds__(trueup::kLossThreads)
    aux_heads_sum(const float* __restrict__ counts, const float* __restrict__ part_mse,
                  const float* __restrict__ part_ce, float w_aux, float* __restrict__ l_mse,
                  float* __restrict__ l_ce, float* __restrict__ loss, int B) {
  __shared__ float slots[3][trueup::kWarp];
  const float count = valid_rows(counts, B, slots[0]);
  const unsigned parts = trueup::loss_blocks(B);
  const float mse = trueup::sum_loss_parts(part_mse, parts, slots[1]) / count;
  const float ce = trueup::sum_loss_parts(part_ce, parts, slots[2]) / count;
  if (threadIdx.x != 0) return;
  *l_mse = mse;
  *l_ce = ce;
  *loss = w_aux * (mse + ce);
}
