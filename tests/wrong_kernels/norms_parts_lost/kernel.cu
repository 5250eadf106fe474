// WRONG ON PURPOSE: parts beyond the second are left out
//
// grad_norms_blocked: L2 norms of four gradients over two slices, in an order of its own.
//
// Equation     DQN programme, gradient decomposition:
//                norms[2 c + s] = sqrt(sum over slice s of g[c]^2)
// Reference    dqn.grad_norms. The bits are not those of the programme's fixed order, whose sums
//              cannot be split (`grad_norms` keeps it): here 66 blocks share a norm, so that its
//              time is that of its bytes whatever the lengths of the slices
// Shapes       g (4, n) row-major; slices (2, 2) int, [start, end) in elements; norms (8);
//              workspace parts (8, 66)
// Launch       first: 66 blocks for each of 8 norms, 256 threads each. Block b of a norm takes
//              every 66th run of 1024 elements from the b-th on, four neighbours a thread.
//              Then 8 blocks of 96 threads, one a norm
// Traffic      the slices are read once: 4 bytes an element
// Determinism  bitwise: both launches have one order, wherever the slice lies in memory
// Numerics     float32; squares are fused into their sums; root correctly rounded
#include "common.cuh"

namespace {

constexpr unsigned kBlocks = 66;  // that share a norm
constexpr unsigned kThreads = 256;
constexpr unsigned kAhead = 8;  // reads of a thread that are on the way together

__device__ __forceinline__ float4 four_of(const float* slice, size_t at, size_t length,
                                          bool aligned) {
  if (aligned && at + 4 <= length) {
    return trueup::load<trueup::Reuse::kOnce>(reinterpret_cast<const float4*>(slice + at));
  }
  float4 v = {0.0f, 0.0f, 0.0f, 0.0f};
  if (at < length) v.x = slice[at];
  if (at + 1 < length) v.y = slice[at + 1];
  if (at + 2 < length) v.z = slice[at + 2];
  if (at + 3 < length) v.w = slice[at + 3];
  return v;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256)
    grad_norms_blocked_parts(const float* __restrict__ g, const int* __restrict__ slices,
                             float* __restrict__ parts, int n) {
  __shared__ float slots[32];
  const unsigned norm = blockIdx.x / kBlocks;
  const size_t start = static_cast<size_t>(slices[norm % 2 * 2]);
  const size_t end = static_cast<size_t>(slices[norm % 2 * 2 + 1]);
  const float* const slice = g + norm / 2 * static_cast<size_t>(n) + start;
  const size_t length = end > start ? end - start : 0;
  const bool aligned = trueup::aligned16(slice);
  constexpr size_t kStride = 4 * kThreads * kBlocks;
  size_t at = 4 * (blockIdx.x % kBlocks * kThreads + threadIdx.x);
  float sum = 0.0f;
  if (aligned) {
    for (; at + (kAhead - 1) * kStride + 4 <= length; at += kAhead * kStride) {
      float4 q[kAhead];
#pragma unroll
      for (unsigned k = 0; k < kAhead; ++k) {
        q[k] = trueup::load<trueup::Reuse::kOnce>(
            reinterpret_cast<const float4*>(slice + at + k * kStride));
      }
#pragma unroll
      for (unsigned k = 0; k < kAhead; ++k) sum = trueup::dot_quad(q[k], q[k], sum);
    }
  }
  for (; at < length; at += kStride) {
    const float4 q = four_of(slice, at, length, aligned);
    sum = trueup::dot_quad(q, q, sum);
  }
  sum = trueup::block_sum(sum, slots);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

extern "C" __global__ void __launch_bounds__(96)
    grad_norms_blocked_sums(const float* __restrict__ parts, float* __restrict__ norms) {
  __shared__ float slots[32];
  const float part = threadIdx.x < 2 ? parts[blockIdx.x * kBlocks + threadIdx.x] : 0.0f;
  const float sum = trueup::block_sum(part, slots);
  if (threadIdx.x == 0) norms[blockIdx.x] = __fsqrt_rn(sum);
}
