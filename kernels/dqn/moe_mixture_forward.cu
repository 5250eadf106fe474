// moe_mixture_forward: the weighted sum of what the experts give.
//
// Equation     DQN programme, 14: out_b = sum_k g_{b,k} experts_{b,k}
// Reference    dqn.moe_mixture_forward
// Shapes       g (B, E); experts (B, E, D); out (B, D)
// Launch       1-D, a thread for each of B D elements
// Traffic      experts are read once, out is written once
// Determinism  bitwise: fmaf in the order of the experts
// Numerics     float32
#include "common.cuh"

extern "C" __global__ void __launch_bounds__(256)
    moe_mixture_forward(const float* __restrict__ g, const float* __restrict__ experts,
                        float* __restrict__ out, int B, int E, int D) {
  const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const size_t width = D;
  if (i >= static_cast<size_t>(B) * width) return;
  const float* const weight = g + i / width * E;
  const float* const from = experts + i / width * E * width + i % width;
  float sum = 0.0f;
#pragma unroll 8
  for (int k = 0; k < E; ++k) {
    sum = fmaf(weight[k], trueup::load<trueup::Reuse::kOnce>(from + k * width), sum);
  }
  out[i] = sum;
}
