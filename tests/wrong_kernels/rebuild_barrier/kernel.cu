// WRONG ON PURPOSE: a level is begun before the one below it is done
//
// sum_tree_rebuild: add up every parent of a sum tree from its leaves.
//
// Equation     DQN programme, prioritised replay: tree[i] = tree[2 i] + tree[2 i + 1],
//                i = C - 1, ..., 1
// Reference    dqn.sum_tree_rebuild
// Shapes       tree (2 C), updated in place: node 1 the root, leaves from C on, place 0 unused
// Launch       first: one warp for each node seven levels above the deepest leaves (at most C / 64
//              of them), block any multiple of 32 up to 1024; a shallow tree is left to the second.
//              Then one block of up to 1024 threads and 65536 bytes of shared memory for the levels
//              above; an upper part larger than that is added up in place
// Traffic      leaves are read once, parents are written once: 8 C bytes
// Determinism  bitwise: a node is the rounded sum of its children; no atomics
// Numerics     float32; one rounded sum a node
#include "common.cuh"

namespace {

constexpr unsigned kLow = 7;       // levels of the first launch
constexpr unsigned kShallow = 12;  // a tree no deeper than this is left to the second launch
constexpr unsigned kHeld = 16384;  // nodes in shared memory

__device__ __forceinline__ unsigned depth_of(unsigned node) { return 31 - __clz(node); }

}  // namespace

extern "C" __global__ void __launch_bounds__(1024)
    sum_tree_rebuild_low(float* __restrict__ tree, int C) {
  const unsigned capacity = static_cast<unsigned>(C);
  const unsigned lane = threadIdx.x % trueup::kWarp;
  const unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / trueup::kWarp;
  const unsigned deepest = depth_of(2 * capacity - 1);
  if (deepest <= kShallow || warp >= 1u << (deepest - kLow)) return;
  const unsigned root = (1u << (deepest - kLow)) + warp;
  const unsigned pair = (root << (kLow - 1)) + 2 * lane;
  float sum[2];
#pragma unroll
  for (unsigned i = 0; i < 2; ++i) {
    const unsigned node = pair + i;
    if (node < capacity) {
      sum[i] = tree[2 * node] + tree[2 * node + 1];
      tree[node] = sum[i];
    } else {
      sum[i] = tree[node];  // a leaf
    }
  }
  float level = sum[0] + sum[1];
  tree[(root << (kLow - 2)) + lane] = level;
#pragma unroll
  for (unsigned width = 16; width > 0; width /= 2) {
    const int from = static_cast<int>(2 * lane % 32);
    const float left = __shfl_sync(trueup::kWholeWarp, level, from);
    const float right = __shfl_sync(trueup::kWholeWarp, level, from + 1);
    level = left + right;
    if (lane < width) tree[root * width + lane] = level;
  }
}

extern "C" __global__ void __launch_bounds__(1024)
    sum_tree_rebuild_high(float* __restrict__ tree, int C) {
  extern __shared__ float4 shared[];
  const unsigned capacity = static_cast<unsigned>(C);
  const unsigned deepest = depth_of(2 * capacity - 1);
  const unsigned top = deepest <= kShallow ? deepest : deepest - kLow;
  const unsigned last = 2u << top;  // one beyond the nodes down to depth `top`
  const unsigned nodes = last < 2 * capacity ? last : 2 * capacity;
  const bool held = nodes <= kHeld;
  float* const heap = held ? reinterpret_cast<float*>(shared) : tree;
  if (held) {
    for (unsigned i = threadIdx.x; i < nodes; i += blockDim.x) heap[i] = tree[i];
  }
  for (unsigned depth = top; depth-- > 0;) {
    for (unsigned i = threadIdx.x; i < 1u << depth; i += blockDim.x) {
      const unsigned node = (1u << depth) + i;
      if (node >= capacity) continue;  // a leaf
      const float sum = heap[2 * node] + heap[2 * node + 1];
      heap[node] = sum;
      if (held) tree[node] = sum;
    }
  }
}
