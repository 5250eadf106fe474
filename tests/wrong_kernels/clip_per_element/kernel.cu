// WRONG ON PURPOSE: each element is limited by itself
//
// adaptive_clip: a gradient scaled down to a threshold that follows its running norm.
//
// Equation     ISV programme, adaptive clip:
//                thr = fast > 0 ? max(c_min, c_mult fast) : c_init
//                g = g min(1, thr / (norm + 1e-12))
// Reference    isv.adaptive_clip
// Shapes       g (n), in place; norm, fast (1): the average is the one before this step's update
// Launch       1-D grid of any size, any block; capturable
// NaN          a NaN norm makes the gradient NaN
// Determinism  bitwise
// Numerics     float32; a scale of 1 writes nothing, so that every bit stays
extern "C" __global__ void adaptive_clip(float* __restrict__ g, const float* __restrict__ norm,
                                         const float* __restrict__ fast, int n) {
  constexpr float kMultiple = 2.0f;
  constexpr float kLeast = 1e-3f;
  constexpr float kInitial = 1.0f;
  const float wanted = kMultiple * *fast;
  const float floored = wanted < kLeast ? kLeast : wanted;
  const float threshold = *fast <= 0.0f ? kInitial : floored;
  const float scale = threshold / (*norm + 1e-12f);
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < static_cast<size_t>(n); i += stride) {
    g[i] = g[i] > threshold ? threshold : (g[i] < -threshold ? -threshold : g[i]);
  }
}
