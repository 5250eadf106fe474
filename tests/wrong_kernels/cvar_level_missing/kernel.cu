// WRONG ON PURPOSE: the tail is not divided by its share
//
// cvar: mean of the worst share of outcomes, from quantiles at the five fixed levels.
//
// Equation     DQN programme, 10: with cell edges e = 0, .15, .375, .625, .85, 1
//                CVaR_a = (1/a) sum_i max(0, min(e_{i+1}, a) - e_i) theta_i
// Reference    dqn.cvar
// Shapes       theta (n, 5); level (1), above 0; cvar (n)
// Launch       1-D grid of any size; a thread for each row, going round
// Determinism  bitwise: no thread sees another's row
// Numerics     float32, the cells in order
namespace {

constexpr int kQuantiles = 5;

// By comparison: fminf would turn a NaN level into an edge.
__device__ __forceinline__ float share_of(float level, float low, float high) {
  const float reach = (level > high ? high : level) - low;
  return reach < 0.0f ? 0.0f : reach;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256)
    cvar(const float* __restrict__ theta, const float* __restrict__ level, float* __restrict__ out,
         int n) {
  const float a = *level;
  const float shares[kQuantiles] = {share_of(a, 0.0f, 0.15f), share_of(a, 0.15f, 0.375f),
                                    share_of(a, 0.375f, 0.625f), share_of(a, 0.625f, 0.85f),
                                    share_of(a, 0.85f, 1.0f)};
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t row = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       row < static_cast<size_t>(n); row += stride) {
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kQuantiles; ++i) sum = fmaf(shares[i], theta[row * kQuantiles + i], sum);
    out[row] = sum;
  }
}
