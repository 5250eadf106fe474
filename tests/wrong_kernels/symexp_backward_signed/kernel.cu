// WRONG ON PURPOSE: the exponential of a signed argument
//
// symexp_backward: gradient of the symmetric exponential.
//
// Equation     DreamerV3, arXiv:2301.04104, Eq. 9, differentiated: dx = dy exp(|x|)
// Reference    dqn.symexp_backward
// Shapes       x, dy, dx (n)
// Launch       1-D grid of ceil(n / (4 block)), any block size; a thread takes four neighbours
// Traffic      x and dy are read once, dx is written once: 12 n bytes
// Determinism  bitwise: no element sees another
// Numerics     float32
#include "elementwise.cuh"

namespace {

__device__ __forceinline__ float back(float x, float dy) { return dy * expf(x); }

}  // namespace

extern "C" __global__ void symexp_backward(const float* __restrict__ x,
                                           const float* __restrict__ dy, float* __restrict__ dx,
                                           int n) {
  const trueup::Four four(static_cast<size_t>(n));
  if (!four.any()) return;
  const bool aligned = trueup::aligned16(x) && trueup::aligned16(dy) && trueup::aligned16(dx);
  const float4 v = four.load(x, aligned);
  const float4 d = four.load(dy, aligned);
  four.store(dx, float4{back(v.x, d.x), back(v.y, d.y), back(v.z, d.z), back(v.w, d.w)}, aligned);
}
