// greedy.cuh: the best of a few values that stand side by side.
#pragma once

namespace trueup {

// The index of the largest, the lowest among equals; the first NaN where there is one, as an
// argmax does.
__device__ __forceinline__ unsigned first_largest(const float* __restrict__ values, unsigned n) {
  unsigned best = 0;
  float top = values[0];
  for (unsigned i = 1; i < n; ++i) {
    const float value = values[i];
    if (value >= top || (value != value && top == top)) {
      top = value;
      best = i;
    }
  }
  return best;
}

}  // namespace trueup
