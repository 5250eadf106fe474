// WRONG ON PURPOSE: dx misses the way through the logits
//
// vsn_backward: the gradients of a selection over six feature groups.
//
// Equation     DQN programme, 12:
//                dw_g = sigma sum_{i in g} d_i x_i;  dlogit = w (dw - sum w dw)
//                dx = d gate + dlogit W, gate = w sigma in a group and 1 outside
//                dW = dlogit^T x;  db = sum_b dlogit
// Reference    dqn.vsn_backward
// Shapes       d_out, x, dx (B, D); W, dW (6, D); w (B, 6); gb (7), int, ascending bounds; db (6);
//              workspace part (blocks of the first launch, 6 D + 6)
// Launch       rows: 256 threads, any grid that part has rows for; a warp for each row up to
//              D = 128, a block beyond. sums: 256 threads, a block for 8 columns of part
// Traffic      d_out and x are read once and dx is written once up to D = 128: 12 B D + 24 B bytes,
//              and 48 D + 48 for each block of the first launch
// Determinism  bitwise: rows go to warps by their number; warps, then blocks are added in the order
//              of theirs, given the grid; no atomics
// Numerics     float32; dx by six fmaf from d gate
#include "vsn.cuh"

namespace {

namespace vsn = trueup::vsn;
using trueup::kWarp;
using trueup::Reuse;
constexpr unsigned kRowBlocks = 264, kColumns = 8;

struct Arrays {
  const float* d_out;
  const float* x;
  const float* W;
  const float* w;
  const int* gb;
  float* dx;
  float* part;
};

// Sums over a block's warps, in their order; `pool` has a short row for each warp.
__device__ __forceinline__ void add_warps(const float* pool, float* to, unsigned n) {
  __syncthreads();
  for (unsigned d = threadIdx.x; d < n; d += vsn::kThreads) {
    float sum = pool[d];
    for (unsigned warp = 1; warp < vsn::kWarps; ++warp) sum += pool[warp * vsn::kShortRow + d];
    to[d] = sum;
  }
  __syncthreads();
}

template <bool kVector>
__device__ __forceinline__ void short_rows(const Arrays& p, float sigma, unsigned B, unsigned D,
                                           float* pool) {
  float W[vsn::kGroups][vsn::kHeld];
  float dW[vsn::kGroups][vsn::kHeld] = {};
  unsigned group[vsn::kHeld];
#pragma unroll
  for (unsigned g = 0; g < vsn::kGroups; ++g) {
    vsn::load_row<kVector, Reuse::kShared>(W[g], p.W + g * D, D);
  }
#pragma unroll
  for (unsigned i = 0; i < vsn::kHeld; ++i) {
    group[i] = vsn::group_of(vsn::column_of<kVector>(i), p.gb);
  }
  const unsigned slot = vsn::slot_of_lane();
  const bool keeps = slot < vsn::kGroups;
  float db = 0.0f;
  const unsigned step = gridDim.x * vsn::kWarps;
  for (unsigned row = blockIdx.x * vsn::kWarps + threadIdx.x / kWarp; row < B; row += step) {
    float d[vsn::kHeld], x[vsn::kHeld];
    vsn::load_row<kVector, Reuse::kOnce>(d, p.d_out + static_cast<size_t>(row) * D, D);
    vsn::load_row<kVector, Reuse::kOnce>(x, p.x + static_cast<size_t>(row) * D, D);
    const float w = keeps ? p.w[static_cast<size_t>(row) * vsn::kGroups + slot] : 0.0f;
    float sums[vsn::kGroups] = {};
#pragma unroll
    for (unsigned g = 0; g < vsn::kGroups; ++g) {
#pragma unroll
      for (unsigned i = 0; i < vsn::kHeld; ++i) {
        sums[g] = group[i] == g ? fmaf(d[i], x[i], sums[g]) : sums[g];
      }
    }
    const float dw = sigma * vsn::sum_six(sums);
    const float mean = vsn::slots_sum(keeps ? w * dw : 0.0f);
    const float dlogit = keeps ? w * (dw - mean) : 0.0f;
    db += dlogit;
    const float gate = __fmul_rn(w, sigma);
#pragma unroll
    for (unsigned i = 0; i < vsn::kHeld; ++i) {
      const float scale = vsn::of_slot(gate, group[i] % vsn::kSlots);
      d[i] = group[i] == vsn::kOutside ? d[i] : d[i] * scale;
    }
#pragma unroll
    for (unsigned g = 0; g < vsn::kGroups; ++g) {
      const float slope = vsn::of_slot(dlogit, g);
#pragma unroll
      for (unsigned i = 0; i < vsn::kHeld; ++i) {
        dW[g][i] = fmaf(slope, x[i], dW[g][i]);
      }
    }
    vsn::store_row<kVector>(p.dx + static_cast<size_t>(row) * D, d, D);
  }
  float* const part = p.part + static_cast<size_t>(blockIdx.x) * vsn::kGroups * (D + 1);
  float* const mine = pool + threadIdx.x / kWarp * vsn::kShortRow;
#pragma unroll
  for (unsigned g = 0; g < vsn::kGroups; ++g) {
#pragma unroll
    for (unsigned i = 0; i < vsn::kHeld; ++i) mine[vsn::column_of<kVector>(i)] = dW[g][i];
    add_warps(pool, part + g * D, D);
  }
  if (keeps && threadIdx.x % 4 == 0) mine[slot] = db;
  add_warps(pool, part + vsn::kGroups * D, vsn::kGroups);
}

// A block goes over a row twice, and keeps its sums in its part, where each thread reads back only
// what it wrote itself.
__device__ __forceinline__ void long_rows(const Arrays& p, float sigma, unsigned B, unsigned D,
                                          float* slots) {
  float* const part = p.part + static_cast<size_t>(blockIdx.x) * vsn::kGroups * (D + 1);
  for (unsigned row = blockIdx.x; row < B; row += gridDim.x) {
    const size_t base = static_cast<size_t>(row) * D;
    const bool first = row == blockIdx.x;
    float sums[vsn::kGroups] = {};
    for (unsigned d = threadIdx.x; d < D; d += blockDim.x) {
      const unsigned group = vsn::group_of(d, p.gb);
#pragma unroll
      for (unsigned g = 0; g < vsn::kGroups; ++g) {
        if (group == g) sums[g] = fmaf(p.d_out[base + d], p.x[base + d], sums[g]);
      }
    }
    float gate[vsn::kGroups], slope[vsn::kGroups];
    float mean = 0.0f;
#pragma unroll
    for (unsigned g = 0; g < vsn::kGroups; ++g) {
      slope[g] = sigma * trueup::block_sum(sums[g], slots + g * kWarp);
      gate[g] = p.w[static_cast<size_t>(row) * vsn::kGroups + g];
      mean = fmaf(gate[g], slope[g], mean);
    }
#pragma unroll
    for (unsigned g = 0; g < vsn::kGroups; ++g) {
      slope[g] = gate[g] * (slope[g] - mean);
      gate[g] = __fmul_rn(gate[g], sigma);
      float* const db = part + vsn::kGroups * D + g;
      if (threadIdx.x == g) *db = first ? slope[g] : *db + slope[g];
    }
    for (unsigned d = threadIdx.x; d < D; d += blockDim.x) {
      const unsigned group = vsn::group_of(d, p.gb);
      const float x = p.x[base + d];
      float dx = p.d_out[base + d];
#pragma unroll
      for (unsigned g = 0; g < vsn::kGroups; ++g) {
        if (group == g) dx = p.d_out[base + d] * gate[g];
      }
#pragma unroll
      for (unsigned g = 0; g < vsn::kGroups; ++g) {
        dx = fmaf(slope[g], p.W[static_cast<size_t>(g) * D + d], dx);
        float* const dW = part + static_cast<size_t>(g) * D + d;
        *dW = first ? slope[g] * x : fmaf(slope[g], x, *dW);
      }
      p.dx[base + d] = dx;
    }
    __syncthreads();  // the slots are used again
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(vsn::kThreads)
    vsn_backward_rows(const float* __restrict__ d_out, const float* __restrict__ x,
                      const float* __restrict__ W, const float* __restrict__ w,
                      const int* __restrict__ gb, float sigma, float* __restrict__ dx,
                      float* __restrict__ part, int B, int D) {
  __shared__ float pool[vsn::kWarps * vsn::kShortRow];
  const Arrays p = {d_out, x, W, w, gb, dx, part};
  if (static_cast<unsigned>(D) > vsn::kShortRow) {
    long_rows(p, sigma, B, D, pool);
  } else if (D % 4 == 0 && trueup::aligned16(d_out) && trueup::aligned16(x) &&
             trueup::aligned16(W) && trueup::aligned16(dx)) {
    short_rows<true>(p, sigma, B, D, pool);
  } else {
    short_rows<false>(p, sigma, B, D, pool);
  }
}

// Column c of a block is summed by every eighth thread from c on, over parts in strides; then over
// a warp's four such threads, then over the warps in order.
extern "C" __global__ void __launch_bounds__(vsn::kThreads)
    vsn_backward_sums(const float* __restrict__ part, float* __restrict__ dW,
                      float* __restrict__ db, int B, int D) {
  __shared__ float slots[vsn::kWarps][kColumns];
  const unsigned parts = B < static_cast<int>(kRowBlocks) ? B : kRowBlocks;
  const size_t columns = static_cast<size_t>(vsn::kGroups) * (D + 1);
  const size_t column = static_cast<size_t>(blockIdx.x) * kColumns + threadIdx.x % kColumns;
  float sum = 0.0f;
  if (column < columns) {
#pragma unroll 8
    for (unsigned row = threadIdx.x / kColumns; row < parts; row += vsn::kThreads / kColumns) {
      sum += part[row * columns + column];
    }
  }
  sum += __shfl_xor_sync(trueup::kWholeWarp, sum, 16);
  sum += __shfl_xor_sync(trueup::kWholeWarp, sum, 8);
  if (threadIdx.x % kWarp < kColumns) slots[threadIdx.x / kWarp][threadIdx.x % kWarp] = sum;
  __syncthreads();
  if (threadIdx.x >= kColumns || column >= columns) return;
  for (unsigned warp = 1; warp < vsn::kWarps; ++warp) sum += slots[warp][threadIdx.x];
  const size_t weights = static_cast<size_t>(vsn::kGroups) * D;
  if (column < weights) {
    dW[column] = sum;
  } else {
    db[column - weights] = sum;
  }
}
