// tensor_fragments.cuh: bf16 as bits, and a warp's fragments of a product on tensor cores.
//
// On the device ldmatrix and mma.sync.m16n8k16. With TRUEUP_EMULATE_TENSOR the host does the same by
// shuffles, lane by lane as PTX lays the fragments out.
#pragma once

#include "common.cuh"

namespace trueup {
namespace tensor {

using Bits = unsigned short;  // of a bf16

__device__ __forceinline__ float widen(Bits b) {
  return __uint_as_float(static_cast<unsigned>(b) << 16);
}

// Two numbers as bf16, the first in the low half; to nearest, ties to even.
__device__ __forceinline__ unsigned pack(float low, float high) {
#ifdef __CUHOST__
  const auto one = [](float x) -> unsigned {
    const unsigned u = __float_as_uint(x);
    if (x != x) return 0x7fffu;
    return (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
  };
  return one(low) | one(high) << 16;
#else
  unsigned out;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
  return out;
#endif
}

// Four 8 x 8 matrices, lane l giving the address of row l % 8 of matrix l / 8; with kTransposed
// each arrives transposed.
template <bool kTransposed>
__device__ __forceinline__ void load_matrices(unsigned (&out)[4], const Bits* row) {
#if defined(TRUEUP_EMULATE_TENSOR)
  const unsigned lane = threadIdx.x % kWarp;
  const auto own = reinterpret_cast<unsigned long long>(row);
  for (unsigned m = 0; m < 4; ++m) {
    const unsigned one = kTransposed ? lane % 4 * 2 : lane / 4;
    const unsigned two = kTransposed ? one + 1 : one;
    const auto a = reinterpret_cast<const Bits*>(__shfl_sync(kWholeWarp, own, 8 * m + one));
    const auto b = reinterpret_cast<const Bits*>(__shfl_sync(kWholeWarp, own, 8 * m + two));
    const unsigned low = kTransposed ? a[lane / 4] : a[lane % 4 * 2];
    const unsigned high = kTransposed ? b[lane / 4] : b[lane % 4 * 2 + 1];
    out[m] = low | high << 16;
  }
#elif !defined(__CUHOST__)
  const unsigned shared = static_cast<unsigned>(__cvta_generic_to_shared(row));
  if constexpr (kTransposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(shared)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(shared)
                 : "memory");
  }
#endif
}

// sum += A B for A 16 x 16 and B 16 x 8; lane l holds rows l / 4 and l / 4 + 8, columns l % 4 * 2
// and the next.
__device__ __forceinline__ void multiply_fragments(float (&sum)[4], const unsigned (&a)[4],
                                                   const unsigned (&b)[2]) {
#if defined(TRUEUP_EMULATE_TENSOR)
  const unsigned lane = threadIdx.x % kWarp;
  for (unsigned k = 0; k < 16; ++k) {
    const unsigned of_k = k % 8 / 2, half = k / 8, shift = k % 2 * 16;
    for (unsigned e = 0; e < 4; ++e) {
      const unsigned low_or_high = e / 2;  // row l / 4, or eight below
      const unsigned left = __shfl_sync(kWholeWarp, a[2 * half + low_or_high], lane / 4 * 4 + of_k);
      const unsigned column = lane % 4 * 2 + e % 2;
      const unsigned right = __shfl_sync(kWholeWarp, b[half], column * 4 + of_k);
      sum[e] = fmaf(widen(static_cast<Bits>(left >> shift)),
                    widen(static_cast<Bits>(right >> shift)), sum[e]);
    }
  }
#elif !defined(__CUHOST__)
  asm(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

}  // namespace tensor
}  // namespace trueup
