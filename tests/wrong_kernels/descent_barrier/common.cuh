// common.cuh: what several kernels need: sums in a fixed order, and a row seen as quads.
//
// A block (or a group of `width` neighbouring threads in it) reads a row of n elements as quads.
// kVector: quad q of thread t is the four neighbours from 4 (q width + t), one 16-byte access;
// the row must be 16-byte aligned and n a multiple of 4. Otherwise: four elements, `width` apart,
// from 4 q width + t. Either way a warp's accesses are neighbours, elements beyond n read as 0
// and are never stored, and no address beyond the row is touched.
#pragma once

namespace trueup {

constexpr unsigned kWholeWarp = 0xffffffffu;
constexpr unsigned kWarp = 32;

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(kWholeWarp, value, offset);
  }
  return value;  // the same bits in every lane: each step adds the same two numbers in both
}

// Sum over the block, to every thread; blockDim.x is a multiple of 32. One barrier: the caller
// hands over other `slots` (32 floats, shared) in the next call, so that no one overwrites what
// a slower warp still reads.
__device__ __forceinline__ float block_sum(float value, float* slots) {
  const unsigned lane = threadIdx.x % kWarp;
  value = warp_sum(value);
  if (lane == 0) slots[threadIdx.x / kWarp] = value;
  return warp_sum(lane < blockDim.x / kWarp ? slots[lane] : 0.0f);
}

__device__ __forceinline__ bool aligned16(const void* p) {
  return reinterpret_cast<size_t>(p) % 16 == 0;
}

// What is touched once goes past the caches (evict first), what all blocks share stays in them.
enum class Reuse { kOnce, kShared };

template <Reuse kReuse, class T>
__device__ __forceinline__ T load(const T* p) {
#ifdef __CUHOST__
  return *p;
#else
  if constexpr (kReuse == Reuse::kOnce) {
    return __ldcs(p);
  } else {
    return *p;
  }
#endif
}

template <class T>
__device__ __forceinline__ void store_once(T* p, T value) {
#ifdef __CUHOST__
  *p = value;
#else
  __stcs(p, value);
#endif
}

template <bool kVector, Reuse kReuse>
__device__ __forceinline__ float4 load_quad(const float* row, unsigned n, unsigned quad,
                                            unsigned thread, unsigned width) {
  float4 v = {0.0f, 0.0f, 0.0f, 0.0f};
  if constexpr (kVector) {
    const unsigned i = 4 * (quad * width + thread);
    if (i < n) v = load<kReuse>(reinterpret_cast<const float4*>(row + i));
  } else {
    unsigned i = 4 * quad * width + thread;
    if (i < n) v.x = load<kReuse>(row + i);
    if ((i += width) < n) v.y = load<kReuse>(row + i);
    if ((i += width) < n) v.z = load<kReuse>(row + i);
    if ((i += width) < n) v.w = load<kReuse>(row + i);
  }
  return v;
}

template <bool kVector>
__device__ __forceinline__ void store_quad(float* row, float4 v, unsigned n, unsigned quad,
                                           unsigned thread, unsigned width) {
  if constexpr (kVector) {
    const unsigned i = 4 * (quad * width + thread);
    if (i < n) store_once(reinterpret_cast<float4*>(row + i), v);
  } else {
    unsigned i = 4 * quad * width + thread;
    if (i < n) store_once(row + i, v.x);
    if ((i += width) < n) store_once(row + i, v.y);
    if ((i += width) < n) store_once(row + i, v.z);
    if ((i += width) < n) store_once(row + i, v.w);
  }
}

// a . b + c, in this order.
__device__ __forceinline__ float dot_quad(float4 a, float4 b, float c) {
  return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, c))));
}

// s a + b, elementwise.
__device__ __forceinline__ float4 fma_quad(float s, float4 a, float4 b) {
  return {fmaf(s, a.x, b.x), fmaf(s, a.y, b.y), fmaf(s, a.z, b.z), fmaf(s, a.w, b.w)};
}

}  // namespace trueup
