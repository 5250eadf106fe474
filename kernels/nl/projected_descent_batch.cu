// projected_descent_batch: gradient descent with an L2 inner objective, over a batch at once.
//
// Equation     Nested Learning, Eq. 27-29, reading `derived`, batch reduction `sum`; samples are
//              the rows of X and U here:
//                W' = W - eta (W X^T + U^T) X
//              computed as Y = X W^T (first launch), E = eta (Y + U) (second), W' = W - E^T X
//              (third)
// Reference    nl.projected_descent_batch
// Shapes       W (d_out, d_in) row-major, updated in place; X (B, d_in); U (B, d_out);
//              workspace part (slices, B, d_out), left undefined; E takes the place of its first
//              slice
// Launch       128 threads for each 128 rows, 64 samples and slice of d_in, and 98304 bytes of
//              shared memory; 256 threads, an element each; 128 threads for each 128 rows and
//              strip of columns, as much shared memory (compact.cuh)
// Traffic      W is read twice, the second time from L2 as far as it stayed there, and written
//              once: up to 12 d_out d_in bytes
// Determinism  bitwise: sums over slices of the inputs, added in order; no atomics
// Numerics     float32; products by three of TF32's (warp_tiles.cuh), W' = fmaf(1, W, -E^T X)
#include "compact.cuh"

using trueup::Operand;

extern "C" __global__ void __launch_bounds__(trueup::kBlockThreads, 2)
    projected_descent_batch_read(const float* __restrict__ W, const float* __restrict__ X,
                                 float* __restrict__ part, int B, int d_out, int d_in) {
  extern __shared__ float4 shared[];
  const unsigned samples = B, rows = d_out, inputs = d_in;
  trueup::read_chunk({W, rows, inputs, nullptr}, {X, samples, inputs, nullptr}, part, 0,
                     reinterpret_cast<float*>(shared));
}

extern "C" __global__ void __launch_bounds__(256)
    projected_descent_batch_residual(float* part, const float* __restrict__ U, float eta, int B,
                                     int d_out, int d_in) {
  const size_t all = static_cast<size_t>(B) * d_out;
  const size_t at = static_cast<size_t>(blockIdx.x) * 256 + threadIdx.x;
  if (at >= all) return;
  const unsigned tiles = trueup::tiles_of(B, trueup::kBlockTokens) *
                         trueup::tiles_of(d_out, trueup::kBlockRows);
  const trueup::Slices slices(tiles, d_in);
  part[at] = eta * (trueup::add_parts(part, at, all, slices.count) + U[at]);
}

extern "C" __global__ void __launch_bounds__(trueup::kBlockThreads, 2)
    projected_descent_batch_move(float* __restrict__ W, const float* __restrict__ X,
                                 const float* __restrict__ E, int B, int d_out, int d_in) {
  extern __shared__ float4 shared[];
  const unsigned samples = B, rows = d_out, inputs = d_in;
  trueup::Moving<trueup::Precision::kSplit>::run(
      W, {E, samples, rows, nullptr}, {X, samples, inputs, nullptr}, 1.0f, blockIdx.x, gridDim.x,
      reinterpret_cast<float*>(shared));
}
