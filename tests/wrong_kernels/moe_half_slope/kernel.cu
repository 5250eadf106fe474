// WRONG ON PURPOSE: the gradient of the square without its 2
//
// moe_balance: what an uneven use of the experts costs, and its gradient.
//
// Equation     arXiv:2101.03961, soft form, K = E:
//                loss = K sum_k (mean_b g_k)^2;  dg_{b,k} = 2 K mean_b(g_k) / B
// Reference    dqn.moe_balance
// Shapes       g, dg (B, E); loss (1); workspace part (slices, E)
// Launch       256 threads a block. shares: for each slice of rows a block for each 64 columns.
//              slopes: any grid; every block adds the slices of the columns that it writes
// Determinism  bitwise: slices are added in the order of their numbers; no atomics
// Numerics     float32; means are sums divided by B
#include "grn.cuh"

namespace grn = trueup::grn;

extern "C" __global__ void __launch_bounds__(grn::kThreads)
    moe_balance_shares(const float* __restrict__ g, float* __restrict__ part, int B, int E) {
  __shared__ float pool[grn::kThreads];
  grn::column_sums(g, part, B, E, grn::slices_of(B), blockIdx.x, pool);
}

extern "C" __global__ void __launch_bounds__(grn::kThreads)
    moe_balance_slopes(const float* __restrict__ part, float* __restrict__ loss,
                       float* __restrict__ dg, int B, int E) {
  __shared__ float slots[trueup::kWarp];
  const unsigned experts = E;
  const unsigned slices = grn::slices_of(B);
  const float batch = static_cast<float>(B);
  const auto share = [=](unsigned k) {
    float sum = part[k];
    for (unsigned s = 1; s < slices; ++s) sum += part[s * experts + k];
    return sum / batch;
  };
  const unsigned stride = gridDim.x * blockDim.x;
  const unsigned count = static_cast<unsigned>(B) * experts;
  // A thread keeps to one column where the stride is a multiple of the number of experts.
  unsigned held = experts;
  float slope = 0.0f;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
    const unsigned k = i % experts;
    if (k != held) slope = static_cast<float>(experts) * (share(k) / batch);
    held = k;
    dg[i] = slope;
  }
  if (blockIdx.x != 0) return;
  float squares = 0.0f;
  for (unsigned k = threadIdx.x; k < experts; k += blockDim.x) {
    const float mean = share(k);
    squares = fmaf(mean, mean, squares);
  }
  squares = trueup::block_sum(squares, slots);
  if (threadIdx.x == 0) loss[0] = static_cast<float>(experts) * squares;
}
