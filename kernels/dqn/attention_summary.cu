// attention_summary: running averages of a summary of the weights of six feature groups.
//
// Equation     DQN programme, 16, mode A, wbar = mean_b w:
//                observed = [max_g wbar, -(1 / ln 6) sum_g wbar ln wbar, retention]
//                ema' = (1 - a) ema + a observed, a = 0.05; observed where count is 0
// Reference    dqn.attention_summary
// Shapes       w (B, 6); retention (1); ema (3), updated in place; count (1), int, updated in place
// Launch       one block, any multiple of 32 threads up to 1024
// Determinism  bitwise: rows by threads in turn, then trees; no atomics
// Numerics     float32; a mean is the sum divided by B; 0 ln 0 is 0
#include "common.cuh"

extern "C" __global__ void __launch_bounds__(1024)
    attention_summary(const float* __restrict__ w, const float* __restrict__ retention,
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
  float largest = 0.0f;
  float nats = 0.0f;
#pragma unroll
  for (unsigned g = 0; g < kGroups; ++g) {
    const float mean = sum[g] / static_cast<float>(B);
    largest = g == 0 || mean > largest || isnan(mean) ? mean : largest;
    nats -= mean * logf(mean > 0.0f ? mean : 1.0f);
  }
  const float observed[3] = {isnan(nats) ? nats : largest, nats / logf(6.0f), retention[0]};
  const int seen = *count;
#pragma unroll
  for (unsigned i = 0; i < 3; ++i) {
    ema[i] = seen > 0 ? fmaf(kAlpha, observed[i], (1.0f - kAlpha) * ema[i]) : observed[i];
  }
  *count = seen + 1;
}
