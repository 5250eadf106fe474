// order_statistics.cuh: values at given places of the sorted order, found by one block's counting.
//
// Numbers become unsigned keys that order as they do; a key is found bit by bit from the highest,
// each bit by a count of those that share the bits found so far. Counts are integers: no sorting,
// no atomics, and the result does not depend on an order.
#pragma once
#include "common.cuh"

namespace trueup {

// Bits that order as the numbers do; NaN above infinity.
__device__ __forceinline__ unsigned ordered_key(float x) {
  if (x != x) return 0xffffffffu;
  const unsigned bits = __float_as_uint(x);
  return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}

__device__ __forceinline__ float number_of_key(unsigned key) {
  return __uint_as_float(key >> 31 != 0 ? key & 0x7fffffffu : ~key);
}

// Combines a value of each thread over the block; two barriers, so that the slots (32, shared) can
// be used again.
template <class Combine>
__device__ __forceinline__ unsigned block_combine(unsigned value, unsigned none, unsigned* slots,
                                                  Combine combine) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    value = combine(value, __shfl_xor_sync(kWholeWarp, value, offset));
  }
  const unsigned lane = threadIdx.x % kWarp;
  if (lane == 0) slots[threadIdx.x / kWarp] = value;
  value = lane < blockDim.x / kWarp ? slots[lane] : none;
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    value = combine(value, __shfl_xor_sync(kWholeWarp, value, offset));
  }
  __syncthreads();
  return value;
}

__device__ __forceinline__ unsigned block_count(unsigned value, unsigned* slots) {
  return block_combine(value, 0, slots, [](unsigned a, unsigned b) { return a + b; });
}

__device__ __forceinline__ unsigned block_least(unsigned value, unsigned* slots) {
  return block_combine(value, 0xffffffffu, slots, [](unsigned a, unsigned b) { return min(a, b); });
}

// The keys of n values, seen by one thread: its first ones kept in registers, the others read again.
template <int kKept>
class Keys {
 public:
  __device__ __forceinline__ Keys(const float* __restrict__ values, unsigned n)
      : values_(values), n_(n) {
#pragma unroll
    for (int e = 0; e < kKept; ++e) {
      const unsigned i = threadIdx.x + e * blockDim.x;
      kept_[e] = i < n ? ordered_key(values[i]) : 0;
    }
  }

  __device__ __forceinline__ unsigned count() const { return n_; }

  // Calls `see` with every key of this thread.
  template <class See>
  __device__ __forceinline__ void each(See see) const {
#pragma unroll
    for (int e = 0; e < kKept; ++e) {
      if (threadIdx.x + e * blockDim.x < n_) see(kept_[e]);
    }
    for (unsigned i = threadIdx.x + kKept * blockDim.x; i < n_; i += blockDim.x) {
      see(ordered_key(values_[i]));
    }
  }

 private:
  const float* values_;
  unsigned n_;
  unsigned kept_[kKept];
};

// The number at place `rank` of the sorted values, and the one after it (itself at the end).
template <int kKept>
__device__ __forceinline__ float2 neighbours_at(const Keys<kKept>& keys, unsigned rank,
                                                unsigned* slots) {
  unsigned found = 0;
  unsigned left = rank;
#pragma unroll 1
  for (int bit = 31; bit >= 0; --bit) {
    const unsigned mask = ~((1u << bit) - 1u);
    unsigned below = 0;
    keys.each([&](unsigned key) { below += (key & mask) == found ? 1u : 0u; });
    below = block_count(below, slots);
    if (left >= below) {
      left -= below;
      found |= 1u << bit;
    }
  }
  unsigned up_to = 0;
  unsigned above = 0xffffffffu;
  keys.each([&](unsigned key) {
    up_to += key <= found ? 1u : 0u;
    if (key > found) above = min(above, key);
  });
  up_to = block_count(up_to, slots);
  above = block_least(above, slots);
  const float low = number_of_key(found);
  return {low, up_to > rank + 1 || rank + 1 == keys.count() ? low : number_of_key(above)};
}

}  // namespace trueup
