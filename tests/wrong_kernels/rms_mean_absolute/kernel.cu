// WRONG ON PURPOSE: the mean of the magnitudes is taken for the root mean square
//
// rms_ema: running root mean square of a layer's signed output.
//
// Equation     ISV programme, h_s2 RMS:
//                rms = sqrt(sum(h^2) / (B D)),  ema = ema <= 0 ? rms : (1 - a) ema + a rms
// Reference    isv.rms_ema
// Slots        reads and writes H_S2_RMS_EMA; h (B, D) row-major is a buffer, parts (blocks of the
//              first launch) a workspace
// Launch       first: one block for 1024 elements, at most 128, block any multiple of 32 up to 1024;
//              then one block of any multiple of 32 threads
// Traffic      h is read once: 4 B D bytes
// Determinism  bitwise given both launches: a thread sums elements in order, then warps, then trees
// Numerics     float32; the mean is the sum divided by the rounded B D; root correctly rounded
#include "bus.cuh"
#include "common.cuh"

namespace {

__device__ __forceinline__ unsigned blocks_of(int B, int D) {
  const size_t size = static_cast<size_t>(B) * static_cast<size_t>(D);
  return size < 128 * 1024 ? static_cast<unsigned>((size + 1023) / 1024) : 128;
}

}  // namespace

extern "C" __global__ void rms_parts(const float* __restrict__ h, float* __restrict__ parts, int B,
                                     int D) {
  __shared__ float slots[32];
  const size_t size = static_cast<size_t>(B) * static_cast<size_t>(D);
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  const size_t first = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  float sum = 0.0f;
  if (size % 4 == 0 && reinterpret_cast<size_t>(h) % 16 == 0) {
    const float4* quads = reinterpret_cast<const float4*>(h);
    for (size_t i = first; i < size / 4; i += stride) {
      const float4 q = quads[i];
      sum = ((sum + fabsf(q.x)) + fabsf(q.y)) + (fabsf(q.z) + fabsf(q.w));
    }
  } else {
    for (size_t i = first; i < size; i += stride) sum += fabsf(h[i]);
  }
  sum = trueup::block_sum(sum, slots);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

extern "C" __global__ void rms_ema(const float* __restrict__ parts, float* __restrict__ isv,
                                   int B, int D) {
  constexpr float kAlpha = 0.05f;
  __shared__ float slots[32];
  float sum = 0.0f;
  for (unsigned i = threadIdx.x; i < blocks_of(B, D); i += blockDim.x) {
    sum += parts[i];
  }
  sum = trueup::block_sum(sum, slots);
  if (threadIdx.x != 0) return;
  const float rms = sum / (static_cast<float>(B) * static_cast<float>(D));
  const float ema = isv[SLOT_H_S2_RMS_EMA];
  isv[SLOT_H_S2_RMS_EMA] = ema <= 0.0f ? rms : trueup::blend(ema, rms, kAlpha);
  __threadfence_system();
}
