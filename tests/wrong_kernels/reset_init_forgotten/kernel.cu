// WRONG ON PURPOSE: a soft reset draws towards zero
//
// soft_reset: state at the boundary of a fold, kept, drawn towards its initial value, or set to it.
//
// Equation     ISV programme, StateResetRegistry: x = init + kappa (x - init)
//              kappa = 1 is a skip and kappa = 0 an assignment, bit for bit
// Reference    isv.soft_reset
// Shapes       state (n), in place; init, kappa (n)
// Launch       1-D grid of any size, any block; capturable
// Determinism  bitwise
// Numerics     float32; the distance is rounded, the sum fused
extern "C" __global__ void soft_reset(float* __restrict__ state, const float* __restrict__ init,
                                      const float* __restrict__ kappa, int n) {
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < static_cast<size_t>(n); i += stride) {
    const float k = kappa[i];
    if (k == 1.0f) continue;
    state[i] = k == 0.0f ? init[i] : k * state[i];
  }
}
