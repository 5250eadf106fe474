// preconditioned_momentum_bf16: as preconditioned_momentum, with weights, gradient and
// preconditioner stored in bf16, on tensor cores.
//
// Equation     Nested Learning, Eq. 19-20, reading `left`:
//                m' = alpha m - eta P g        W' = W + m'
// Reference    nl.preconditioned_momentum
// Shapes       m (d_out, d_in) row-major, float32, updated in place; W (d_out, d_in), bf16,
//              updated in place; g (d_out, d_in), bf16; P (d_out, d_out), bf16, which need not be
//              symmetric
// Launch       128 threads a block, one block for each 128 x 128 tile:
//              ceil(d_out / 128) ceil(d_in / 128) blocks, of which two share an SM
// Work         d_out^2 d_in multiply-adds: bound by m and W up to d_out of about 1000
// Determinism  bitwise: each element is summed in the order of k in steps of 16; no atomics
// Numerics     exact products, float32 sums, and m stays float32; m' = fmaf(-eta, (P g)_ij,
//              alpha m_ij); W' is rounded to bf16 once, to nearest even
#include "tensor.cuh"

namespace {

using trueup::tensor::Bits;
using trueup::tensor::Operand;
using trueup::tensor::Rows;

// Eight neighbours, from sums that lie `step` apart; of a row that has `left` of them.
__device__ __forceinline__ void step_eight(float* m, Bits* W, const float* sums, unsigned step,
                                           unsigned left, bool chunk, float alpha, float eta) {
  namespace tensor = trueup::tensor;
  if (chunk) {
    float4* const m4 = reinterpret_cast<float4*>(m);
    const uint4 old = trueup::load<trueup::Reuse::kOnce>(reinterpret_cast<const uint4*>(W));
    const unsigned halves[4] = {old.x, old.y, old.z, old.w};
    unsigned moved[4];
#pragma unroll
    for (unsigned q = 0; q < 2; ++q) {
      const float4 was = trueup::load<trueup::Reuse::kOnce>(m4 + q);
      const float* const s = sums + 4 * q * step;
      const float4 next = {fmaf(-eta, s[0], alpha * was.x), fmaf(-eta, s[step], alpha * was.y),
                           fmaf(-eta, s[2 * step], alpha * was.z),
                           fmaf(-eta, s[3 * step], alpha * was.w)};
      trueup::store_once(m4 + q, next);
      const unsigned one = halves[2 * q], two = halves[2 * q + 1];
      moved[2 * q] = tensor::pack(tensor::widen(static_cast<Bits>(one)) + next.x,
                                  tensor::widen(static_cast<Bits>(one >> 16)) + next.y);
      moved[2 * q + 1] = tensor::pack(tensor::widen(static_cast<Bits>(two)) + next.z,
                                      tensor::widen(static_cast<Bits>(two >> 16)) + next.w);
    }
    trueup::store_once(reinterpret_cast<uint4*>(W), uint4{moved[0], moved[1], moved[2], moved[3]});
  } else {
#pragma unroll 1
    for (unsigned e = 0; e < 8 && e < left; ++e) {
      const float next = fmaf(-eta, sums[e * step], alpha * m[e]);
      m[e] = next;
      W[e] = static_cast<Bits>(tensor::pack(tensor::widen(W[e]) + next, 0.0f));
    }
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(trueup::tensor::kThreads, 2)
    preconditioned_momentum_bf16(float* __restrict__ m, Bits* __restrict__ W,
                                 const Bits* __restrict__ g, const Bits* __restrict__ P,
                                 float alpha, float eta, int d_out, int d_in) {
  namespace tensor = trueup::tensor;
  __shared__ uint4 pool[tensor::kPool];
  const unsigned rows = d_out, columns = d_in;
  const unsigned across = (columns - 1) / tensor::kEdge + 1;
  const unsigned first_m = blockIdx.x / across * tensor::kEdge;
  const unsigned first_n = blockIdx.x % across * tensor::kEdge;
  tensor::Sums sum = {};
  tensor::gemm_sums<Rows::kAlongK, Rows::kAlongEdge>(
      sum, Operand(P, rows, rows), Operand(g, columns, columns), rows, first_m, first_n, pool);
  const bool chunk = columns % 8 == 0 && trueup::aligned16(m) && trueup::aligned16(W);
  const auto emit = [=](unsigned row, unsigned column, const float* s, unsigned step) {
    const size_t at = static_cast<size_t>(first_m + row) * columns + first_n + column;
    step_eight(m + at, W + at, s, step, columns - first_n - column, chunk, alpha, eta);
  };
  tensor::hand_out(sum, pool, rows - first_m, columns - first_n, false, emit, emit);
}
