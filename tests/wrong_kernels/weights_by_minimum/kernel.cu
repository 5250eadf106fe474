// WRONG ON PURPOSE: divided by the smallest weight, so that all are above 1
//
// importance_weights: weights of sampled transitions, the largest of the batch being 1.
//
// Equation     PER, arXiv:1511.05952, Sec. 3.4, with the number of transitions cancelled:
//                w_i = (P_min / P_i)^beta, P_min the least of the batch
// Reference    dqn.importance_weights, reading batch
// Shapes       probability, weight (B); beta by value
// Launch       one block of any multiple of 32 threads up to 1024; a batch is read twice, from L2
//              the second time
// Traffic      8 bytes a sample
// Determinism  bitwise: a minimum has no order
// Numerics     float32; a NaN probability makes every weight NaN
#include "common.cuh"

namespace {

// The lesser; a NaN on either side stays.
__device__ __forceinline__ float least(float a, float b) { return b > a || b != b ? b : a; }

__device__ __forceinline__ float warp_least(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    value = least(value, __shfl_xor_sync(trueup::kWholeWarp, value, offset));
  }
  return value;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(1024)
    importance_weights(const float* __restrict__ probability, float* __restrict__ weight,
                       float beta, int B) {
  __shared__ float slots[32];
  const unsigned count = static_cast<unsigned>(B);
  const unsigned lane = threadIdx.x % trueup::kWarp;
  float found = 0.0f;
  for (unsigned i = threadIdx.x; i < count; i += blockDim.x) found = least(found, probability[i]);
  found = warp_least(found);
  if (lane == 0) slots[threadIdx.x / trueup::kWarp] = found;
  __syncthreads();
  const unsigned warps = blockDim.x / trueup::kWarp;
  found = warp_least(lane < warps ? slots[lane] : 0.0f);
  for (unsigned i = threadIdx.x; i < count; i += blockDim.x) {
    weight[i] = powf(__fdiv_rn(found, probability[i]), beta);
  }
}
