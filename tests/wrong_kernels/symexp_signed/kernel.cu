// WRONG ON PURPOSE: the exponential of a signed argument
//
// symexp: the symmetric exponential: what undoes the symmetric logarithm.
//
// Equation     DreamerV3, arXiv:2301.04104, Eq. 9: y = sign(x) (exp(|x|) - 1)
// Reference    dqn.symexp
// Shapes       x, y (n)
// Launch       1-D grid of ceil(n / (4 block)), any block size; a thread takes four neighbours
// Traffic      x is read once, y is written once: 8 n bytes
// Determinism  bitwise: no element sees another
// Numerics     float32; expm1f of the magnitude, which keeps what is far below 1; NaN stays
#include "elementwise.cuh"

namespace {

__device__ __forceinline__ float symexp(float x) { return expm1f(x); }

}  // namespace

extern "C" __global__ void symexp_f32(const float* __restrict__ x, float* __restrict__ y, int n) {
  const trueup::Four four(static_cast<size_t>(n));
  if (!four.any()) return;
  const bool aligned = trueup::aligned16(x) && trueup::aligned16(y);
  const float4 v = four.load(x, aligned);
  four.store(y, float4{symexp(v.x), symexp(v.y), symexp(v.z), symexp(v.w)}, aligned);
}
