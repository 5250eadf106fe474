// WRONG ON PURPOSE: the next count overwrites slots that are still read
//
// q_quantiles: the 0.05 and 0.95 quantiles of the values of each branch.
//
// Equation     DQN programme, 9: over the M = B b_k sorted values x of a branch, h = (M - 1) level
//                x[floor h] + (h - floor h)(x[min(floor h + 1, M - 1)] - x[floor h])
// Reference    dqn.q_quantiles
// Shapes       q (B, 13); quantiles (8): the four branches at 0.05, then at 0.95
// Launch       8 blocks, one a quantile, any multiple of 32 threads up to 1024
// Traffic      up to 24 values a thread stay in registers (B = 6144 at 1024 threads); beyond that
//              q is read again, from L2, for each of 33 passes
// Determinism  bitwise: an order statistic is found by counting, bit by bit from the highest; counts
//              are integers; no sorting, no atomics
// Numerics     order statistics are exact; h in integers, as its fraction times 2^28; one fused
//              step between two of them. NaN counts as larger than everything
#include "branches.cuh"
#include "common.cuh"

namespace {

constexpr int kKept = 24;
// The float32 nearest to 0.05 and 0.95, times 2^28.
constexpr unsigned long long kLow = 13421773ull;
constexpr unsigned long long kHigh = 255013680ull;
constexpr int kBits = 28;

// Bits that order as the numbers do; NaN above infinity.
__device__ __forceinline__ unsigned ordered(float x) {
  if (x != x) return 0xffffffffu;
  const unsigned bits = __float_as_uint(x);
  return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}

__device__ __forceinline__ float number(unsigned key) {
  return __uint_as_float(key >> 31 != 0 ? key & 0x7fffffffu : ~key);
}

// Sum over the block; two barriers, so that the slots can be used again.
__device__ __forceinline__ unsigned block_count(unsigned value, unsigned* slots) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(trueup::kWholeWarp, value, offset);
  }
  const unsigned lane = threadIdx.x % trueup::kWarp;
  if (lane == 0) slots[threadIdx.x / trueup::kWarp] = value;
  __syncthreads();
  unsigned sum = lane < blockDim.x / trueup::kWarp ? slots[lane] : 0;
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    sum += __shfl_xor_sync(trueup::kWholeWarp, sum, offset);
  }
  return sum;
}

__device__ __forceinline__ unsigned block_least(unsigned value, unsigned* slots) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    value = min(value, __shfl_xor_sync(trueup::kWholeWarp, value, offset));
  }
  const unsigned lane = threadIdx.x % trueup::kWarp;
  if (lane == 0) slots[threadIdx.x / trueup::kWarp] = value;
  __syncthreads();
  unsigned least = lane < blockDim.x / trueup::kWarp ? slots[lane] : 0xffffffffu;
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    least = min(least, __shfl_xor_sync(trueup::kWholeWarp, least, offset));
  }
  __syncthreads();
  return least;
}

// The values of one branch, seen by one thread: its first ones kept, the others read again.
struct Values {
  const float* q;
  unsigned begin;
  unsigned size;
  unsigned count;
  unsigned kept[kKept];

  __device__ __forceinline__ unsigned key(unsigned i) const {
    return ordered(q[static_cast<size_t>(i / size) * trueup::kActions + begin + i % size]);
  }

  __device__ __forceinline__ void keep() {
#pragma unroll
    for (int e = 0; e < kKept; ++e) {
      const unsigned i = threadIdx.x + e * blockDim.x;
      kept[e] = i < count ? key(i) : 0xffffffffu;
    }
  }

  // Calls `see` with every key of this thread.
  template <class See>
  __device__ __forceinline__ void each(See see) const {
#pragma unroll
    for (int e = 0; e < kKept; ++e) {
      if (threadIdx.x + e * blockDim.x < count) see(kept[e]);
    }
    for (unsigned i = threadIdx.x + kKept * blockDim.x; i < count; i += blockDim.x) see(key(i));
  }
};

// The key at place `rank` of the sorted values: the highest bits first, each by a count of the keys
// that share the bits found so far and have a 0 next.
__device__ __forceinline__ unsigned select(const Values& values, unsigned rank, unsigned* slots) {
  unsigned found = 0;
  for (int bit = 31; bit >= 0; --bit) {
    const unsigned mask = ~((1u << bit) - 1u);
    unsigned below = 0;
    values.each([&](unsigned key) { below += (key & mask) == found ? 1u : 0u; });
    below = block_count(below, slots);
    if (rank >= below) {
      rank -= below;
      found |= 1u << bit;
    }
  }
  return found;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(1024)
    q_quantiles(const float* __restrict__ q, float* __restrict__ quantiles, int B) {
  __shared__ unsigned slots[32];
  const int branch = static_cast<int>(blockIdx.x % 4);
  Values values;
  values.q = q;
  values.begin = static_cast<unsigned>(trueup::branch_begin(branch));
  values.size = static_cast<unsigned>(trueup::branch_size(branch));
  values.count = static_cast<unsigned>(B) * values.size;
  values.keep();
  const unsigned long long place =
      (blockIdx.x < 4 ? kLow : kHigh) * (static_cast<unsigned long long>(values.count) - 1);
  const unsigned rank = static_cast<unsigned>(place >> kBits);
  const float share = static_cast<float>(place & ((1ull << kBits) - 1)) * (1.0f / (1 << kBits));
  const unsigned left = select(values, rank, slots);
  unsigned up_to = 0;
  unsigned above = 0xffffffffu;
  values.each([&](unsigned key) {
    up_to += key <= left ? 1u : 0u;
    if (key > left) above = min(above, key);
  });
  up_to = block_count(up_to, slots);
  above = block_least(above, slots);
  if (threadIdx.x != 0) return;
  const float low = number(left);
  const float high = up_to > rank + 1 || rank + 1 == values.count ? low : number(above);
  quantiles[blockIdx.x] = fmaf(share, high - low, low);
}
