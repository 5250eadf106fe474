// attention_focus: running averages of the weights of six feature groups, and of retention.
//
// Equation     DQN programme, 16, mode B: observed = [mean_b w, retention]
//                ema' = (1 - a) ema + a observed, a = 0.05; observed where count is 0
// Reference    dqn.attention_focus
// Shapes       w (B, 6); retention (1); ema (7), updated in place; count (1), int, updated in place
// Launch       one block, any multiple of 32 threads up to 1024
// Determinism  bitwise: rows by threads in turn, then trees; no atomics
// Numerics     float32; a mean is the sum divided by B
#include "common.cuh"

extern "C" __global__ void __launch_bounds__(1024)
    attention_focus(const float* __restrict__ w, const float* __restrict__ retention,
                    float* __restrict__ ema, int* __restrict__ count, int B) {
  constexpr float kAlpha = 0.05f;
  constexpr unsigned kGroups = 6;
  __shared__ float slots[kGroups][trueup::kWarp];
  float sum[kGroups] = {};
  for (unsigned row = threadIdx.x; row < static_cast<unsigned>(B); row += blockDim.x) {
#pragma unroll
    for (unsigned g = 0; g < kGroups; ++g) sum[g] += w[static_cast<size_t>(row) * kGroups + g];
  }
#pragma unroll
  for (unsigned g = 0; g < kGroups; ++g) sum[g] = trueup::block_sum(sum[g], slots[g]);
  if (threadIdx.x != 0) return;
  const int seen = *count;
#pragma unroll
  for (unsigned g = 0; g <= kGroups; ++g) {
    const float observed = g < kGroups ? sum[g % kGroups] / static_cast<float>(B) : retention[0];
    ema[g] = seen > 0 ? fmaf(kAlpha, observed, (1.0f - kAlpha) * ema[g]) : observed;
  }
  *count = seen + 1;
}
