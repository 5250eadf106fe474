// bf16, for the host.
#pragma once
#include "cuda_host.h"
#include "cuhost/pair.h"

using __nv_bfloat16 = cuhost::Narrow<cuhost::BrainFormat>;
using __nv_bfloat162 = cuhost::Pair<cuhost::BrainFormat>;
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;

CUHOST_NARROW_NAMES(bfloat16, bfloat162, __nv_bfloat16, __nv_bfloat162)

#define CUDART_INF_BF16 __ushort_as_bfloat16((unsigned short)0x7f80)
#define CUDART_NAN_BF16 __ushort_as_bfloat16((unsigned short)0x7fff)
#define CUDART_MAX_NORMAL_BF16 __ushort_as_bfloat16((unsigned short)0x7f7f)
#define CUDART_ONE_BF16 __ushort_as_bfloat16((unsigned short)0x3f80)
#define CUDART_ZERO_BF16 __ushort_as_bfloat16((unsigned short)0x0000)
