// grn.cuh: a gated residual network, forward and backward.
//
// One row of a batch is one sample. Products go through an engine, a block for each of its tiles:
// float32 by gemm.cuh, or tf32 factors on tensor cores by tensor_tiles.cuh. Those summed over the
// batch are cut into slices of rows, each with its own partial sums, which `sum_parts` adds in
// order. What runs along a row (GLU, layer norm) is one warp's work where a lane's registers hold
// the row, else one block's.
#pragma once

#include "gemm.cuh"
#include "tensor_tiles.cuh"

namespace trueup {
namespace grn {

constexpr unsigned kThreads = 256;
constexpr unsigned kWarps = kThreads / kWarp;
constexpr unsigned kHeld = 8;  // elements of a row in a lane's registers
constexpr unsigned kShortRow = kHeld * kWarp;

// An engine's product: emit(row, column, sum) for each element of a tile of A B, by its number.
struct Float32 {
  static constexpr int kM = 128, kN = 128;
  // Steps of k at once: fewer where both operands run along k, whose tiles are staged in registers
  // that the sums need.
  template <First kFirst, Second kSecond>
  static constexpr int kDepth = kFirst == First::kPlain && kSecond == Second::kTransposed ? 8 : 16;
  static constexpr int kQuads = Tile<kM, kN, 16, 1>::kQuadsShared;
  static_assert(Tile<kM, kN, 16, 1>::kThreads == kThreads, "a block is one tile's threads");

  template <First kFirst, Second kSecond, class Emit>
  static __device__ __forceinline__ void product(const float* A, const float* B, Sizes size,
                                                 unsigned first_m, unsigned first_n, float4* pool,
                                                 Emit emit) {
    const auto spread = [=](unsigned row, unsigned column, float4 sums) {
      const unsigned left = size.n - column;
      emit(row, column, sums.x);
      if (left > 1) emit(row, column + 1, sums.y);
      if (left > 2) emit(row, column + 2, sums.z);
      if (left > 3) emit(row, column + 3, sums.w);
    };
    constexpr int kSteps = kDepth<kFirst, kSecond>;
    const unsigned along_a = kFirst == First::kPlain ? size.k : size.m;
    const unsigned along_b = kSecond == Second::kPlain ? size.n : size.k;
    if (along_a % 4 == 0 && along_b % 4 == 0 && aligned16(A) && aligned16(B)) {
      gemm_tile<kM, kN, kSteps, 1, kFirst, kSecond, true>(A, B, size, first_m, first_n, pool,
                                                          spread);
    } else {
      gemm_tile<kM, kN, kSteps, 1, kFirst, kSecond, false>(A, B, size, first_m, first_n, pool,
                                                           spread);
    }
  }
};

struct Tf32 {
  static constexpr int kM = 128, kN = 64, kDepth = 16, kStages = 3;
  template <First kFirst, Second kSecond>
  using Product = TensorTile<kM, kN, kDepth, 1, kStages, kFirst == First::kPlain,
                             kSecond == Second::kTransposed, Precision::kTf32>;
  static constexpr int kQuads = Product<First::kPlain, Second::kTransposed>::kFloats / 4;

  template <First kFirst, Second kSecond, class Emit>
  static __device__ __forceinline__ void product(const float* A, const float* B, Sizes size,
                                                 unsigned first_m, unsigned first_n, float4* pool,
                                                 Emit emit) {
    using P = Product<kFirst, kSecond>;
    static_assert(P::kThreads == kThreads, "a block is one tile's threads");
    static_assert(P::kFloats <= 4 * kQuads, "the pool holds its stages");
    constexpr bool kPlainA = kFirst == First::kPlain;
    constexpr bool kPlainB = kSecond == Second::kPlain;
    const Operand a = {A, kPlainA ? size.m : size.k, kPlainA ? size.k : size.m, nullptr};
    const Operand b = {B, kPlainB ? size.k : size.n, kPlainB ? size.n : size.k, nullptr};
    P tile;
    tile.run(a, b, size.m, size.n, size.k, first_m, first_n, reinterpret_cast<float*>(pool));
    tile.each(size.m, size.n, [=](unsigned row, unsigned column, float first, float second) {
      emit(row, column, first);
      if (column + 1 < size.n) emit(row, column + 1, second);
    });
  }
};

template <class Engine>
__device__ __forceinline__ unsigned tiles_of(unsigned m, unsigned n) {
  return ((m - 1) / Engine::kM + 1) * ((n - 1) / Engine::kN + 1);
}

constexpr unsigned kSlices = 32, kSliceRows = 256, kRowBlocks = 264;

// Slices of the batch in sums over it, and blocks of the backward pass over rows, as launched.
__device__ __forceinline__ unsigned slices_of(unsigned batch) {
  const unsigned wanted = (batch - 1) / kSliceRows + 1;
  return wanted < kSlices ? wanted : kSlices;
}

__device__ __forceinline__ unsigned row_blocks_of(unsigned batch) {
  return batch < kRowBlocks ? batch : kRowBlocks;
}

__device__ __forceinline__ float sigmoid(float z) { return 1.0f / (1.0f + expf(-z)); }

__device__ __forceinline__ float elu(float z) { return z > 0.0f ? z : expm1f(z); }

// This block's tile of A B.
template <class Engine, First kFirst, Second kSecond, class Emit>
__device__ __forceinline__ void product(const float* A, const float* B, Sizes size, unsigned tile,
                                        float4* pool, Emit emit) {
  const unsigned across = (size.n - 1) / Engine::kN + 1;
  Engine::template product<kFirst, kSecond>(A, B, size, tile / across * Engine::kM,
                                            tile % across * Engine::kN, pool, emit);
}

// out = act(A W^T): `act` gives what is stored of a column's sum.
template <class Engine, class Act>
__device__ __forceinline__ void linear(const float* A, const float* W, float* out, Sizes size,
                                       float4* pool, Act act) {
  product<Engine, First::kPlain, Second::kTransposed>(
      A, W, size, blockIdx.x, pool, [=](unsigned row, unsigned column, float sum) {
        out[static_cast<size_t>(row) * size.n + column] = act(column, sum);
      });
}

// Slices of the batch in sums over it, and the rows of one.
struct Slice {
  unsigned first, rows;
  __device__ __forceinline__ Slice(unsigned number, unsigned slices, unsigned batch) {
    const unsigned each_has = (batch - 1) / slices + 1;
    first = number * each_has < batch ? number * each_has : batch;
    rows = batch - first < each_has ? batch - first : each_has;
  }
};

// part (slices, m, n) = left^T right over each slice, left (batch, m), right (batch, n): block
// `slice * tiles + tile`. Tells whether the block had such a tile.
template <class Engine>
__device__ __forceinline__ bool outer_sums(const float* left, const float* right, float* part,
                                           unsigned batch, unsigned m, unsigned n, unsigned slices,
                                           unsigned block, float4* pool) {
  const unsigned tiles = tiles_of<Engine>(m, n);
  if (block >= tiles * slices) return false;
  const Slice slice(block / tiles, slices, batch);
  float* const to = part + static_cast<size_t>(block / tiles) * m * n;
  product<Engine, First::kTransposed, Second::kPlain>(
      left + static_cast<size_t>(slice.first) * m, right + static_cast<size_t>(slice.first) * n,
      {m, n, slice.rows}, block % tiles, pool, [=](unsigned row, unsigned column, float sum) {
        to[static_cast<size_t>(row) * n + column] = sum;
      });
  return true;
}

// part (slices, n): sums of the columns of a matrix (batch, n) over each slice, 64 columns a block.
__device__ __forceinline__ void column_sums(const float* matrix, float* part, unsigned batch,
                                            unsigned n, unsigned slices, unsigned block,
                                            float* pool) {
  constexpr unsigned kColumns = 64, kGroups = kThreads / kColumns;
  const unsigned across = (n - 1) / kColumns + 1;
  const Slice slice(block / across, slices, batch);
  const unsigned column = block % across * kColumns + threadIdx.x % kColumns;
  const unsigned group = threadIdx.x / kColumns;
  float sum = 0.0f;
  if (column < n) {
#pragma unroll 8
    for (unsigned row = group; row < slice.rows; row += kGroups) {
      sum += matrix[static_cast<size_t>(slice.first + row) * n + column];
    }
  }
  pool[threadIdx.x] = sum;
  __syncthreads();
  if (group != 0 || column >= n) return;
  for (unsigned other = 1; other < kGroups; ++other) sum += pool[other * kColumns + threadIdx.x];
  part[static_cast<size_t>(block / across) * n + column] = sum;
}

// to[i] = the sum of part[k][i] over k parts, in their order.
__device__ __forceinline__ void sum_parts(const float* part, float* to, size_t n, unsigned parts) {
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
    float sum = part[i];
#pragma unroll 8
    for (unsigned k = 1; k + 1 < parts; ++k) sum += part[k * n + i];
    to[i] = sum;
  }
}

// Where a thread stands in a row: a warp has a row of its own where lanes hold it, else a block.
template <bool kShort>
struct Row {
  unsigned first, step, turns;
  __device__ __forceinline__ explicit Row(unsigned D)
      : first(kShort ? threadIdx.x % kWarp : threadIdx.x),
        step(kShort ? kWarp : blockDim.x),
        turns(kShort ? kHeld : (D - 1) / blockDim.x + 1) {}
};

template <bool kShort>
__device__ __forceinline__ float row_sum(float value, float* slots) {
  if constexpr (kShort) return warp_sum(value);
  const float sum = block_sum(value, slots);
  __syncthreads();  // the slots are used again
  return sum;
}

struct Forward {
  const float* u;
  const float* residual;
  const float* gamma;
  const float* beta;
  float* out;
  float* s;
  float* xhat;
  float* rstd;
};

// GLU, residual and layer norm of a row. A long row keeps y in xhat between its passes; each
// thread reads back only what it wrote itself. `residual` may be xhat itself.
template <bool kShort>
__device__ __forceinline__ void forward_row(const Forward& p, unsigned row, unsigned D, float eps,
                                            float* slots) {
  const Row<kShort> at(D);
  const size_t base = static_cast<size_t>(row) * D;
  const float per_column = 1.0f / static_cast<float>(D);
  float y[kShort ? kHeld : 1];
  float sum = 0.0f;
#pragma unroll
  for (unsigned i = 0; i < at.turns; ++i) {
    const unsigned d = at.first + i * at.step;
    float value = 0.0f;
    if (d < D) {
      const float gate = sigmoid(p.u[2 * base + D + d]);
      p.s[base + d] = gate;
      value = fmaf(p.u[2 * base + d], gate, p.residual[base + d]);
      if constexpr (!kShort) p.xhat[base + d] = value;
    }
    if constexpr (kShort) y[i] = value;
    sum += value;
  }
  const float mean = row_sum<kShort>(sum, slots) * per_column;
  float squares = 0.0f;
#pragma unroll
  for (unsigned i = 0; i < at.turns; ++i) {
    const unsigned d = at.first + i * at.step;
    if (d >= D) continue;
    const float centred = (kShort ? y[kShort ? i : 0] : p.xhat[base + d]) - mean;
    squares = fmaf(centred, centred, squares);
  }
  const float var = row_sum<kShort>(squares, slots) * per_column;
  const float rstd = 1.0f / sqrtf(var + eps);
#pragma unroll
  for (unsigned i = 0; i < at.turns; ++i) {
    const unsigned d = at.first + i * at.step;
    if (d >= D) continue;
    const float xhat = ((kShort ? y[kShort ? i : 0] : p.xhat[base + d]) - mean) * rstd;
    p.xhat[base + d] = xhat;
    p.out[base + d] = fmaf(p.gamma[d], xhat, p.beta[d]);
  }
  if (at.first == 0) p.rstd[row] = rstd;
}

__device__ __forceinline__ void forward_rows(const Forward& p, unsigned B, unsigned D, float eps,
                                             float* slots) {
  if (D <= kShortRow) {
    const unsigned warps = gridDim.x * kWarps;
    for (unsigned row = blockIdx.x * kWarps + threadIdx.x / kWarp; row < B; row += warps) {
      forward_row<true>(p, row, D, eps, slots);
    }
  } else {
    for (unsigned row = blockIdx.x; row < B; row += gridDim.x) {
      forward_row<false>(p, row, D, eps, slots);
    }
  }
}

struct Backward {
  const float* d_out;
  const float* u;
  const float* s;
  const float* xhat;
  const float* rstd;
  const float* gamma;
  float* dy;
  float* du;
  float* part;  // (blocks, 4, D): sums of d_out xhat, d_out, dv, dgate
};

struct Gradients {
  float gain, bias, value, gate;
};

__device__ __forceinline__ Gradients element(const Backward& p, size_t base, unsigned D,
                                             unsigned d, float mean, float projection,
                                             float rstd) {
  const float d_out = p.d_out[base + d];
  const float xhat = p.xhat[base + d];
  const float s = p.s[base + d];
  const float g = __fmul_rn(d_out, p.gamma[d]);
  const float dy = rstd * fmaf(-projection, xhat, g - mean);
  const float dv = dy * s;
  const float dgate = dy * p.u[2 * base + d] * s * (1.0f - s);
  p.dy[base + d] = dy;
  p.du[2 * base + d] = dv;
  p.du[2 * base + D + d] = dgate;
  return {d_out * xhat, d_out, dv, dgate};
}

// (mean of g, mean of g xhat) of a row.
template <bool kShort>
__device__ __forceinline__ float2 row_means(const Backward& p, size_t base, unsigned D,
                                            float* slots) {
  const Row<kShort> at(D);
  float g_sum = 0.0f, projection = 0.0f;
#pragma unroll
  for (unsigned i = 0; i < at.turns; ++i) {
    const unsigned d = at.first + i * at.step;
    if (d >= D) continue;
    const float g = __fmul_rn(p.d_out[base + d], p.gamma[d]);
    g_sum += g;
    projection = fmaf(g, p.xhat[base + d], projection);
  }
  const float per_column = 1.0f / static_cast<float>(D);
  g_sum = row_sum<kShort>(g_sum, slots);
  return {per_column * g_sum, per_column * row_sum<kShort>(projection, slots)};
}

// Warps take rows in turn; their sums of columns meet in `pool`, one of the four at a time.
__device__ __forceinline__ void backward_short(const Backward& p, unsigned B, unsigned D,
                                               float* pool) {
  const Row<true> at(D);
  Gradients sums[kHeld] = {};
  for (unsigned row = blockIdx.x * kWarps + threadIdx.x / kWarp; row < B;
       row += gridDim.x * kWarps) {
    const size_t base = static_cast<size_t>(row) * D;
    const float2 means = row_means<true>(p, base, D, pool);
    const float rstd = p.rstd[row];
#pragma unroll
    for (unsigned i = 0; i < kHeld; ++i) {
      const unsigned d = at.first + i * kWarp;
      if (d >= D) continue;
      const Gradients v = element(p, base, D, d, means.x, means.y, rstd);
      sums[i].gain += v.gain;
      sums[i].bias += v.bias;
      sums[i].value += v.value;
      sums[i].gate += v.gate;
    }
  }
#pragma unroll
  for (unsigned which = 0; which < 4; ++which) {
    __syncthreads();
#pragma unroll
    for (unsigned i = 0; i < kHeld; ++i) {
      const float v[4] = {sums[i].gain, sums[i].bias, sums[i].value, sums[i].gate};
      pool[threadIdx.x / kWarp * kShortRow + at.first + i * kWarp] = v[which];
    }
    __syncthreads();
    for (unsigned d = threadIdx.x; d < D; d += kThreads) {
      float sum = pool[d];
      for (unsigned warp = 1; warp < kWarps; ++warp) sum += pool[warp * kShortRow + d];
      p.part[(static_cast<size_t>(blockIdx.x) * 4 + which) * D + d] = sum;
    }
  }
}

// A block goes over a row twice, and keeps sums of columns in its part, where each thread reads
// back only what it wrote itself.
__device__ __forceinline__ void backward_long(const Backward& p, unsigned B, unsigned D,
                                              float* slots) {
  float* const part = p.part + static_cast<size_t>(blockIdx.x) * 4 * D;
  for (unsigned row = blockIdx.x; row < B; row += gridDim.x) {
    const size_t base = static_cast<size_t>(row) * D;
    const float2 means = row_means<false>(p, base, D, slots);
    const float rstd = p.rstd[row];
    for (unsigned d = threadIdx.x; d < D; d += kThreads) {
      const Gradients v = element(p, base, D, d, means.x, means.y, rstd);
      const bool first = row == blockIdx.x;
      part[d] = first ? v.gain : part[d] + v.gain;
      part[D + d] = first ? v.bias : part[D + d] + v.bias;
      part[2 * D + d] = first ? v.value : part[2 * D + d] + v.value;
      part[3 * D + d] = first ? v.gate : part[3 * D + d] + v.gate;
    }
  }
}

__device__ __forceinline__ void backward_rows(const Backward& p, unsigned B, unsigned D,
                                              float* pool) {
  if (D <= kShortRow) {
    backward_short(p, B, D, pool);
  } else {
    backward_long(p, B, D, pool);
  }
}

// da = (du W_b) (e > 0 ? 1 : e + 1)
template <class Engine>
__device__ __forceinline__ void hidden_gradient(const float* du, const float* W_b, const float* e,
                                                float* da, unsigned B, unsigned H, unsigned D,
                                                float4* pool) {
  product<Engine, First::kPlain, Second::kPlain>(
      du, W_b, {B, H, 2 * D}, blockIdx.x, pool, [=](unsigned row, unsigned column, float sum) {
        const size_t at = static_cast<size_t>(row) * H + column;
        const float unit = e[at];
        da[at] = unit > 0.0f ? sum : sum * (unit + 1.0f);
      });
}

// dgamma, dbeta and db_b: the parts of the rows, added block by block.
__device__ __forceinline__ void sum_columns(const float* part, float* dgamma, float* dbeta,
                                            float* db_b, unsigned D, unsigned parts) {
  const unsigned stride = gridDim.x * blockDim.x;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < 4 * D; i += stride) {
    float sum = part[i];
#pragma unroll 8
    for (unsigned k = 1; k < parts; ++k) sum += part[static_cast<size_t>(k) * 4 * D + i];
    const unsigned which = i / D;
    float* const to = which == 0 ? dgamma : which == 1 ? dbeta - D : db_b - 2 * D;
    to[i] = sum;
  }
}

}  // namespace grn
}  // namespace trueup
