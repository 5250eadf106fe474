// Conversions and arithmetic of the 16-bit formats.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void decode(const __half* h, const __nv_bfloat16* b, float* yh, float* yb,
                                  int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  yh[i] = __half2float(h[i]);
  yb[i] = __bfloat162float(b[i]);
}

extern "C" __global__ void encode(const float* x, const double* d, __half* h, __nv_bfloat16* b,
                                  __half* hd, __nv_bfloat16* bd, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  h[i] = __float2half(x[i]);
  b[i] = __float2bfloat16(x[i]);
  hd[i] = __double2half(d[i]);
  bd[i] = __double2bfloat16(d[i]);
}

extern "C" __global__ void directed(const float* x, __half* rz, __half* ru, __half* rd, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  rz[i] = __float2half_rz(x[i]);
  ru[i] = __float2half_ru(x[i]);
  rd[i] = __float2half_rd(x[i]);
}

template <typename T>
__global__ void arithmetic(const T* a, const T* b, const T* c, T* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  T* out = y + 6 * i;
  out[0] = __hadd(a[i], b[i]);
  out[1] = __hsub(a[i], b[i]);
  out[2] = __hmul(a[i], b[i]);
  out[3] = __hdiv(a[i], b[i]);
  out[4] = __hfma(a[i], b[i], c[i]);
  out[5] = hsqrt(__habs(a[i]));
}

extern "C" __global__ void pairs(const __half2* a, const __half2* b, __half2* y, float2* f, int* flags) {
  const int i = threadIdx.x;
  y[3 * i] = __hadd2(a[i], b[i]);
  y[3 * i + 1] = __hfma2(a[i], b[i], __float2half2_rn(1.0f));
  y[3 * i + 2] = __hmax2(a[i], __lowhigh2highlow(b[i]));
  f[i] = __half22float2(a[i]);
  flags[i] = __hbgt2(a[i], b[i]) + 2 * (__low2float(a[i]) > __high2float(b[i]));
}
