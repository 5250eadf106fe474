// CUDA C++ for the host: what a .cu file may use without including anything.
#pragma once
// The standard headers come first: they must not see the macros below.
#include <assert.h>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define __CUHOST__ 1
#define __CUDACC__ 1
#define __host__
#define __device__
#define __global__
#define __constant__
#define __managed__
#define __grid_constant__
#define __shared__ static
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __cluster_dims__(...)
#define __block_size__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(...) __attribute__((aligned(__VA_ARGS__)))
#define __builtin_align__(...) __attribute__((aligned(__VA_ARGS__)))
#define __builtin_assume(condition) ((void)0)
#define __nv_pure__

#include "cuhost/abi.h"
#include "cuhost/types.h"
#include "cuhost/device.h"
#include "cuhost/atomics.h"
#include "cuhost/math.h"
#include "cuhost/rounding.h"
#include "cuhost/integer.h"
#include "cuhost/launch.h"

#define printf(...) ::cuhost::print(__VA_ARGS__)
