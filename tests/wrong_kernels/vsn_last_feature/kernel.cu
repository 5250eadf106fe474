// WRONG ON PURPOSE: the last group ends one feature early
//
// vsn_forward: six groups of features, each scaled by its softmax weight.
//
// Equation     DQN programme, 12: w = softmax(x W^T + b);  out_i = x_i (w_g(i) sigma) for features
//              in a group, x_i outside
// Reference    dqn.vsn_forward
// Shapes       x, out (B, D); W (6, D); b (6); gb (7), int, ascending bounds; w (B, 6)
// Launch       any grid of 256 threads; a warp for each row up to D = 128, a block beyond
// Traffic      x is read once and out written once up to D = 128: 8 B D + 24 B bytes
// Determinism  bitwise: a row is one warp's, sums are fixed trees; no atomics
// Numerics     float32; the gate w sigma is rounded before it multiplies: with W = b = 0 and
//              sigma = 6, out is x
#include "vsn.cuh"

namespace {

namespace vsn = trueup::vsn;
using trueup::Reuse;

struct Arrays {
  const float* x;
  const float* W;
  const float* b;
  const int* gb;
  float* out;
  float* w;
};

template <bool kVector>
__device__ __forceinline__ void short_rows(const Arrays& p, float sigma, unsigned B, unsigned D) {
  float W[vsn::kGroups][vsn::kHeld];
#pragma unroll
  for (unsigned g = 0; g < vsn::kGroups; ++g) {
    vsn::load_row<kVector, Reuse::kShared>(W[g], p.W + g * D, D);
  }
  unsigned group[vsn::kHeld];
#pragma unroll
  for (unsigned i = 0; i < vsn::kHeld; ++i) {
    group[i] = vsn::group_of(vsn::column_of<kVector>(i), p.gb);
  }
  const unsigned slot = vsn::slot_of_lane();
  const bool keeps = slot < vsn::kGroups;
  const float b = keeps ? p.b[slot] : 0.0f;
  const unsigned step = gridDim.x * vsn::kWarps;
  for (unsigned row = blockIdx.x * vsn::kWarps + threadIdx.x / trueup::kWarp; row < B;
       row += step) {
    float x[vsn::kHeld];
    vsn::load_row<kVector, Reuse::kOnce>(x, p.x + static_cast<size_t>(row) * D, D);
    float dots[vsn::kGroups] = {};
#pragma unroll
    for (unsigned g = 0; g < vsn::kGroups; ++g) {
#pragma unroll
      for (unsigned i = 0; i < vsn::kHeld; ++i) dots[g] = fmaf(x[i], W[g][i], dots[g]);
    }
    const float w = vsn::softmax_slot(vsn::sum_six(dots) + b);
    if (keeps && threadIdx.x % 4 == 0) p.w[static_cast<size_t>(row) * vsn::kGroups + slot] = w;
    const float gate = __fmul_rn(w, sigma);
#pragma unroll
    for (unsigned i = 0; i < vsn::kHeld; ++i) {
      const float scale = vsn::of_slot(gate, group[i] % vsn::kSlots);
      if (group[i] != vsn::kOutside) x[i] *= scale;
    }
    vsn::store_row<kVector>(p.out + static_cast<size_t>(row) * D, x, D);
  }
}

__device__ __forceinline__ void long_rows(const Arrays& p, float sigma, unsigned B, unsigned D,
                                          float* slots) {
  for (unsigned row = blockIdx.x; row < B; row += gridDim.x) {
    const float* const x = p.x + static_cast<size_t>(row) * D;
    float logit[vsn::kGroups];
    float top = 0.0f;
#pragma unroll
    for (unsigned g = 0; g < vsn::kGroups; ++g) {
      float dot = 0.0f;
      for (unsigned d = threadIdx.x; d < D; d += blockDim.x) {
        dot = fmaf(x[d], p.W[static_cast<size_t>(g) * D + d], dot);
      }
      logit[g] = trueup::block_sum(dot, slots + g * trueup::kWarp) + p.b[g];
      top = g == 0 ? logit[g] : fmaxf(top, logit[g]);
    }
    float total = 0.0f;
#pragma unroll
    for (unsigned g = 0; g < vsn::kGroups; ++g) {
      logit[g] = expf(logit[g] - top);
      total += logit[g];
    }
#pragma unroll
    for (unsigned g = 0; g < vsn::kGroups; ++g) {
      logit[g] /= total;
      if (threadIdx.x == g) p.w[static_cast<size_t>(row) * vsn::kGroups + g] = logit[g];
      logit[g] = __fmul_rn(logit[g], sigma);
    }
    for (unsigned d = threadIdx.x; d < D; d += blockDim.x) {
      const unsigned group = vsn::group_of(d, p.gb);
      float value = x[d];
#pragma unroll
      for (unsigned g = 0; g < vsn::kGroups; ++g) {
        if (group == g) value = x[d] * logit[g];
      }
      p.out[static_cast<size_t>(row) * D + d] = value;
    }
    __syncthreads();  // the slots are used again
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(trueup::vsn::kThreads)
    vsn_forward(const float* __restrict__ x, const float* __restrict__ W,
                const float* __restrict__ b, const int* __restrict__ gb, float sigma,
                float* __restrict__ out, float* __restrict__ w, int B, int D) {
  __shared__ float slots[vsn::kGroups * trueup::kWarp];
  const Arrays p = {x, W, b, gb, out, w};
  if (static_cast<unsigned>(D) > vsn::kShortRow) {
    long_rows(p, sigma, B, D, slots);
  } else if (D % 4 == 0 && trueup::aligned16(x) && trueup::aligned16(W) &&
             trueup::aligned16(out)) {
    short_rows<true>(p, sigma, B, D);
  } else {
    short_rows<false>(p, sigma, B, D);
  }
}
