// WRONG ON PURPOSE: hidden units without ReLU
//
// moe_gate_forward: the weights of the experts from the state.
//
// Equation     DQN programme, 14: h = max(x W1^T + b1, 0);  g = softmax(h W2^T + b2)
// Reference    dqn.moe_gate_forward
// Shapes       x (B, S); W1 (H, S); b1 (H); h (B, H); W2 (E, H); b2 (E); g (B, E)
// Launch       256 threads a block. hidden: a block for each 128 x 128 tile of h. weights: a warp
//              for each row; its logits wait in g
// Determinism  bitwise: chains of fmaf in index order, fixed trees; no atomics
// Numerics     float32
#include "grn.cuh"

namespace grn = trueup::grn;
using trueup::kWarp;

extern "C" __global__ void __launch_bounds__(grn::kThreads, 2)
    moe_gate_forward_hidden(const float* __restrict__ x, const float* __restrict__ W1,
                            const float* __restrict__ b1, float* __restrict__ h, int B, int S,
                            int H) {
  __shared__ float4 pool[grn::Float32::kQuads];
  const trueup::Sizes size = {static_cast<unsigned>(B), static_cast<unsigned>(H),
                              static_cast<unsigned>(S)};
  grn::linear<grn::Float32>(x, W1, h, size, pool, [=](unsigned column, float sum) {
    const float a = sum + b1[column];
    return a;
  });
}

extern "C" __global__ void __launch_bounds__(grn::kThreads)
    moe_gate_forward_weights(const float* __restrict__ h, const float* __restrict__ W2,
                             const float* __restrict__ b2, float* g, int B, int H, int E) {
  const unsigned row = (blockIdx.x * blockDim.x + threadIdx.x) / kWarp;
  const unsigned lane = threadIdx.x % kWarp;
  if (row >= static_cast<unsigned>(B)) return;
  const float* const units = h + static_cast<size_t>(row) * H;
  float* const weights = g + static_cast<size_t>(row) * E;
  float top = 0.0f;
  for (int k = 0; k < E; ++k) {
    float dot = 0.0f;
    for (int i = lane; i < H; i += kWarp) {
      dot = fmaf(units[i], W2[static_cast<size_t>(k) * H + i], dot);
    }
    const float logit = trueup::warp_sum(dot) + b2[k];
    if (lane == k % kWarp) weights[k] = logit;
    top = k == 0 ? logit : fmaxf(top, logit);
  }
  float total = 0.0f;
  for (int k = lane; k < E; k += kWarp) {  // each lane reads back what it wrote itself
    weights[k] = expf(weights[k] - top);
    total += weights[k];
  }
  total = trueup::warp_sum(total);
  for (int k = lane; k < E; k += kWarp) weights[k] /= total;
}
