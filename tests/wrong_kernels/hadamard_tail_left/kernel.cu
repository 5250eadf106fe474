// WRONG ON PURPOSE: the last one to three elements are left as they were
//
// preconditioned_momentum_hadamard: momentum over gradients scaled element by element, and the
// weight step.
//
// Equation     Nested Learning, Eq. 19-20, reading `hadamard`:
//                m' = alpha m - eta p * g        W' = W + m'
// Reference    nl.preconditioned_momentum
// Shapes       m, W (d_out, d_in) row-major, updated in place; g, p (d_out, d_in)
// Launch       ceil(d_out d_in / (4 blockDim)) blocks, of any size: a thread takes four neighbours
// Traffic      24 d_out d_in bytes: four arrays are read once, two written once
// Determinism  bitwise: no sums
// Numerics     float32; m' = fmaf(-eta, p_ij g_ij, alpha m_ij)
#include "elementwise.cuh"

namespace {

__device__ __forceinline__ float next_momentum(float m, float g, float p, float alpha, float eta) {
  return fmaf(-eta, p * g, alpha * m);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(1024)
    preconditioned_momentum_hadamard(float* __restrict__ m, float* __restrict__ W,
                                     const float* __restrict__ g, const float* __restrict__ p,
                                     float alpha, float eta, int d_out, int d_in) {
  const trueup::Four at(static_cast<size_t>(d_out) * d_in);
  if (!at.any()) return;
  const bool vector = trueup::aligned16(m) && trueup::aligned16(W) && trueup::aligned16(g) &&
                      trueup::aligned16(p);
  const float4 m4 = at.load(m, vector);
  const float4 W4 = at.load(W, vector);
  const float4 g4 = at.load(g, vector);
  const float4 p4 = at.load(p, vector);
  const float4 next = {next_momentum(m4.x, g4.x, p4.x, alpha, eta),
                       next_momentum(m4.y, g4.y, p4.y, alpha, eta),
                       next_momentum(m4.z, g4.z, p4.z, alpha, eta),
                       next_momentum(m4.w, g4.w, p4.w, alpha, eta)};
  at.store(m, next, vector);
  at.store(W, {W4.x + next.x, W4.y + next.y, W4.z + next.z, W4.w + next.w}, vector);
}
