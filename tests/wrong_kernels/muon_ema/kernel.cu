// WRONG ON PURPOSE: the momentum is an average
//
// muon: momentum with an orthogonalised read, and the weight step, in float32.
//
// Equation     Nested Learning, Eq. 24, m linear, sigma = Newton-Schulz, reading `outside_quintic5`:
//                m' = alpha m - g        W' = W + eta NS(m')
// Reference    nl.muon
// Shapes       m, W (d_out, d_in) row-major, updated in place; g (d_out, d_in); workspaces X, Y
//              (d_out, d_in), A, B (n, n) with n = min(d_out, d_in), 512 partial sums, left undefined
// Launch       16 launches of 256 threads a block, see newton_schulz.cuh. The first writes m' and
//              sums its squares; the last adds the step to W, and NS(m') itself is never stored.
// Determinism  bitwise: chains of fmaf in index order; no atomics
// Numerics     float32; m' = fmaf(alpha, m, -g), W' = fmaf(eta, NS, W)
#include "newton_schulz.cuh"

extern "C" __global__ void __launch_bounds__(256)
    muon_momentum(float* __restrict__ m, const float* __restrict__ g, float* __restrict__ partials,
                  float alpha, int d_out, int d_in) {
  __shared__ float slots[32];
  const size_t elements = static_cast<size_t>(d_out) * d_in;
  const bool vector = elements % 4 == 0 && trueup::aligned16(m) && trueup::aligned16(g);
  trueup::ns::partial_squares(elements, partials, slots, [=](size_t i, size_t left) {
    const float4 m4 = trueup::ns::four(m, i, left, vector);
    const float4 g4 = trueup::ns::four(g, i, left, vector);
    const float4 next = trueup::fma_quad(alpha, m4, {(alpha - 1) * g4.x, (alpha - 1) * g4.y, (alpha - 1) * g4.z, (alpha - 1) * g4.w});
    trueup::ns::put_four(m, i, left, vector, next);
    return next;
  });
}

extern "C" __global__ void __launch_bounds__(trueup::ns::Square::kThreads, 2)
    muon_apply(const float* __restrict__ X, const float* __restrict__ B, float* __restrict__ W,
               float eta, int d_out, int d_in) {
  __shared__ float4 pool[trueup::ns::Square::kQuadsShared];
  const trueup::Change weights{W, static_cast<unsigned>(d_in)};
  trueup::ns::apply_tile(X, B, d_out, d_in, pool, [=](unsigned row, unsigned column, float4 step) {
    weights(row, column, [=](size_t, int place, float w) {
      return fmaf(eta, trueup::pick(step, place), w);
    });
  });
}
