// WRONG ON PURPOSE: an observation that is not finite, or not above zero, is taken in
//
// grad_norm_emas: fast and slow moving averages of the gradient norm, on mapped pinned memory.
//
// Equation     ISV programme, `update_grad_norm_emas`: for each average
//                new = prev <= 0 ? obs : (1 - alpha) prev + alpha obs
//              with alpha = 0.1 (fast) and 0.001 (slow), fixed
// Reference    isv.grad_norm_emas
// Shapes       obs (1); fast, slow (1), updated in place
// Launch       one thread; capturable, chained on the stream of the kernel that makes obs
// Guard        an obs that is NaN, infinite or not above 0 writes nothing
// Visibility   a system-scope fence follows the last store: the host and other devices read these
// Determinism  bitwise
// Numerics     float32; products and sum are rounded one by one (__fmul_rn, __fadd_rn are never
//              fused), so that every build gives the same bits; 1 - alpha is rounded to float32
extern "C" __global__ void grad_norm_emas(const float* __restrict__ obs, float* __restrict__ fast,
                                          float* __restrict__ slow) {
  constexpr float kFastAlpha = 0.1f;
  constexpr float kSlowAlpha = 0.001f;
  if (blockIdx.x != 0 || threadIdx.x != 0) return;
  const float norm = *obs;
  const float fast_prev = *fast;
  const float slow_prev = *slow;
  *fast = fast_prev <= 0.0f ? norm
                            : __fadd_rn(__fmul_rn(1.0f - kFastAlpha, fast_prev),
                                        __fmul_rn(kFastAlpha, norm));
  *slow = slow_prev <= 0.0f ? norm
                            : __fadd_rn(__fmul_rn(1.0f - kSlowAlpha, slow_prev),
                                        __fmul_rn(kSlowAlpha, norm));
  __threadfence_system();
}
