// selective_scan_backward: the gradients of a selective scan (Mamba-2) with bar durations.
//
// Equation     DQN programme, 13, with G_t = dy_t outer C_t + a_{t+1} G_{t+1} and h as forward:
//                dC = sum dy h;  dB = sum Delta x G;  dx = Delta sum_m G B + D dy;  dD = sum dy x
//                da a = sum over s >= t of [dy (y - D x) - Delta x (G B)], summed over a head: G h
//                is what flows into a step from both sides, so that G and h need never meet
//                dDelta = sum x (G B) + A da a;  dA_log = A sum da a Delta
//                ddt_raw = dDelta dur sigmoid(dt_raw + dt_bias);  ddt_bias = sum ddt_raw
//                ddur = sum_h dDelta softplus(dt_raw + dt_bias)
// Reference    dqn.selective_scan_backward
// Shapes       dy, x, dx (B, T, H, P); dt_raw, ddt_raw (B, T, H); dt_bias, A_log, D, ddt_bias,
//              dA_log, dD (H); Bm, Cm, dBm, dCm (B, T, M); dur, ddur (B, T). Workspaces: delta, a,
//              slope (B, T, H); out_flow, in_flow (tiles, B, T, H); part_B, part_C (tiles, B, T,
//              M), not used with one tile; skip (B, H P); part_bias, part_A (B, H); a tile is
//              block elements (h, p)
// Launch       discretise: a thread for each of B T H. scans: block a multiple of 32 up to 256, a
//              block for each sample, tile and direction: the forward state in even blocks, the
//              adjoint in odd ones. flows: a warp for each sample and head. sums: any grid.
// Work         8 B T H P M multiply-adds; x and dy are read twice, dx is written once
// Determinism  bitwise: every sum has one order given the launch; no atomics
// Numerics     float32. A thread holds 4 elements x 4 states. Over elements: fmaf in the thread, a
//              tree in the warp, then the warps in order; over steps: a scan of 32, then the next.
//              What is not finite in one step reaches the sums of all steps before it
#include "selective_scan.cuh"

namespace {

using trueup::kWarp;
using trueup::kWholeWarp;
using trueup::Reuse;
using trueup::Scan;
constexpr unsigned kThreads = 256, kSteps = 8, kStates = 16;

// Elements of a tile, as the launch has it: a block's threads.
__device__ __forceinline__ unsigned tile_of(unsigned elements) {
  return elements >= kThreads ? kThreads : (elements + kWarp - 1) / kWarp * kWarp;
}

struct Arrays {
  const float* dy;
  const float* x;
  const float* Bm;
  const float* Cm;
  const float* D;
  const float* delta;
  const float* a;
  float* dx;
  float* dBm;
  float* dCm;
  float* out_flow;
  float* in_flow;
  float* part_B;
  float* part_C;
  float* skip;
};

struct Pool {
  float u[kSteps][kThreads];   // Delta x
  float dy[kSteps][kThreads];
  float a[kSteps][kThreads];   // then what flows through a step
  float x[kSteps][kThreads];   // x and Delta: the adjoint's only
  float delta[kSteps][kThreads];
  float B[kSteps][kStates];
  float C[kSteps][kStates];
  float states[kSteps][kThreads / kWarp][kStates];  // sums over a warp's elements
};

// What a thread holds of the next steps, as the keeper of one element, while it works on these.
struct Ahead {
  float x[kSteps], dy[kSteps], delta[kSteps], a[kSteps];

  __device__ __forceinline__ void fetch(const Arrays& p, const Scan& s, unsigned sample,
                                        unsigned element, unsigned t0) {
    const bool mine = element < s.lanes();
    const unsigned head = element / s.width;
#pragma unroll
    for (unsigned i = 0; i < kSteps; ++i) {
      const size_t row = static_cast<size_t>(sample) * s.steps + t0 + i;
      const bool there = mine && t0 + i < s.steps;
      x[i] = there ? p.x[row * s.lanes() + element] : 0.0f;
      dy[i] = there ? p.dy[row * s.lanes() + element] : 0.0f;
      delta[i] = there ? p.delta[row * s.heads + head] : 0.0f;
      a[i] = there ? p.a[row * s.heads + head] : 0.0f;
    }
  }
};

__device__ __forceinline__ void stage_states(Pool& pool, const Arrays& p, const Scan& s,
                                             unsigned sample, unsigned t0, unsigned m0) {
  for (unsigned at = threadIdx.x; at < 2 * kSteps * kStates; at += blockDim.x) {
    const unsigned i = at % (kSteps * kStates);
    const unsigned t = t0 + i / kStates;
    const unsigned m = m0 + i % kStates;
    const float* const from = at == i ? p.Bm : p.Cm;
    float* const to = at == i ? &pool.B[0][0] : &pool.C[0][0];
    const bool there = t < s.steps && m < s.states;
    to[i] = there ? from[(static_cast<size_t>(sample) * s.steps + t) * s.states + m] : 0.0f;
  }
}

__device__ __forceinline__ void take4(float (&to)[4], const float* from) {
  const float4 v = *reinterpret_cast<const float4*>(from);
  to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
}

// Four values of each lane, summed over the lanes that differ in bit 2 * `bit` and `bit`: a lane
// keeps the sum of one of the four, whose number is its upper bit times 2 plus its lower one.
__device__ __forceinline__ float sum_over_four(const float (&v)[4], unsigned bit) {
  const bool upper = threadIdx.x & (2 * bit);
  const bool lower = threadIdx.x & bit;
  const float first = (upper ? v[2] : v[0]) +
                      __shfl_xor_sync(kWholeWarp, upper ? v[0] : v[2], 2 * bit);
  const float second = (upper ? v[3] : v[1]) +
                       __shfl_xor_sync(kWholeWarp, upper ? v[1] : v[3], 2 * bit);
  return (lower ? second : first) + __shfl_xor_sync(kWholeWarp, lower ? first : second, bit);
}

// One step of a thread's 4 x 4 of a state Z = decay Z + left outer right, then its products: with
// `across` over its elements, given back summed over the warp's elements, and with `along` over its
// states, given back summed over all states. kWhole: none of them is padding.
struct Products {
  float of_state, of_element;
};

template <bool kWhole>
__device__ __forceinline__ Products advance(float (&Z)[4][4], const float (&decay)[4],
                                            const float (&left)[4], const float (&right)[4],
                                            const float (&across)[4], const float (&along)[4],
                                            unsigned elements, unsigned states) {
  float of_states[4] = {};
  float of_elements[4] = {};
#pragma unroll
  for (unsigned d = 0; d < 4; ++d) {
#pragma unroll
    for (unsigned m = 0; m < 4; ++m) {
      if (!kWhole && (d >= elements || m >= states)) continue;
      Z[d][m] = fmaf(decay[d], Z[d][m], left[d] * right[m]);
      of_states[m] = fmaf(across[d], Z[d][m], of_states[m]);
      of_elements[d] = fmaf(Z[d][m], along[m], of_elements[d]);
    }
  }
  float state = sum_over_four(of_states, 8);
  state += __shfl_xor_sync(kWholeWarp, state, 4);
  return {state, sum_over_four(of_elements, 1)};
}

// The places of a thread's 4 x 4: elements first, first + 1, ... of the tile, states likewise; and
// which element and which state it keeps the sums of.
struct Place {
  unsigned element, state, kept_element, kept_state;
  __device__ __forceinline__ Place() {
    const unsigned lane = threadIdx.x % kWarp;
    element = threadIdx.x / kWarp * kWarp + lane / 4 * 4;
    state = lane % 4 * 4;
    kept_element = element + lane % 4;
    kept_state = state + lane / 8 % 4;
  }
};

__device__ __forceinline__ unsigned there(unsigned first, unsigned end) {
  return first >= end ? 0 : end - first;
}

// Sums of a value over the elements of each head in this tile, for each step: `flow` holds them.
__device__ __forceinline__ void sum_heads(const float (*values)[kThreads], float* flow,
                                          const Scan& s, unsigned sample, unsigned first,
                                          unsigned t0, bool add) {
  const unsigned end = first + blockDim.x < s.lanes() ? first + blockDim.x : s.lanes();
  const unsigned head0 = first / s.width;
  const unsigned heads = (end - 1) / s.width - head0 + 1;
  unsigned group = 1;  // neighbouring threads for each head
  while (group < kWarp && group < s.width) group *= 2;
  const unsigned groups = blockDim.x / group;
  const unsigned work = kSteps * heads;
  const unsigned rank = threadIdx.x % group;
  for (unsigned base = 0; base < work; base += groups) {
    const unsigned at = base + threadIdx.x / group;
    const unsigned i = at / heads;
    const unsigned head = head0 + at % heads;
    float sum = 0.0f;
    if (at < work) {
      const unsigned from = head * s.width > first ? head * s.width - first : 0;
      const unsigned to = (head + 1) * s.width < end ? (head + 1) * s.width - first : end - first;
      for (unsigned d = from + rank; d < to; d += group) sum += values[i][d];
    }
    for (unsigned offset = group / 2; offset > 0; offset /= 2) {
      sum += __shfl_xor_sync(kWholeWarp, sum, offset);
    }
    if (at >= work || rank != 0 || t0 + i >= s.steps) continue;
    float* const to = flow + (static_cast<size_t>(sample) * s.steps + t0 + i) * s.heads + head;
    *to = add ? *to + sum : sum;
  }
}

// Sums of the warps, for each step and state.
__device__ __forceinline__ void sum_warps(const Pool& pool, float* to, const Scan& s,
                                          unsigned sample, unsigned t0, unsigned m0) {
  for (unsigned at = threadIdx.x; at < kSteps * kStates; at += blockDim.x) {
    const unsigned i = at / kStates;
    const unsigned m = at % kStates;
    if (t0 + i >= s.steps || m0 + m >= s.states) continue;
    float sum = pool.states[i][0][m];
    for (unsigned warp = 1; warp < blockDim.x / kWarp; ++warp) sum += pool.states[i][warp][m];
    to[(static_cast<size_t>(sample) * s.steps + t0 + i) * s.states + m0 + m] = sum;
  }
}

template <bool kAdjoint, bool kWhole>
__device__ __forceinline__ void scan(const Arrays& p, const Scan& s, unsigned sample,
                                     unsigned tile, unsigned m0, Pool& pool) {
  const unsigned first = tile * blockDim.x;
  const unsigned own = first + threadIdx.x;  // the element it keeps
  const bool mine = own < s.lanes();
  const Place place;
  const unsigned elements = there(first + place.element, s.lanes());
  const unsigned states = there(m0 + place.state, s.states);
  const unsigned chunks = (s.steps - 1) / kSteps + 1;
  const bool more_tiles = s.lanes() > blockDim.x;
  const size_t rows = static_cast<size_t>(s.batch) * s.steps;
  float* const by_state =
      kAdjoint ? (more_tiles ? p.part_B + tile * rows * s.states : p.dBm)
               : (more_tiles ? p.part_C + tile * rows * s.states : p.dCm);
  float* const flow = (kAdjoint ? p.in_flow : p.out_flow) + tile * rows * s.heads;
  const unsigned kept = first + place.kept_element;
  const bool keeps = kept < s.lanes();
  const float D = kAdjoint && keeps ? p.D[kept / s.width] : 0.0f;

  float Z[4][4] = {};
  float decay[4] = {};  // of the adjoint: the following step's
  float skip = 0.0f;
  Ahead next;
  next.fetch(p, s, sample, own, kAdjoint ? (chunks - 1) * kSteps : 0);
  for (unsigned chunk = 0; chunk < chunks; ++chunk) {
    const unsigned t0 = (kAdjoint ? chunks - 1 - chunk : chunk) * kSteps;
    __syncthreads();  // the last chunk's readers are done
#pragma unroll
    for (unsigned i = 0; i < kSteps; ++i) {
      pool.u[i][threadIdx.x] = next.delta[i] * next.x[i];
      pool.dy[i][threadIdx.x] = next.dy[i];
      pool.a[i][threadIdx.x] = next.a[i];
      if constexpr (kAdjoint) {
        pool.x[i][threadIdx.x] = next.x[i];
        pool.delta[i][threadIdx.x] = next.delta[i];
      }
      if (!kAdjoint && mine) skip = fmaf(next.dy[i], next.x[i], skip);
    }
    stage_states(pool, p, s, sample, t0, m0);
    __syncthreads();
    if (chunk + 1 < chunks) {
      next.fetch(p, s, sample, own, kAdjoint ? t0 - kSteps : t0 + kSteps);
    }
#pragma unroll
    for (unsigned n = 0; n < kSteps; ++n) {
      const unsigned i = kAdjoint ? kSteps - 1 - n : n;
      float u[4], dy[4], a[4], B[4], C[4];
      take4(u, &pool.u[i][place.element]);
      take4(dy, &pool.dy[i][place.element]);
      take4(a, &pool.a[i][place.element]);
      take4(B, &pool.B[i][place.state]);
      take4(C, &pool.C[i][place.state]);
      Products sums;
      if constexpr (kAdjoint) {
        sums = advance<kWhole>(Z, decay, dy, C, u, B, elements, states);
#pragma unroll
        for (unsigned d = 0; d < 4; ++d) decay[d] = a[d];
      } else {
        sums = advance<kWhole>(Z, a, u, B, dy, C, elements, states);
      }
      if (threadIdx.x % 8 < 4) {
        pool.states[i][threadIdx.x / kWarp][place.kept_state] = sums.of_state;
      }
      const float dy_kept = pool.dy[i][place.kept_element];
      float flowing = dy_kept * sums.of_element;
      if constexpr (kAdjoint) {
        flowing = pool.x[i][place.kept_element] * sums.of_element;
        if (keeps && t0 + i < s.steps) {
          const size_t row = static_cast<size_t>(sample) * s.steps + t0 + i;
          float* const dx = p.dx + row * s.lanes() + kept;
          const float through = m0 == 0 ? sums.of_element : *dx + sums.of_element;
          const bool last = s.states - m0 <= kStates;
          *dx = last ? fmaf(pool.delta[i][place.kept_element], through, D * dy_kept) : through;
        }
      }
      __syncwarp();  // the warp has read its elements of this step
      pool.a[i][place.kept_element] = flowing;
    }
    __syncthreads();
    sum_heads(pool.a, flow, s, sample, first, t0, m0 != 0);
    sum_warps(pool, by_state, s, sample, t0, m0);
  }
  if (!kAdjoint && mine && m0 == 0) {
    p.skip[static_cast<size_t>(sample) * s.lanes() + own] = skip;
  }
}

template <bool kAdjoint>
__device__ __forceinline__ void scan_all(const Arrays& p, const Scan& s, Pool& pool) {
  const unsigned tiles = (s.lanes() - 1) / blockDim.x + 1;
  const unsigned number = blockIdx.x / 2;
  for (unsigned m0 = 0; m0 < s.states; m0 += kStates) {
    if (s.lanes() % blockDim.x == 0 && s.states - m0 >= kStates) {
      scan<kAdjoint, true>(p, s, number / tiles, number % tiles, m0, pool);
    } else {
      scan<kAdjoint, false>(p, s, number / tiles, number % tiles, m0, pool);
    }
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256)
    selective_scan_backward_discretise(const float* __restrict__ dt_raw,
                                       const float* __restrict__ dt_bias,
                                       const float* __restrict__ A_log,
                                       const float* __restrict__ dur, float* __restrict__ delta,
                                       float* __restrict__ a, int B, int T, int H) {
  trueup::discretise(dt_raw, dt_bias, A_log, dur, delta, a, static_cast<unsigned>(B) * T, H);
}

extern "C" __global__ void __launch_bounds__(kThreads, 2)
    selective_scan_backward_scans(const float* __restrict__ dy, const float* __restrict__ x,
                                  const float* __restrict__ Bm, const float* __restrict__ Cm,
                                  const float* __restrict__ D, const float* __restrict__ delta,
                                  const float* __restrict__ a, float* __restrict__ dx,
                                  float* __restrict__ dBm, float* __restrict__ dCm,
                                  float* __restrict__ out_flow, float* __restrict__ in_flow,
                                  float* __restrict__ part_B, float* __restrict__ part_C,
                                  float* __restrict__ skip, int B, int T, int H, int P, int M) {
  __shared__ __align__(16) Pool pool;
  const Arrays p = {dy,  x,   Bm,       Cm,      D,      delta,  a,   dx,
                    dBm, dCm, out_flow, in_flow, part_B, part_C, skip};
  const Scan s = {static_cast<unsigned>(B), static_cast<unsigned>(T), static_cast<unsigned>(H),
                  static_cast<unsigned>(P), static_cast<unsigned>(M)};
  if (blockIdx.x % 2 == 0) {
    scan_all<false>(p, s, pool);
  } else {
    scan_all<true>(p, s, pool);
  }
}

// A warp follows one head of one sample from the last step to the first.
extern "C" __global__ void __launch_bounds__(128)
    selective_scan_backward_flows(const float* __restrict__ dt_raw,
                                  const float* __restrict__ dt_bias,
                                  const float* __restrict__ A_log, const float* __restrict__ dur,
                                  const float* __restrict__ delta,
                                  const float* __restrict__ out_flow,
                                  const float* __restrict__ in_flow, float* __restrict__ ddt_raw,
                                  float* __restrict__ slope, float* __restrict__ part_bias,
                                  float* __restrict__ part_A, int B, int T, int H, int P) {
  const unsigned number = (blockIdx.x * blockDim.x + threadIdx.x) / kWarp;
  const unsigned lane = threadIdx.x % kWarp;
  const unsigned heads = H, steps = T;
  if (number >= static_cast<unsigned>(B) * heads) return;
  const unsigned sample = number / heads;
  const unsigned head = number % heads;
  const unsigned tile = tile_of(heads * P);
  const unsigned first_tile = head * P / tile;
  const unsigned last_tile = (head * P + P - 1) / tile;
  const size_t plane = static_cast<size_t>(B) * steps * heads;
  const float A = -expf(A_log[head]);
  const float bias = dt_bias[head];
  float carried = 0.0f, bias_sum = 0.0f, A_sum = 0.0f;
  for (unsigned base = 0; base < steps; base += kWarp) {  // lane 0 has the last step
    const bool there = base + lane < steps;
    const unsigned t = there ? steps - 1 - base - lane : 0;
    const size_t at = (static_cast<size_t>(sample) * steps + t) * heads + head;
    float out = 0.0f, inner = 0.0f;
    for (unsigned k = first_tile; there && k <= last_tile; ++k) {
      out += out_flow[k * plane + at];
      inner += in_flow[k * plane + at];
    }
    const float size = there ? delta[at] : 0.0f;
    float flow = there ? out - size * inner : 0.0f;
#pragma unroll
    for (unsigned offset = 1; offset < kWarp; offset *= 2) {
      const float before = __shfl_up_sync(kWholeWarp, flow, offset);
      if (lane >= offset) flow += before;
    }
    flow += carried;
    carried = __shfl_sync(kWholeWarp, flow, kWarp - 1);
    if (!there) continue;
    const float d_size = fmaf(flow, A, inner);
    const float z = dt_raw[at] + bias;
    const float ddt =
        d_size * dur[static_cast<size_t>(sample) * steps + t] * (1.0f / (1.0f + expf(-z)));
    ddt_raw[at] = ddt;
    slope[at] = d_size * trueup::softplus(z);
    bias_sum += ddt;
    A_sum = fmaf(flow, size, A_sum);
  }
  bias_sum = trueup::warp_sum(bias_sum);
  A_sum = trueup::warp_sum(A_sum);
  if (lane != 0) return;
  part_bias[number] = bias_sum;
  part_A[number] = A_sum;
}

// Blocks 0 .. H - 1 sum their head over samples; all others share the sums that have an element for
// each step.
extern "C" __global__ void __launch_bounds__(256)
    selective_scan_backward_sums(const float* __restrict__ A_log,
                                 const float* __restrict__ slope,
                                 const float* __restrict__ part_bias,
                                 const float* __restrict__ part_A,
                                 const float* __restrict__ part_B,
                                 const float* __restrict__ part_C,
                                 const float* __restrict__ skip, float* __restrict__ ddt_bias,
                                 float* __restrict__ dA_log, float* __restrict__ dBm,
                                 float* __restrict__ dCm, float* __restrict__ dD,
                                 float* __restrict__ ddur, int B, int T, int H, int P, int M) {
  __shared__ float slots[3][kWarp];
  const unsigned heads = H, width = P, samples = B;
  if (blockIdx.x < heads) {
    const unsigned head = blockIdx.x;
    float bias = 0.0f, A = 0.0f, D = 0.0f;
    for (unsigned b = threadIdx.x; b < samples; b += blockDim.x) {
      bias += part_bias[static_cast<size_t>(b) * heads + head];
      A += part_A[static_cast<size_t>(b) * heads + head];
    }
    for (size_t i = threadIdx.x; i < static_cast<size_t>(samples) * width; i += blockDim.x) {
      D += skip[(i / width * heads + head) * width + i % width];
    }
    bias = trueup::block_sum(bias, slots[0]);
    A = trueup::block_sum(A, slots[1]);
    D = trueup::block_sum(D, slots[2]);
    if (threadIdx.x != 0) return;
    ddt_bias[head] = bias;
    dA_log[head] = A * -expf(A_log[head]);
    dD[head] = D;
    return;
  }
  const size_t rows = static_cast<size_t>(samples) * T;
  const unsigned tiles = (heads * width - 1) / tile_of(heads * width) + 1;
  const size_t stride = static_cast<size_t>(gridDim.x - heads) * blockDim.x;
  const size_t first = static_cast<size_t>(blockIdx.x - heads) * blockDim.x + threadIdx.x;
  for (size_t row = first; row < rows; row += stride) {
    float sum = 0.0f;
    for (unsigned head = 0; head < heads; ++head) sum += slope[row * heads + head];
    ddur[row] = sum;
  }
  const size_t plane = rows * M;
  for (size_t i = first; tiles > 1 && i < plane; i += stride) {
    float sum_B = part_B[i];
    float sum_C = part_C[i];
    for (unsigned k = 1; k < tiles; ++k) {
      sum_B += part_B[k * plane + i];
      sum_C += part_C[k * plane + i];
    }
    dBm[i] = sum_B;
    dCm[i] = sum_C;
  }
}
