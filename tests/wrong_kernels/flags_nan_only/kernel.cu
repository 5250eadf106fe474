// WRONG ON PURPOSE: infinity counts as a number
//
// nan_flags: set a tensor's flag where any element is NaN or infinite, and keep the first step.
//
// Equation     DQN programme, NaN flag buffer:
//                flags[slot] = 1 where any x_i is NaN or infinite, else as it was
//                first_seen[slot] = step where it was below 0 and something was found
// Reference    dqn.nan_flags
// Shapes       x (n); flags, first_seen (48) int, updated in place; slot, step (1) int, on the device
// Launch       1-D grid of any size, any block size; a thread goes over quads in strides of the grid
// Traffic      x is read once: 4 n bytes
// Determinism  bitwise: every writer stores the same two values, so that no atomic is needed
// Numerics     bit masks alone: exponent all ones. Holds under any floating-point flags
#include "common.cuh"

namespace {

constexpr int kSlots = 48;

__device__ __forceinline__ bool no_number(float x) {
  return (__float_as_uint(x) & 0x7fffffffu) > 0x7f800000u;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256)
    nan_flags(const float* __restrict__ x, int* __restrict__ flags, int* __restrict__ first_seen,
              const int* __restrict__ slot, const int* __restrict__ step, int n) {
  const size_t size = static_cast<size_t>(n);
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  const size_t first = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const size_t quads = trueup::aligned16(x) ? size / 4 : 0;
  bool found = false;
#pragma unroll 4
  for (size_t i = first; i < quads; i += stride) {
    const float4 q = trueup::load<trueup::Reuse::kOnce>(reinterpret_cast<const float4*>(x) + i);
    found |= no_number(q.x) | no_number(q.y) | no_number(q.z) | no_number(q.w);
  }
  for (size_t i = 4 * quads + first; i < size; i += stride) found |= no_number(x[i]);
  const int at = *slot;
  if (!found || at < 0 || at >= kSlots) return;
  flags[at] = 1;
  if (first_seen[at] < 0) first_seen[at] = *step;
}
