// WRONG ON PURPOSE: the direction varies fastest
//
// action_encoding: the four branches of an action as one number.
//
// Equation     DQN programme, action factoring: joint = ((d 3 + m) 3 + o) 3 + u, 0 to 107
// Reference    dqn.action_encoding
// Shapes       direction, magnitude, order, urgency, joint (B) int
// Launch       1-D grid of ceil(B / block), any block size; one thread an action
// Traffic      20 bytes an action
// Determinism  bitwise: whole numbers, and no action sees another
#include "common.cuh"

extern "C" __global__ void action_encoding(const int* __restrict__ direction,
                                           const int* __restrict__ magnitude,
                                           const int* __restrict__ order,
                                           const int* __restrict__ urgency,
                                           int* __restrict__ joint, int B) {
  const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= static_cast<size_t>(B)) return;
  joint[i] = direction[i] + 4 * (magnitude[i] + 3 * (order[i] + 3 * urgency[i]));
}
