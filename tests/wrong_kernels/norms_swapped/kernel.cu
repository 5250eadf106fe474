// WRONG ON PURPOSE: direction stands before magnitude
//
// grad_norms: L2 norms of four gradients over two slices, in the programme's fixed order.
//
// Equation     DQN programme, gradient decomposition:
//                norms[2 c + s] = sqrt(sum over slice s of g[c]^2)
// Reference    dqn.grad_norms; the bits are those of `fixed_tree`: 256 strided sums of each slice,
//              each added in the order of its elements, then a tree of 128, 64, ..., 1
// Shapes       g (4, n) row-major; slices (2, 2) int, [start, end) in elements; norms (8);
//              workspace parts (8, 256)
// Launch       first: 128 blocks of 128 threads and 98304 bytes of shared memory. A block keeps 16
//              of the 256 sums of one norm: warp 0 adds, the others bring stages of 512 rows. The
//              order of one sum cannot be split, but the sums are spread over all SMs.
//              Then 8 blocks of 256 threads, one a norm
// Traffic      the slices are read once: 4 bytes an element
// Determinism  bitwise, and the same bits as one block of 256 threads
// Numerics     float32; squares and sums are rounded one by one; root correctly rounded. What
//              overflows is inf
#include "stage.cuh"

namespace {

constexpr unsigned kSums = 256;    // strided sums of a norm
constexpr unsigned kColumns = 16;  // of them, in one block
constexpr unsigned kRows = 512;    // of a stage
constexpr unsigned kStages = 3;    // 32768 bytes each
constexpr unsigned kPieces = kRows * kColumns / 4;

// Brings one element, 0 where there is none.
__device__ __forceinline__ void bring_one(float* to, const float* from, bool there) {
#ifdef __CUHOST__
  *to = there ? *from : 0.0f;
#else
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  const unsigned bytes = there ? 4 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(from), "r"(bytes)
               : "memory");
#endif
}

// Brings rows of `slice` from `row` on: column c of row r is element 256 r + first + c.
template <bool kVector>
__device__ __forceinline__ void bring(float* stage, const float* slice, size_t length, size_t row,
                                      unsigned first) {
  const unsigned movers = blockDim.x - trueup::kWarp;
  for (unsigned piece = threadIdx.x - trueup::kWarp; piece < kPieces; piece += movers) {
    const size_t at = (row + piece / 4) * kSums + first + piece % 4 * 4;
    const size_t left = at < length ? length - at : 0;
    const unsigned there = left < 4 ? static_cast<unsigned>(left) : 4;
    float* const to = stage + 4 * piece;
    if (kVector && (there == 4 || there == 0)) {
      trueup::transfer<true>(to, there ? slice + at : slice, there);
    } else {
#pragma unroll
      for (unsigned i = 0; i < 4; ++i) {
        bring_one(to + i, i < there ? slice + at + i : slice, i < there);
      }
    }
  }
}

// Adds the column of this lane, rows in order; rows beyond the slice hold 0, which adds nothing.
__device__ __forceinline__ float add_rows(const float* column, float sum) {
#pragma unroll 32
  for (unsigned row = 0; row < kRows; ++row) {
    const float x = column[row * kColumns];
    sum = __fadd_rn(sum, __fmul_rn(x, x));
  }
  return sum;
}

template <bool kVector>
__device__ __forceinline__ float sums(float* ring, const float* slice, size_t length,
                                      unsigned first) {
  const size_t rows = (length + kSums - 1) / kSums;
  const size_t stages = (rows + kRows - 1) / kRows;
  const bool mover = threadIdx.x >= trueup::kWarp;
  float sum = 0.0f;
  for (unsigned s = 0; s + 1 < kStages; ++s) {
    if (mover && s < stages) {
      bring<kVector>(ring + s * kRows * kColumns, slice, length, s * kRows, first);
    }
    trueup::transfers_commit();
  }
  for (size_t s = 0; s < stages; ++s) {
    trueup::transfers_wait<kStages - 2>();
    __syncthreads();  // stage s is there, and warp 0 has left the one that is filled next
    const size_t next = s + kStages - 1;
    if (mover) {
      if (next < stages) {
        bring<kVector>(ring + next % kStages * kRows * kColumns, slice, length, next * kRows,
                       first);
      }
    } else if (threadIdx.x < kColumns) {
      sum = add_rows(ring + s % kStages * kRows * kColumns + threadIdx.x, sum);
    }
    trueup::transfers_commit();
  }
  return sum;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(128)
    grad_norms_parts(const float* __restrict__ g, const int* __restrict__ slices,
                     float* __restrict__ parts, int n) {
  extern __shared__ float4 ring[];
  const unsigned norm = blockIdx.x / (kSums / kColumns);
  const unsigned first = blockIdx.x % (kSums / kColumns) * kColumns;
  const size_t start = static_cast<size_t>(slices[(1 - norm % 2) * 2]);
  const size_t end = static_cast<size_t>(slices[(1 - norm % 2) * 2 + 1]);
  const float* const slice = g + norm / 2 * static_cast<size_t>(n) + start;
  const size_t length = end > start ? end - start : 0;
  float* const floats = reinterpret_cast<float*>(ring);
  const float sum = trueup::aligned16(slice) ? sums<true>(floats, slice, length, first)
                                             : sums<false>(floats, slice, length, first);
  if (threadIdx.x < kColumns) parts[norm * kSums + first + threadIdx.x] = sum;
}

extern "C" __global__ void __launch_bounds__(256)
    grad_norms_tree(const float* __restrict__ parts, float* __restrict__ norms) {
  __shared__ float sum[kSums];
  const unsigned t = threadIdx.x;
  sum[t] = parts[blockIdx.x * kSums + t];
  for (unsigned half = kSums / 2; half > 0; half /= 2) {
    __syncthreads();
    if (t < half) sum[t] = __fadd_rn(sum[t], sum[t + half]);
  }
  if (t == 0) norms[blockIdx.x] = __fsqrt_rn(sum[0]);
}
