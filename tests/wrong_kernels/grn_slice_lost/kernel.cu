// WRONG ON PURPOSE: the last slice of the batch is not added
//
// grn_backward: the gradients of a gated residual network whose residual is its input.
//
// Equation     DQN programme, 11.3 and 11.4, with g = d_out gamma:
//                dy = rstd / D (D g - sum g - xhat sum (g xhat));  du = [dy s, dy v s (1 - s)]
//                da = (du W_b) (e > 0 ? 1 : e + 1);  dx = da W_a + dy
//                dW_a = da^T x;  dW_b = du^T e;  biases, gamma and beta by sums over the batch
// Reference    dqn.grn_backward
// Shapes       d_out, x, s, xhat, dx (B, D); W_a, dW_a (H, D); W_b, dW_b (2 D, H); gamma, dgamma,
//              dbeta (D); e (B, H); u (B, 2 D); rstd (B); db_a (H); db_b (2 D). Workspaces: dy
//              (B, D); du (B, 2 D); da (B, H); part_rows (blocks of `rows`, 4, D); part_b (slices,
//              2 D, H), part_a (slices, H, D), part_bias (slices, H)
// Launch       256 threads a block. rows: any grid that part_rows has rows for. hidden and input: a
//              block for each 128 x 128 tile of da and of dx. weights: for each slice a block for
//              each tile of dW_b, then of dW_a, then for each 64 columns of da. sums: any grid
// Work         4 B H (D + 2 D) multiply-adds
// Determinism  bitwise: chains of fmaf in index order; slices and blocks are added in the order of
//              their numbers, given the grid; no atomics
// Numerics     float32; a mean is the sum times the rounded 1 / D
#include "grn.cuh"

namespace grn = trueup::grn;

extern "C" __global__ void __launch_bounds__(grn::kThreads)
    grn_backward_rows(const float* __restrict__ d_out, const float* __restrict__ u,
                      const float* __restrict__ s, const float* __restrict__ xhat,
                      const float* __restrict__ rstd, const float* __restrict__ gamma,
                      float* __restrict__ dy, float* __restrict__ du,
                      float* __restrict__ part_rows, int B, int D) {
  __shared__ float pool[grn::kWarps * grn::kShortRow];
  grn::backward_rows({d_out, u, s, xhat, rstd, gamma, dy, du, part_rows}, B, D, pool);
}

extern "C" __global__ void __launch_bounds__(grn::kThreads, 2)
    grn_backward_hidden(const float* __restrict__ du, const float* __restrict__ W_b,
                        const float* __restrict__ e, float* __restrict__ da, int B, int H, int D) {
  __shared__ float4 pool[grn::Float32::kQuads];
  grn::hidden_gradient<grn::Float32>(du, W_b, e, da, B, H, D, pool);
}

extern "C" __global__ void __launch_bounds__(grn::kThreads, 2)
    grn_backward_input(const float* __restrict__ da, const float* __restrict__ W_a,
                       const float* __restrict__ dy, float* __restrict__ dx, int B, int H, int D) {
  __shared__ float4 pool[grn::Float32::kQuads];
  const trueup::Sizes size = {static_cast<unsigned>(B), static_cast<unsigned>(D),
                              static_cast<unsigned>(H)};
  grn::product<grn::Float32, trueup::First::kPlain, trueup::Second::kPlain>(
      da, W_a, size, blockIdx.x, pool, [=](unsigned row, unsigned column, float sum) {
        const size_t at = static_cast<size_t>(row) * size.n + column;
        dx[at] = sum + dy[at];
      });
}

extern "C" __global__ void __launch_bounds__(grn::kThreads, 2)
    grn_backward_weights(const float* __restrict__ du, const float* __restrict__ e,
                         const float* __restrict__ da, const float* __restrict__ x,
                         float* __restrict__ part_b, float* __restrict__ part_a,
                         float* __restrict__ part_bias, int B, int H, int D) {
  __shared__ float4 pool[grn::Float32::kQuads];
  const unsigned slices = grn::slices_of(B);
  const unsigned tiles_b = grn::tiles_of<grn::Float32>(2 * D, H) * slices;
  const unsigned tiles_a = grn::tiles_of<grn::Float32>(H, D) * slices;
  unsigned block = blockIdx.x;
  if (grn::outer_sums<grn::Float32>(du, e, part_b, B, 2 * D, H, slices, block, pool)) return;
  block -= tiles_b;
  if (grn::outer_sums<grn::Float32>(da, x, part_a, B, H, D, slices, block, pool)) return;
  block -= tiles_a;
  grn::column_sums(da, part_bias, B, H, slices, block, reinterpret_cast<float*>(pool));
}

extern "C" __global__ void __launch_bounds__(grn::kThreads)
    grn_backward_sums(const float* __restrict__ part_rows, const float* __restrict__ part_b,
                      const float* __restrict__ part_a, const float* __restrict__ part_bias,
                      float* __restrict__ dW_a, float* __restrict__ db_a, float* __restrict__ dW_b,
                      float* __restrict__ db_b, float* __restrict__ dgamma,
                      float* __restrict__ dbeta, int B, int H, int D) {
  const size_t weights = static_cast<size_t>(H) * D;
  const unsigned slices = grn::slices_of(B);
  grn::sum_columns(part_rows, dgamma, dbeta, db_b, D, grn::row_blocks_of(B));
  grn::sum_parts(part_b, dW_b, 2 * weights, slices);
  grn::sum_parts(part_a, dW_a, weights, slices);
  grn::sum_parts(part_bias, db_a, H, slices);
}
