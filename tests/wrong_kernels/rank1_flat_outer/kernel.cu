// WRONG ON PURPOSE: the delta term is flattened, <g, m> g: the delta rule of a scalar-valued
// memory, as found in the wild: m' = alpha m - (u^T m x + eta) u x^T.
//
// Launch       one thread, then one for each element
extern "C" __global__ void inner_product(const float* __restrict__ m, const float* __restrict__ u,
                                         const float* __restrict__ x, float* __restrict__ umx,
                                         int d_out, int d_in) {
  float sum = 0.0f;
  for (int row = 0; row < d_out; ++row) {
    float dot = 0.0f;
    for (int column = 0; column < d_in; ++column) {
      dot = fmaf(m[row * d_in + column], x[column], dot);
    }
    sum = fmaf(u[row], dot, sum);
  }
  *umx = sum;
}

extern "C" __global__ void update(float* __restrict__ m, float* __restrict__ W,
                                  const float* __restrict__ u, const float* __restrict__ x,
                                  const float* __restrict__ umx, float alpha, float eta, int d_out,
                                  int d_in) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= d_out * d_in) return;
  const float next = fmaf(-(*umx + eta) * u[at / d_in], x[at % d_in], alpha * m[at]);
  m[at] = next;
  W[at] += next;
}
