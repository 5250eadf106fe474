// WRONG ON PURPOSE: the step is decayed with the weights
//
// muon_library: the Muon step of the libraries, in float32.
//
// Equation     torch.optim.Muon with Nesterov, reading `nesterov`:
//                m' = mu m + (1 - mu) g        z = mu m' + (1 - mu) g
//                W' = (1 - lr weight_decay) W - lr sqrt(max(1, d_out / d_in)) NS(z)
// Reference    nl.muon_library
// Shapes       m, W (d_out, d_in) row-major, updated in place; g (d_out, d_in); workspaces X, Z
//              (d_out, d_in), A, B (n, n) with n = min(d_out, d_in), 512 partial sums, left undefined
// Launch       16 launches of 256 threads a block, see newton_schulz.cuh. The first writes m' and z
//              and sums the squares of z; the last moves W, and NS(z) itself is never stored.
// Determinism  bitwise: chains of fmaf in index order; no atomics
// Numerics     float32 throughout, where the library's Newton-Schulz is bf16: see
//              muon_library_bf16
#include "newton_schulz.cuh"

extern "C" __global__ void __launch_bounds__(256)
    muon_library_momentum(float* __restrict__ m, const float* __restrict__ g,
                          float* __restrict__ Z, float* __restrict__ partials, float mu, int d_out,
                          int d_in) {
  __shared__ float slots[32];
  const size_t elements = static_cast<size_t>(d_out) * d_in;
  const bool vector = elements % 4 == 0 && trueup::aligned16(m) && trueup::aligned16(g) &&
                      trueup::aligned16(Z);
  trueup::ns::partial_squares(elements, partials, slots, [=](size_t i, size_t left) {
    const float4 m4 = trueup::ns::four(m, i, left, vector);
    const float4 g4 = trueup::ns::four(g, i, left, vector);
    const float rest = 1.0f - mu;
    const float4 fresh = {rest * g4.x, rest * g4.y, rest * g4.z, rest * g4.w};
    const float4 next = trueup::fma_quad(mu, m4, fresh);
    const float4 z = trueup::fma_quad(mu, next, fresh);
    trueup::ns::put_four(m, i, left, vector, next);
    trueup::ns::put_four(Z, i, left, vector, z);
    return z;
  });
}

extern "C" __global__ void __launch_bounds__(trueup::ns::Square::kThreads, 2)
    muon_library_apply(const float* __restrict__ X, const float* __restrict__ B,
                       float* __restrict__ W, float lr, float weight_decay, int d_out, int d_in) {
  __shared__ float4 pool[trueup::ns::Square::kQuadsShared];
  const trueup::Change weights{W, static_cast<unsigned>(d_in)};
  const float ratio = static_cast<float>(d_out) / static_cast<float>(d_in);
  const float rate = lr * sqrtf(ratio > 1.0f ? ratio : 1.0f);
  const float keep = fmaf(-lr, weight_decay, 1.0f);
  trueup::ns::apply_tile(X, B, d_out, d_in, pool, [=](unsigned row, unsigned column, float4 step) {
    weights(row, column, [=](size_t, int place, float w) {
      return keep * fmaf(-rate, trueup::pick(step, place), w);
    });
  });
}
