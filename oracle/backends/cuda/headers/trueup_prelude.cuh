// What NVRTC leaves out of the language that host compilers have: included before every source, so
// that one `.cu` compiles for the GPU and for the host alike.
#pragma once

#ifdef __CUDACC_RTC__
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef unsigned long long uintptr_t;
typedef long long intptr_t;

#ifndef INFINITY
#define INFINITY __builtin_bit_cast(float, 0x7f800000)  // a constant expression, as on the host
#endif
#ifndef NAN
#define NAN __builtin_bit_cast(float, 0x7fffffff)
#endif
#endif
