// WRONG ON PURPOSE: the gap is that to the smallest value
//
// sarsa_policy: the weights of the actions in the expected-SARSA target, and their temperature.
//
// Equation     DQN programme, 7.3 (a), gap = the largest value less the second:
//                T = T_min + (T_max - T_min)(1 - clip(health))(clip(1 - gap / gap_ref))
//                pi = softmax(Q / T), clip to [0, 1]
// Reference    dqn.sarsa_policy
// Shapes       q, policy (B, n_actions), two actions or more; health (1), on the device;
//              temperature (B); t_min, t_max, gap_ref by value
// Launch       1-D grid of ceil(B / block), any block size; one thread a sample
// Traffic      q is read three times, after the first from L1; policy is written once
// Determinism  bitwise: a thread goes through its actions in order
// Numerics     float32; the largest value is subtracted before the division by T. A limit is a
//              comparison, so that NaN stays
#include "common.cuh"

namespace {

__device__ __forceinline__ float clipped(float x) {
  return x < 0.0f ? 0.0f : x > 1.0f ? 1.0f : x;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256)
    sarsa_policy(const float* __restrict__ q, const float* __restrict__ health, float t_min,
                 float t_max, float gap_ref, float* __restrict__ policy,
                 float* __restrict__ temperature, int B, int n_actions) {
  const size_t row = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= static_cast<size_t>(B)) return;
  const float* const values = q + row * n_actions;
  float* const weights = policy + row * n_actions;
  float top = fmaxf(values[0], values[1]);
  float second = fminf(values[0], values[1]);
  bool unknown = values[0] != values[0] || values[1] != values[1];
  for (int a = 2; a < n_actions; ++a) {
    const float value = values[a];
    second = fminf(second, value);
    top = fmaxf(top, value);
    unknown |= value != value;
  }
  const float gap = unknown ? __int_as_float(0x7fffffff) : top - second;
  const float ill = 1.0f - clipped(*health);
  const float T = fmaf((t_max - t_min) * ill, clipped(1.0f - gap / gap_ref), t_min);
  float total = 0.0f;
  for (int a = 0; a < n_actions; ++a) total += expf((values[a] - top) / T);
  for (int a = 0; a < n_actions; ++a) weights[a] = expf((values[a] - top) / T) / total;
  temperature[row] = T;
}
