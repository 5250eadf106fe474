// WRONG ON PURPOSE: a branch is an action over 4
//
// advantage_noise: add each branch's noise to the scores its actions are chosen by.
//
// Equation     DQN programme, 21: score'[b,a] = score[b,a] + sigma[branch(a)] noise[b,a]
// Reference    dqn.advantage_noise
// Shapes       score, noise, noisy (B, 13); sigma (4). A sigma of 0 leaves its branch bit for bit
// Launch       1-D grid of any size; four neighbours a thread where 16-byte accesses can be
// Determinism  bitwise: no element sees another
// Numerics     float32, one fused step
#include "branches.cuh"
#include "common.cuh"

namespace {

__device__ __forceinline__ float noisy_score(float score, float noise, const float* sigma,
                                             unsigned action) {
  const float scale = sigma[trueup::branch_of(static_cast<int>(action))];
  return scale == 0.0f ? score : fmaf(scale, noise, score);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256)
    advantage_noise(const float* __restrict__ score, const float* __restrict__ sigma,
                    const float* __restrict__ noise, float* __restrict__ noisy, int B) {
  using trueup::kActions;
  using trueup::Reuse;
  __shared__ float scales[4];
  if (threadIdx.x < 4) scales[threadIdx.x] = sigma[threadIdx.x];
  __syncthreads();
  const size_t all = static_cast<size_t>(B) * kActions;
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  const size_t first = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const bool vector =
      trueup::aligned16(score) && trueup::aligned16(noise) && trueup::aligned16(noisy);
  const size_t quads = vector ? all / 4 : 0;
  for (size_t q = first; q < quads; q += stride) {
    const float4 s = trueup::load<Reuse::kOnce>(reinterpret_cast<const float4*>(score) + q);
    const float4 x = trueup::load<Reuse::kOnce>(reinterpret_cast<const float4*>(noise) + q);
    const unsigned a = static_cast<unsigned>(4 * q % kActions);
    const float4 out = {noisy_score(s.x, x.x, scales, a),
                        noisy_score(s.y, x.y, scales, (a + 1) % kActions),
                        noisy_score(s.z, x.z, scales, (a + 2) % kActions),
                        noisy_score(s.w, x.w, scales, (a + 3) % kActions)};
    trueup::store_once(reinterpret_cast<float4*>(noisy) + q, out);
  }
  for (size_t i = 4 * quads + first; i < all; i += stride) {
    noisy[i] = noisy_score(score[i], noise[i], scales, static_cast<unsigned>(i % kActions));
  }
}
