// WRONG ON PURPOSE: a branch is corrected by its budget, not by the difference from the trunk
//
// saxpy_correction: add a component's gradient, the trunk's share everywhere, a branch's in its slice.
//
// Equation     DQN programme, branch correction:
//                acc += trunk g;   in slice k, where beta_k != trunk: acc += (beta_k - trunk) g
// Reference    dqn.saxpy_correction
// Shapes       acc (n), updated in place; g (n); beta (4); trunk (1); slices (4, 2) int, [start,
//              end) in elements, disjoint
// Launch       1-D grid of ceil(n / (4 block)), any block size; a thread takes four neighbours
// Traffic      acc and g are read once, acc is written once: 12 n bytes, one launch for the trunk
//              and all four branches
// Determinism  bitwise: no element sees another, and the order of branches has no part
// Numerics     float32; fmaf(beta - trunk, g, fmaf(trunk, g, acc)): the bits of one sub-launch for
//              the trunk and one for each branch. Equal budgets correct nothing, bit for bit
#include "elementwise.cuh"

namespace {

struct Branches {
  int start[4];
  int end[4];
  float extra[4];  // beta - trunk
  float trunk;

  __device__ __forceinline__ float add(float acc, float g, size_t at) const {
    float out = fmaf(trunk, g, acc);
    const long long i = static_cast<long long>(at);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (i >= start[k] && i < end[k] && extra[k] != 0.0f) out = fmaf(extra[k], g, out);
    }
    return out;
  }
};

}  // namespace

extern "C" __global__ void saxpy_correction(float* __restrict__ acc, const float* __restrict__ g,
                                            const float* __restrict__ beta,
                                            const float* __restrict__ trunk,
                                            const int* __restrict__ slices, int n) {
  const trueup::Four four(static_cast<size_t>(n));
  if (!four.any()) return;
  const bool aligned = trueup::aligned16(acc) && trueup::aligned16(g);
  const float4 a = four.load(acc, aligned);
  const float4 x = four.load(g, aligned);
  Branches branches;
  branches.trunk = *trunk;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    branches.start[k] = slices[2 * k];
    branches.end[k] = slices[2 * k + 1];
    branches.extra[k] = beta[k];
  }
  const size_t i = 4 * (static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x);
  four.store(acc,
             float4{branches.add(a.x, x.x, i), branches.add(a.y, x.y, i + 1),
                    branches.add(a.z, x.z, i + 2), branches.add(a.w, x.w, i + 3)},
             aligned);
}
