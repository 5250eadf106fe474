// WRONG ON PURPOSE: the last of equal actions wins
//
// thompson: sample one atom of every action, take the action of the largest.
//
// Equation     DQN programme, 8: c_i = sum_{j<=i} p_j, i* = min{i : c_i > u}, or the last atom with
//              mass; q_a = z_{a,i*}; action = argmax_a q_a, the lowest index among equals
// Reference    dqn.thompson
// Shapes       logits (B, n_actions, n_atoms); support (B, n_actions, 3); u, shift, sampled,
//              invalid (B, n_actions); action (B)
// Launch       two: thompson_rows, 1-D grid of any size, block any multiple of 32, 8 lanes a row;
//              thompson_choose, a thread for each sample
// Traffic      logits are read three times, after the first from L1
// Degenerate   q_a = z_0, and invalid is set; NaN logits give z_0 as well; a NaN among the q_a is
//              chosen, as an argmax does
// Determinism  bitwise: running sums of a lane's own atoms, after a prefix over 8 lanes in a fixed
//              order; no atomics, no random numbers
// Numerics     float32; running sums of exp(l - max) against u times their total
#include "atoms.cuh"

namespace {

using trueup::kGroup;
using trueup::kWarp;
using trueup::kWholeWarp;

// The sum of the lanes before this one.
__device__ __forceinline__ float before(float value, unsigned lane) {
  float sum = value;
#pragma unroll
  for (unsigned offset = 1; offset < kGroup; offset *= 2) {
    const float other = __shfl_up_sync(kWholeWarp, sum, offset, kGroup);
    if (lane >= offset) sum += other;
  }
  const float left = __shfl_up_sync(kWholeWarp, sum, 1, kGroup);
  return lane == 0 ? 0.0f : left;
}

__device__ __forceinline__ unsigned group_min(unsigned value) {
#pragma unroll
  for (unsigned offset = kGroup / 2; offset > 0; offset /= 2) {
    value = min(value, __shfl_xor_sync(kWholeWarp, value, offset));
  }
  return value;
}

// The atom that `u` falls on.
__device__ __forceinline__ unsigned draw_atom(const float* __restrict__ row, float u, unsigned n,
                                              unsigned lane) {
  const unsigned chunk = (n + kGroup - 1) / kGroup;
  const unsigned from = min(lane * chunk, n);
  const unsigned to = min(from + chunk, n);
  float largest = -trueup::infinity();
  for (unsigned i = from; i < to; ++i) largest = fmaxf(largest, row[i]);
  largest = trueup::group_max(largest);
  float own = 0.0f;
  for (unsigned i = from; i < to; ++i) own += expf(row[i] - largest);
  float running = before(own, lane);
  const float total = trueup::group_sum(own);
  const float wanted = u * total;
  unsigned first = n;
  unsigned last = 0;
  for (unsigned i = from; i < to; ++i) {
    const float grown = expf(row[i] - largest);
    running += grown;
    if (running > wanted) first = min(first, i);
    if (grown > 0.0f) last = i;
  }
  first = group_min(first);
  last = ~group_min(~last);  // the largest
  if (total != total) return 0;  // no atom has a probability
  return first < n ? first : last;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256)
    thompson_rows(const float* __restrict__ logits, const float* __restrict__ support,
                  const float* __restrict__ u, const float* __restrict__ shift,
                  float* __restrict__ sampled, int* __restrict__ invalid, int B, int n_actions,
                  int n_atoms) {
  const size_t rows = static_cast<size_t>(B) * n_actions;
  const unsigned n = static_cast<unsigned>(n_atoms);
  const unsigned lane = threadIdx.x % kGroup;
  const unsigned own = threadIdx.x % kWarp / kGroup;
  const size_t stride = static_cast<size_t>(gridDim.x) * (blockDim.x / kGroup);
  const size_t warp_first = threadIdx.x / kWarp * (kWarp / kGroup);
  for (size_t base = static_cast<size_t>(blockIdx.x) * (blockDim.x / kGroup) + warp_first;
       base < rows; base += stride) {
    const bool live = base + own < rows;
    const size_t r = live ? base + own : base;
    const unsigned atom = draw_atom(logits + r * n, u[r], n, lane);
    if (!live || lane != 0) continue;
    const trueup::Support on = trueup::read_support(support + 3 * r, static_cast<float>(n - 1));
    const float z = on.valid ? fmaf(static_cast<float>(atom), on.step, on.low) : on.low;
    sampled[r] = trueup::shifted(z, shift[r]);
    invalid[r] = on.valid ? 0 : 1;
  }
}

extern "C" __global__ void __launch_bounds__(256)
    thompson_choose(const float* __restrict__ sampled, int* __restrict__ action, int B,
                    int n_actions) {
  const size_t b = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (b >= static_cast<size_t>(B)) return;
  const float* const row = sampled + b * n_actions;
  float best = row[0];
  int chosen = 0;
  for (int a = 1; a < n_actions; ++a) {
    const float value = row[a];
    // The first NaN stays.
    if (value >= best || (value != value && best == best)) {
      best = value;
      chosen = a;
    }
  }
  action[b] = chosen;
}
