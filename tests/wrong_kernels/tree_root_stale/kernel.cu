// WRONG ON PURPOSE: the root is not added up anew
//
// sum_tree_update: write a batch of priorities into a sum tree, and add their ancestors up anew.
//
// Equation     DQN programme, prioritised replay:
//                tree[C + index_j] = leaf_j, the highest j of equal indices;
//                tree[i] = tree[2 i] + tree[2 i + 1] for every i above a written leaf, upwards
// Reference    dqn.sum_tree_update
// Shapes       tree (2 C), updated in place: node 1 the root, leaves from C on, place 0 unused;
//              index (n) int, others than 0..C-1 are left out; leaf (n)
// Launch       first: one warp for each entry of the batch, block any multiple of 32 up to 256.
//              The first warp with entries below the same node seven levels above the deepest
//              leaves takes all of them: 128 leaves and their 127 ancestors, once, in registers.
//              Then one block of up to 1024 threads and 65536 bytes of shared memory for the levels
//              above; a tree whose upper part is larger than that is added up in place
// Traffic      about 1 KB for each entry, and the upper part of the tree: 64 KB for 2^20 leaves
// Determinism  bitwise: a node is the rounded sum of its children whoever writes it, and all who
//              write it write the same; no atomics, no differences added
// Numerics     float32; one rounded sum a node
#include "common.cuh"

namespace {

constexpr unsigned kLow = 7;       // levels of the first launch
constexpr unsigned kShallow = 12;  // a tree no deeper than this is left to the second launch
constexpr unsigned kHeld = 16384;  // nodes in shared memory

__device__ __forceinline__ unsigned depth_of(unsigned node) { return 31 - __clz(node); }

// The node above a leaf at which the second launch begins; 0 for an index that is none.
__device__ __forceinline__ unsigned start_of(int index, unsigned C, unsigned deepest) {
  if (index < 0 || static_cast<unsigned>(index) >= C) return 0;
  const unsigned node = C + static_cast<unsigned>(index);
  if (deepest <= kShallow) return node;
  return node >> (kLow - (deepest - depth_of(node)));
}

// A tree left to the second launch: the last entry of equal indices writes its leaf.
__device__ __forceinline__ void write_leaf(float* tree, const int* index, const float* leaf,
                                           unsigned C, unsigned n, unsigned entry) {
  const int own = index[entry];
  bool later = false;
  for (unsigned j = entry + 1 + threadIdx.x % trueup::kWarp; j < n; j += trueup::kWarp) {
    later |= index[j] == own;
  }
  later = __any_sync(trueup::kWholeWarp, later);
  if (!later && threadIdx.x % trueup::kWarp == 0 && own >= 0 && static_cast<unsigned>(own) < C) {
    tree[C + static_cast<unsigned>(own)] = leaf[entry];
  }
}

// 128 nodes of the deepest level below a root, four a lane; their parents, two a lane; theirs, one.
struct Below {
  float deep[4];
  float pair[2];
  float quad;
  float upper;  // lane h: node h of the heap of 31 above
  unsigned hot_deep;
  unsigned hot_pair;
};

__device__ __forceinline__ Below read_below(const float* tree, unsigned nodes, unsigned root,
                                            unsigned lane) {
  Below b = {};
  const unsigned deep = root << kLow;
#pragma unroll
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned node = deep + 4 * lane + i;
    if (node < nodes) b.deep[i] = tree[node];
  }
  const unsigned pair = (root << (kLow - 1)) + 2 * lane;
  b.pair[0] = tree[pair];
  b.pair[1] = tree[pair + 1];
  b.quad = tree[(root << (kLow - 2)) + lane];
  if (lane > 0) {
    const unsigned level = depth_of(lane);
    b.upper = tree[(root << level) + lane - (1u << level)];
  }
  return b;
}

// Puts one priority into the register of the lane that holds its leaf.
__device__ __forceinline__ void put(Below& b, unsigned node, float written, unsigned deepest,
                                    unsigned root, unsigned lane) {
  const bool deep = depth_of(node) == deepest;
  const unsigned place = node - (root << (deep ? kLow : kLow - 1));
#pragma unroll
  for (unsigned i = 0; i < 4; ++i) {
    if (deep && place == 4 * lane + i) {
      b.deep[i] = written;
      b.hot_deep |= 1u << i;
    }
  }
#pragma unroll
  for (unsigned i = 0; i < 2; ++i) {
    if (!deep && place == 2 * lane + i) {
      b.pair[i] = written;
      b.hot_pair |= 1u << i;
    }
  }
}

// Puts the entries below `root` into the registers, in order; false where an earlier one has it.
__device__ __forceinline__ bool take_entries(Below& b, const int* index, const float* leaf,
                                             unsigned C, unsigned n, unsigned deepest,
                                             unsigned root, unsigned entry, unsigned lane) {
  constexpr unsigned kAhead = 4;  // reads of indices on the way together
  for (unsigned base = 0; base < n; base += kAhead * trueup::kWarp) {
    int at[kAhead];
#pragma unroll
    for (unsigned k = 0; k < kAhead; ++k) {
      const unsigned j = base + k * trueup::kWarp + lane;
      at[k] = j < n ? index[j] : -1;
    }
#pragma unroll
    for (unsigned k = 0; k < kAhead; ++k) {
      const unsigned first = base + k * trueup::kWarp;
      const bool mine = start_of(at[k], C, deepest) == root;
      unsigned hits = __ballot_sync(trueup::kWholeWarp, mine);
      if (hits == 0) continue;
      if (first + static_cast<unsigned>(__ffs(static_cast<int>(hits))) - 1 < entry) return false;
      const float value = mine ? leaf[first + lane] : 0.0f;
      while (hits != 0) {
        const int from = __ffs(static_cast<int>(hits)) - 1;
        hits &= hits - 1;
        const int leaf_at = __shfl_sync(trueup::kWholeWarp, at[k], from);
        const float written = __shfl_sync(trueup::kWholeWarp, value, from);
        put(b, C + static_cast<unsigned>(leaf_at), written, deepest, root, lane);
      }
    }
  }
  return true;
}

// Adds up and writes back what stands above a written leaf, level by level.
__device__ __forceinline__ void add_up(float* tree, Below b, unsigned C, unsigned root,
                                       unsigned lane) {
  const unsigned deep = (root << kLow) + 4 * lane;
  const unsigned pair = (root << (kLow - 1)) + 2 * lane;
#pragma unroll
  for (unsigned i = 0; i < 4; ++i) {
    if (b.hot_deep >> i & 1) tree[deep + i] = b.deep[i];
  }
#pragma unroll
  for (unsigned i = 0; i < 2; ++i) {
    if (b.hot_deep >> (2 * i) & 3) {
      b.pair[i] = b.deep[2 * i] + b.deep[2 * i + 1];
      b.hot_pair |= 1u << i;
    }
    if (b.hot_pair >> i & 1) tree[pair + i] = b.pair[i];
  }
  if (b.hot_pair != 0) {
    b.quad = b.pair[0] + b.pair[1];
    tree[(root << (kLow - 2)) + lane] = b.quad;
  }
  // The heap of 31: lane h of a level takes its children from the level below.
  float level = b.quad;
  unsigned hot = __ballot_sync(trueup::kWholeWarp, b.hot_pair != 0);
#pragma unroll
  for (unsigned width = 16; width > 0; width /= 2) {
    const float left = __shfl_sync(trueup::kWholeWarp, level, static_cast<int>(2 * lane % 32));
    const float right = __shfl_sync(trueup::kWholeWarp, level, static_cast<int>(2 * lane % 32 + 1));
    const float kept =
        __shfl_sync(trueup::kWholeWarp, b.upper, static_cast<int>((width + lane) % 32));
    const bool touched = lane < width && (hot >> (2 * lane % 32) & 3) != 0;
    level = touched ? left + right : kept;
    if (touched) tree[root * width + lane] = level;
    hot = __ballot_sync(trueup::kWholeWarp, touched);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256)
    sum_tree_update_low(float* __restrict__ tree, const int* __restrict__ index,
                        const float* __restrict__ leaf, int C, int n) {
  const unsigned capacity = static_cast<unsigned>(C);
  const unsigned count = static_cast<unsigned>(n);
  const unsigned lane = threadIdx.x % trueup::kWarp;
  const unsigned entry = (blockIdx.x * blockDim.x + threadIdx.x) / trueup::kWarp;
  if (entry >= count) return;
  const unsigned deepest = depth_of(2 * capacity - 1);
  if (deepest <= kShallow) {
    write_leaf(tree, index, leaf, capacity, count, entry);
    return;
  }
  const unsigned root = start_of(index[entry], capacity, deepest);
  if (root == 0) return;
  Below below = read_below(tree, 2 * capacity, root, lane);
  if (!take_entries(below, index, leaf, capacity, count, deepest, root, entry, lane)) return;
  add_up(tree, below, capacity, root, lane);
}

// Every entry climbs from its start; one level at a time, so that its sibling is ready.
extern "C" __global__ void __launch_bounds__(1024)
    sum_tree_update_high(float* __restrict__ tree, const int* __restrict__ index, int C, int n) {
  extern __shared__ float4 shared[];
  const unsigned capacity = static_cast<unsigned>(C);
  const unsigned count = static_cast<unsigned>(n);
  const unsigned deepest = depth_of(2 * capacity - 1);
  const unsigned top = deepest <= kShallow ? deepest : deepest - kLow;
  const unsigned last = 2u << top;  // one beyond the nodes down to depth `top`
  const unsigned nodes = last < 2 * capacity ? last : 2 * capacity;
  const bool held = nodes <= kHeld;
  float* const heap = held ? reinterpret_cast<float*>(shared) : tree;
  if (held) {
    const unsigned quads = trueup::aligned16(tree) ? nodes / 4 : 0;
    for (unsigned i = threadIdx.x; i < quads; i += blockDim.x) {
      shared[i] = reinterpret_cast<const float4*>(tree)[i];
    }
    for (unsigned i = 4 * quads + threadIdx.x; i < nodes; i += blockDim.x) heap[i] = tree[i];
  }
  const unsigned own = threadIdx.x < count ? start_of(index[threadIdx.x], capacity, deepest) : 0;
  for (unsigned depth = top; depth-- > 1;) {
    __syncthreads();
    for (unsigned j = threadIdx.x; j < count; j += blockDim.x) {
      const unsigned start = j == threadIdx.x ? own : start_of(index[j], capacity, deepest);
      if (start < 2u << depth) continue;  // no leaf, or one of this level
      const unsigned node = start >> (depth_of(start) - depth);
      const float sum = heap[2 * node] + heap[2 * node + 1];
      heap[node] = sum;
      if (held) tree[node] = sum;
    }
  }
}
