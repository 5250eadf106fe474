// What the order of blocks and threads makes visible.
extern "C" __global__ void arrivals(int* blocks, int* threads, int* count) {
  if (threadIdx.x == 0) blocks[blockIdx.x] = atomicAdd(&count[0], 1);
  if (blockIdx.x == 0) threads[threadIdx.x] = atomicAdd(&count[1], 1);
}

// Block 0 leaves something in shared memory; no later block may find it there.
extern "C" __global__ void left_over(float* seen, float* seen_dynamic) {
  __shared__ float s[8];
  extern __shared__ float d[];
  seen[blockIdx.x * 8 + threadIdx.x] = s[threadIdx.x];
  seen_dynamic[blockIdx.x * 8 + threadIdx.x] = d[threadIdx.x];
  s[threadIdx.x] = d[threadIdx.x] = 1.0f;
}

// The order in which the warps of a block come through a chain of shuffles.
extern "C" __global__ void interleaving(int* trace, int* count) {
  int v = threadIdx.x;
  for (int round = 0; round < 4; ++round) {
    v += __shfl_xor_sync(0xffffffffu, v, 1);
    if (threadIdx.x % 32 == 0) trace[atomicAdd(count, 1)] = threadIdx.x / 32;
  }
}

extern "C" __global__ void load_through_cache(const float* x, float* y, int n) {
  y[threadIdx.x] = __ldg(&x[threadIdx.x + n]);  // load_through_cache
}
extern "C" __global__ void atomic_past_end(float* y, int n) {
  atomicAdd(&y[n], 1.0f);  // atomic_past_end
}
