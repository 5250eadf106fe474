// elementwise.cuh: arrays seen as quads, one thread each, for kernels that touch an element once.
//
// Thread t of block b takes the four neighbours from 4 (b blockDim + t): one access of 16 bytes (8
// for bf16) where the array is aligned to that and all four lie inside, else one by one. Elements
// beyond the array read as 0 and are never stored; what is touched once goes past the caches.
#pragma once

#include "common.cuh"

namespace trueup {

__device__ __forceinline__ bool aligned8(const void* p) {
  return reinterpret_cast<size_t>(p) % 8 == 0;
}

// bf16 numbers travel as the 16 bits they are, a float's upper half: kernels of float32 arithmetic
// need nothing else of them.
using Bf16 = unsigned short;

__device__ __forceinline__ float widened(Bf16 bits) {
  return __uint_as_float(static_cast<unsigned>(bits) << 16);
}

// To nearest, ties to even; NaN stays NaN.
__device__ __forceinline__ Bf16 narrowed(float value) {
  const unsigned bits = __float_as_uint(value);
  if (value != value) return 0x7fff;
  return static_cast<Bf16>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

class Four {
 public:
  __device__ __forceinline__ explicit Four(size_t n)
      : first_(4 * (static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x)),
        left_(first_ < n ? n - first_ : 0) {}

  __device__ __forceinline__ bool any() const { return left_ > 0; }

  __device__ __forceinline__ float4 load(const float* from, bool aligned) const {
    const float* const p = from + first_;
    if (aligned && left_ >= 4) return trueup::load<Reuse::kOnce>(reinterpret_cast<const float4*>(p));
    float4 v = {0.0f, 0.0f, 0.0f, 0.0f};
    v.x = trueup::load<Reuse::kOnce>(p);
    if (left_ > 1) v.y = trueup::load<Reuse::kOnce>(p + 1);
    if (left_ > 2) v.z = trueup::load<Reuse::kOnce>(p + 2);
    if (left_ > 3) v.w = trueup::load<Reuse::kOnce>(p + 3);
    return v;
  }

  __device__ __forceinline__ void store(float* to, float4 v, bool aligned) const {
    float* const p = to + first_;
    if (aligned) {
      store_once(reinterpret_cast<float4*>(p), v);
      return;
    }
    store_once(p, v.x);
    if (left_ > 1) store_once(p + 1, v.y);
    if (left_ > 2) store_once(p + 2, v.z);
    if (left_ > 3) store_once(p + 3, v.w);
  }

  __device__ __forceinline__ float4 load(const Bf16* from, bool aligned) const {
    const Bf16* const p = from + first_;
    if (aligned && left_ >= 4) {
      const ushort4 v = trueup::load<Reuse::kOnce>(reinterpret_cast<const ushort4*>(p));
      return {widened(v.x), widened(v.y), widened(v.z), widened(v.w)};
    }
    float4 v = {0.0f, 0.0f, 0.0f, 0.0f};
    v.x = widened(trueup::load<Reuse::kOnce>(p));
    if (left_ > 1) v.y = widened(trueup::load<Reuse::kOnce>(p + 1));
    if (left_ > 2) v.z = widened(trueup::load<Reuse::kOnce>(p + 2));
    if (left_ > 3) v.w = widened(trueup::load<Reuse::kOnce>(p + 3));
    return v;
  }

  __device__ __forceinline__ void store(Bf16* to, float4 v, bool aligned) const {
    Bf16* const p = to + first_;
    const ushort4 bits = {narrowed(v.x), narrowed(v.y), narrowed(v.z), narrowed(v.w)};
    if (aligned && left_ >= 4) {
      store_once(reinterpret_cast<ushort4*>(p), bits);
      return;
    }
    store_once(p, bits.x);
    if (left_ > 1) store_once(p + 1, bits.y);
    if (left_ > 2) store_once(p + 2, bits.z);
    if (left_ > 3) store_once(p + 3, bits.w);
  }

 private:
  size_t first_;
  size_t left_;
};

}  // namespace trueup
