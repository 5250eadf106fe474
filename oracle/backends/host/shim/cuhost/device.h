// Barriers, warp operations, fences and cached loads.
#pragma once
#include <string.h>

#include "abi.h"
#include "types.h"

namespace cuhost {

// Sends a value of any size through a 64-bit warp operation, piece by piece.
template <class T>
T shuffle(Op op, unsigned mask, T value, int operand, int width, int line, const char* file) {
  T result;
  constexpr size_t pieces = (sizeof(T) + 7) / 8;
  uint64_t words[pieces] = {};
  memcpy(words, &value, sizeof(T));
  for (uint64_t& word : words) word = warp(op, mask, word, operand, width, nullptr, line, file);
  memcpy(&result, words, sizeof(T));
  return result;
}

template <class T> uint64_t bits_of(T value) {
  uint64_t bits = 0;
  static_assert(sizeof(T) <= 8, "a warp match compares at most 64 bits");
  memcpy(&bits, &value, sizeof(T));
  return bits;
}

}  // namespace cuhost

inline void __syncthreads(CUHOST_SITE) { cuhost::barrier(cuhost::PLAIN, 0, line, file); }
inline int __syncthreads_count(int predicate, CUHOST_SITE) {
  return cuhost::barrier(cuhost::COUNT, predicate, line, file);
}
inline int __syncthreads_and(int predicate, CUHOST_SITE) {
  return cuhost::barrier(cuhost::AND, predicate, line, file);
}
inline int __syncthreads_or(int predicate, CUHOST_SITE) {
  return cuhost::barrier(cuhost::OR, predicate, line, file);
}
inline void __syncwarp(unsigned mask = 0xffffffffu, CUHOST_SITE) {
  cuhost::warp(cuhost::SYNC, mask, 0, 0, 32, nullptr, line, file);
}
inline unsigned __activemask(CUHOST_SITE) { return cuhost::active_mask(line, file); }

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, CUHOST_SITE) {
  return cuhost::shuffle(cuhost::SHFL, mask, value, source, width, line, file);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, CUHOST_SITE) {
  return cuhost::shuffle(cuhost::SHFL_UP, mask, value, int(delta), width, line, file);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, CUHOST_SITE) {
  return cuhost::shuffle(cuhost::SHFL_DOWN, mask, value, int(delta), width, line, file);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32, CUHOST_SITE) {
  return cuhost::shuffle(cuhost::SHFL_XOR, mask, value, lanes, width, line, file);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, CUHOST_SITE) {
  return unsigned(cuhost::warp(cuhost::BALLOT, mask, predicate != 0, 0, 32, nullptr, line, file));
}
inline int __any_sync(unsigned mask, int predicate, CUHOST_SITE) {
  return int(cuhost::warp(cuhost::ANY, mask, predicate != 0, 0, 32, nullptr, line, file));
}
inline int __all_sync(unsigned mask, int predicate, CUHOST_SITE) {
  return int(cuhost::warp(cuhost::ALL, mask, predicate != 0, 0, 32, nullptr, line, file));
}
template <class T> unsigned __match_any_sync(unsigned mask, T value, CUHOST_SITE) {
  return unsigned(cuhost::warp(cuhost::MATCH_ANY, mask, cuhost::bits_of(value), 0, 32, nullptr,
                               line, file));
}
template <class T> unsigned __match_all_sync(unsigned mask, T value, int* predicate, CUHOST_SITE) {
  return unsigned(cuhost::warp(cuhost::MATCH_ALL, mask, cuhost::bits_of(value), 0, 32, predicate,
                               line, file));
}

#define CUHOST_REDUCE(NAME, T, OP)                                                              \
  inline T __reduce_##NAME##_sync(unsigned mask, T value, CUHOST_SITE) {                        \
    return T(cuhost::warp(cuhost::OP, mask, unsigned(value), 0, 32, nullptr, line, file));      \
  }
CUHOST_REDUCE(add, int, REDUCE_ADD)
CUHOST_REDUCE(add, unsigned, REDUCE_ADD)
CUHOST_REDUCE(min, int, REDUCE_MIN)
CUHOST_REDUCE(min, unsigned, REDUCE_UMIN)
CUHOST_REDUCE(max, int, REDUCE_MAX)
CUHOST_REDUCE(max, unsigned, REDUCE_UMAX)
CUHOST_REDUCE(and, unsigned, REDUCE_AND)
CUHOST_REDUCE(or, unsigned, REDUCE_OR)
CUHOST_REDUCE(xor, unsigned, REDUCE_XOR)
#undef CUHOST_REDUCE

// One thread of the operating system runs the whole grid: a fence orders what the compiler emits.
inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

#define CUHOST_LOAD(NAME)                                                                       \
  template <class T> inline T NAME(const T* address) { return *address; }
CUHOST_LOAD(__ldg)
CUHOST_LOAD(__ldcg)
CUHOST_LOAD(__ldca)
CUHOST_LOAD(__ldcs)
CUHOST_LOAD(__ldlu)
CUHOST_LOAD(__ldcv)
#undef CUHOST_LOAD

#define CUHOST_STORE(NAME)                                                                      \
  template <class T> inline void NAME(T* address, T value) { *address = value; }
CUHOST_STORE(__stwb)
CUHOST_STORE(__stcg)
CUHOST_STORE(__stcs)
CUHOST_STORE(__stwt)
#undef CUHOST_STORE

inline long long clock64() { return (long long)cuhost::clock_ticks(); }
inline int clock() { return int(unsigned(cuhost::clock_ticks())); }
inline void __nanosleep(unsigned) {}
[[noreturn]] inline void __trap(CUHOST_SITE) {
  cuhost::fail(cuhost::CRASH, line, file, "the kernel called __trap()");
}
