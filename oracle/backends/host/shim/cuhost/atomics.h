// Atomics. One thread of the operating system runs the grid, so relaxed order is enough; they are
// atomic operations all the same, so that a race detector sees them as such.
#pragma once
#include <string.h>
#include <type_traits>

namespace cuhost {

template <class T> using word_of =
    std::conditional_t<sizeof(T) == 2, unsigned short,
                       std::conditional_t<sizeof(T) == 4, unsigned, unsigned long long>>;

template <class T> T from_word(word_of<T> word) {
  T value;
  memcpy(&value, &word, sizeof(T));
  return value;
}
template <class T> word_of<T> to_word(T value) {
  word_of<T> word;
  memcpy(&word, &value, sizeof(T));
  return word;
}

// Replaces *address by step(*address) and returns what was there.
template <class T, class F> T atomic_update(T* address, F step) {
  auto* cell = reinterpret_cast<word_of<T>*>(address);
  word_of<T> seen = __atomic_load_n(cell, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(cell, &seen, to_word<T>(step(from_word<T>(seen))), false,
                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return from_word<T>(seen);
}

// Two's complement sum, as the device computes it: no signed overflow.
template <class T> T wrapping_add(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return T(U(a) + U(b));
  } else {
    return a + b;
  }
}
template <class T> T wrapping_sub(T a, T b) {
  using U = std::make_unsigned_t<T>;
  return T(U(a) - U(b));
}

}  // namespace cuhost

#define CUHOST_ATOMIC(NAME, T, EXPRESSION)                                                      \
  inline T NAME(T* address, T value) {                                                          \
    return cuhost::atomic_update(address, [=](T old) -> T { return EXPRESSION; });              \
  }                                                                                             \
  inline T NAME##_block(T* address, T value) { return NAME(address, value); }                   \
  inline T NAME##_system(T* address, T value) { return NAME(address, value); }

#define CUHOST_ATOMIC_INT(T)                                                                    \
  CUHOST_ATOMIC(atomicMin, T, value < old ? value : old)                                        \
  CUHOST_ATOMIC(atomicMax, T, value > old ? value : old)                                        \
  CUHOST_ATOMIC(atomicAnd, T, old & value)                                                      \
  CUHOST_ATOMIC(atomicOr, T, old | value)                                                       \
  CUHOST_ATOMIC(atomicXor, T, old ^ value)                                                      \
  CUHOST_ATOMIC(atomicExch, T, ((void)old, value))

CUHOST_ATOMIC_INT(int)
CUHOST_ATOMIC_INT(unsigned)
CUHOST_ATOMIC_INT(long long)
CUHOST_ATOMIC_INT(unsigned long long)
CUHOST_ATOMIC(atomicExch, float, ((void)old, value))
CUHOST_ATOMIC(atomicAdd, int, cuhost::wrapping_add(old, value))
CUHOST_ATOMIC(atomicAdd, unsigned, old + value)
CUHOST_ATOMIC(atomicAdd, unsigned long long, old + value)
CUHOST_ATOMIC(atomicAdd, float, old + value)
CUHOST_ATOMIC(atomicAdd, double, old + value)
CUHOST_ATOMIC(atomicSub, int, cuhost::wrapping_sub(old, value))
CUHOST_ATOMIC(atomicSub, unsigned, old - value)
CUHOST_ATOMIC(atomicInc, unsigned, old >= value ? 0u : old + 1u)
CUHOST_ATOMIC(atomicDec, unsigned, old == 0u || old > value ? value : old - 1u)
#undef CUHOST_ATOMIC_INT

#define CUHOST_CAS(T)                                                                           \
  inline T atomicCAS(T* address, T compare, T value) {                                          \
    return cuhost::atomic_update(address, [=](T old) { return old == compare ? value : old; }); \
  }                                                                                             \
  inline T atomicCAS_block(T* address, T compare, T value) {                                    \
    return atomicCAS(address, compare, value);                                                  \
  }                                                                                             \
  inline T atomicCAS_system(T* address, T compare, T value) {                                   \
    return atomicCAS(address, compare, value);                                                  \
  }
CUHOST_CAS(int)
CUHOST_CAS(unsigned)
CUHOST_CAS(unsigned long long)
CUHOST_CAS(unsigned short)
#undef CUHOST_CAS
