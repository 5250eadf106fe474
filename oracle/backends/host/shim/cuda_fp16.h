// fp16, for the host.
#pragma once
#include "cuda_host.h"
#include "cuhost/pair.h"

using __half = cuhost::Narrow<cuhost::HalfFormat>;
using __half2 = cuhost::Pair<cuhost::HalfFormat>;
using half = __half;
using half2 = __half2;

CUHOST_NARROW_NAMES(half, half2, __half, __half2)

#define CUDART_INF_FP16 __ushort_as_half((unsigned short)0x7c00)
#define CUDART_NAN_FP16 __ushort_as_half((unsigned short)0x7fff)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half((unsigned short)0x7bff)
#define CUDART_ONE_FP16 __ushort_as_half((unsigned short)0x3c00)
#define CUDART_ZERO_FP16 __ushort_as_half((unsigned short)0x0000)
