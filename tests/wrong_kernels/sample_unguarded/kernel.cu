// WRONG ON PURPOSE: a leaf without priority may be drawn
//
// sum_tree_sample: draw one leaf from each of B strata of a sum tree's total.
//
// Equation     DQN programme, prioritised replay:
//                v_b = ((b + u_b) total) / B, below total;  from the root, while the node is a parent:
//                v < tree[left] ? go left : (v = v - tree[left], go right)
//              a leaf without priority gives way to the nearest one to the left that has one, else
//              to the right; a root that is not positive and finite gives index -1, probability 0
// Reference    dqn.sum_tree_sample
// Shapes       tree (2 C): node 1 the root, leaves from C on; u (B) in [0, 1); index (B) int;
//              probability (B)
// Launch       1-D grid of ceil(B / block), any block size; one thread a sample. Small blocks
//              spread the samples over the SMs
// Traffic      the descent waits for memory once for four levels: the sums that any way through
//              them needs are read at once
// Determinism  bitwise: no sample sees another
// Numerics     float32; b + u, its product with the total, the quotient and each difference are
//              rounded one by one
#include "common.cuh"

namespace {

struct Place {
  float v;
  unsigned node;

  __device__ __forceinline__ void step(float left) {
    const bool stays = v < left;
    if (!stays) v = __fsub_rn(v, left);
    node = 2 * node + (stays ? 0 : 1);
  }
};

__device__ __forceinline__ float pick(float a, float b, unsigned second) { return second ? b : a; }

// Four levels below a node whose 16 descendants there all exist; tree is 16-byte aligned.
__device__ __forceinline__ void four_levels(const float* tree, Place& place) {
  const unsigned top = place.node;
  const float one = tree[2 * top];
  const float4 two = *reinterpret_cast<const float4*>(tree + 4 * top);
  const float4* const three = reinterpret_cast<const float4*>(tree + 8 * top);
  const float4* const four = reinterpret_cast<const float4*>(tree + 16 * top);
  const float4 t0 = three[0], t1 = three[1];
  const float4 f0 = four[0], f1 = four[1], f2 = four[2], f3 = four[3];
  place.step(one);
  const unsigned a = place.node & 1;
  place.step(pick(two.x, two.z, a));
  const unsigned b = place.node & 1;
  place.step(pick(pick(t0.x, t0.z, b), pick(t1.x, t1.z, b), a));
  const unsigned c = place.node & 1;
  place.step(pick(pick(pick(f0.x, f0.z, c), pick(f1.x, f1.z, c), b),
                  pick(pick(f2.x, f2.z, c), pick(f3.x, f3.z, c), b), a));
}

// The nearest leaf with a priority, to the left of `leaf` or else to the right; C where none has.
__device__ __forceinline__ unsigned positive_leaf(const float* leaves, unsigned C, unsigned leaf) {
  for (unsigned i = leaf + 1; i-- > 0;) {
    if (leaves[i] > 0.0f) return i;
  }
  for (unsigned i = leaf + 1; i < C; ++i) {
    if (leaves[i] > 0.0f) return i;
  }
  return C;
}

}  // namespace

extern "C" __global__ void sum_tree_sample(const float* __restrict__ tree,
                                           const float* __restrict__ u, int* __restrict__ index,
                                           float* __restrict__ probability, int C, int B) {
  const unsigned sample = blockIdx.x * blockDim.x + threadIdx.x;
  if (sample >= static_cast<unsigned>(B)) return;
  const unsigned capacity = static_cast<unsigned>(C);
  const float total = tree[1];
  int found = -1;
  float share = 0.0f;
  if (total > 0.0f && total < __uint_as_float(0x7f800000u)) {
    const float stratum = __fadd_rn(static_cast<float>(sample), u[sample]);
    Place place = {__fdiv_rn(__fmul_rn(stratum, total), static_cast<float>(B)), 1};
    const bool aligned = trueup::aligned16(tree);
    while (place.node < capacity) {
      if (aligned && place.node < capacity / 8) {
        four_levels(tree, place);
      } else {
        place.step(tree[2 * place.node]);
      }
    }
    const float* const leaves = tree + capacity;
    const unsigned leaf = place.node - capacity;
    if (leaf < capacity) {
      found = static_cast<int>(leaf);
      share = __fdiv_rn(leaves[leaf], total);
    }
  }
  index[sample] = found;
  probability[sample] = share;
}
