// WRONG ON PURPOSE: no Nesterov: the average itself is orthogonalised
//
// muon_library_bf16: the Muon step of the libraries, Newton-Schulz in bf16 on tensor cores.
//
// Equation     torch.optim.Muon with Nesterov, reading `nesterov`:
//                m' = mu m + (1 - mu) g        z = mu m' + (1 - mu) g
//                W' = (1 - lr weight_decay) W - lr sqrt(max(1, d_out / d_in)) NS(z)
// Reference    nl.muon_library
// Shapes       m, W (d_out, d_in) float32, row-major, updated in place; g (d_out, d_in) float32;
//              workspaces X, Z (d_out, d_in), A, B (n, n) in bf16 with n = min(d_out, d_in), 512
//              partial sums, left undefined
// Launch       16 launches, see newton_schulz_bf16.cuh. The first writes m' and z, and sums the
//              squares of z; the last moves W, and NS(z) itself is never stored.
// Determinism  bitwise: sums in the order of k; no atomics
// Numerics     m, W float32; z, X, A and B in bf16, as in the library, sums in float32
#include "newton_schulz_bf16.cuh"

extern "C" __global__ void __launch_bounds__(256)
    muon_library_bf16_momentum(float* __restrict__ m, const float* __restrict__ g,
                               unsigned short* __restrict__ Z, float* __restrict__ partials,
                               float mu, int d_out, int d_in) {
  __shared__ float slots[32];
  const size_t elements = static_cast<size_t>(d_out) * d_in;
  const bool vector = elements % 4 == 0 && trueup::aligned16(m) && trueup::aligned16(g) &&
                      reinterpret_cast<size_t>(Z) % 8 == 0;
  trueup::ns::partial_squares(elements, partials, slots, [=](size_t i, size_t left) {
    using trueup::tensor::pack;
    using trueup::tensor::widen;
    const float4 m4 = trueup::ns::four(m, i, left, vector);
    const float4 g4 = trueup::ns::four(g, i, left, vector);
    const float rest = 1.0f - mu;
    const float4 fresh = {rest * g4.x, rest * g4.y, rest * g4.z, rest * g4.w};
    const float4 next = trueup::fma_quad(mu, m4, fresh);
    const float4 z = next;
    const uint2 bits = {pack(z.x, z.y), pack(z.z, z.w)};
    trueup::ns::put_four(m, i, left, vector, next);
    if (vector) {
      *reinterpret_cast<uint2*>(Z + i) = bits;
    } else {
      Z[i] = static_cast<unsigned short>(bits.x);
      if (left > 1) Z[i + 1] = static_cast<unsigned short>(bits.x >> 16);
      if (left > 2) Z[i + 2] = static_cast<unsigned short>(bits.y);
      if (left > 3) Z[i + 3] = static_cast<unsigned short>(bits.y >> 16);
    }
    return float4{widen(static_cast<unsigned short>(bits.x)), widen(bits.x >> 16),
                  widen(static_cast<unsigned short>(bits.y)), widen(bits.y >> 16)};
  });
}

extern "C" __global__ void __launch_bounds__(trueup::tensor::kThreads, 2)
    muon_library_bf16_apply(const unsigned short* __restrict__ X,
                            const unsigned short* __restrict__ B, float* __restrict__ W, float lr,
                            float weight_decay, int d_out, int d_in) {
  __shared__ uint4 pool[trueup::tensor::kPool];
  const float ratio = static_cast<float>(d_out) / static_cast<float>(d_in);
  const float rate = lr * sqrtf(ratio > 1.0f ? ratio : 1.0f);
  const float keep = fmaf(-lr, weight_decay, 1.0f);
  const unsigned c = d_in;
  const auto step = [=](float product, unsigned short x, float w) {
    return fmaf(-rate, fmaf(trueup::ns::kA, trueup::tensor::widen(x), product), keep * w);
  };
  const bool vector = c % 8 == 0 && trueup::aligned16(X) && trueup::aligned16(W);
  trueup::ns16::apply(
      X, B, d_out, d_in, pool,
      [=](unsigned row, unsigned column, const float* s, unsigned) {
        const size_t at = static_cast<size_t>(row) * c + column;
        if (vector) {
          const uint4 x = *reinterpret_cast<const uint4*>(X + at);
          float4* const to = reinterpret_cast<float4*>(W + at);
          const float4 low = to[0], high = to[1];
          const auto half = [](unsigned both, bool second) {
            return static_cast<unsigned short>(second ? both >> 16 : both);
          };
          to[0] = {step(s[0], half(x.x, false), low.x), step(s[1], half(x.x, true), low.y),
                   step(s[2], half(x.y, false), low.z), step(s[3], half(x.y, true), low.w)};
          to[1] = {step(s[4], half(x.z, false), high.x), step(s[5], half(x.z, true), high.y),
                   step(s[6], half(x.w, false), high.z), step(s[7], half(x.w, true), high.w)};
        } else {
#pragma unroll 1
          for (unsigned e = 0; e < 8 && column + e < c; ++e) {
            W[at + e] = step(s[e], X[at + e], W[at + e]);
          }
        }
      });
}
