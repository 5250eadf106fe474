// grn_forward_projected: a gated residual network whose residual is a projection of its input.
//
// Equation     DQN programme, 11.1:
//                e = ELU(x W_a^T + b_a);  u = e W_b^T + b_b;  s = sigmoid(u[:, D:])
//                y = u[:, :D] s + x W_res^T;  xhat = (y - mean y) rstd;  out = gamma xhat + beta
// Reference    dqn.grn_forward, with W_res
// Shapes       x (B, D_in); out, s, xhat (B, D); W_a (H, D_in); b_a (H); e (B, H); W_b (2 D, H);
//              b_b (2 D); u (B, 2 D); W_res (D, D_in); gamma, beta (D); rstd (B)
// Launch       256 threads a block. hidden, gate and residual: a block for each 128 x 128 tile of
//              e, u and xhat, where the residual waits. rows: any grid; a warp for each row up to
//              D = 256, a block beyond
// Work         B (2 H (D_in + 2 D) + 2 D D_in) multiply-adds
// Determinism  bitwise: chains of fmaf in index order, fixed trees; no atomics
// Numerics     float32; two passes for the variance; y = fmaf(v, s, residual)
#include "grn.cuh"

namespace grn = trueup::grn;

extern "C" __global__ void __launch_bounds__(grn::kThreads, 2)
    grn_forward_projected_hidden(const float* __restrict__ x, const float* __restrict__ W_a,
                                 const float* __restrict__ b_a, float* __restrict__ e, int B,
                                 int D_in, int H) {
  __shared__ float4 pool[grn::Float32::kQuads];
  const trueup::Sizes size = {static_cast<unsigned>(B), static_cast<unsigned>(H),
                              static_cast<unsigned>(D_in)};
  grn::linear<grn::Float32>(x, W_a, e, size, pool,
              [=](unsigned column, float sum) { return grn::elu(sum + b_a[column]); });
}

extern "C" __global__ void __launch_bounds__(grn::kThreads, 2)
    grn_forward_projected_gate(const float* __restrict__ e, const float* __restrict__ W_b,
                               const float* __restrict__ b_b, float* __restrict__ u, int B, int H,
                               int D) {
  __shared__ float4 pool[grn::Float32::kQuads];
  const trueup::Sizes size = {static_cast<unsigned>(B), 2 * static_cast<unsigned>(D),
                              static_cast<unsigned>(H)};
  grn::linear<grn::Float32>(e, W_b, u, size, pool,
              [=](unsigned column, float sum) { return sum + b_b[column]; });
}

extern "C" __global__ void __launch_bounds__(grn::kThreads, 2)
    grn_forward_projected_residual(const float* __restrict__ x, const float* __restrict__ W_res,
                                   float* __restrict__ xhat, int B, int D_in, int D) {
  __shared__ float4 pool[grn::Float32::kQuads];
  const trueup::Sizes size = {static_cast<unsigned>(B), static_cast<unsigned>(D),
                              static_cast<unsigned>(D_in)};
  grn::linear<grn::Float32>(x, W_res, xhat, size, pool, [](unsigned, float sum) { return sum; });
}

extern "C" __global__ void __launch_bounds__(grn::kThreads)
    grn_forward_projected_rows(const float* __restrict__ u, const float* __restrict__ gamma,
                               const float* __restrict__ beta, float* __restrict__ out,
                               float* __restrict__ s, float* xhat, float* __restrict__ rstd, int B,
                               int D) {
  __shared__ float slots[trueup::kWarp];
  grn::forward_rows({u, xhat, gamma, beta, out, s, xhat, rstd}, B, D, 1e-5f, slots);
}
