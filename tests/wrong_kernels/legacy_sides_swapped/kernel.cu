// WRONG ON PURPOSE: low exposures are long
//
// legacy_action: one of the 45 older actions as direction, magnitude, order and urgency.
//
// Equation     DQN programme, action factoring: e = index / 9, o = index / 3 % 3, u = index % 3;
//                (d, m) = (short, full), (short, half), (flat, full), (long, half), (long, full)
//                for e = 0..4
// Reference    dqn.legacy_action
// Shapes       index (B) int, 0 to 44; direction, magnitude, order, urgency (B) int
// Launch       1-D grid of ceil(B / block), any block size; one thread an action
// Traffic      20 bytes an action
// Determinism  bitwise: whole numbers, and no action sees another
#include "common.cuh"

extern "C" __global__ void legacy_action(const int* __restrict__ index,
                                         int* __restrict__ direction,
                                         int* __restrict__ magnitude, int* __restrict__ order,
                                         int* __restrict__ urgency, int B) {
  constexpr int kShort = 2, kLong = 0, kFlat = 3;
  constexpr int kHalf = 1, kFull = 2;
  constexpr unsigned kMiddle = 2;  // the exposure that is flat
  const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= static_cast<size_t>(B)) return;
  const unsigned action = static_cast<unsigned>(index[i]);
  const unsigned exposure = action / 9;
  direction[i] = exposure < kMiddle ? kShort : exposure > kMiddle ? kLong : kFlat;
  magnitude[i] = exposure == 1 || exposure == 3 ? kHalf : kFull;
  order[i] = static_cast<int>(action / 3 % 3);
  urgency[i] = static_cast<int>(action % 3);
}
