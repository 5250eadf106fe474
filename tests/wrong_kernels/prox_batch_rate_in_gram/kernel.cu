// WRONG ON PURPOSE: the system is I + X X^T: the rate is missing from it
//
// projected_descent_batch_prox: the exact minimiser of the L2 inner objective over a batch.
//
// Equation     Nested Learning, Eq. 27-29, reading `prox`, batch reduction `sum`; samples are the
//              rows of X and U here:
//                W' = (W - eta U^T X) (I + eta X^T X)^-1
//              in the samples, by Woodbury: W' = W - E^T X with
//                (I + eta X X^T) E = eta (X W^T + U)
//              computed as Y = X W^T and G = X X^T (first launch), I + eta G = L D L^T (second),
//              E by forward and backward substitution (third), W' (fourth)
// Reference    nl.projected_descent_batch
// Shapes       W (d_out, d_in) row-major, updated in place; X (B, d_in); U (B, d_out); workspaces
//              part (slices, B, d_out + B), L (B, B), E (B, d_out), left undefined
// Launch       128 threads for each 128 rows, 64 samples and slice of d_in, and 98304 bytes of
//              shared memory; 256 threads, one block; 64 threads, ceil(d_out / 64) blocks; 128
//              threads for each 128 rows and strip of columns, as much shared memory (compact.cuh)
// Traffic      W is read twice, the second time from L2 as far as it stayed there, and written
//              once: up to 12 d_out d_in bytes
// Determinism  bitwise: every sum runs in index order; no atomics
// Numerics     float32; products by three of TF32's, to 22 bits (warp_tiles.cuh), the rest
//              explicit fmaf. A value that is not finite reaches every element of its row or
//              column.
#include "compact.cuh"

namespace {

struct Chunk {
  unsigned tokens, rows, inputs;
  __device__ __forceinline__ Chunk(int B, int d_out, int d_in)
      : tokens(B), rows(d_out), inputs(d_in) {}
};

// What the reading launch left at (sample, column), added over the slices.
__device__ __forceinline__ float read_at(const float* part, const Chunk& size, unsigned sample,
                                         unsigned column) {
  const size_t pitch = static_cast<size_t>(size.rows) + size.tokens;
  const unsigned across = trueup::tiles_of(size.tokens, trueup::kBlockTokens);
  const unsigned tiles = across * (trueup::tiles_of(size.rows, trueup::kBlockRows) +
                                   trueup::tiles_of(size.tokens, trueup::kBlockRows));
  return trueup::add_parts(part, sample * pitch + column, size.tokens * pitch,
                           trueup::Slices(tiles, size.inputs).count);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(trueup::kBlockThreads, 2)
    projected_descent_batch_prox_read(const float* __restrict__ W, const float* __restrict__ X,
                                      float* __restrict__ part, int B, int d_out, int d_in) {
  extern __shared__ float4 shared[];
  const unsigned samples = B, rows = d_out, inputs = d_in;
  trueup::read_chunk({W, rows, inputs, nullptr}, {X, samples, inputs, nullptr}, part, samples,
                     reinterpret_cast<float*>(shared));
}

// Leaves D on the diagonal of L and the factors below it.
extern "C" __global__ void __launch_bounds__(256)
    projected_descent_batch_prox_factor(const float* __restrict__ part, float* L, float eta, int B,
                                        int d_out, int d_in) {
  const Chunk size(B, d_out, d_in);
  const unsigned n = size.tokens;
  for (unsigned at = threadIdx.x; at < n * n; at += blockDim.x) {
    const unsigned i = at / n;
    const unsigned j = at % n;
    L[at] = fmaf(1.0f, read_at(part, size, i, size.rows + j), i == j ? 1.0f : 0.0f);
  }
  __syncthreads();
  for (unsigned k = 0; k < n; ++k) {
    const float inverse = 1.0f / L[k * n + k];
    const unsigned below = n - 1 - k;
    for (unsigned at = threadIdx.x; at < below * below; at += blockDim.x) {
      const unsigned i = k + 1 + at / below;
      const unsigned j = k + 1 + at % below;
      if (j <= i) L[i * n + j] = fmaf(-L[i * n + k] * inverse, L[j * n + k], L[i * n + j]);
    }
    __syncthreads();
    // Column k is not read again, so the next column need not wait for this.
    for (unsigned i = k + 1 + threadIdx.x; i < n; i += blockDim.x) L[i * n + k] *= inverse;
  }
}

extern "C" __global__ void __launch_bounds__(64)
    projected_descent_batch_prox_solve(const float* __restrict__ part, const float* __restrict__ U,
                                       const float* __restrict__ L, float* E, float eta, int B,
                                       int d_out, int d_in) {
  const Chunk size(B, d_out, d_in);
  const unsigned n = size.tokens;
  const unsigned row = blockIdx.x * 64 + threadIdx.x;
  if (row >= size.rows) return;
  float* const e = E + row;  // of this thread alone, a sample every d_out
  for (unsigned t = 0; t < n; ++t) {
    const size_t at = static_cast<size_t>(t) * size.rows;
    float left = read_at(part, size, t, row) + U[at + row];
    for (unsigned s = 0; s < t; ++s) {
      left = fmaf(-L[t * n + s], e[static_cast<size_t>(s) * size.rows], left);
    }
    e[at] = left;
  }
  for (unsigned t = n; t-- > 0;) {
    float* const own = e + static_cast<size_t>(t) * size.rows;
    float left = eta * *own / L[t * n + t];
    for (unsigned s = t + 1; s < n; ++s) {
      left = fmaf(-L[s * n + t], e[static_cast<size_t>(s) * size.rows], left);
    }
    *own = left;
  }
}

extern "C" __global__ void __launch_bounds__(trueup::kBlockThreads, 2)
    projected_descent_batch_prox_move(float* __restrict__ W, const float* __restrict__ X,
                                      const float* __restrict__ E, int B, int d_out, int d_in) {
  extern __shared__ float4 shared[];
  const unsigned samples = B, rows = d_out, inputs = d_in;
  trueup::Moving<trueup::Precision::kSplit>::run(
      W, {E, samples, rows, nullptr}, {X, samples, inputs, nullptr}, 1.0f, blockIdx.x, gridDim.x,
      reinterpret_cast<float*>(shared));
}
