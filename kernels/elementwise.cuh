// elementwise.cuh: arrays seen as quads, one thread each, for kernels that touch an element once.
//
// Thread t of block b takes the four neighbours from 4 (b blockDim + t): one 16-byte access where
// the array is 16-byte aligned and all four lie inside, else one by one. Elements beyond the array
// read as 0 and are never stored; what is touched once goes past the caches.
#pragma once

#include "common.cuh"

namespace trueup {

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
    if (aligned && left_ >= 4) {
      store_once(reinterpret_cast<float4*>(p), v);
      return;
    }
    store_once(p, v.x);
    if (left_ > 1) store_once(p + 1, v.y);
    if (left_ > 2) store_once(p + 2, v.z);
    if (left_ > 3) store_once(p + 3, v.w);
  }

 private:
  size_t first_;
  size_t left_;
};

}  // namespace trueup
