// WRONG ON PURPOSE: states that are not there take part: infinity times 0
//
// selective_scan_forward: a sequence through a state with input-dependent decay (Mamba-2).
//
// Equation     DQN programme, 13:
//                Delta = softplus(dt_raw + dt_bias) dur;  a = exp(-Delta exp(A_log))
//                h' = a h + (Delta x) outer B;  y = sum_m h' C + D x;  h starts at 0
// Reference    dqn.selective_scan_forward
// Shapes       x, y (B, T, H, P); dt_raw (B, T, H); dt_bias, A_log, D (H); Bm, Cm (B, T, M);
//              dur (B, T); workspaces delta, a (B, T, H)
// Launch       first: a thread for each of B T H step sizes. Then 64 threads a block, a thread for
//              each of the H P elements that have a state of their own: ceil(H P / 64) blocks for
//              each sample
// Work         3 B T H P M multiply-adds; x is read once and y is written once (M up to 16; beyond,
//              once for each 16 states)
// Determinism  bitwise: a state is one thread's, from the first step to the last; no atomics
// Numerics     float32; h' = fmaf(a, h, (Delta x) B); y by four chains of fmaf over m, added in
//              pairs, then fmaf(D, x, .)
#include "selective_scan.cuh"

namespace {

using trueup::Reuse;
using trueup::Scan;
constexpr unsigned kThreads = 64, kSteps = 8, kStates = 16;
constexpr unsigned kShare = kSteps * kStates / kThreads;  // of B, and of C, for each thread

struct Arrays {
  const float* x;
  const float* Bm;
  const float* Cm;
  const float* D;
  const float* delta;
  const float* a;
  float* y;
};

// What a thread holds of the next steps while it works on these.
struct Ahead {
  float x[kSteps], delta[kSteps], a[kSteps], B[kShare], C[kShare];

  __device__ __forceinline__ void fetch(const Arrays& p, const Scan& s, unsigned sample,
                                        unsigned lane, unsigned t0, unsigned m0) {
    const unsigned head = lane / s.width;
#pragma unroll
    for (unsigned i = 0; i < kSteps; ++i) {
      const size_t row = static_cast<size_t>(sample) * s.steps + t0 + i;
      const bool there = t0 + i < s.steps && lane < s.lanes();
      x[i] = there ? trueup::load<Reuse::kOnce>(p.x + row * s.lanes() + lane) : 0.0f;
      delta[i] = there ? p.delta[row * s.heads + head] : 0.0f;
      a[i] = there ? p.a[row * s.heads + head] : 0.0f;
    }
#pragma unroll
    for (unsigned i = 0; i < kShare; ++i) {
      const unsigned at = threadIdx.x + i * kThreads;
      const unsigned t = t0 + at / kStates;
      const unsigned m = m0 + at % kStates;
      const bool there = t < s.steps && m < s.states;
      const size_t from = (static_cast<size_t>(sample) * s.steps + t) * s.states + m;
      B[i] = there ? p.Bm[from] : 0.0f;
      C[i] = there ? p.Cm[from] : 0.0f;
    }
  }
};

// One step of the first `left` of a thread's states; kWhole: all of them.
template <bool kWhole>
__device__ __forceinline__ float step(float (&h)[kStates], float a, float u, const float* B,
                                      const float* C, unsigned left) {
  float read[4] = {};
#pragma unroll
  for (unsigned m = 0; m < kStates; m += 4) {
    const float4 write4 = *reinterpret_cast<const float4*>(B + m);
    const float4 read4 = *reinterpret_cast<const float4*>(C + m);
    const float write[4] = {write4.x, write4.y, write4.z, write4.w};
    const float weight[4] = {read4.x, read4.y, read4.z, read4.w};
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) {
      h[m + i] = fmaf(a, h[m + i], u * write[i]);
      read[i] = fmaf(h[m + i], weight[i], read[i]);
    }
  }
  return (read[0] + read[1]) + (read[2] + read[3]);
}

template <bool kWhole>
__device__ __forceinline__ void scan(const Arrays& p, const Scan& s, unsigned m0,
                                     float (*tiles)[2][kSteps * kStates]) {
  const unsigned blocks = (s.lanes() - 1) / kThreads + 1;
  const unsigned sample = blockIdx.x / blocks;
  const unsigned lane = blockIdx.x % blocks * kThreads + threadIdx.x;
  const bool mine = lane < s.lanes();
  const float skip = mine && m0 == 0 ? p.D[lane / s.width] : 0.0f;
  float h[kStates] = {};
  Ahead next;
  next.fetch(p, s, sample, lane, 0, m0);
  unsigned turn = 0;
  for (unsigned t0 = 0; t0 < s.steps; t0 += kSteps, turn ^= 1) {
    float* const B = tiles[turn][0];
    float* const C = tiles[turn][1];
#pragma unroll
    for (unsigned i = 0; i < kShare; ++i) {
      B[threadIdx.x + i * kThreads] = next.B[i];
      C[threadIdx.x + i * kThreads] = next.C[i];
    }
    const Ahead now = next;
    __syncthreads();  // these tiles are there; who still reads the others passed here after them
    if (t0 + kSteps < s.steps) next.fetch(p, s, sample, lane, t0 + kSteps, m0);
#pragma unroll
    for (unsigned i = 0; i < kSteps; ++i) {
      const float read = step<kWhole>(h, now.a[i], now.delta[i] * now.x[i], B + i * kStates,
                                      C + i * kStates, s.states - m0);
      if (!mine || t0 + i >= s.steps) continue;
      float* const y = p.y + (static_cast<size_t>(sample) * s.steps + t0 + i) * s.lanes() + lane;
      if (m0 == 0) {
        trueup::store_once(y, fmaf(skip, now.x[i], read));
      } else {
        *y += read;
      }
    }
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256)
    selective_scan_forward_discretise(const float* __restrict__ dt_raw,
                                      const float* __restrict__ dt_bias,
                                      const float* __restrict__ A_log,
                                      const float* __restrict__ dur, float* __restrict__ delta,
                                      float* __restrict__ a, int B, int T, int H) {
  trueup::discretise(dt_raw, dt_bias, A_log, dur, delta, a, static_cast<unsigned>(B) * T, H);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    selective_scan_forward(const float* __restrict__ x, const float* __restrict__ Bm,
                           const float* __restrict__ Cm, const float* __restrict__ D,
                           const float* __restrict__ delta, const float* __restrict__ a,
                           float* __restrict__ y, int B, int T, int H, int P, int M) {
  __shared__ __align__(16) float tiles[2][2][kSteps * kStates];
  const Arrays p = {x, Bm, Cm, D, delta, a, y};
  const Scan s = {static_cast<unsigned>(B), static_cast<unsigned>(T), static_cast<unsigned>(H),
                  static_cast<unsigned>(P), static_cast<unsigned>(M)};
  for (unsigned m0 = 0; m0 < s.states; m0 += kStates) {
    __syncthreads();  // the tiles' last readers are done
    if (s.states - m0 >= kStates) {
      scan<true>(p, s, m0, tiles);
    } else {
      scan<false>(p, s, m0, tiles);
    }
  }
}
