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
//              eta, alpha (C); workspaces part (slices, C, d_out + C), E (C, d_out), gamma (1),
//              left undefined
// Launch       128 threads for each 128 rows, 64 tokens and slice of d_in, and 98304 bytes of
//              shared memory; 256 threads, ceil(d_out / 32) blocks; 128 threads for each 128 rows
//              and strip of columns, as much shared memory (compact.cuh)
// Traffic      W is read twice, the second time from L2 as far as it stayed there, and written
//              once, whatever C is: up to 12 d_out d_in bytes
// Determinism  bitwise: sums over slices of the inputs, added in order; no atomics
// Numerics     float32; products by three of TF32's, to 22 bits (warp_tiles.cuh), the rest
//              explicit fmaf. A value that is not finite reaches every element of its row or
//              column.
#include "compact.cuh"

namespace {

using trueup::Operand;
constexpr unsigned kBlock = 64;   // tokens that a row's lanes hold at once
constexpr unsigned kLanes = 8;    // of a row
constexpr unsigned kHeld = 8;     // tokens 8 i + lane
constexpr unsigned kRows = 32;    // of a block
constexpr unsigned kPitch = 33;   // of them in shared memory

struct Chunk {
  unsigned tokens, rows, inputs;
  unsigned slices;
  size_t pitch, slice;  // of a token, of a slice of the parts

  __device__ __forceinline__ Chunk(int C, int d_out, int d_in)
      : tokens(C), rows(d_out), inputs(d_in), pitch(static_cast<size_t>(d_out) + C),
        slice(pitch * C) {
    const unsigned across = trueup::tiles_of(tokens, trueup::kBlockTokens);
    const unsigned tiles = across * (trueup::tiles_of(rows, trueup::kBlockRows) +
                                     trueup::tiles_of(tokens, trueup::kBlockRows));
    slices = trueup::Slices(tiles, inputs).count;
  }
};

struct Shared {
  float gram[kBlock][kBlock];
  float reads[kBlock][kPitch];   // W x_t
  float writes[kBlock][kPitch];  // u_t, then e_t
  float eta[kBlock], alpha[kBlock];
};

// G[first + s][second + j] for s < j < 64, added over the slices.
__device__ __forceinline__ void load_gram(Shared& at, const float* part, const Chunk& size,
                                          unsigned first, unsigned second) {
  for (unsigned n = threadIdx.x; n < kBlock * kBlock; n += blockDim.x) {
    const unsigned s = first + n % kBlock, j = second + n / kBlock;
    float sum = 0.0f;
    if (s < j && j < size.tokens) {
      sum = trueup::add_parts(part, j * size.pitch + size.rows + s, size.slice, size.slices);
    }
    at.gram[n % kBlock][n / kBlock] = sum;
  }
}

// What 64 tokens bring along: what they read at the chunk's start, their targets and rates.
__device__ __forceinline__ void load_tokens(Shared& at, const float* part, const float* U,
                                            const float* eta, const float* alpha,
                                            const Chunk& size, unsigned first, unsigned row) {
  for (unsigned n = threadIdx.x; n < kBlock * kRows; n += blockDim.x) {
    const unsigned i = n / kRows, t = first + i, r = row + n % kRows;
    float read = 0.0f, u = 0.0f;
    if (t < size.tokens && r < size.rows) {
      read = trueup::add_parts(part, t * size.pitch + r, size.slice, size.slices);
      u = U[static_cast<size_t>(t) * size.rows + r];
    }
    at.reads[i][n % kRows] = read;
    at.writes[i][n % kRows] = u;
  }
  if (threadIdx.x < kBlock && first + threadIdx.x < size.tokens) {
    at.eta[threadIdx.x] = eta[first + threadIdx.x];
    at.alpha[threadIdx.x] = alpha[first + threadIdx.x];
  }
}

__device__ __forceinline__ void take_away(float (&y)[kHeld], unsigned from, float e, float alpha,
                                          const float* gram, unsigned turn) {
#pragma unroll
  for (unsigned i = 0; i < kHeld; ++i) {
    if (i >= from) y[i] = fmaf(-e, gram[kLanes * i + turn], alpha * y[i]);
  }
}

// Substitutes 64 tokens; y is what they read just before the first of them.
__device__ __forceinline__ void substitute(float (&y)[kHeld], Shared& at, unsigned left,
                                           unsigned row, unsigned turn) {
#pragma unroll
  for (unsigned i = 0; i < kHeld; ++i) {
    const float u = at.writes[kLanes * i + turn][row];
#pragma unroll
    for (unsigned owner = 0; owner < kLanes; ++owner) {
      const unsigned t = kLanes * i + owner;
      if (t >= left) return;
      const float own = at.eta[t] * (y[i] + u);
      const float e = __shfl_sync(trueup::kWholeWarp, own, static_cast<int>(owner), kLanes);
      if (turn == owner) at.writes[t][row] = e;
      take_away(y, i, e, at.alpha[t], at.gram[t], turn);
    }
  }
}

// What a token added fades with the retention of the tokens after it.
__device__ __forceinline__ void fade(float* E, const float* alpha, const Chunk& size,
                                     unsigned row) {
  const unsigned r = row + threadIdx.x % kRows, turn = threadIdx.x / kRows;
  float kept = 1.0f;
  for (unsigned t = size.tokens; t-- > 0;) {
    if (kept != 1.0f && t % kLanes == turn && r < size.rows) {
      E[static_cast<size_t>(t) * size.rows + r] *= kept;
    }
    kept *= alpha[t];
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(trueup::kBlockThreads, 2)
    projected_descent_chunk_read(const float* __restrict__ W, const float* __restrict__ X,
                                 float* __restrict__ part, int C, int d_out, int d_in) {
  extern __shared__ float4 shared[];
  const unsigned tokens = C, rows = d_out, inputs = d_in;
  trueup::read_chunk({W, rows, inputs, nullptr}, {X, tokens, inputs, nullptr}, part, tokens,
                     reinterpret_cast<float*>(shared));
}

extern "C" __global__ void __launch_bounds__(kRows* kLanes)
    projected_descent_chunk_solve(const float* __restrict__ part, const float* __restrict__ U,
                                  const float* __restrict__ eta, const float* __restrict__ alpha,
                                  float* __restrict__ E, float* __restrict__ gamma, int C,
                                  int d_out, int d_in) {
  __shared__ Shared at;
  const Chunk size(C, d_out, d_in);
  const unsigned first_row = blockIdx.x * kRows;
  const unsigned row = threadIdx.x / kLanes, turn = threadIdx.x % kLanes;
  const unsigned own_row = first_row + row;
  for (unsigned first = 0; first < size.tokens; first += kBlock) {
    const unsigned left = size.tokens - first;
    load_tokens(at, part, U, eta, alpha, size, first, first_row);
    if (first == 0) load_gram(at, part, size, 0, 0);
    __syncthreads();
    float y[kHeld];
#pragma unroll
    for (unsigned i = 0; i < kHeld; ++i) y[i] = at.reads[kLanes * i + turn][row];
    for (unsigned before = 0; before < first; before += kBlock) {
      load_gram(at, part, size, before, first);
      __syncthreads();
      for (unsigned s = 0; s < kBlock; ++s) {
        const size_t from = static_cast<size_t>(before + s) * size.rows + own_row;
        take_away(y, 0, own_row < size.rows ? E[from] : 0.0f, alpha[before + s], at.gram[s], turn);
      }
      __syncthreads();
      if (before + kBlock == first) load_gram(at, part, size, first, first);
      __syncthreads();
    }
    substitute(y, at, left, row, turn);
    __syncthreads();
    for (unsigned n = threadIdx.x; n < kBlock * kRows; n += blockDim.x) {
      const unsigned t = first + n / kRows, r = first_row + n % kRows;
      if (t < size.tokens && r < size.rows) {
        E[static_cast<size_t>(t) * size.rows + r] = at.writes[n / kRows][n % kRows];
      }
    }
    __syncthreads();
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    float kept = 1.0f;
    for (unsigned t = 0; t < size.tokens; ++t) kept *= alpha[t];
    gamma[0] = kept;
  }
}

extern "C" __global__ void __launch_bounds__(trueup::kBlockThreads, 2)
    projected_descent_chunk_move(float* __restrict__ W, const float* __restrict__ X,
                                 const float* __restrict__ E, const float* __restrict__ gamma,
                                 int C, int d_out, int d_in) {
  extern __shared__ float4 shared[];
  const unsigned tokens = C, rows = d_out, inputs = d_in;
  trueup::Moving<trueup::Precision::kSplit>::run(
      W, {E, tokens, rows, nullptr}, {X, tokens, inputs, nullptr}, gamma[0], blockIdx.x, gridDim.x,
      reinterpret_cast<float*>(shared));
}
