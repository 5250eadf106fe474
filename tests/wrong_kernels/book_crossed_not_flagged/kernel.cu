// WRONG ON PURPOSE: a crossed book is not told
//
// order_book: centre of mass of both sides of order books of ten levels, and their signal.
//
// Equation     DQN programme, order-book centre of mass:
//                d_i = |p_i - mid| / tick,  com = sum q_i d_i / sum q_i,
//                signal = (com_ask - com_bid) / (com_ask + com_bid), 0 where that sum is 0
//              an empty side lies at its last level; crossed where the best bid >= the best ask
// Reference    dqn.order_book
// Shapes       bid, bid_size, ask, ask_size (B, 10) row-major, best first; tick (1);
//              signal, com_bid, com_ask (B); crossed (B) int
// Launch       1-D grid of ceil(B / block), any block size; one thread a book
// Traffic      every input is read once: 176 bytes a book
// Determinism  bitwise: a book is summed by one thread in the order of its levels
// Numerics     float32; twice the distance from the mid is (p - bid_0) + (p - ask_0): neighbouring
//              prices differ exactly, so that the mid is never rounded
#include "common.cuh"

namespace {

constexpr int kLevels = 10;

struct Side {
  float price[kLevels];
  float size[kLevels];
};

__device__ __forceinline__ void read(float (&to)[kLevels], const float* from, bool pairs) {
  if (pairs) {
#pragma unroll
    for (int i = 0; i < kLevels / 2; ++i) {
      const float2 two = reinterpret_cast<const float2*>(from)[i];
      to[2 * i] = two.x;
      to[2 * i + 1] = two.y;
    }
  } else {
#pragma unroll
    for (int i = 0; i < kLevels; ++i) to[i] = from[i];
  }
}

// In ticks; `best_bid` and `best_ask` stand on both sides of the mid.
__device__ __forceinline__ float centre(const Side& side, float best_bid, float best_ask,
                                        float tick) {
  float weighted = 0.0f;
  float total = 0.0f;
  float far = 0.0f;
#pragma unroll
  for (int i = 0; i < kLevels; ++i) {
    far = fabsf((side.price[i] - best_bid) + (side.price[i] - best_ask)) / (2.0f * tick);
    weighted = fmaf(side.size[i], far, weighted);
    total += side.size[i];
  }
  return total == 0.0f ? far : weighted / total;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256)
    order_book(const float* __restrict__ bid, const float* __restrict__ bid_size,
               const float* __restrict__ ask, const float* __restrict__ ask_size,
               const float* __restrict__ tick, float* __restrict__ signal,
               float* __restrict__ com_bid, float* __restrict__ com_ask, int* __restrict__ crossed,
               int B) {
  const size_t book = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (book >= static_cast<size_t>(B)) return;
  const bool pairs = ((reinterpret_cast<size_t>(bid) | reinterpret_cast<size_t>(bid_size) |
                       reinterpret_cast<size_t>(ask) | reinterpret_cast<size_t>(ask_size)) %
                      8) == 0;
  Side bids;
  Side asks;
  read(bids.price, bid + book * kLevels, pairs);
  read(asks.price, ask + book * kLevels, pairs);
  read(bids.size, bid_size + book * kLevels, pairs);
  read(asks.size, ask_size + book * kLevels, pairs);
  const float best_bid = bids.price[0];
  const float best_ask = asks.price[0];
  const float low = centre(bids, best_bid, best_ask, *tick);
  const float high = centre(asks, best_bid, best_ask, *tick);
  const float both = high + low;
  signal[book] = both == 0.0f ? 0.0f : (high - low) / both;
  com_bid[book] = low;
  com_ask[book] = high;
  crossed[book] = 0;
}
