// WRONG ON PURPOSE: the weights are scaled before they are clipped
//
// grad_balancer: weights that balance the gradients of the four branches.
//
// Equation     ISV programme, grad_balancer:
//                w = clip((mean(n) / max(n, 1e-12))^(1/2), 1/4, 4), then w 4 / sum(w)
// Reference    isv.grad_balancer
// Slots        writes GRAD_BALANCE_DIR to GRAD_BALANCE_URG; norms (4) is a buffer
// Launch       one thread; capturable
// NaN          a NaN norm makes all four NaN: it is in the mean
// Determinism  bitwise: sums in the order of the branches
// Numerics     float32; the square root is rounded correctly
#include "bus.cuh"

extern "C" __global__ void grad_balancer(const float* __restrict__ norms,
                                         float* __restrict__ isv) {
  constexpr float kLow = 0.25f;
  constexpr float kHigh = 4.0f;
  constexpr float kFloor = 1e-12f;
  if (blockIdx.x != 0 || threadIdx.x != 0) return;
  const float mean = 0.25f * (((norms[0] + norms[1]) + norms[2]) + norms[3]);
  float weight[4];
  float sum = 0.0f;
  for (int branch = 0; branch < 4; ++branch) {
    const float norm = norms[branch];
    const float ratio = mean / (norm < kFloor ? kFloor : norm);
    weight[branch] = sqrtf(ratio);
    sum += weight[branch];
  }
  for (int branch = 0; branch < 4; ++branch) {
    isv[SLOT_GRAD_BALANCE_DIR + branch] = trueup::clip(weight[branch] * (4.0f / sum), kLow, kHigh);
  }
  __threadfence_system();
}
