// What CUDA C++ allows and g++ does not know by itself.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "headers/tile.cuh"
#ifndef SCALE
#define SCALE 1
#endif

namespace shapes {
struct Affine {
  double scale;
  float shift;
  int count;
};
template <typename T, int kLanes>
__global__ void fill(T* y, T value, int n) {
  const int i = blockIdx.x * kLanes + threadIdx.x;
  if (i < n && threadIdx.x < kLanes) y[i] = value;
}
}  // namespace shapes

__global__ void affine(const float* x, float* y, shapes::Affine p) {
  const int i = threadIdx.x;
  if (i < p.count) y[i] = static_cast<float>(p.scale * x[i] + p.shift);
}

__constant__ float weights[4] = {1.0f, 2.0f, 4.0f, 8.0f};
__device__ int calls = 0;
extern "C" __global__ void constants(float* y) {
  y[threadIdx.x] = weights[threadIdx.x % 4] * SCALE;
  if (threadIdx.x == 0) y[0] = atomicAdd(&calls, 1);
}

extern __shared__ unsigned char file_scope[];
extern "C" __global__ void shared_at_file_scope(const int* x, int* y, int n) {
  int* s = reinterpret_cast<int*>(file_scope);
  const int t = threadIdx.x;
  if (t < n) s[t] = x[t];
  __syncthreads();
  if (t < n) y[t] = s[n - 1 - t];
}

__shared__ int counted[2];
extern "C" __global__ void static_shared_at_file_scope(int* y) {
  if (threadIdx.x == 0) counted[0] = 0;
  __syncthreads();
  atomicAdd(&counted[0], 1);
  __syncthreads();
  y[threadIdx.x] = counted[0];
  if (threadIdx.x == 1) y[1] = counted[1];
}

template <typename T>
__global__ void reverse_tile(const T* x, T* y, int n) {
  T* s = dynamic_tile<T>();
  const int t = threadIdx.x;
  if (t < n) s[t] = x[t];
  __syncthreads();
  if (t < n) y[t] = s[n - 1 - t];
}

extern "C" __global__ void aligned_shared(float* y) {
  __shared__ alignas(16) float a[8];
  static __shared__ float b[8];
  __shared__ __align__(16) float4 c[2];
  const int t = threadIdx.x;
  a[t] = t;
  b[t] = 2.0f * t;
  if (t < 2) c[t] = make_float4(1.0f, 2.0f, 3.0f, 4.0f);
  __syncthreads();
  const float4 v = reinterpret_cast<const float4*>(a)[t / 4];
  y[t] = v.x + b[t] + c[t / 4].w;
}

__noinline__ __device__ uint3 place() { return threadIdx; }
extern "C" __global__ void indices(int* y) {
  const uint3 at = place();
  const dim3 shape = blockDim;
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (at.z * shape.y + at.y) * shape.x + at.x;
  y[block * (shape.x * shape.y * shape.z) + thread] = 1000 * block + thread;
}

extern "C" __global__ void many_kinds(char a, short b, long long c, bool d, __half e, double f,
                                      const float4* g, void* h, unsigned char* y) {
  if (threadIdx.x == 0) y[0] = a + b + (unsigned char)c + d + (int)__half2float(e) + (int)f;
}
