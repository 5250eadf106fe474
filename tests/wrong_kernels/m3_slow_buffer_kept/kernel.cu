// WRONG ON PURPOSE: the gathered gradients are not emptied
//
// m3_slow: the slow momentum of M3, after every f-th step, in float32.
//
// Equation     Nested Learning, preprint, Algorithm 1, where t mod f = 0, reading `quintic5`:
//                M2' = M2 + beta3 S        S' = 0        O2' = NS(M2')
// Reference    nl.m3_slow
// Shapes       M2, S (d_out, d_in) row-major, updated in place; O2 (d_out, d_in); workspaces X
//              (d_out, d_in), A, B (n, n) with n = min(d_out, d_in), 512 partial sums, left undefined
// Launch       16 launches of 256 threads a block, see newton_schulz.cuh. The first updates M2,
//              empties S and sums the squares of M2' in one pass.
// Determinism  bitwise: chains of fmaf in index order; no atomics
// Numerics     float32; S' is 0 whatever S held
#include "newton_schulz.cuh"

extern "C" __global__ void __launch_bounds__(256)
    m3_slow_momentum(float* __restrict__ M2, float* __restrict__ S, float* __restrict__ partials,
                     float beta3, int d_out, int d_in) {
  __shared__ float slots[32];
  const size_t elements = static_cast<size_t>(d_out) * d_in;
  const bool vector = elements % 4 == 0 && trueup::aligned16(M2) && trueup::aligned16(S);
  trueup::ns::partial_squares(elements, partials, slots, [=](size_t i, size_t left) {
    const float4 s4 = trueup::ns::four(S, i, left, vector);
    const float4 next = trueup::fma_quad(beta3, s4, trueup::ns::four(M2, i, left, vector));
    trueup::ns::put_four(M2, i, left, vector, next);
    trueup::ns::put_four(S, i, left, vector, s4);
    return next;
  });
}
