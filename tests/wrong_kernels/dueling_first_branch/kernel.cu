// WRONG ON PURPOSE: the value misses a branch
//
// dueling_backward: gradient of the value and advantage logits of the four branches.
//
// Equation     dV[i] = sum_k sum_a d_k[a,i];   dA_k[a,i] = d_k[a,i] - (1/b_k) sum_a' d_k[a',i]
// Reference    dqn.dueling_backward
// Shapes       d_value (B, n_atoms); d_logits, d_advantage (B, 13, n_atoms)
// Launch       1-D grid of any size; a thread for each sample and atom, going round
// Traffic      everything is read and written once; neighbours in a warp are neighbours in memory
// Determinism  bitwise: a thread adds actions in order, then the branches in order
// Numerics     float32; a mean is the sum times the rounded 1 / b_k
#include "branches.cuh"
#include "common.cuh"

namespace {

// Writes one branch's gradients and gives their sum before the mean was taken off.
template <int kBranch>
__device__ __forceinline__ float centre(const float* __restrict__ d_logits,
                                        float* __restrict__ d_advantage, size_t n) {
  constexpr int kBegin = trueup::branch_begin(kBranch);
  constexpr int kSize = trueup::branch_size(kBranch);
  float own[kSize];
  float sum = 0.0f;
#pragma unroll
  for (int a = 0; a < kSize; ++a) {
    own[a] = trueup::load<trueup::Reuse::kOnce>(d_logits + (kBegin + a) * n);
    sum += own[a];
  }
#pragma unroll
  for (int a = 0; a < kSize; ++a) {
    trueup::store_once(d_advantage + (kBegin + a) * n, fmaf(-1.0f / kSize, sum, own[a]));
  }
  return sum;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256)
    dueling_backward(const float* __restrict__ d_logits, float* __restrict__ d_value,
                     float* __restrict__ d_advantage, int B, int n_atoms) {
  const size_t n = static_cast<size_t>(n_atoms);
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t at = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       at < static_cast<size_t>(B) * n; at += stride) {
    const size_t b = at / n;
    const size_t first = b * (trueup::kActions * n) + (at - b * n);
    float sum = centre<0>(d_logits + first, d_advantage + first, n);
    centre<1>(d_logits + first, d_advantage + first, n);
    sum += centre<2>(d_logits + first, d_advantage + first, n);
    sum += centre<3>(d_logits + first, d_advantage + first, n);
    trueup::store_once(d_value + at, sum);
  }
}
