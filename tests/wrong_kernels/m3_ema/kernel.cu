// WRONG ON PURPOSE: sums became averages
//
// m3: every step of M3, a momentum of two time scales with orthogonalised reads, in float32.
//
// Equation     Nested Learning, preprint, Algorithm 1 and Eq. 75, reading `quintic5`:
//                M1' = M1 + beta1 g        V' = V + beta2 g^2        S' = S + g
//                theta' = theta - eta (NS(M1') + alpha O2) / (sqrt(V') + epsilon)
// Reference    nl.m3; after every f-th step nl.m3_slow follows
// Shapes       theta, M1, V, S (d_out, d_in) row-major, updated in place; O2, g (d_out, d_in);
//              workspaces X, Y (d_out, d_in), A, B (n, n) with n = min(d_out, d_in), 512 partial
//              sums, left undefined
// Launch       16 launches of 256 threads a block, see newton_schulz.cuh. The first updates M1, V and
//              S in one pass and sums the squares of M1'; the last moves theta, and NS(M1') itself is
//              never stored.
// Determinism  bitwise: chains of fmaf in index order; no atomics
// Numerics     float32; square root and division correctly rounded
#include "newton_schulz.cuh"

__device__ float4 scaled(float s, float4 v) { return {s * v.x, s * v.y, s * v.z, s * v.w}; }

extern "C" __global__ void __launch_bounds__(256)
    m3_momentum(float* __restrict__ M1, float* __restrict__ V, float* __restrict__ S,
                const float* __restrict__ g, float* __restrict__ partials, float beta1, float beta2,
                int d_out, int d_in) {
  __shared__ float slots[32];
  const size_t elements = static_cast<size_t>(d_out) * d_in;
  const bool vector = elements % 4 == 0 && trueup::aligned16(M1) && trueup::aligned16(V) &&
                      trueup::aligned16(S) && trueup::aligned16(g);
  trueup::ns::partial_squares(elements, partials, slots, [=](size_t i, size_t left) {
    const float4 g4 = trueup::ns::four(g, i, left, vector);
    const float4 s4 = trueup::ns::four(S, i, left, vector);
    const float4 v4 = trueup::ns::four(V, i, left, vector);
    const float4 next = trueup::fma_quad(beta1, g4, scaled(1.0f - beta1, trueup::ns::four(M1, i, left, vector)));
    const float4 squares = {g4.x * g4.x, g4.y * g4.y, g4.z * g4.z, g4.w * g4.w};
    trueup::ns::put_four(M1, i, left, vector, next);
    trueup::ns::put_four(V, i, left, vector, trueup::fma_quad(beta2, squares, scaled(1.0f - beta2, v4)));
    trueup::ns::put_four(S, i, left, vector,
                         {s4.x + g4.x, s4.y + g4.y, s4.z + g4.z, s4.w + g4.w});
    return next;
  });
}

extern "C" __global__ void __launch_bounds__(trueup::ns::Square::kThreads, 2)
    m3_apply(const float* __restrict__ X, const float* __restrict__ B, float* __restrict__ theta,
             const float* __restrict__ V, const float* __restrict__ O2, float alpha, float eta,
             float epsilon, int d_out, int d_in) {
  __shared__ float4 pool[trueup::ns::Square::kQuadsShared];
  const trueup::Change weights{theta, static_cast<unsigned>(d_in)};
  trueup::ns::apply_tile(X, B, d_out, d_in, pool, [=](unsigned row, unsigned column, float4 fast) {
    weights(row, column, [=](size_t at, int place, float w) {
      const float step = fmaf(alpha, O2[at], trueup::pick(fast, place));
      return fmaf(-eta, step / (sqrtf(V[at]) + epsilon), w);
    });
  });
}
