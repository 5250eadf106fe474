// reduce() over a tile or the coalesced threads.
#pragma once
#include "../cooperative_groups.h"

namespace cooperative_groups {

template <class T> struct plus {
  T operator()(T a, T b) const { return a + b; }
};
template <class T> struct less {
  T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T> struct greater {
  T operator()(T a, T b) const { return a < b ? b : a; }
};
template <class T> struct bit_and {
  T operator()(T a, T b) const { return a & b; }
};
template <class T> struct bit_or {
  T operator()(T a, T b) const { return a | b; }
};
template <class T> struct bit_xor {
  T operator()(T a, T b) const { return a ^ b; }
};

// A tree over the ranks: every thread of the group gets the same result, bit for bit.
template <class Group, class T, class F>
T reduce(const Group& group, T value, F combine, CUHOST_SITE) {
  const unsigned rank = group.thread_rank(), size = group.size();
  for (unsigned step = 1; step < size; step *= 2) {
    const T other = group.shfl_down(value, step, line, file);
    if (rank % (2 * step) == 0 && rank + step < size) value = combine(value, other);
  }
  return group.shfl(value, 0, line, file);
}

}  // namespace cooperative_groups
