// WRONG ON PURPOSE: the first step is not divided by the norm
//
// newton_schulz: Newton-Schulz orthogonalisation of a matrix, in float32.
//
// Equation     the NS of Nested Learning, Eq. 24, reading `quintic5`:
//                X = G / max(||G||_F, eps)
//                5 times: A = X X^T, X <- a X + (b A + c A^2) X;  (a, b, c) = (3.4445, -4.7750, 2.0315)
// Reference    nl.newton_schulz
// Shapes       G, O (r, c) row-major; workspaces X (r, c), A, B (n, n) with n = min(r, c), and 512
//              partial sums, all left undefined. Where r > c the smaller Gram matrix X^T X is used.
// Launch       16 launches of 256 threads a block, see newton_schulz.cuh
// Work         2 r c n multiply-adds a step for X^T X and B X together with n^3 for A^2, halved for
//              the symmetric two: 10 n (1.5 r c + 0.5 n^2) in all, bound by arithmetic
// Determinism  bitwise: chains of fmaf in index order; no atomics
// Numerics     float32
#include "newton_schulz.cuh"

extern "C" __global__ void __launch_bounds__(256)
    newton_schulz_norm(const float* __restrict__ G, float* __restrict__ partials, int r, int c) {
  __shared__ float slots[32];
  const size_t elements = static_cast<size_t>(r) * c;
  const bool vector = elements % 4 == 0 && trueup::aligned16(G);
  trueup::ns::partial_squares(elements, partials, slots, [=](size_t i, size_t left) {
    return trueup::ns::four(G, i, left, vector);
  });
}
