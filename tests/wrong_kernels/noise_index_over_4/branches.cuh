// branches.cuh: the four branches of the agent in the list of its 13 actions.
#pragma once

namespace trueup {

constexpr int kActions = 13;

// Direction has actions 0 to 3; magnitude, order and urgency three each.
__device__ __forceinline__ constexpr int branch_begin(int branch) {
  return branch == 0 ? 0 : 1 + 3 * branch;
}

__device__ __forceinline__ constexpr int branch_size(int branch) { return branch == 0 ? 4 : 3; }

__device__ __forceinline__ int branch_of(int action) { return action < 12 ? action / 4 : 3; }

}  // namespace trueup
