// WRONG ON PURPOSE: lam stands beside the root, as libraries add their epsilon
//
// adam_memory: the element-wise least-squares memory of all gradients so far.
//
// Equation     Nested Learning, preprint arXiv:2512.24695, Eq. 101, 102, 105, reading
//              `root_target`:
//                S' = S + g        H' = H + g^2        M = sqrt(H') S' / (lam + H')
//              M = 0 where lam + H' = 0, the least memory that fits
// Reference    nl.adam_memory (S is sum_g, H is sum_gg)
// Shapes       sum_g, sum_gg (d_out, d_in) row-major, updated in place; g, M (d_out, d_in)
// Launch       ceil(d_out d_in / (4 blockDim)) blocks, of any size: a thread takes four neighbours
// Traffic      24 d_out d_in bytes: three arrays are read once, three written once
// Determinism  bitwise: no sums but those of an element over the steps
// Numerics     float32; H' = fmaf(g, g, H); root and quotient rounded to nearest
#include "elementwise.cuh"

namespace {

__device__ __forceinline__ float memory(float sum_g, float sum_gg, float lam) {
  const float denominator = lam + sqrtf(sum_gg);
  return denominator == 0.0f ? 0.0f : sum_g / denominator;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(1024)
    adam_memory(float* __restrict__ sum_g, float* __restrict__ sum_gg,
                const float* __restrict__ g, float* __restrict__ M, float lam, int d_out,
                int d_in) {
  const trueup::Four at(static_cast<size_t>(d_out) * d_in);
  if (!at.any()) return;
  const bool vector = trueup::aligned16(sum_g) && trueup::aligned16(sum_gg) &&
                      trueup::aligned16(g) && trueup::aligned16(M);
  const float4 S = at.load(sum_g, vector);
  const float4 H = at.load(sum_gg, vector);
  const float4 g4 = at.load(g, vector);
  const float4 sum = {S.x + g4.x, S.y + g4.y, S.z + g4.z, S.w + g4.w};
  const float4 squares = {fmaf(g4.x, g4.x, H.x), fmaf(g4.y, g4.y, H.y), fmaf(g4.z, g4.z, H.z),
                          fmaf(g4.w, g4.w, H.w)};
  at.store(sum_g, sum, vector);
  at.store(sum_gg, squares, vector);
  at.store(M, {memory(sum.x, squares.x, lam), memory(sum.y, squares.y, lam),
               memory(sum.z, squares.z, lam), memory(sum.w, squares.w, lam)},
           vector);
}
