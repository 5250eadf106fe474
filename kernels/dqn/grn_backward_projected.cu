// grn_backward_projected: the gradients of a gated residual network with a projected residual.
//
// Equation     DQN programme, 11.3 and 11.4, with g = d_out gamma:
//                dy = rstd / D (D g - sum g - xhat sum (g xhat));  du = [dy s, dy v s (1 - s)]
//                da = (du W_b) (e > 0 ? 1 : e + 1);  dx = da W_a + dy W_res
//                dW_a = da^T x;  dW_b = du^T e;  dW_res = dy^T x
//                biases, gamma and beta by sums over the batch
// Reference    dqn.grn_backward, with W_res
// Shapes       d_out, s, xhat (B, D); x, dx (B, D_in); W_a, dW_a (H, D_in); W_b, dW_b (2 D, H);
//              W_res, dW_res (D, D_in); gamma, dgamma, dbeta (D); e (B, H); u (B, 2 D); rstd (B);
//              db_a (H); db_b (2 D). Workspaces: dy (B, D); du (B, 2 D); da (B, H); part_rows
//              (blocks of `rows`, 4, D); part_b (slices, 2 D, H), part_a (slices, H, D_in),
//              part_res (slices, D, D_in), part_bias (slices, H)
// Launch       256 threads a block. rows: any grid that part_rows has rows for. hidden and input: a
//              block for each 128 x 128 tile of da and of dx. weights: for each slice a block for
//              each tile of dW_b, of dW_a, of dW_res, then for each 64 columns of da. sums: any
//              grid
// Work         4 B (H (D_in + 2 D) + D D_in) multiply-adds
// Determinism  bitwise: chains of fmaf in index order; slices and blocks are added in the order of
//              their numbers, given the grid; no atomics
// Numerics     float32; a mean is the sum times the rounded 1 / D
#include "grn.cuh"

namespace grn = trueup::grn;

extern "C" __global__ void __launch_bounds__(grn::kThreads)
    grn_backward_projected_rows(const float* __restrict__ d_out, const float* __restrict__ u,
                      const float* __restrict__ s, const float* __restrict__ xhat,
                      const float* __restrict__ rstd, const float* __restrict__ gamma,
                      float* __restrict__ dy, float* __restrict__ du,
                      float* __restrict__ part_rows, int B, int D) {
  __shared__ float pool[grn::kWarps * grn::kShortRow];
  grn::backward_rows({d_out, u, s, xhat, rstd, gamma, dy, du, part_rows}, B, D, pool);
}

extern "C" __global__ void __launch_bounds__(grn::kThreads, 2)
    grn_backward_projected_hidden(const float* __restrict__ du, const float* __restrict__ W_b,
                        const float* __restrict__ e, float* __restrict__ da, int B, int H, int D) {
  __shared__ float4 pool[grn::Float32::kQuads];
  grn::hidden_gradient<grn::Float32>(du, W_b, e, da, B, H, D, pool);
}

extern "C" __global__ void __launch_bounds__(grn::kThreads, 2)
    grn_backward_projected_residual(const float* __restrict__ dy, const float* __restrict__ W_res,
                                    float* __restrict__ dx, int B, int D_in, int D) {
  __shared__ float4 pool[grn::Float32::kQuads];
  const trueup::Sizes size = {static_cast<unsigned>(B), static_cast<unsigned>(D_in),
                              static_cast<unsigned>(D)};
  grn::product<grn::Float32, trueup::First::kPlain, trueup::Second::kPlain>(
      dy, W_res, size, blockIdx.x, pool, [=](unsigned row, unsigned column, float sum) {
        dx[static_cast<size_t>(row) * size.n + column] = sum;
      });
}

extern "C" __global__ void __launch_bounds__(grn::kThreads, 2)
    grn_backward_projected_input(const float* __restrict__ da, const float* __restrict__ W_a,
                                 float* __restrict__ dx, int B, int D_in, int H) {
  __shared__ float4 pool[grn::Float32::kQuads];
  const trueup::Sizes size = {static_cast<unsigned>(B), static_cast<unsigned>(D_in),
                              static_cast<unsigned>(H)};
  grn::product<grn::Float32, trueup::First::kPlain, trueup::Second::kPlain>(
      da, W_a, size, blockIdx.x, pool, [=](unsigned row, unsigned column, float sum) {
        dx[static_cast<size_t>(row) * size.n + column] += sum;
      });
}

extern "C" __global__ void __launch_bounds__(grn::kThreads, 2)
    grn_backward_projected_weights(const float* __restrict__ du, const float* __restrict__ e,
                                   const float* __restrict__ da, const float* __restrict__ x,
                                   const float* __restrict__ dy, float* __restrict__ part_b,
                                   float* __restrict__ part_a, float* __restrict__ part_res,
                                   float* __restrict__ part_bias, int B, int D_in, int H, int D) {
  __shared__ float4 pool[grn::Float32::kQuads];
  const unsigned slices = grn::slices_of(B);
  unsigned block = blockIdx.x;
  if (grn::outer_sums<grn::Float32>(du, e, part_b, B, 2 * D, H, slices, block, pool)) return;
  block -= grn::tiles_of<grn::Float32>(2 * D, H) * slices;
  if (grn::outer_sums<grn::Float32>(da, x, part_a, B, H, D_in, slices, block, pool)) return;
  block -= grn::tiles_of<grn::Float32>(H, D_in) * slices;
  if (grn::outer_sums<grn::Float32>(dy, x, part_res, B, D, D_in, slices, block, pool)) return;
  block -= grn::tiles_of<grn::Float32>(D, D_in) * slices;
  grn::column_sums(da, part_bias, B, H, slices, block, reinterpret_cast<float*>(pool));
}

extern "C" __global__ void __launch_bounds__(grn::kThreads)
    grn_backward_projected_sums(const float* __restrict__ part_rows,
                                const float* __restrict__ part_b, const float* __restrict__ part_a,
                                const float* __restrict__ part_res,
                                const float* __restrict__ part_bias, float* __restrict__ dW_a,
                                float* __restrict__ db_a, float* __restrict__ dW_b,
                                float* __restrict__ db_b, float* __restrict__ dgamma,
                                float* __restrict__ dbeta, float* __restrict__ dW_res, int B,
                                int D_in, int H, int D) {
  const unsigned slices = grn::slices_of(B);
  grn::sum_columns(part_rows, dgamma, dbeta, db_b, D, grn::row_blocks_of(B));
  grn::sum_parts(part_b, dW_b, 2 * static_cast<size_t>(D) * H, slices);
  grn::sum_parts(part_a, dW_a, static_cast<size_t>(H) * D_in, slices);
  grn::sum_parts(part_res, dW_res, static_cast<size_t>(D) * D_in, slices);
  grn::sum_parts(part_bias, db_a, H, slices);
}
