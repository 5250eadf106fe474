// WRONG ON PURPOSE: trading costs nothing
//
// counterfactual_reward: the reward that the flipped direction would have had.
//
// Equation     DQN programme, action factoring: reward = -pnl - cost; the cost is paid either way
// Reference    dqn.counterfactual_reward
// Shapes       pnl, cost, reward (B)
// Launch       1-D grid of ceil(B / (4 block)), any block size; a thread takes four neighbours
// Traffic      12 B bytes
// Determinism  bitwise: one subtraction each
// Numerics     float32
#include "elementwise.cuh"

extern "C" __global__ void counterfactual_reward(const float* __restrict__ pnl,
                                                 const float* __restrict__ cost,
                                                 float* __restrict__ reward, int B) {
  const trueup::Four four(static_cast<size_t>(B));
  if (!four.any()) return;
  const bool aligned =
      trueup::aligned16(pnl) && trueup::aligned16(cost) && trueup::aligned16(reward);
  const float4 p = four.load(pnl, aligned);
  const float4 c = four.load(cost, aligned);
  four.store(reward, float4{-p.x, -p.y, -p.z, -p.w}, aligned);
}
