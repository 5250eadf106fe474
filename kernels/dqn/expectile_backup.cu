// expectile_backup: each branch's target from the value of the next state.
//
// Equation     DQN programme, 18: target_{b,k} = r_b + gamma_k (1 - done_b) v_next_b
// Reference    dqn.expectile_backup
// Shapes       r, done, v_next (B); gamma (K); target (B, K)
// Launch       1-D, a thread for each of B K targets
// Determinism  bitwise: elementwise
// Numerics     float32; fmaf(gamma, (1 - done) v_next, r)
#include "common.cuh"

extern "C" __global__ void __launch_bounds__(256)
    expectile_backup(const float* __restrict__ r, const float* __restrict__ done,
                     const float* __restrict__ v_next, const float* __restrict__ gamma,
                     float* __restrict__ target, int B, int K) {
  const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const size_t branches = K;
  if (i >= static_cast<size_t>(B) * branches) return;
  const size_t row = i / branches;
  target[i] = fmaf(gamma[i % branches], __fmul_rn(1.0f - done[row], v_next[row]), r[row]);
}
