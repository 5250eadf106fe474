// WRONG ON PURPOSE: the loss is not divided by kappa
//
// iqn_loss: quantile Huber loss of every branch, and the gradient of its quantiles.
//
// Equation     IQN, arXiv:1806.06923: u_ij = T_j - theta_i
//                L = sum_i (1/N') sum_j |tau_i - 1{u<0}| H(u_ij)/kappa
//                d_theta_i = -(weight/B)(1/N') sum_j |tau_i - 1{u<0}| clip(u_ij, -kappa, kappa)/kappa
// Reference    dqn.iqn_loss
// Shapes       theta, d_theta (B, 4, n_tau); target (B, 4, n_target); tau (n_tau); weight (B);
//              loss (B, 4); kappa a scalar above 0
// Launch       1-D grid of any size, block any multiple of 32: a row belongs to the smallest power
//              of two of lanes that holds its quantiles, at most a warp
// Traffic      everything is read and written once; a row's targets come from L1 for all its lanes
// Determinism  bitwise: a thread adds its quantile's terms in the order of the targets, a row's
//              loss is a tree of its lanes; no atomics
// Numerics     float32; H = c (u - c/2) with c = clip(u); divided by N', then by kappa: their rounded
//              product would be off by one factor in all elements
#include "common.cuh"

namespace {

using trueup::kWarp;
using trueup::kWholeWarp;

struct Quantile {
  float loss = 0.0f;
  float slope = 0.0f;

  __device__ __forceinline__ void add(float target, float theta, float tau, float kappa) {
    const float u = target - theta;
    const float c = fminf(fmaxf(u, -kappa), kappa);
    const float weighted = c * (u < 0.0f ? 1.0f - tau : tau);
    loss = fmaf(weighted, fmaf(-0.5f, c, u), loss);
    slope += weighted;
  }
};

template <bool kVector>
__device__ __forceinline__ Quantile quantile(const float* __restrict__ targets, unsigned n,
                                             float theta, float tau, float kappa) {
  Quantile out;
  unsigned j = 0;
  if constexpr (kVector) {
#pragma unroll 2
    for (; j < n; j += 4) {
      const float4 t = *reinterpret_cast<const float4*>(targets + j);
      out.add(t.x, theta, tau, kappa);
      out.add(t.y, theta, tau, kappa);
      out.add(t.z, theta, tau, kappa);
      out.add(t.w, theta, tau, kappa);
    }
  } else {
#pragma unroll 4
    for (; j < n; ++j) out.add(targets[j], theta, tau, kappa);
  }
  // The clip drops a NaN, the loss does not.
  if (out.loss != out.loss) out.slope = out.loss;
  return out;
}

struct Arrays {
  const float* theta;
  const float* target;
  const float* tau;
  const float* weight;
  float* loss;
  float* d_theta;
};

template <bool kVector>
__device__ __forceinline__ void rows_of(const Arrays& a, float kappa, unsigned B, unsigned n_tau,
                                        unsigned n_target) {
  unsigned width = 1;
  while (width < kWarp && width < n_tau) width *= 2;
  const size_t rows = 4 * static_cast<size_t>(B);
  const unsigned each = kWarp / width;  // rows of a warp
  const unsigned lane = threadIdx.x % width;
  const unsigned own = threadIdx.x % kWarp / width;
  const size_t stride = static_cast<size_t>(gridDim.x) * (blockDim.x / kWarp) * each;
  size_t base = static_cast<size_t>(blockIdx.x) * (blockDim.x / kWarp) + threadIdx.x / kWarp;
  const float count = static_cast<float>(n_target);
  for (base *= each; base < rows; base += stride) {
    const bool live = base + own < rows;
    const size_t r = live ? base + own : base;
    const float* const targets = a.target + r * n_target;
    const float omega = a.weight[r / 4] / static_cast<float>(B);
    float loss = 0.0f;
    for (unsigned i = lane; live && i < n_tau; i += width) {
      const Quantile q = quantile<kVector>(targets, n_target, a.theta[r * n_tau + i], a.tau[i],
                                           kappa);
      loss += q.loss;
      a.d_theta[r * n_tau + i] = -omega * (q.slope / count);
    }
    for (unsigned offset = width / 2; offset > 0; offset /= 2) {
      loss += __shfl_xor_sync(kWholeWarp, loss, static_cast<int>(offset));
    }
    if (live && lane == 0) a.loss[r] = loss / count;
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256)
    iqn_loss(const float* __restrict__ theta, const float* __restrict__ target,
             const float* __restrict__ tau, const float* __restrict__ weight,
             float* __restrict__ loss, float* __restrict__ d_theta, float kappa, int B, int n_tau,
             int n_target) {
  const Arrays arrays = {theta, target, tau, weight, loss, d_theta};
  const unsigned targets = static_cast<unsigned>(n_target);
  if (n_target % 4 == 0 && trueup::aligned16(target)) {
    rows_of<true>(arrays, kappa, static_cast<unsigned>(B), static_cast<unsigned>(n_tau), targets);
  } else {
    rows_of<false>(arrays, kappa, static_cast<unsigned>(B), static_cast<unsigned>(n_tau), targets);
  }
}
