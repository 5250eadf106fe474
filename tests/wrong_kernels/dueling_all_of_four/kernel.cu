// WRONG ON PURPOSE: every branch divides by the size of the first
//
// dueling_forward: combine value and advantage logits of the four branches.
//
// Equation     dueling networks, arXiv:1511.06581, with branches of 4, 3, 3 and 3 actions:
//                logit_k[a,i] = V[i] + A_k[a,i] - (1/b_k) sum_a' A_k[a',i]
// Reference    dqn.dueling_forward
// Shapes       value (B, n_atoms); advantage, logits (B, 13, n_atoms)
// Launch       1-D grid of any size; a thread for each sample and atom, going round
// Traffic      everything is read and written once; neighbours in a warp are neighbours in memory
// Determinism  bitwise: a thread adds its branch's actions in order
// Numerics     float32; (V - mean) + A
#include "branches.cuh"
#include "common.cuh"

namespace {

template <int kBranch>
__device__ __forceinline__ void combine(float value, const float* __restrict__ advantage,
                                        float* __restrict__ logits, size_t n) {
  constexpr int kBegin = trueup::branch_begin(kBranch);
  constexpr int kSize = trueup::branch_size(kBranch);
  float own[kSize];
  float sum = 0.0f;
#pragma unroll
  for (int a = 0; a < kSize; ++a) {
    own[a] = trueup::load<trueup::Reuse::kOnce>(advantage + (kBegin + a) * n);
    sum += own[a];
  }
  const float base = fmaf(-0.25f, sum, value);
#pragma unroll
  for (int a = 0; a < kSize; ++a) {
    trueup::store_once(logits + (kBegin + a) * n, base + own[a]);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256)
    dueling_forward(const float* __restrict__ value, const float* __restrict__ advantage,
                    float* __restrict__ logits, int B, int n_atoms) {
  const size_t n = static_cast<size_t>(n_atoms);
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t at = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       at < static_cast<size_t>(B) * n; at += stride) {
    const size_t b = at / n;
    const size_t first = b * (trueup::kActions * n) + (at - b * n);
    const float v = trueup::load<trueup::Reuse::kOnce>(value + at);
    combine<0>(v, advantage + first, logits + first, n);
    combine<1>(v, advantage + first, logits + first, n);
    combine<2>(v, advantage + first, logits + first, n);
    combine<3>(v, advantage + first, logits + first, n);
  }
}
