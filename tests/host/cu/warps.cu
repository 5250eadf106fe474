// Warp operations, votes, matches and cooperative groups, written out for a block of 64 threads.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

constexpr unsigned kFull = 0xffffffffu;

extern "C" __global__ void shuffles(int* y) {
  const int t = threadIdx.x, v = 100 + t;
  int* out = y + t * 8;
  out[0] = __shfl_sync(kFull, v, 3);
  out[1] = __shfl_sync(kFull, v, t + 1, 8);
  out[2] = __shfl_up_sync(kFull, v, 2);
  out[3] = __shfl_down_sync(kFull, v, 2, 16);
  out[4] = __shfl_xor_sync(kFull, v, 5);
  out[5] = __shfl_xor_sync(kFull, v, 9, 8);
  out[6] = (int)__shfl_sync(kFull, (long long)v << 32 | 7, 31) + (int)__shfl_up_sync(kFull, 1.5, 1);
  out[7] = __shfl_up_sync(kFull, v, 3, 4);
}

extern "C" __global__ void votes(unsigned* y) {
  const int t = threadIdx.x, lane = t % 32;
  unsigned* out = y + t * 10;
  int all_same = -1, none_same = -1;
  out[0] = __ballot_sync(kFull, lane % 3 == 0);
  out[1] = __any_sync(kFull, t == 40);
  out[2] = __all_sync(kFull, lane < 32);
  out[3] = __match_any_sync(kFull, lane / 5);
  out[4] = __match_all_sync(kFull, 7, &all_same);
  out[5] = __match_all_sync(kFull, lane, &none_same);
  out[6] = all_same * 2 + none_same;
  out[7] = __reduce_add_sync(kFull, (unsigned)lane);
  out[8] = (unsigned)__reduce_min_sync(kFull, lane - 5) + __reduce_max_sync(kFull, (unsigned)lane);
  out[9] = __reduce_xor_sync(kFull, (unsigned)lane * 3u) + __reduce_or_sync(kFull, 1u << lane % 8) +
           __reduce_and_sync(kFull, 0xf0u | lane);
}

extern "C" __global__ void block_votes(int* y) {
  const int t = threadIdx.x;
  const int count = __syncthreads_count(t % 3 == 0);
  const int all = __syncthreads_and(t < 63);
  const int any = __syncthreads_or(t == 63);
  y[t] = count * 100 + all * 10 + any;
}

// Every other lane takes one branch; the lanes of a branch find each other.
extern "C" __global__ void active(unsigned* y, int n) {
  const int t = threadIdx.x;
  y[t] = 0;
  if (t >= n) return;
  const unsigned mask = __activemask();
  y[t] = __ballot_sync(mask, 1);
}

extern "C" __global__ void early_exit(const int* x, int* y) {
  const int t = threadIdx.x;
  if (t >= 40) return;
  __syncthreads();
  y[t] = x[t];
}

extern "C" __global__ void groups(int* y) {
  const cg::thread_block block = cg::this_thread_block();
  const cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
  const int t = block.thread_rank();
  int* out = y + t * 10;
  out[0] = tile.thread_rank();
  out[1] = tile.meta_group_rank() * 100 + tile.meta_group_size();
  out[2] = tile.shfl(t, 2);
  out[3] = tile.shfl_down(t, 1);
  out[4] = tile.shfl_up(t, 3);
  out[5] = tile.shfl_xor(t, 4);
  out[6] = cg::reduce(tile, t, cg::plus<int>());
  out[7] = cg::reduce(tile, t % 5, cg::greater<int>());
  out[8] = tile.ballot(t % 2) * 10 + tile.any(t == 3) * 2 + tile.all(t < 60);
  out[9] = block.size() + tile.size() + tile.num_threads();
  tile.sync();
  block.sync();
  cg::sync(block);
}

extern "C" __global__ void coalesced(int* y) {
  const int t = threadIdx.x;
  y[t] = -1;
  if (t % 3 == 1) {
    const cg::coalesced_group group = cg::coalesced_threads();
    y[t] = 1000 * group.thread_rank() + 10 * group.size() + (group.shfl(t, 0) == 1);
  }
}

extern "C" __global__ void atomics(int* i, unsigned* u, float* f, double* d) {
  const int t = threadIdx.x;
  atomicAdd(&i[0], t);
  atomicSub(&i[1], t);
  atomicMax(&i[2], t);
  atomicMin(&i[3], -t);
  atomicOr(&i[4], 1 << t % 8);
  atomicXor(&i[5], t);
  atomicAnd(&i[6], ~(1 << t % 4));
  if (t == 5) atomicExch(&i[7], 77);
  atomicCAS(&i[8], t, t + 1);
  atomicInc(&u[0], 9u);
  atomicDec(&u[1], 5u);
  atomicAdd(&f[0], 0.5f);
  atomicAdd(&d[0], 0.25);
}
