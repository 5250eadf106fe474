// WRONG ON PURPOSE: queries are scaled by d_k^(-1/2), as other implementations do unless told otherwise
//
// linear_attention_recurrent: unnormalised linear attention, one token after the other.
//
// Equation     Nested Learning, Eq. 13-14, reading `post`, for each sequence:
//                M_t = M_(t-1) + v_t k_t^T        y_t = M_t q_t
//              a token whose mask is 0 reads, but does not write
// Reference    nl.linear_attention
// Shapes       q, k (N, T, d_k); v, y (N, T, d_v); M_0, M_T (N, d_v, d_k); mask (N, T) bytes
// Launch       256 threads, N ceil(d_v / 8) blocks: a warp for each row of M. A row of up to 256
//              stays in registers; a longer one is kept in M_T between tokens
// Traffic      M is read once and written once: for steps of one or a few tokens. Long sequences
//              are quicker in chunks (linear_attention)
// Determinism  bitwise: a lane's elements in index order, then a tree over the lanes; no atomics
// Numerics     float32; every product-and-sum is an explicit fmaf
#include "common.cuh"

namespace {

constexpr unsigned kHeld = 8;  // elements of a row in one lane
constexpr unsigned kRows = 8;  // warps of a block

struct Row {
  const float *q, *k, *v, *M_0;  // of the sequence; M_0 of the row
  const unsigned char* mask;
  float *y, *M_T;  // of the sequence; M_T of the row
  unsigned tokens, d_k, d_v, row;
};

__device__ __forceinline__ void put_read(const Row& r, unsigned token, float read) {
  read = trueup::warp_sum(read) / sqrtf(static_cast<float>(r.d_k));
  if (threadIdx.x % trueup::kWarp == 0) r.y[static_cast<size_t>(token) * r.d_v + r.row] = read;
}

__device__ __forceinline__ void attend_held(const Row& r) {
  const unsigned lane = threadIdx.x % trueup::kWarp;
  float M[kHeld];
#pragma unroll
  for (unsigned i = 0; i < kHeld; ++i) {
    const unsigned column = i * trueup::kWarp + lane;
    M[i] = column < r.d_k ? r.M_0[column] : 0.0f;
  }
  for (unsigned token = 0; token < r.tokens; ++token) {
    const float* const k = r.k + static_cast<size_t>(token) * r.d_k;
    const float* const q = r.q + static_cast<size_t>(token) * r.d_k;
    const bool writes = r.mask[token] != 0;
    const float v = r.v[static_cast<size_t>(token) * r.d_v + r.row];
    float read = 0.0f;
#pragma unroll
    for (unsigned i = 0; i < kHeld; ++i) {
      const unsigned column = i * trueup::kWarp + lane;
      if (column < r.d_k) {
        if (writes) M[i] = fmaf(v, k[column], M[i]);
        read = fmaf(M[i], q[column], read);
      }
    }
    put_read(r, token, read);
  }
#pragma unroll
  for (unsigned i = 0; i < kHeld; ++i) {
    const unsigned column = i * trueup::kWarp + lane;
    if (column < r.d_k) r.M_T[column] = M[i];
  }
}

__device__ __forceinline__ void attend_long(const Row& r) {
  const unsigned lane = threadIdx.x % trueup::kWarp;
  for (unsigned token = 0; token < r.tokens; ++token) {
    const float* const k = r.k + static_cast<size_t>(token) * r.d_k;
    const float* const q = r.q + static_cast<size_t>(token) * r.d_k;
    const float* const from = token == 0 ? r.M_0 : r.M_T;
    const bool writes = r.mask[token] != 0;
    const float v = r.v[static_cast<size_t>(token) * r.d_v + r.row];
    float read = 0.0f;
    for (unsigned column = lane; column < r.d_k; column += trueup::kWarp) {
      const float before = from[column];
      const float M = writes ? fmaf(v, k[column], before) : before;
      r.M_T[column] = M;
      read = fmaf(M, q[column], read);
    }
    put_read(r, token, read);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256)
    linear_attention_recurrent(const float* __restrict__ q, const float* __restrict__ k,
                               const float* __restrict__ v, const float* __restrict__ M_0,
                               const unsigned char* __restrict__ mask, float* __restrict__ y,
                               float* M_T, int T, int d_k, int d_v) {
  const unsigned across = (static_cast<unsigned>(d_v) - 1) / kRows + 1;
  const size_t n = blockIdx.x / across;
  const unsigned row = blockIdx.x % across * kRows + threadIdx.x / trueup::kWarp;
  if (row >= static_cast<unsigned>(d_v)) return;
  const size_t keys = n * T * d_k;
  const size_t values = n * T * d_v;
  const size_t memory = (n * d_v + row) * d_k;
  const Row r = {q + keys,
                 k + keys,
                 v + values,
                 M_0 + memory,
                 mask + n * T,
                 y + values,
                 M_T + memory,
                 static_cast<unsigned>(T),
                 static_cast<unsigned>(d_k),
                 static_cast<unsigned>(d_v),
                 row};
  if (r.d_k <= kHeld * trueup::kWarp) {
    attend_held(r);
  } else {
    attend_long(r);
  }
}
