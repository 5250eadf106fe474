// WRONG ON PURPOSE: losses count as gains do
//
// nstep_return: the return of n steps for every branch, and the discount of what follows.
//
// Equation     DQN programme, 7.3, with f(r) = r where r >= 0, else aversion r, each step up to the
//              first terminal one:
//                R_k = sum_{i<n} gamma_k^i f(r_{t+i}),  D_k = gamma_k^n, 0 after a terminal step
// Reference    dqn.nstep_return
// Shapes       rewards, done (B, n_steps), done 1 where the step was terminal, else 0; gamma (4),
//              on the device; returns, discount (B, 4); aversion by value
// Launch       1-D grid of ceil(4 B / block), any block size; one thread a branch of a sample
// Traffic      8 n_steps + 32 bytes a sample: four neighbouring threads read the same steps
// Determinism  bitwise: a thread adds the steps in order
// Numerics     float32
#include "common.cuh"

extern "C" __global__ void __launch_bounds__(256)
    nstep_return(const float* __restrict__ rewards, const float* __restrict__ done,
                 const float* __restrict__ gamma, float aversion, float* __restrict__ returns,
                 float* __restrict__ discount, int B, int n_steps) {
  const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= 4 * static_cast<size_t>(B)) return;
  const float own = gamma[i % 4];
  const size_t row = i / 4 * n_steps;
  float total = 0.0f;
  float alive = 1.0f;
  float power = 1.0f;
  for (int step = 0; step < n_steps; ++step) {
    const float r = rewards[row + step];
    const float felt = r;
    total = fmaf(alive, power * felt, total);
    alive *= 1.0f - done[row + step];
    power *= own;
  }
  returns[i] = total;
  discount[i] = power * alive;
}
