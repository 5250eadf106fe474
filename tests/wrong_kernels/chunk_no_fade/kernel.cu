// WRONG ON PURPOSE: what a token wrote does not fade with the retention of the tokens after it
//
// projected_descent_chunk: gradient descent with an L2 inner objective, token by token.
//
// Equation     Nested Learning, Eq. 27-29, reading `derived`, for t = 1..C in order:
//                W <- alpha_t W - eta_t (W x_t + u_t) x_t^T
//              computed in the compact form: Y = X W^T and G = X X^T at the chunk's start (first
//              launch); forward substitution for what each token adds (second),
//                e_t = eta_t (y_t + u_t),  then y_s <- alpha_t y_s - G_ts e_t for the later s;
//              W' = gamma W - E^T X, gamma the product of all alpha (third)
// Reference    nl.projected_descent_chunk
// Shapes       W (d_out, d_in) row-major, updated in place; X (C, d_in); U (C, d_out);
//              eta, alpha (C); workspaces part (ceil(d_in / 512), C, d_out + C), E (C, d_out),
//              gamma (1), left undefined
// Launch       128 threads, ceil(C / 64) (ceil(d_out / 64) + ceil(C / 64)) ceil(d_in / 512)
//              blocks; 256 threads, ceil(d_out / 64) blocks; 128 threads,
//              ceil(d_out / 64) ceil(d_in / 64) blocks
// Traffic      W is read twice and written once, whatever C is: 12 d_out d_in bytes
// Determinism  bitwise: sums over slices of 512 inputs, added in order; no atomics
// Numerics     float32; products by three of TF32's, to 22 bits (mma.cuh), the rest explicit
//              fmaf. A value that is not finite reaches every element of its row or column.
#include "compact.cuh"

namespace {

using trueup::Chunk;
constexpr unsigned kBlock = 64;  // tokens whose reads a quad of lanes holds
constexpr unsigned kHeld = 16;   // of them, in one lane: tokens 4 i + lane

// G[first + s][second + j] for s, j < 64, added over the slices.
__device__ __forceinline__ void load_gram(float (*gram)[kBlock], const float* part,
                                          const Chunk& size, unsigned slices, unsigned first,
                                          unsigned second) {
  const size_t pitch = static_cast<size_t>(size.rows) + size.tokens;
  for (unsigned at = threadIdx.x; at < kBlock * kBlock; at += blockDim.x) {
    const unsigned s = first + at % kBlock;
    const unsigned j = second + at / kBlock;
    float sum = 0.0f;
    if (s < j && j < size.tokens) {
      const float* from = part + j * pitch + size.rows + s;
      for (unsigned slice = 0; slice < slices; ++slice, from += size.tokens * pitch) sum += *from;
    }
    gram[at % kBlock][at / kBlock] = sum;
  }
}

__device__ __forceinline__ void take_away(float (&y)[kHeld], unsigned from, float e, float alpha,
                                          const float* gram, unsigned turn) {
#pragma unroll
  for (unsigned i = 0; i < kHeld; ++i) {
    if (i >= from) y[i] = fmaf(-e, gram[4 * i + turn], alpha * y[i]);
  }
}

// The reads of a block of tokens at the chunk's start: W x_t of one row.
__device__ __forceinline__ void load_reads(float (&y)[kHeld], float (&u)[kHeld], const float* part,
                                           const float* U, const Chunk& size, unsigned slices,
                                           unsigned first, unsigned row, unsigned turn) {
  const size_t pitch = static_cast<size_t>(size.rows) + size.tokens;
#pragma unroll
  for (unsigned i = 0; i < kHeld; ++i) {
    const unsigned t = first + 4 * i + turn;
    y[i] = u[i] = 0.0f;
    if (t >= size.tokens || row >= size.rows) continue;
    u[i] = U[static_cast<size_t>(t) * size.rows + row];
    const float* from = part + t * pitch + row;
    for (unsigned slice = 0; slice < slices; ++slice, from += size.tokens * pitch) y[i] += *from;
  }
}

// Substitutes one block of 64 tokens; y is what its tokens read just before the first of them.
__device__ __forceinline__ void substitute(float (&y)[kHeld], const float (&u)[kHeld], float* E,
                                           const float* eta, const float* alpha,
                                           float (*gram)[kBlock], const Chunk& size,
                                           unsigned first, unsigned row, unsigned turn) {
#pragma unroll
  for (unsigned i = 0; i < kHeld; ++i) {
#pragma unroll
    for (unsigned owner = 0; owner < 4; ++owner) {
      const unsigned t = first + 4 * i + owner;
      if (t >= size.tokens) return;
      const float own = eta[t] * (y[i] + u[i]);
      const float e = __shfl_sync(trueup::kWholeWarp, own, static_cast<int>(owner), 4);
      if (turn == owner && row < size.rows) E[static_cast<size_t>(t) * size.rows + row] = e;
      take_away(y, i, e, alpha[t], gram[4 * i + owner], turn);
    }
  }
}

// What a token added fades with the retention of the tokens after it.
__device__ __forceinline__ void fade(float* E, const float* alpha, const Chunk& size, unsigned row,
                                     unsigned turn) {
  float kept = 1.0f;
  for (unsigned t = size.tokens; t-- > 0;) {
    if (kept != 1.0f && t % 4 == turn && row < size.rows) {
      E[static_cast<size_t>(t) * size.rows + row] *= kept;
    }
    kept *= alpha[t];
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(trueup::Reading::kThreads, 3)
    projected_descent_chunk_read(const float* __restrict__ W, const float* __restrict__ X,
                                 float* __restrict__ part, int C, int d_out, int d_in) {
  __shared__ float4 pool4[trueup::Reading::kShared / 4];
  float* const pool = reinterpret_cast<float*>(pool4);
  const Chunk size = {static_cast<unsigned>(C), static_cast<unsigned>(d_out),
                      static_cast<unsigned>(d_in)};
  if (size.inputs % 4 == 0 && trueup::aligned16(W) && trueup::aligned16(X)) {
    trueup::read_chunk<true>(W, X, part, size, size.tokens, pool);
  } else {
    trueup::read_chunk<false>(W, X, part, size, size.tokens, pool);
  }
}

extern "C" __global__ void __launch_bounds__(256, 2)
    projected_descent_chunk_solve(const float* __restrict__ part, const float* __restrict__ U,
                                  const float* __restrict__ eta, const float* __restrict__ alpha,
                                  float* __restrict__ E, float* __restrict__ gamma, int C,
                                  int d_out, int d_in) {
  __shared__ float gram[kBlock][kBlock];
  const Chunk size = {static_cast<unsigned>(C), static_cast<unsigned>(d_out),
                      static_cast<unsigned>(d_in)};
  const unsigned slices = (size.inputs - 1) / trueup::Reading::kSlice + 1;
  const unsigned row = blockIdx.x * 64 + threadIdx.x / 4;
  const unsigned turn = threadIdx.x % 4;
  for (unsigned first = 0; first < size.tokens; first += kBlock) {
    float y[kHeld];
    float u[kHeld];
    load_reads(y, u, part, U, size, slices, first, row, turn);
    for (unsigned before = 0; before < first; before += kBlock) {
      load_gram(gram, part, size, slices, before, first);
      __syncthreads();
      for (unsigned s = 0; s < kBlock; ++s) {
        const size_t at = static_cast<size_t>(before + s) * size.rows + row;
        const float own = row < size.rows && s % 4 == turn ? E[at] : 0.0f;  // as it was written
        const float e = __shfl_sync(trueup::kWholeWarp, own, static_cast<int>(s % 4), 4);
        take_away(y, 0, e, alpha[before + s], gram[s], turn);
      }
      __syncthreads();
    }
    load_gram(gram, part, size, slices, first, first);
    __syncthreads();
    substitute(y, u, E, eta, alpha, gram, size, first, row, turn);
    __syncthreads();
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    float kept = 1.0f;
    for (unsigned t = 0; t < size.tokens; ++t) kept *= alpha[t];
    gamma[0] = kept;
  }
}

extern "C" __global__ void __launch_bounds__(trueup::Moving::kThreads, 3)
    projected_descent_chunk_move(float* __restrict__ W, const float* __restrict__ X,
                                 const float* __restrict__ E, const float* __restrict__ gamma,
                                 int C, int d_out, int d_in) {
  __shared__ float4 pool4[trueup::Moving::kShared / 4];
  float* const pool = reinterpret_cast<float*>(pool4);
  const Chunk size = {static_cast<unsigned>(C), static_cast<unsigned>(d_out),
                      static_cast<unsigned>(d_in)};
  if (size.inputs % 4 == 0 && size.rows % 4 == 0 && trueup::aligned16(W) &&
      trueup::aligned16(X) && trueup::aligned16(E)) {
    trueup::move_chunk<true>(W, X, E, gamma[0], size, pool);
  } else {
    trueup::move_chunk<false>(W, X, E, gamma[0], size, pool);
  }
}
