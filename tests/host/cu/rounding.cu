// Operations that name their rounding, and conversions to integers.
extern "C" __global__ void rounded(const float* a, const float* b, const float* c, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float* out = y + 16 * i;
  out[0] = __fadd_rz(a[i], b[i]);
  out[1] = __fadd_ru(a[i], b[i]);
  out[2] = __fadd_rd(a[i], b[i]);
  out[3] = __fmul_rz(a[i], b[i]);
  out[4] = __fmul_ru(a[i], b[i]);
  out[5] = __fmul_rd(a[i], b[i]);
  out[6] = __fdiv_rz(a[i], b[i]);
  out[7] = __fdiv_ru(a[i], b[i]);
  out[8] = __fdiv_rd(a[i], b[i]);
  out[9] = __fmaf_rz(a[i], b[i], c[i]);
  out[10] = __fmaf_ru(a[i], b[i], c[i]);
  out[11] = __fmaf_rd(a[i], b[i], c[i]);
  out[12] = __fsqrt_rz(fabsf(a[i]));
  out[13] = __fsqrt_ru(fabsf(a[i]));
  out[14] = __fmaf_rn(a[i], b[i], c[i]);
  out[15] = __frcp_rn(a[i]);
}

extern "C" __global__ void to_integers(const float* x, int* y, unsigned* u, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  y[4 * i] = __float2int_rn(x[i]);
  y[4 * i + 1] = __float2int_rz(x[i]);
  y[4 * i + 2] = __float2int_ru(x[i]);
  y[4 * i + 3] = __float2int_rd(x[i]);
  u[i] = __float2uint_rn(x[i]);
}

extern "C" __global__ void bits(const int* x, const int* z, int* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int* out = y + 12 * i;
  out[0] = __popc(x[i]);
  out[1] = __clz(x[i]);
  out[2] = __ffs(x[i]);
  out[3] = (int)__brev((unsigned)x[i]);
  out[4] = __mulhi(x[i], z[i]);
  out[5] = (int)__umulhi((unsigned)x[i], (unsigned)z[i]);
  out[6] = (int)__byte_perm((unsigned)x[i], (unsigned)z[i], 0x6021u);
  out[7] = (int)__funnelshift_l((unsigned)x[i], (unsigned)z[i], 9);
  out[8] = (int)__funnelshift_r((unsigned)x[i], (unsigned)z[i], 9);
  out[9] = __float_as_int(__int_as_float(x[i]));
  out[10] = __hadd(x[i], z[i]);
  out[11] = __dp4a(x[i], z[i], 5);
}

extern "C" __global__ void extremes(const float* a, const float* b, float* y, int n) {
  const int i = threadIdx.x;
  if (i >= n) return;
  y[4 * i] = max(a[i], b[i]);
  y[4 * i + 1] = min(a[i], b[i]);
  y[4 * i + 2] = rsqrtf(fabsf(a[i]) + 0.25f);
  y[4 * i + 3] = (isnan(a[i]) ? 1 : 0) + (isinf(b[i]) ? 2 : 0) + (isfinite(a[i]) ? 4 : 0) +
                 max(i, 3) + (int)min(7u, (unsigned)i);
}
