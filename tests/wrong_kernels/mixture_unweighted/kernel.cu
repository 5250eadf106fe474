// WRONG ON PURPOSE: the actions are averaged without their weights
//
// sarsa_mixture: the projected mixture of all actions' target distributions.
//
// Equation     DQN programme, 7.3 (a); projection: C51, arXiv:1707.06887:
//                m = sum_a pi_a proj(R + D z'_a, p'_a) onto the support of the taken action
// Reference    dqn.sarsa_mixture
// Shapes       policy (B, n_actions); p_next (B, n_actions, n_atoms); support (B, 3); next_support
//              (B, n_actions, 3); returns, discount, invalid (B); mass (B, n_atoms);
//              discount >= 0; n_atoms from 2 to 180
// Launch       1-D grid of ceil(B / 4), 32 threads: 4 samples a block, 8 lanes each; 52 n_atoms
//              bytes of shared memory
// Traffic      p_next is read once, mass is written once
// Degenerate   a support that is none puts all mass on atom 0; a NaN target of any action makes the
//              sample NaN; both, and a degenerate support at s', set invalid
// Determinism  bitwise: every atom adds its targets, and then the actions, in order; no atomics
// Numerics     float32
#include "projection.cuh"

namespace {

constexpr unsigned kThreads = 32;
constexpr unsigned kRows = kThreads / trueup::kGroup;

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads)
    sarsa_mixture(const float* __restrict__ policy, const float* __restrict__ p_next,
                  const float* __restrict__ support, const float* __restrict__ next_support,
                  const float* __restrict__ returns, const float* __restrict__ discount,
                  float* __restrict__ mass, int* __restrict__ invalid, int B, int n_actions,
                  int n_atoms) {
  extern __shared__ __align__(16) float shared[];
  const unsigned n = static_cast<unsigned>(n_atoms);
  const unsigned lane = threadIdx.x % trueup::kGroup;
  const unsigned own = threadIdx.x / trueup::kGroup;
  const unsigned first = blockIdx.x * kRows;
  const bool live = first + own < static_cast<unsigned>(B);
  const size_t b = live ? first + own : first;
  const trueup::ProjectedRow row(shared, own, kRows, n);
  const unsigned chunk = (n + trueup::kGroup - 1) / trueup::kGroup;
  const unsigned from = min(lane * chunk, n);
  const unsigned to = min(from + chunk, n);
  const trueup::EvenAtoms on(support + 3 * b, 0.0f, n);
  bool usable = on.valid;
  for (unsigned i = from; i < to; ++i) row.mass[i] = 0.0f;
  for (int a = 0; a < n_actions; ++a) {
    const size_t r = b * n_actions + a;
    const float* const p = p_next + r * n;
    __syncwarp();  // the action before has been read
    for (unsigned j = lane; j < n; j += trueup::kGroup) row.p[j] = p[j];
    __syncwarp();
    const trueup::Targets targets(next_support + 3 * r, 0.0f, returns[b], discount[b], n);
    const bool unknown = trueup::locate_targets(row, on, targets, from, to, n);
    __syncwarp();
    usable = usable && targets.valid && !unknown;
    const float weight = unknown ? trueup::not_a_number() : 1.0f / static_cast<float>(n_actions);
    trueup::settle_atoms(row, n, from, to, [&](unsigned i, float m) {
      row.mass[i] = fmaf(weight, m, row.mass[i]);
    });
  }
  if (!live) return;
  for (unsigned i = from; i < to; ++i) {
    if (!on.valid) row.mass[i] = i == 0 ? 1.0f : 0.0f;
  }
  __syncwarp(0xffu << threadIdx.x / trueup::kGroup * trueup::kGroup);
  for (unsigned i = lane; i < n; i += trueup::kGroup) mass[b * n + i] = row.mass[i];
  if (lane == 0) invalid[b] = usable ? 0 : 1;
}
