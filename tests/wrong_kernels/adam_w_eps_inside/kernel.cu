// WRONG ON PURPOSE: eps stands under the root
//
// adam_w: one step of Adam for the weights of the atoms' shift.
//
// Equation     Adam, arXiv:1412.6980, Algorithm 1:
//                m = b1 m + (1 - b1) g,  v = b2 v + (1 - b2) g^2
//                W = W - lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)
// Reference    dqn.adam_w
// Shapes       W, m, v (n_actions), updated in place; g (n_actions); t (1) int, from 1, on the
//              device; beta1, beta2, eps, lr by value
// Launch       1-D grid of ceil(n_actions / block), any block size; one thread a weight
// Determinism  bitwise: no weight sees another. Without a gradient from the start W keeps its bits
// Numerics     float32; 1 - b^t in float64, where it does not cancel
#include "common.cuh"

namespace {

// 1 - beta^t, by squaring.
__device__ __forceinline__ float correction(float beta, int t) {
  double power = 1.0;
  double square = beta;
  for (unsigned left = static_cast<unsigned>(t); left > 0; left /= 2) {
    if (left % 2 == 1) power *= square;
    square *= square;
  }
  return static_cast<float>(1.0 - power);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256)
    adam_w(float* __restrict__ W, float* __restrict__ m, float* __restrict__ v,
           const float* __restrict__ g, const int* __restrict__ t, float beta1, float beta2,
           float eps, float lr, int n_actions) {
  const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= static_cast<size_t>(n_actions)) return;
  const float slope = g[i];
  const float first = fmaf(beta1, m[i], (1.0f - beta1) * slope);
  const float second = fmaf(beta2, v[i], (1.0f - beta2) * (slope * slope));
  m[i] = first;
  v[i] = second;
  const float size = sqrtf(second / correction(beta2, *t) + eps);
  W[i] -= lr * (first / correction(beta1, *t)) / size;
}
