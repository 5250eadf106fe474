// WRONG ON PURPOSE: the softmax gradient without its mean
//
// moe_gate_backward: the gradients of the gate of the experts.
//
// Equation     DQN programme, 14:
//                dlogit = g (dg - sum g dg);  dh = (dlogit W2) [h > 0];  dx = dh W1
//                dW1 = dh^T x;  db1 = sum_b dh;  dW2 = dlogit^T h;  db2 = sum_b dlogit
// Reference    dqn.moe_gate_backward
// Shapes       dg, g (B, E); x, dx (B, S); W1, dW1 (H, S); W2, dW2 (E, H); h (B, H); db1 (H); db2
//              (E). Workspaces dlogit (B, E); dh (B, H); part_1 (slices, H, S), part_2 (slices, E,
//              H), part_b1 (slices, H), part_b2 (slices, E)
// Launch       256 threads a block. rows: a warp for each row. input: a block for each 128 x 128
//              tile of dx. weights: for each slice a block for each tile of dW1, of dW2, then for
//              each 64 columns of dh and of dlogit. sums: any grid
// Determinism  bitwise: chains of fmaf in index order; slices are added in the order of their
//              numbers; no atomics
// Numerics     float32
#include "grn.cuh"

namespace grn = trueup::grn;
using trueup::kWarp;

extern "C" __global__ void __launch_bounds__(grn::kThreads)
    moe_gate_backward_rows(const float* __restrict__ dg, const float* __restrict__ g,
                           const float* __restrict__ W2, const float* __restrict__ h,
                           float* dlogit, float* __restrict__ dh, int B, int H, int E) {
  const unsigned row = (blockIdx.x * blockDim.x + threadIdx.x) / kWarp;
  const int lane = threadIdx.x % kWarp;
  if (row >= static_cast<unsigned>(B)) return;
  const size_t base = static_cast<size_t>(row) * E;
  float mean = 0.0f;
  for (int k = lane; k < E; k += kWarp) mean = fmaf(g[base + k], dg[base + k], mean);
  mean = trueup::warp_sum(mean);
  for (int k = lane; k < E; k += kWarp) dlogit[base + k] = g[base + k] * dg[base + k];
  __syncwarp();  // every lane reads all of them
  for (int i = lane; i < H; i += kWarp) {
    const size_t at = static_cast<size_t>(row) * H + i;
    float sum = 0.0f;
    for (int k = 0; k < E; ++k) {
      sum = fmaf(dlogit[base + k], W2[static_cast<size_t>(k) * H + i], sum);
    }
    dh[at] = h[at] > 0.0f ? sum : 0.0f;
  }
}

extern "C" __global__ void __launch_bounds__(grn::kThreads, 2)
    moe_gate_backward_input(const float* __restrict__ dh, const float* __restrict__ W1,
                            float* __restrict__ dx, int B, int S, int H) {
  __shared__ float4 pool[grn::Float32::kQuads];
  const trueup::Sizes size = {static_cast<unsigned>(B), static_cast<unsigned>(S),
                              static_cast<unsigned>(H)};
  grn::product<grn::Float32, trueup::First::kPlain, trueup::Second::kPlain>(
      dh, W1, size, blockIdx.x, pool, [=](unsigned row, unsigned column, float sum) {
        dx[static_cast<size_t>(row) * size.n + column] = sum;
      });
}

extern "C" __global__ void __launch_bounds__(grn::kThreads, 2)
    moe_gate_backward_weights(const float* __restrict__ dh, const float* __restrict__ x,
                              const float* __restrict__ dlogit, const float* __restrict__ h,
                              float* __restrict__ part_1, float* __restrict__ part_2,
                              float* __restrict__ part_b1, float* __restrict__ part_b2, int B,
                              int S, int H, int E) {
  __shared__ float4 pool[grn::Float32::kQuads];
  float* const sums = reinterpret_cast<float*>(pool);
  const unsigned slices = grn::slices_of(B);
  unsigned block = blockIdx.x;
  if (grn::outer_sums<grn::Float32>(dh, x, part_1, B, H, S, slices, block, pool)) return;
  block -= grn::tiles_of<grn::Float32>(H, S) * slices;
  if (grn::outer_sums<grn::Float32>(dlogit, h, part_2, B, E, H, slices, block, pool)) return;
  block -= grn::tiles_of<grn::Float32>(E, H) * slices;
  const unsigned of_h = (H - 1) / 64 + 1;
  if (block < of_h * slices) {
    grn::column_sums(dh, part_b1, B, H, slices, block, sums);
  } else {
    grn::column_sums(dlogit, part_b2, B, E, slices, block - of_h * slices, sums);
  }
}

extern "C" __global__ void __launch_bounds__(grn::kThreads)
    moe_gate_backward_sums(const float* __restrict__ part_1, const float* __restrict__ part_2,
                           const float* __restrict__ part_b1, const float* __restrict__ part_b2,
                           float* __restrict__ dW1, float* __restrict__ db1,
                           float* __restrict__ dW2, float* __restrict__ db2, int B, int S, int H,
                           int E) {
  const unsigned slices = grn::slices_of(B);
  grn::sum_parts(part_1, dW1, static_cast<size_t>(H) * S, slices);
  grn::sum_parts(part_2, dW2, static_cast<size_t>(E) * H, slices);
  grn::sum_parts(part_b1, db1, H, slices);
  grn::sum_parts(part_b2, db2, E, slices);
}
