// WRONG ON PURPOSE: a = 3.5
//
// newton_schulz_bf16: Newton-Schulz orthogonalisation of a matrix, in bf16 on tensor cores.
//
// Equation     the NS of Nested Learning, Eq. 24, reading `quintic5`:
//                X = G / max(||G||_F, eps)
//                5 times: A = X X^T, X <- a X + (b A + c A^2) X;  (a, b, c) = (3.4445, -4.7750, 2.0315)
// Reference    nl.newton_schulz_bf16
// Shapes       G, O (r, c) row-major; workspaces X (r, c), A, B (n, n) with n = min(r, c), and 512
//              partial sums, all left undefined. Where r > c the smaller Gram matrix X^T X is used.
// Launch       16 launches, see newton_schulz_bf16.cuh
// Work         10 n (1.5 r c + 0.5 n^2) multiply-adds: two of the three products are symmetric, and
//              half of them is computed; a third less than three whole products
// Determinism  bitwise: sums in the order of k; no atomics
// Numerics     X, A and B in bf16, sums in float32, one rounding each; G itself is not rounded again
#include "newton_schulz_bf16.cuh"

extern "C" __global__ void __launch_bounds__(256)
    newton_schulz_bf16_norm(const unsigned short* __restrict__ G, float* __restrict__ partials,
                            int r, int c) {
  __shared__ float slots[32];
  const size_t elements = static_cast<size_t>(r) * c;
  const bool vector = elements % 4 == 0 && reinterpret_cast<size_t>(G) % 8 == 0;
  trueup::ns::partial_squares(elements, partials, slots, [=](size_t i, size_t left) {
    using trueup::tensor::widen;
    if (vector) {
      const uint2 v = trueup::load<trueup::Reuse::kShared>(reinterpret_cast<const uint2*>(G + i));
      return float4{widen(static_cast<unsigned short>(v.x)), widen(v.x >> 16),
                    widen(static_cast<unsigned short>(v.y)), widen(v.y >> 16)};
    }
    return float4{widen(G[i]), left > 1 ? widen(G[i + 1]) : 0.0f,
                  left > 2 ? widen(G[i + 2]) : 0.0f, left > 3 ? widen(G[i + 3]) : 0.0f};
  });
}
