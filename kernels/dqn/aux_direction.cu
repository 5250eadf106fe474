// aux_direction: the direction signal that the regime head feeds into the state.
//
// Equation     DQN programme, 17, classes from strongest down to strongest up: s = 2 p_up - 1, i.e.
//                the probability above the middle class less that below it
// Reference    dqn.aux_direction
// Shapes       logits (B, K); s121 (B)
// Launch       1-D, a thread for each row
// Determinism  bitwise: a row is summed by one thread in the order of the classes
// Numerics     float32; signed probabilities are summed, so that uniform logits give 0
#include "row_loss.cuh"

extern "C" __global__ void __launch_bounds__(256)
    aux_direction(const float* __restrict__ logits, float* __restrict__ s121, int B, int K) {
  const unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= static_cast<unsigned>(B)) return;
  const float* const z = logits + static_cast<size_t>(row) * K;
  const trueup::Exponentials e(z, K);
  float sum = 0.0f;
  for (int k = 0; k < K; ++k) {
    const float p = expf(z[k] - e.top) / e.total;
    const float side = 2 * k > K - 1 ? 1.0f : 2 * k < K - 1 ? -1.0f : 0.0f;
    sum = fmaf(side, p, sum);
  }
  s121[row] = sum;
}
