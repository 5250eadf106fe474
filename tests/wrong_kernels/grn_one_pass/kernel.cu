// WRONG ON PURPOSE: the variance in one pass: mean of squares less the square of the mean
//
// grn_forward: a gated residual network whose residual is its input.
//
// Equation     DQN programme, 11.1:
//                e = ELU(x W_a^T + b_a);  u = e W_b^T + b_b;  s = sigmoid(u[:, D:])
//                y = u[:, :D] s + x;  xhat = (y - mean y) rstd;  out = gamma xhat + beta
// Reference    dqn.grn_forward
// Shapes       x, out, s, xhat (B, D); W_a (H, D); b_a (H); e (B, H); W_b (2 D, H); b_b (2 D);
//              u (B, 2 D); gamma, beta (D); rstd (B)
// Launch       256 threads a block. hidden and gate: a block for each 128 x 128 tile of e and of
//              u. rows: any grid; a warp for each row up to D = 256, a block beyond
// Work         2 B H (D + 2 D) multiply-adds; u is read once, e twice
// Determinism  bitwise: chains of fmaf in index order, fixed trees; no atomics
// Numerics     float32; two passes for the variance; y = fmaf(v, s, x); a mean is the sum times the
//              rounded 1 / D
#include "grn.cuh"

namespace grn = trueup::grn;

extern "C" __global__ void __launch_bounds__(grn::kThreads, 2)
    grn_forward_hidden(const float* __restrict__ x, const float* __restrict__ W_a,
                       const float* __restrict__ b_a, float* __restrict__ e, int B, int H, int D) {
  __shared__ float4 pool[grn::Float32::kQuads];
  const trueup::Sizes size = {static_cast<unsigned>(B), static_cast<unsigned>(H),
                              static_cast<unsigned>(D)};
  grn::linear<grn::Float32>(x, W_a, e, size, pool,
              [=](unsigned column, float sum) { return grn::elu(sum + b_a[column]); });
}

extern "C" __global__ void __launch_bounds__(grn::kThreads, 2)
    grn_forward_gate(const float* __restrict__ e, const float* __restrict__ W_b,
                     const float* __restrict__ b_b, float* __restrict__ u, int B, int H, int D) {
  __shared__ float4 pool[grn::Float32::kQuads];
  const trueup::Sizes size = {static_cast<unsigned>(B), 2 * static_cast<unsigned>(D),
                              static_cast<unsigned>(H)};
  grn::linear<grn::Float32>(e, W_b, u, size, pool,
              [=](unsigned column, float sum) { return sum + b_b[column]; });
}

extern "C" __global__ void __launch_bounds__(grn::kThreads)
    grn_forward_rows(const float* __restrict__ u, const float* __restrict__ x,
                     const float* __restrict__ gamma, const float* __restrict__ beta,
                     float* __restrict__ out, float* __restrict__ s, float* __restrict__ xhat,
                     float* __restrict__ rstd, int B, int D) {
  __shared__ float slots[trueup::kWarp];
  grn::forward_rows({u, x, gamma, beta, out, s, xhat, rstd}, B, D, 1e-5f, slots);
}
