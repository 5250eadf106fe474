// Cooperative groups: the thread block, tiles of a warp, and the coalesced threads.
#pragma once
#include "cuda_host.h"

namespace cooperative_groups {

class thread_block {
 public:
  static void sync(CUHOST_SITE) { __syncthreads(line, file); }
  static unsigned thread_rank() { return cuhost::linear_thread(); }
  static unsigned size() { return blockDim.x * blockDim.y * blockDim.z; }
  static unsigned num_threads() { return size(); }
  static dim3 group_index() { return blockIdx; }
  static dim3 thread_index() { return threadIdx; }
  static dim3 group_dim() { return blockDim; }
  static dim3 dim_threads() { return blockDim; }
};
inline thread_block this_thread_block() { return {}; }

class grid_group {
 public:
  static unsigned long long size() {
    return (unsigned long long)gridDim.x * gridDim.y * gridDim.z * thread_block::size();
  }
  static unsigned long long num_threads() { return size(); }
  static unsigned long long thread_rank() {
    const unsigned long long block =
        ((unsigned long long)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    return block * thread_block::size() + thread_block::thread_rank();
  }
  static bool is_valid() { return false; }
  static void sync(CUHOST_SITE) {
    cuhost::fail(cuhost::MISUSE, line, file, "grid.sync() is not available: blocks run in turn");
  }
};
inline grid_group this_grid() { return {}; }

// What a tile and the coalesced threads share: lanes of one warp named by a mask.
class warp_group {
 public:
  unsigned mask() const { return mask_; }
  unsigned size() const { return unsigned(__popc(mask_)); }
  unsigned num_threads() const { return size(); }
  unsigned thread_rank() const {
    return unsigned(__popc(mask_ & ((1u << cuhost::lane()) - 1u)));
  }
  void sync(CUHOST_SITE) const { __syncwarp(mask_, line, file); }
  int any(int predicate, CUHOST_SITE) const { return __any_sync(mask_, predicate, line, file); }
  int all(int predicate, CUHOST_SITE) const { return __all_sync(mask_, predicate, line, file); }
  unsigned ballot(int predicate, CUHOST_SITE) const {
    return pack(__ballot_sync(mask_, predicate, line, file));
  }
  template <class T> unsigned match_any(T value, CUHOST_SITE) const {
    return pack(__match_any_sync(mask_, value, line, file));
  }
  template <class T> unsigned match_all(T value, int& predicate, CUHOST_SITE) const {
    return pack(__match_all_sync(mask_, value, &predicate, line, file));
  }
  template <class T> T shfl(T value, int rank, CUHOST_SITE) const {
    return __shfl_sync(mask_, value, lane_of(unsigned(rank) % size()), 32, line, file);
  }
  template <class T> T shfl_up(T value, unsigned delta, CUHOST_SITE) const {
    const unsigned rank = thread_rank();
    const unsigned from = delta > rank ? rank : rank - delta;
    return __shfl_sync(mask_, value, lane_of(from), 32, line, file);
  }
  template <class T> T shfl_down(T value, unsigned delta, CUHOST_SITE) const {
    const unsigned rank = thread_rank();
    const unsigned from = delta >= size() - rank ? rank : rank + delta;
    return __shfl_sync(mask_, value, lane_of(from), 32, line, file);
  }

 protected:
  explicit warp_group(unsigned mask) : mask_(mask) {}

  int lane_of(unsigned rank) const {
    unsigned rest = mask_;
    while (rank--) rest &= rest - 1;
    return __ffs(int(rest)) - 1;
  }
  // A mask of lanes as a mask of ranks.
  unsigned pack(unsigned lanes) const {
    unsigned packed = 0, rank = 0;
    for (unsigned rest = mask_; rest; rest &= rest - 1, ++rank)
      if (lanes & rest & (0u - rest)) packed |= 1u << rank;
    return packed;
  }

 private:
  unsigned mask_;
};

template <unsigned N, class Parent = void> class thread_block_tile : public warp_group {
  static_assert(N >= 1 && N <= 32 && (N & (N - 1)) == 0, "a tile is a power of two up to a warp");

 public:
  thread_block_tile()
      : warp_group((N == 32 ? ~0u : (1u << N % 32) - 1u) << (cuhost::lane() / N * N)) {}
  template <class Other>
  thread_block_tile(const thread_block_tile<N, Other>& tile) : warp_group(tile.mask()) {}
  static constexpr unsigned size() { return N; }
  static constexpr unsigned num_threads() { return N; }
  static unsigned thread_rank() { return cuhost::lane() % N; }
  static unsigned meta_group_rank() { return cuhost::linear_thread() / N; }
  static unsigned meta_group_size() { return (thread_block::size() + N - 1) / N; }
  template <class T> T shfl_xor(T value, unsigned lanes, CUHOST_SITE) const {
    return __shfl_xor_sync(mask(), value, int(lanes), int(N), line, file);
  }
};

class coalesced_group : public warp_group {
 public:
  explicit coalesced_group(unsigned mask) : warp_group(mask) {}
};
inline coalesced_group coalesced_threads(CUHOST_SITE) {
  return coalesced_group(__activemask(line, file));
}

template <unsigned N, class Parent>
thread_block_tile<N, Parent> tiled_partition(const Parent&) {
  return {};
}

template <class Group> void sync(const Group& group, CUHOST_SITE) { group.sync(line, file); }

}  // namespace cooperative_groups
