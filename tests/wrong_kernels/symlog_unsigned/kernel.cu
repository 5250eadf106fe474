// WRONG ON PURPOSE: the sign is lost
//
// symlog: the symmetric logarithm: numbers of any size and sign, compressed.
//
// Equation     DreamerV3, arXiv:2301.04104, Eq. 9: y = sign(x) ln(1 + |x|)
// Reference    dqn.symlog
// Shapes       x, y (n)
// Launch       1-D grid of ceil(n / (4 block)), any block size; a thread takes four neighbours
// Traffic      x is read once, y is written once: 8 n bytes
// Determinism  bitwise: no element sees another
// Numerics     float32; log1pf of the magnitude, which keeps what is far below 1; NaN stays
#include "elementwise.cuh"

namespace {

__device__ __forceinline__ float symlog(float x) { return log1pf(fabsf(x)); }

}  // namespace

extern "C" __global__ void symlog_f32(const float* __restrict__ x, float* __restrict__ y, int n) {
  const trueup::Four four(static_cast<size_t>(n));
  if (!four.any()) return;
  const bool aligned = trueup::aligned16(x) && trueup::aligned16(y);
  const float4 v = four.load(x, aligned);
  four.store(y, float4{symlog(v.x), symlog(v.y), symlog(v.z), symlog(v.w)}, aligned);
}
