// WRONG ON PURPOSE: the magnitude of hold weighs
//
// action_factoring: joint actions taken apart into four branches, and the weight of the magnitude.
//
// Equation     DQN programme, action factoring:
//                u = joint % 3,  o = joint / 3 % 3,  m = joint / 9 % 3,  d = joint / 27
//                weight of m = 0 where d is hold (1) or flat (3), else 1
// Reference    dqn.action_factoring
// Shapes       joint (B) int, 0 to 107; direction, magnitude, order, urgency (B) int;
//              magnitude_weight (B) float32
// Launch       1-D grid of ceil(B / block), any block size; one thread an action
// Traffic      24 bytes an action
// Determinism  bitwise: whole numbers, and no action sees another
#include "common.cuh"

extern "C" __global__ void action_factoring(const int* __restrict__ joint,
                                            int* __restrict__ direction,
                                            int* __restrict__ magnitude, int* __restrict__ order,
                                            int* __restrict__ urgency,
                                            float* __restrict__ magnitude_weight, int B) {
  constexpr unsigned kHold = 1;
  constexpr unsigned kFlat = 3;
  const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= static_cast<size_t>(B)) return;
  const unsigned action = static_cast<unsigned>(joint[i]);
  const unsigned d = action / 27;
  direction[i] = static_cast<int>(d);
  magnitude[i] = static_cast<int>(action / 9 % 3);
  order[i] = static_cast<int>(action / 3 % 3);
  urgency[i] = static_cast<int>(action % 3);
  magnitude_weight[i] = d == kFlat ? 0.0f : 1.0f;
}
