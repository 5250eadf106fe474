// WRONG ON PURPOSE: the last element of an expert is neither summed nor written
//
// moe_mixture_backward: the gradients of the experts and of their weights.
//
// Equation     DQN programme, 14: dexperts_k = g_k d;  dg_k = sum_i d_i experts_{k,i}
// Reference    dqn.moe_mixture_backward
// Shapes       d_out (B, D); g, dg (B, E); experts, dexperts (B, E, D)
// Launch       256 threads a block, a warp for each sample and expert
// Traffic      experts are read once, dexperts are written once
// Determinism  bitwise: a lane's elements in order, then a tree
// Numerics     float32
#include "common.cuh"

extern "C" __global__ void __launch_bounds__(256)
    moe_mixture_backward(const float* __restrict__ d_out, const float* __restrict__ g,
                         const float* __restrict__ experts, float* __restrict__ dexperts,
                         float* __restrict__ dg, int B, int E, int D) {
  using trueup::kWarp;
  const size_t pair = (static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kWarp;
  if (pair >= static_cast<size_t>(B) * E) return;
  const float* const d = d_out + pair / E * D;
  const float* const from = experts + pair * D;
  float* const to = dexperts + pair * D;
  const float weight = g[pair];
  float sum = 0.0f;
#pragma unroll 4
  for (int i = threadIdx.x % kWarp; i + 1 < D; i += kWarp) {
    sum = fmaf(d[i], trueup::load<trueup::Reuse::kOnce>(from + i), sum);
    trueup::store_once(to + i, weight * d[i]);
  }
  sum = trueup::warp_sum(sum);
  if (threadIdx.x % kWarp == 0) dg[pair] = sum;
}
