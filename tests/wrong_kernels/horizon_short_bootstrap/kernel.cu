// WRONG ON PURPOSE: the long part bootstraps with the short discount
//
// horizon_value: what a long horizon adds to the value of a short one.
//
// Equation     Separating value functions across time-scales, arXiv:1902.01883:
//                W = (g_l - g_s) V_short(s') + g_l W(s');  V_long = V_short + W
// Reference    dqn.horizon_value
// Shapes       v_short, v_short_next, w_next, w, v_long (B); gamma_short, gamma_long by value
// Launch       1-D grid of ceil(B / (4 block)), any block size; a thread takes four neighbours
// Traffic      20 B bytes
// Determinism  bitwise: no element sees another
// Numerics     float32; the discounts are subtracted first: they are close to each other
#include "elementwise.cuh"

namespace {

__device__ __forceinline__ float gain(float value, float w, float between, float gamma_long) {
  return fmaf(gamma_long - between, w, between * value);
}

}  // namespace

extern "C" __global__ void horizon_value(const float* __restrict__ v_short,
                                         const float* __restrict__ v_short_next,
                                         const float* __restrict__ w_next, float gamma_short,
                                         float gamma_long, float* __restrict__ w,
                                         float* __restrict__ v_long, int B) {
  const trueup::Four four(static_cast<size_t>(B));
  if (!four.any()) return;
  const bool aligned = trueup::aligned16(v_short) && trueup::aligned16(v_short_next) &&
                       trueup::aligned16(w_next) && trueup::aligned16(w) &&
                       trueup::aligned16(v_long);
  const float4 v = four.load(v_short, aligned);
  const float4 s = four.load(v_short_next, aligned);
  const float4 l = four.load(w_next, aligned);
  const float between = gamma_long - gamma_short;
  const float4 out = {gain(s.x, l.x, between, gamma_long), gain(s.y, l.y, between, gamma_long),
                      gain(s.z, l.z, between, gamma_long), gain(s.w, l.w, between, gamma_long)};
  four.store(w, out, aligned);
  four.store(v_long, float4{v.x + out.x, v.y + out.y, v.z + out.z, v.w + out.w}, aligned);
}
