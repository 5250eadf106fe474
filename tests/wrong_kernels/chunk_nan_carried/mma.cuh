// mma.cuh: products of 16 x 8 tiles on tensor cores, of float32 numbers and of bf16 numbers.
//
// float32: a number is split in two of TF32's 11 bits, x = high + low / 4096, and a product is
// high high + (low high + high low) / 4096: what is left out is below 2^-22 of it. The tensor core
// truncates its sums, so a sum runs there over 16 steps of k only, with the small products apart,
// and is added to the caller's by an ordinary, rounding addition.
// bf16: products are exact; the caller keeps runs short for the same reason.
//
// A warp owns a tile. Lane l holds rows l / 4 and l / 4 + 8, columns 2 (l % 4) and the next one:
// c[0], c[1] of the first row, c[2], c[3] of the second. Operands come from shared memory, either
// "along k" (k runs along a row there) or "across k" (a row there is one k). Float tiles have a
// row of 4 more than a multiple of 32 numbers, bf16 tiles one of 8 more than a multiple of 64:
// then no access below meets a bank twice.
// On the host the tiles go through memory, lane by lane, in the layout of the instruction, and
// sums are truncated likewise.
#pragma once

#include "common.cuh"

namespace trueup {

// A bf16 number: the upper half of a float32. (cuda_bf16.h is not everywhere NVRTC is.)
struct Bf16 {
  unsigned short bits;
};

// The nearest bf16 numbers, ties to even, the first in the lower half of the word.
__device__ __forceinline__ unsigned pair(float first, float second) {
#ifdef __CUHOST__
  const auto nearest = [](float x) {
    const unsigned bits = __float_as_uint(x);
    return x != x ? 0x7fffu : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  };
  return nearest(first) | nearest(second) << 16;
#else
  unsigned word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
  return word;
#endif
}

constexpr float kLow = 4096.0f;

// The 11 leading bits of a number, rounded half away from zero. A NaN whose bits are all set, as
// the device makes them, would be carried over into -0.
__device__ __forceinline__ float leading(float x) {
  return __uint_as_float((__float_as_uint(x) + 0x1000u) & 0xffffe000u);
}

struct Split {
  float high, low;
  __device__ __forceinline__ void set(float x) {
    high = leading(x);
    low = (x - high) * kLow;
  }
  // For products of both parts, in which low carries a NaN: two instructions less.
  __device__ __forceinline__ void set_both(float x) {
    high = __uint_as_float((__float_as_uint(x) + 0x1000u) & 0xffffe000u);
    low = (x - high) * kLow;
  }
};

struct Lane {
  unsigned group, turn;  // rows of a fragment go by group (0..7), its columns by turn (0..3)
  __device__ __forceinline__ Lane() : Lane(threadIdx.x) {}
  __device__ __forceinline__ explicit Lane(unsigned thread)
      : group(thread % kWarp / 4), turn(thread % 4) {}
};

// 16 x 16 of the left and 16 x 8 of the right operand, as two steps of 8 k.
struct Left {
  Split at[2][4];
};
struct Right {
  Split at[2][2];
};

#ifdef __CUHOST__
namespace host {
// What the lanes of a warp hand to the first of them, which multiplies for all.
template <int kLeft, int kRight>
struct Exchange {
  unsigned left[32][kLeft], right[32][kRight];
  float sums[32][4];

  // Whether the product is 0 for certain: padding, most often. 0 times infinity or NaN is not.
  __device__ bool nothing() const {
    bool left_zero = true, right_zero = true, finite = true;
    const auto look = [&finite](unsigned word, bool& zero) {
      zero = zero && (word & 0x7fff7fffu) == 0;
      finite = finite && (word & 0x7f80u) != 0x7f80u && (word & 0x7f800000u) != 0x7f800000u;
    };
    for (unsigned l = 0; l < 32; ++l) {
      for (unsigned word : left[l]) look(word, left_zero);
      for (unsigned word : right[l]) look(word, right_zero);
    }
    return finite && (left_zero || right_zero);
  }
};

template <int kLeft, int kRight>
__device__ inline Exchange<kLeft, kRight>& exchange() {
  __shared__ Exchange<kLeft, kRight> of_warps[32];
  return of_warps[threadIdx.x / kWarp];
}

// c += a b, exact products, the sum truncated as the tensor core truncates it.
template <int kDepth>
__device__ inline void add_product(float (&c)[16][8], const float (&a)[16][kDepth],
                                   const float (&b)[kDepth][8]) {
  for (int i = 0; i < 16; ++i) {
    double sum[8];
    for (int j = 0; j < 8; ++j) sum[j] = c[i][j];
    for (int k = 0; k < kDepth; ++k) {
      for (int j = 0; j < 8; ++j) sum[j] += static_cast<double>(a[i][k]) * b[k][j];
    }
    for (int j = 0; j < 8; ++j) {
      const float nearest = static_cast<float>(sum[j]);
      const bool beyond = fabs(static_cast<double>(nearest)) > fabs(sum[j]);
      c[i][j] = beyond ? nextafterf(nearest, 0.0f) : nearest;
    }
  }
}

// Lane l's sums are rows l / 4 and l / 4 + 8, columns 2 (l % 4) and the next.
template <class Sums>
__device__ inline void get_sums(float (&c)[16][8], const Sums& from) {
  for (unsigned l = 0; l < 32; ++l) {
    for (unsigned i = 0; i < 4; ++i) c[l / 4 + i / 2 * 8][2 * (l % 4) + i % 2] = from[l][i];
  }
}

template <class Sums>
__device__ inline void put_sums(Sums& to, const float (&c)[16][8]) {
  for (unsigned l = 0; l < 32; ++l) {
    for (unsigned i = 0; i < 4; ++i) to[l][i] = c[l / 4 + i / 2 * 8][2 * (l % 4) + i % 2];
  }
}
}  // namespace host

// (small, large) += the products of 16 k; a lane's TF32 operands lie as the instruction has them.
__device__ inline void multiply_steps(float (&small)[4], float (&large)[4], const Left& a,
                                      const Right& b) {
  auto& all = host::exchange<16, 8>();
  auto& more = host::exchange<1, 1>();
  const unsigned lane = threadIdx.x % kWarp;
  for (int i = 0; i < 16; ++i) {
    const Split& x = a.at[i / 8][i / 2 % 4];
    all.left[lane][i] = __float_as_uint(i % 2 == 0 ? x.high : x.low) & 0xffffe000u;
  }
  for (int i = 0; i < 8; ++i) {
    const Split& y = b.at[i / 4][i / 2 % 2];
    all.right[lane][i] = __float_as_uint(i % 2 == 0 ? y.high : y.low) & 0xffffe000u;
  }
  for (int i = 0; i < 4; ++i) all.sums[lane][i] = small[i], more.sums[lane][i] = large[i];
  __syncwarp();
  if (lane == 0 && !all.nothing()) {
    float products[2][16][8];
    host::get_sums(products[0], all.sums);
    host::get_sums(products[1], more.sums);
    for (unsigned s = 0; s < 2; ++s) {
      float left[2][16][8];
      float right[2][8][8];
      for (unsigned n = 0; n < 256; ++n) {
        const unsigned row = n / 16, k = n / 2 % 8, part = n % 2;
        left[part][row][k] = __uint_as_float(
            all.left[row % 8 * 4 + k % 4][8 * s + 2 * (row / 8 + 2 * (k / 4)) + part]);
        if (row < 8) {
          right[part][k][row] =
              __uint_as_float(all.right[4 * row + k % 4][4 * s + 2 * (k / 4) + part]);
        }
      }
      host::add_product<8>(products[0], left[1], right[0]);
      host::add_product<8>(products[1], left[0], right[0]);
      host::add_product<8>(products[0], left[0], right[1]);
    }
    host::put_sums(all.sums, products[0]);
    host::put_sums(more.sums, products[1]);
  }
  __syncwarp();
  for (int i = 0; i < 4; ++i) small[i] = all.sums[lane][i], large[i] = more.sums[lane][i];
}
#else
// c += a b: a 16 x 8, b 8 x 8, TF32.
__device__ __forceinline__ void mma_tf32(float (&c)[4], float a0, float a1, float a2, float a3,
                                         float b0, float b1) {
  asm(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(__float_as_uint(a0)), "r"(__float_as_uint(a1)), "r"(__float_as_uint(a2)),
        "r"(__float_as_uint(a3)), "r"(__float_as_uint(b0)), "r"(__float_as_uint(b1)));
}

__device__ __forceinline__ void multiply_steps(float (&small)[4], float (&large)[4], const Left& a,
                                               const Right& b) {
#pragma unroll
  for (int s = 0; s < 2; ++s) {
    const Split(&x)[4] = a.at[s];
    const Split(&y)[2] = b.at[s];
    mma_tf32(small, x[0].low, x[1].low, x[2].low, x[3].low, y[0].high, y[1].high);
    mma_tf32(large, x[0].high, x[1].high, x[2].high, x[3].high, y[0].high, y[1].high);
    mma_tf32(small, x[0].high, x[1].high, x[2].high, x[3].high, y[0].low, y[1].low);
  }
}
#endif

// c += a b over 16 k, in float32 to about 22 bits.
__device__ __forceinline__ void multiply_add(float (&c)[4], const Left& a, const Right& b) {
  float small[4] = {};
  float large[4] = {};
  multiply_steps(small, large, a, b);
#pragma unroll
  for (int i = 0; i < 4; ++i) c[i] += fmaf(small[i], 1.0f / kLow, large[i]);
}

// Along k, step s holds k = 8 s + turn and 8 s + turn + 4; across k, 8 s + 2 turn and the next:
// any order of k will do that both operands share.
__device__ __forceinline__ void take_along(Left& a, const float* tile, unsigned stride,
                                           const Lane& lane) {
#pragma unroll
  for (int s = 0; s < 2; ++s) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const unsigned row = lane.group + i % 2 * 8;
      a.at[s][i].set(tile[row * stride + 8 * s + lane.turn + i / 2 * 4]);
    }
  }
}

__device__ __forceinline__ void take_along(Right& b, const float* tile, unsigned stride,
                                           const Lane& lane) {
#pragma unroll
  for (int s = 0; s < 2; ++s) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      b.at[s][i].set(tile[lane.group * stride + 8 * s + lane.turn + i * 4]);
    }
  }
}

__device__ __forceinline__ void take_across(Left& a, const float* tile, unsigned stride,
                                            const Lane& lane) {
#pragma unroll
  for (int s = 0; s < 2; ++s) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const unsigned k = 8 * s + 2 * lane.turn + i / 2;
      a.at[s][i].set(tile[k * stride + lane.group + i % 2 * 8]);
    }
  }
}

__device__ __forceinline__ void take_across(Right& b, const float* tile, unsigned stride,
                                            const Lane& lane) {
#pragma unroll
  for (int s = 0; s < 2; ++s) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      b.at[s][i].set(tile[(8 * s + 2 * lane.turn + i) * stride + lane.group]);
    }
  }
}

// Two tiles of sums, side by side, as a left operand whose k are their 16 columns; the right one
// is taken across k.
__device__ __forceinline__ void take_sums(Left& a, const float (&first)[4],
                                          const float (&second)[4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    a.at[0][i].set(first[i % 2 * 2 + i / 2]);
    a.at[1][i].set(second[i % 2 * 2 + i / 2]);
  }
}

// bf16, k in steps of 16: a word holds two neighbours of k, the first in its lower half.
struct LeftHalf {
  unsigned at[4];
};
struct RightHalf {  // of two tiles side by side: 16 columns
  unsigned at[2][2];
};

// c += a b: a 16 x 16, b 16 x 8, bf16.
__device__ __forceinline__ void mma_bf16(float (&c)[4], const LeftHalf& a,
                                         const unsigned (&b)[2]) {
#ifdef __CUHOST__
  auto& all = host::exchange<4, 2>();
  const unsigned lane = threadIdx.x % kWarp;
  for (int i = 0; i < 4; ++i) all.left[lane][i] = a.at[i], all.sums[lane][i] = c[i];
  for (int i = 0; i < 2; ++i) all.right[lane][i] = b[i];
  __syncwarp();
  if (lane == 0 && !all.nothing()) {
    float left[16][16];
    float right[16][8];
    float sums[16][8];
    for (unsigned n = 0; n < 256; ++n) {
      const unsigned row = n / 16, k = n % 16;
      const unsigned x = all.left[row % 8 * 4 + k % 8 / 2][row / 8 + 2 * (k / 8)];
      left[row][k] = __uint_as_float(k % 2 == 0 ? x << 16 : x & 0xffff0000u);
      if (row >= 8) continue;
      const unsigned y = all.right[4 * row + k % 8 / 2][k / 8];
      right[k][row] = __uint_as_float(k % 2 == 0 ? y << 16 : y & 0xffff0000u);
    }
    host::get_sums(sums, all.sums);
    host::add_product<16>(sums, left, right);
    host::put_sums(all.sums, sums);
  }
  __syncwarp();
  for (int i = 0; i < 4; ++i) c[i] = all.sums[lane][i];
#else
  asm(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a.at[0]), "r"(a.at[1]), "r"(a.at[2]), "r"(a.at[3]), "r"(b[0]), "r"(b[1]));
#endif
}

// Four 8 x 8 tiles of bf16 from shared memory; lanes 8 i to 8 i + 7 point to the rows of tile i.
// A lane gets the neighbours [group][2 turn], [group][2 turn + 1] of each, or, turned, the
// elements [2 turn][group], [2 turn + 1][group].
template <bool kTurned>
__device__ __forceinline__ void load_tiles(unsigned (&to)[4], const Bf16* row) {
#ifdef __CUHOST__
  __shared__ const Bf16* of_warps[32][32];
  const auto& rows = of_warps[threadIdx.x / kWarp];
  const Lane lane;
  of_warps[threadIdx.x / kWarp][threadIdx.x % kWarp] = row;
  __syncwarp();
  for (int i = 0; i < 4; ++i) {
    unsigned halves[2];
    for (unsigned j = 0; j < 2; ++j) {
      const unsigned r = kTurned ? 2 * lane.turn + j : lane.group;
      const unsigned c = kTurned ? lane.group : 2 * lane.turn + j;
      halves[j] = rows[8 * i + r][c].bits;
    }
    to[i] = halves[0] | halves[1] << 16;
  }
  __syncwarp();
#else
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  if constexpr (kTurned) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
  }
#endif
}

__device__ __forceinline__ void take_along(LeftHalf& a, const Bf16* tile,
                                           unsigned stride) {
  const unsigned l = threadIdx.x % kWarp;
  load_tiles<false>(a.at, tile + l % 16 * stride + l / 16 * 8);
}

__device__ __forceinline__ void take_across(LeftHalf& a, const Bf16* tile,
                                            unsigned stride) {
  const unsigned l = threadIdx.x % kWarp;
  load_tiles<true>(a.at, tile + (l % 8 + l / 16 * 8) * stride + l / 8 % 2 * 8);
}

__device__ __forceinline__ void take_along(RightHalf& b, const Bf16* tile,
                                           unsigned stride) {
  const unsigned l = threadIdx.x % kWarp;
  unsigned words[4];
  load_tiles<false>(words, tile + (l % 8 + l / 16 * 8) * stride + l / 8 % 2 * 8);
  b.at[0][0] = words[0], b.at[0][1] = words[1], b.at[1][0] = words[2], b.at[1][1] = words[3];
}

__device__ __forceinline__ void take_across(RightHalf& b, const Bf16* tile,
                                            unsigned stride) {
  const unsigned l = threadIdx.x % kWarp;
  unsigned words[4];
  load_tiles<true>(words, tile + l % 16 * stride + l / 16 * 8);
  b.at[0][0] = words[0], b.at[0][1] = words[1], b.at[1][0] = words[2], b.at[1][1] = words[3];
}

__device__ __forceinline__ void take_sums(LeftHalf& a, const float (&first)[4],
                                          const float (&second)[4]) {
  a.at[0] = pair(first[0], first[1]);
  a.at[1] = pair(first[2], first[3]);
  a.at[2] = pair(second[0], second[1]);
  a.at[3] = pair(second[2], second[3]);
}

}  // namespace trueup
