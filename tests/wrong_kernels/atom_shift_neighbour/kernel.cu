// WRONG ON PURPOSE: the weight of the next action
//
// atom_shift: how far the atoms of every action of the direction move.
//
// Equation     DQN programme, 7.4: shift[b,a] = W[a] s[b], s recentred by its producer
// Reference    dqn.atom_shift
// Shapes       W (n_actions); signal (B); shift (B, n_actions)
// Launch       1-D grid of ceil(B n_actions / block), any block size; one thread a shift
// Determinism  bitwise: one product each
// Numerics     float32
#include "common.cuh"

extern "C" __global__ void __launch_bounds__(256)
    atom_shift(const float* __restrict__ W, const float* __restrict__ signal,
               float* __restrict__ shift, int B, int n_actions) {
  const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const size_t actions = n_actions;
  if (i >= static_cast<size_t>(B) * actions) return;
  shift[i] = W[(i + 1) % actions] * signal[i / actions];
}
