// WRONG ON PURPOSE: the trailing average takes this divergence before it is compared
//
// state_kl: divergence of a batch's features from their reference, and what it amplifies.
//
// Equation     ISV programme, state-KL, variances not below 1e-6:
//                KL = 1/2 sum((v + (m - mr)^2) / vr - 1 - ln(v / vr))
//                amp = 1 + clip((KL - trail) / max(trail, 1e-6), 0, 1), then trail = EMA(KL)
//                first observation: amp = 1, trail = KL
// Reference    isv.state_kl
// Slots        writes STATE_KL_AMP; mean, var, mean_ref, var_ref (S), trail (1) and count (1, int)
//              are buffers: the trailing average is the kernel's own
// Launch       one block, any multiple of 32 threads up to 1024; capturable
// NaN          a NaN feature makes the divergence NaN, and the trailing average with it
// Determinism  bitwise: a thread sums features t, t + block, ... in order, then warps, then a tree
// Numerics     float32; with x = (v - vr) / vr the term x - log1p(x) keeps its digits where the
//              printed form cancels
#include "bus.cuh"
#include "common.cuh"

extern "C" __global__ void state_kl(const float* __restrict__ mean, const float* __restrict__ var,
                                    const float* __restrict__ mean_ref,
                                    const float* __restrict__ var_ref, float* __restrict__ trail,
                                    int* __restrict__ count, float* __restrict__ isv, int S) {
  constexpr float kAlpha = 0.05f;
  constexpr float kFloor = 1e-6f;
  __shared__ float slots[32];
  float sum = 0.0f;
  for (unsigned i = threadIdx.x; i < static_cast<unsigned>(S); i += blockDim.x) {
    const float v = var[i] < kFloor ? kFloor : var[i];
    const float vr = var_ref[i] < kFloor ? kFloor : var_ref[i];
    const float d = mean[i] - mean_ref[i];
    const float x = (v - vr) / vr;
    sum += (x - log1pf(x)) + d * d / vr;
  }
  const float kl = 0.5f * trueup::block_sum(sum, slots);
  if (threadIdx.x != 0) return;
  const int seen = *count;
  const float last = *trail;
  const float before = *count > 0 ? trueup::blend(last, kl, kAlpha) : kl;
  const float excess = (kl - before) / (before < kFloor ? kFloor : before);
  isv[SLOT_STATE_KL_AMP] = seen > 0 ? 1.0f + trueup::clip(excess, 0.0f, 1.0f) : 1.0f;
  *trail = seen > 0 ? before : kl;
  *count = seen + 1;
  __threadfence_system();
}
