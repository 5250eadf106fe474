// WRONG ON PURPOSE: the delta term is taken on the left, g g^T m, another rule than the declared
// m g^T g: m' = alpha m - eta ||x||^2 u (u^T m) - eta u x^T.
//
// Launch       one thread for each column, then one for each element
extern "C" __global__ void column_products(const float* __restrict__ m,
                                           const float* __restrict__ u, float* __restrict__ um,
                                           int d_out, int d_in) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= d_in) return;
  float sum = 0.0f;
  for (int row = 0; row < d_out; ++row) sum = fmaf(u[row], m[row * d_in + column], sum);
  um[column] = sum;
}

extern "C" __global__ void update(float* __restrict__ m, float* __restrict__ W,
                                  const float* __restrict__ u, const float* __restrict__ x,
                                  const float* __restrict__ um, float alpha, float eta, int d_out,
                                  int d_in) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= d_out * d_in) return;
  const int row = at / d_in;
  const int column = at % d_in;
  float norm = 0.0f;
  for (int i = 0; i < d_in; ++i) norm = fmaf(x[i], x[i], norm);
  const float next = fmaf(-eta * u[row], fmaf(norm, um[column], x[column]), alpha * m[at]);
  m[at] = next;
  W[at] += next;
}
