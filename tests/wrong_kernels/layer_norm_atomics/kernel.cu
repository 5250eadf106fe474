// WRONG ON PURPOSE: dgamma and dbeta are summed by atomicAdd, in whatever order blocks come, and
// the contract declares bitwise determinism.
//
// Launch       one thread for each column, to zero the sums; then one block of a warp for each row
extern "C" __global__ void zero(float* __restrict__ dgamma, float* __restrict__ dbeta, int D) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= D) return;
  dgamma[column] = 0.0f;
  dbeta[column] = 0.0f;
}

extern "C" __global__ void rows(const float* __restrict__ d_out, const float* __restrict__ xhat,
                                const float* __restrict__ rstd, const float* __restrict__ gamma,
                                float* __restrict__ dy, float* __restrict__ dgamma,
                                float* __restrict__ dbeta, int B, int D) {
  const int row = blockIdx.x;
  const int first = row * D;
  float sum = 0.0f;
  float projection = 0.0f;
  for (int i = threadIdx.x; i < D; i += 32) {
    const float g = d_out[first + i] * gamma[i];
    sum += g;
    projection = fmaf(g, xhat[first + i], projection);
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    projection += __shfl_xor_sync(0xffffffffu, projection, offset);
  }
  const float mean = sum / static_cast<float>(D);
  const float mean_xhat = projection / static_cast<float>(D);
  for (int i = threadIdx.x; i < D; i += 32) {
    const float g = d_out[first + i] * gamma[i];
    dy[first + i] = rstd[row] * fmaf(-mean_xhat, xhat[first + i], g - mean);
    atomicAdd(&dgamma[i], d_out[first + i] * xhat[first + i]);
    atomicAdd(&dbeta[i], d_out[first + i]);
  }
}
