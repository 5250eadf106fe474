// One defect each. The comment on a line is what the test looks for.
extern "C" __global__ void store_past_end(float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) y[i] = 1.0f;  // store_past_end
}

extern "C" __global__ void store_before(float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i - 1] = 1.0f;  // store_before
}

extern "C" __global__ void load_past_end(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i + 1];  // load_past_end
}

extern "C" __global__ void far_store(float* y, int n) {
  if (threadIdx.x == 0) y[(size_t)n + 40000] = 1.0f;  // far_store
}

extern "C" __global__ void shared_index(float* y) {
  __shared__ float s[256];
  const int t = threadIdx.x;
  s[t] = t;
  __syncthreads();
  y[t] = s[t + 1];  // shared_index
}

__device__ float next_of(const float* p, int t) {
  return p[t + 1];  // shared_pointer
}
extern "C" __global__ void shared_pointer(float* y) {
  __shared__ float s[256];
  const int t = threadIdx.x;
  s[t] = t;
  __syncthreads();
  y[t] = next_of(s, t);
}

extern "C" __global__ void dynamic_past_end(float* y) {
  extern __shared__ float d[];
  const int t = threadIdx.x;
  d[t + 1] = t;  // dynamic_past_end
  __syncthreads();
  y[t] = d[t];
}

extern "C" __global__ void misaligned(const float* x, float* y) {
  const float4 v = *reinterpret_cast<const float4*>(x + 1);  // misaligned
  y[0] = v.x + v.y + v.z + v.w;
}

extern "C" __global__ void float_to_int(const float* x, int* y) {
  y[0] = (int)x[0];  // float_to_int
}

extern "C" __global__ void signed_overflow(int* y, int n) {
  y[0] = n + 1;  // signed_overflow
}

extern "C" __global__ void wide_shift(int* y, int n) {
  y[0] = 1 << n;  // wide_shift
}

extern "C" __global__ void null_store(float* y, int n) {
  float* p = n > 0 ? nullptr : y;
  *p = 1.0f;  // null_store
}

extern "C" __global__ void divide_by_zero(int* y, int n) {
  y[threadIdx.x] = 7 / (n - (int)threadIdx.x);  // divide_by_zero
}

extern "C" __global__ void uninitialised_shared(float* y) {
  __shared__ float s[64];
  const int t = threadIdx.x;
  if (t % 8) s[t] = t;
  __syncthreads();
  y[t] = s[t];
}

extern "C" __global__ void unwritten_tail(float* y, int n) {
  const int i = threadIdx.x;
  if (i < n - 3) y[i] = 1.0f;
}

extern "C" __global__ void missing_barrier(const float* x, float* y) {
  __shared__ float s[256];
  const int t = threadIdx.x;
  s[t] = x[t];
  y[t] = s[255 - t];
}

// Written and read again with no barrier between the read and the next write.
extern "C" __global__ void missing_second_barrier(const float* x, float* y) {
  __shared__ float s[256];
  const int t = threadIdx.x;
  float sum = 0.0f;
  for (int round = 0; round < 4; ++round) {
    s[t] = x[t] + round;
    __syncthreads();
    sum += s[255 - t];
  }
  y[t] = sum;
}

extern "C" __global__ void missing_syncwarp(const float* x, float* y) {
  volatile __shared__ float s[32];
  const int t = threadIdx.x;
  s[t] = x[t];
  if (t < 16) s[t] = s[t] + s[t + 16];
  y[t] = s[t];
}

extern "C" __global__ void divergent_barrier(float* y) {
  if (threadIdx.x < 128) {
    y[threadIdx.x] = 1.0f;
    __syncthreads();  // divergent_barrier a
  } else {
    __syncthreads();  // divergent_barrier b
    y[threadIdx.x] = 2.0f;
  }
}

extern "C" __global__ void half_a_warp(float* y) {
  float v = threadIdx.x;
  if (threadIdx.x % 32 < 16) v += __shfl_xor_sync(0xffffffffu, v, 1);  // half_a_warp
  __syncthreads();
  y[threadIdx.x] = v;
}

extern "C" __global__ void not_in_mask(float* y) {
  y[threadIdx.x] = __shfl_sync(0x0000ffffu, 1.0f, 0);  // not_in_mask
}

extern "C" __global__ void mixed_operations(int* y) {
  int v = 1;
  if (threadIdx.x < 16)
    v = __any_sync(0xffffffffu, 1);  // mixed_operations a
  else
    v = __all_sync(0xffffffffu, 1);  // mixed_operations b
  y[threadIdx.x] = v;
}

extern "C" __global__ void bad_width(int* y) {
  y[threadIdx.x] = __shfl_sync(0xffffffffu, 1, 0, 24);  // bad_width
}

extern "C" __global__ void reads_absent_lane(float* y) {
  const int t = threadIdx.x;
  y[t] = 0.0f;
  if (t < 8) y[t] = __shfl_sync(0x000000ffu, 1.0f, t + 4);
}

extern "C" __global__ void spins(volatile int* flag, int* y) {
  if (threadIdx.x == 0)
    while (*flag == 0) {  // spins
    }
  else
    *flag = 1;
  y[threadIdx.x] = 1;
}

extern "C" __global__ void loops_with_barrier(int* y) {
  for (;;) __syncthreads();  // loops_with_barrier
}

extern "C" __global__ void changes_input(const float* x, float* y) {
  const_cast<float*>(x)[3] = 9.0f;
  y[0] = 1.0f;
}

__device__ int deeper(volatile int* p, int depth) {
  volatile int room[64];
  room[depth % 64] = depth;
  const int below = p[0] + depth < 0 ? 0 : deeper(p, depth + 1);  // stack_overflow
  return below + room[(depth + 1) % 64];
}
extern "C" __global__ void stack_overflow(int* y) { y[0] = deeper(y, 1); }

extern "C" __global__ void traps(int* y) {
  y[0] = 1;
  if (threadIdx.x == 1) __trap();  // traps
}

__device__ __noinline__ void fill(float* p, int n) {
  for (int i = 0; i < n; ++i) p[i] = i;
}
extern "C" __global__ void local_overrun(float* y, int n) {
  float row[8];
  fill(row, n);
  y[threadIdx.x] = row[threadIdx.x % 8];
}

extern "C" __global__ void good(float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = i;
}
