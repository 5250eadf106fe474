// WRONG ON PURPOSE: the weights are cut off to bf16, not rounded: they drift towards 0
//
// preconditioned_momentum_hadamard_bf16: as preconditioned_momentum_hadamard, with weights,
// gradient and preconditioner stored in bf16.
//
// Equation     Nested Learning, Eq. 19-20, reading `hadamard`:
//                m' = alpha m - eta p * g        W' = W + m'
// Reference    nl.preconditioned_momentum
// Shapes       m (d_out, d_in) row-major, float32, updated in place; W (d_out, d_in), bf16,
//              updated in place; g, p (d_out, d_in), bf16
// Launch       ceil(d_out d_in / (4 blockDim)) blocks, of any size: a thread takes four neighbours
// Traffic      16 d_out d_in bytes: four arrays are read once, two written once
// Determinism  bitwise: no sums
// Numerics     float32 arithmetic, and m stays float32; m' = fmaf(-eta, p_ij g_ij, alpha m_ij) with
//              an exact product; W' is rounded to bf16 once, to nearest even
#include "elementwise.cuh"

namespace {

__device__ __forceinline__ float next_momentum(float m, float g, float p, float alpha, float eta) {
  return fmaf(-eta, p * g, alpha * m);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(1024)
    preconditioned_momentum_hadamard_bf16(float* __restrict__ m, trueup::Bf16* __restrict__ W,
                                          const trueup::Bf16* __restrict__ g,
                                          const trueup::Bf16* __restrict__ p, float alpha,
                                          float eta, int d_out, int d_in) {
  const trueup::Four at(static_cast<size_t>(d_out) * d_in);
  if (!at.any()) return;
  const bool wide = trueup::aligned16(m);
  const bool narrow = trueup::aligned8(W) && trueup::aligned8(g) && trueup::aligned8(p);
  const float4 m4 = at.load(m, wide);
  const float4 W4 = at.load(W, narrow);
  const float4 g4 = at.load(g, narrow);
  const float4 p4 = at.load(p, narrow);
  const float4 next = {next_momentum(m4.x, g4.x, p4.x, alpha, eta),
                       next_momentum(m4.y, g4.y, p4.y, alpha, eta),
                       next_momentum(m4.z, g4.z, p4.z, alpha, eta),
                       next_momentum(m4.w, g4.w, p4.w, alpha, eta)};
  at.store(m, next, wide);
  at.store(W, {W4.x + next.x, W4.y + next.y, W4.z + next.z, W4.w + next.w}, narrow);
}
