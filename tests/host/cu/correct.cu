// Correct kernels of the usual shapes: they must give the same bits in every order of threads.
#include <cuda_bf16.h>

extern "C" __global__ void saxpy(const float* __restrict__ x, float* __restrict__ y, float a,
                                 int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = __fadd_rn(__fmul_rn(a, x[i]), y[i]);
}

extern "C" __global__ void block_reduce(const float* x, float* y, int n) {
  __shared__ float s[256];
  const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  s[t] = i < n ? x[i] : 0.0f;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (t < half) s[t] += s[t + half];
    __syncthreads();
  }
  if (t == 0) y[blockIdx.x] = s[0];
}

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes >>= 1) v += __shfl_xor_sync(0xffffffffu, v, lanes);
  return v;
}

extern "C" __global__ void __launch_bounds__(256) warp_reduce(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float sum = warp_sum(i < n ? x[i] : 0.0f);
  if (threadIdx.x % 32 == 0) y[i / 32] = sum;
}

// One block per row: maximum, sum of exponentials, division.
template <int kThreads> __device__ float block_fold(float v, bool maximum) {
  __shared__ float partial[kThreads / 32];
  for (int lanes = 16; lanes > 0; lanes >>= 1) {
    const float other = __shfl_xor_sync(0xffffffffu, v, lanes);
    v = maximum ? fmaxf(v, other) : v + other;
  }
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
  __syncthreads();
  v = partial[0];
  for (int w = 1; w < kThreads / 32; ++w) v = maximum ? fmaxf(v, partial[w]) : v + partial[w];
  __syncthreads();
  return v;
}

extern "C" __global__ void row_softmax(const __nv_bfloat16* x, __nv_bfloat16* y, int columns) {
  const __nv_bfloat16* row = x + (size_t)blockIdx.x * columns;
  float top = -INFINITY;
  for (int c = threadIdx.x; c < columns; c += blockDim.x) top = fmaxf(top, __bfloat162float(row[c]));
  top = block_fold<128>(top, true);
  float sum = 0.0f;
  for (int c = threadIdx.x; c < columns; c += blockDim.x) sum += expf(__bfloat162float(row[c]) - top);
  sum = block_fold<128>(sum, false);
  for (int c = threadIdx.x; c < columns; c += blockDim.x)
    y[(size_t)blockIdx.x * columns + c] =
        __float2bfloat16(expf(__bfloat162float(row[c]) - top) / sum);
}

// C (m, n) = A (m, k) B (k, n) in tiles of blockDim, held in dynamic shared memory.
extern "C" __global__ void matmul(const float* a, const float* b, float* c, int m, int n, int k) {
  extern __shared__ __align__(16) float tiles[];
  const int edge = blockDim.x, tx = threadIdx.x, ty = threadIdx.y;
  float *left = tiles, *right = tiles + edge * edge;
  const int row = blockIdx.y * edge + ty, column = blockIdx.x * edge + tx;
  float sum = 0.0f;
  for (int at = 0; at < k; at += edge) {
    left[ty * edge + tx] = row < m && at + tx < k ? a[row * k + at + tx] : 0.0f;
    right[ty * edge + tx] = at + ty < k && column < n ? b[(at + ty) * n + column] : 0.0f;
    __syncthreads();
    for (int i = 0; i < edge; ++i) sum = fmaf(left[ty * edge + i], right[i * edge + tx], sum);
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}

// Inclusive scan of one block's elements.
extern "C" __global__ void scan(const int* x, int* y, int n) {
  __shared__ int warp_totals[32];
  const int t = threadIdx.x, lane = t % 32, warp = t / 32, i = blockIdx.x * blockDim.x + t;
  int v = i < n ? x[i] : 0;
  for (int step = 1; step < 32; step *= 2) {
    const int other = __shfl_up_sync(0xffffffffu, v, step);
    if (lane >= step) v += other;
  }
  if (lane == 31) warp_totals[warp] = v;
  __syncthreads();
  for (int w = 0; w < warp; ++w) v += warp_totals[w];
  if (i < n) y[i] = v;
}

// The last block to finish adds up the others' results.
__device__ unsigned int finished;
extern "C" __global__ void last_block_sum(const float* x, volatile float* partial, float* total,
                                          int n) {
  __shared__ bool is_last;
  if (threadIdx.x == 0) {
    float sum = 0.0f;
    for (int i = blockIdx.x; i < n; i += gridDim.x) sum += x[i];
    partial[blockIdx.x] = sum;
    __threadfence();
    is_last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (is_last && threadIdx.x == 0) {
    float sum = 0.0f;
    for (unsigned b = 0; b < gridDim.x; ++b) sum += partial[b];
    *total = sum;
  }
}

// Four elements at a time and a scalar tail: needs the alignment of an allocation.
extern "C" __global__ void vector_copy(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (4 * i + 3 < n) {
    reinterpret_cast<float4*>(y)[i] = reinterpret_cast<const float4*>(x)[i];
  } else {
    for (int j = 4 * i; j < n; ++j) y[j] = x[j];
  }
}
