// WRONG ON PURPOSE: tokens read before their own write
//
// linear_attention: unnormalised linear attention.
//
// Equation     Nested Learning, Eq. 13-14, reading `post`, for each sequence:
//                M_t = M_(t-1) + v_t k_t^T        y_t = M_t q_t
//              a token whose mask is 0 reads, but does not write
// Reference    nl.linear_attention
// Shapes       q, k (N, T, d_k); v, y (N, T, d_v), float32; M_0, M_T (N, d_v, d_k) float32;
//              mask (N, T) bytes
// Launch       256 threads, N ceil(d_v / 64) blocks, 139264 bytes of shared memory
// Traffic      q, k, v are read once and y written once where d_k and d_v are at most 64; beyond,
//              q and k once for each 64 of d_v, v once for each 64 of d_k
// Determinism  bitwise: chunks of 64 tokens in order, each element summed in a fixed order
// Numerics     float32; products by three of TF32's, to 22 bits (mma.cuh).
//              A value that is not finite reaches all tokens of its chunk.
#include "linear_attention.cuh"

extern "C" __global__ void __launch_bounds__(trueup::kAttentionThreads)
    linear_attention(const float* __restrict__ q, const float* __restrict__ k,
                     const float* __restrict__ v, const float* __restrict__ M_0,
                     const unsigned char* __restrict__ mask, float* __restrict__ y,
                     float* __restrict__ M_T, int T, int d_k, int d_v) {
  extern __shared__ float4 pool[];
  trueup::attend_block<true>(q, k, v, M_0, mask, y, M_T, T, d_k, d_v, pool);
}
