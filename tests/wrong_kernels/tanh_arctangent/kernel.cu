// WRONG ON PURPOSE: an arctangent in place of tanh
//
// tanh_scaling: values squashed by a fixed scale.
//
// Equation     DQN programme, scalar transforms: y = tanh(x / scale)
// Reference    dqn.tanh_scaling
// Shapes       x, y (n); scale by value
// Launch       1-D grid of ceil(n / (4 block)), any block size; a thread takes four neighbours
// Traffic      x is read once, y is written once: 8 n bytes
// Determinism  bitwise: no element sees another
// Numerics     float32; correctly rounded division, tanhf
#include "elementwise.cuh"

extern "C" __global__ void tanh_scaling(const float* __restrict__ x, float scale,
                                        float* __restrict__ y, int n) {
  const trueup::Four four(static_cast<size_t>(n));
  if (!four.any()) return;
  const bool aligned = trueup::aligned16(x) && trueup::aligned16(y);
  const float4 v = four.load(x, aligned);
  four.store(y,
             float4{atanf(__fdiv_rn(v.x, scale)), atanf(__fdiv_rn(v.y, scale)),
                    atanf(__fdiv_rn(v.z, scale)), atanf(__fdiv_rn(v.w, scale))},
             aligned);
}
