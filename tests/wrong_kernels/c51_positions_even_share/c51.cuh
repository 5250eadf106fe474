// c51.cuh: the C51 loss of a block's rows, on evenly spaced atoms or on given positions.
//
// A row's targets t_j grow with j, and so do their cells. So each lane settles the atoms of its
// own chunk by walking the targets that fall on them, in order: a gather, of about n / 8 + 2
// targets a lane, without a write that another lane could meet.
#pragma once
#include "atoms.cuh"

namespace trueup {

constexpr unsigned kC51Threads = 128;
constexpr unsigned kC51Rows = kC51Threads / kGroup;
constexpr unsigned kBranches = 4;
constexpr float kBranchWeight = 0.25f;

struct C51Arrays {
  const float* logits;
  const float* p_next;
  const float* support;
  const float* next_support;
  const float* returns;
  const float* discount;
  const float* weight;
  const float* positions;  // null where atoms are evenly spaced
  const float* shift;
  const float* next_shift;
  float* loss;
  float* d_logits;
  float* d_shift;
  int* invalid;
};

// One row in shared memory, `n` numbers each: logits below their largest, their exponentials (and
// later the gradient), the target's probabilities, and each target's cell and share.
struct C51Row {
  float* below;
  float* grown;
  float* p;
  float* share;
  unsigned char* cell;
};

// Where the targets of a row lie among its atoms.
struct Online {
  float first;  // v_min, shifted
  float last;   // the top atom
  float span;
  float step;
  float per_step;
};

template <bool kPositions>
__device__ __forceinline__ float place(const float* __restrict__ positions, unsigned i,
                                       float scale, float low, float shift) {
  // The shift comes last: low + shift would round at the size of low, where the atom is small.
  const float number = kPositions ? positions[i] : static_cast<float>(i);
  return shifted(fmaf(number, scale, low), shift);
}

// Cell and share of a target, clamped: a share of exactly 0 at or below the first atom, exactly 1
// at or beyond the last.
template <bool kPositions>
__device__ __forceinline__ float2 locate(const float* __restrict__ positions, const Online& on,
                                         float t, unsigned n) {
  const float above = t >= on.last ? infinity() : fmaxf(t - on.first, 0.0f);
  const float top = static_cast<float>(n - 2);
  if constexpr (true) {
    // The quotient can round up to n - 1 although t is below the last atom.
    const float cell = fminf(floorf(above * on.per_step), top);
    const float share = fmaf(-cell, on.step, above) * on.per_step;
    return {cell, fminf(fmaxf(share, 0.0f), 1.0f)};
  }
  unsigned low = 0;
  for (unsigned high = n - 1; high - low > 1;) {
    const unsigned middle = (low + high) / 2;
    if (positions[middle] * on.span <= above) {
      low = middle;
    } else {
      high = middle;
    }
  }
  const float width = (positions[low + 1] - positions[low]) * on.span;
  const float share = (above - positions[low] * on.span) / width;
  return {static_cast<float>(low), fminf(fmaxf(share, 0.0f), 1.0f)};
}

// log sum exp and 1 / sum, from the logits; leaves `below` and `grown`.
__device__ __forceinline__ float2 normalise(const C51Row& row, unsigned from, unsigned to) {
  float largest = -infinity();
  for (unsigned i = from; i < to; ++i) largest = fmaxf(largest, row.below[i]);
  largest = group_max(largest);
  float total = 0.0f;
  for (unsigned i = from; i < to; ++i) {
    const float below = row.below[i] - largest;
    const float grown = expf(below);
    row.below[i] = below;
    row.grown[i] = grown;
    total += grown;
  }
  total = group_sum(total);
  return {logf(total), 1.0f / total};
}

// A row's atoms from..to: their masses, which make the loss and the gradient.
struct Settled {
  float loss = 0.0f;

  __device__ __forceinline__ void settle(const C51Row& row, unsigned i, float mass, float log_sum,
                                         float per_sum, float omega) {
    loss = fmaf(mass, log_sum - row.below[i], loss);
    row.grown[i] = omega * (row.grown[i] * per_sum - mass);
  }
};

__device__ __forceinline__ float walk(const C51Row& row, unsigned n, unsigned from, unsigned to,
                                      float log_sum, float per_sum, float omega) {
  Settled out;
  // The first target whose cell reaches this chunk: the cell before its first atom counts.
  unsigned j = 0;
  for (unsigned end = n; j < end;) {
    const unsigned middle = (j + end) / 2;
    if (row.cell[middle] + 1u < from) {
      j = middle + 1;
    } else {
      end = middle;
    }
  }
  unsigned atom = from == 0 ? 0 : from - 1;
  float here = 0.0f;  // mass on `atom`, and on the one above it
  float above = 0.0f;
  for (; j < n; ++j) {
    const unsigned cell = row.cell[j];
    if (cell >= to) break;
    for (; atom < cell; ++atom) {
      if (atom >= from) out.settle(row, atom, here, log_sum, per_sum, omega);
      here = above;
      above = 0.0f;
    }
    const float p = row.p[j];
    const float share = row.share[j];
    here = fmaf(p, 1.0f - share, here);
    above = fmaf(p, share, above);
  }
  for (; atom < to; ++atom) {
    if (atom >= from) out.settle(row, atom, here, log_sum, per_sum, omega);
    here = above;
    above = 0.0f;
  }
  return out.loss;
}

template <bool kPositions>
__device__ __forceinline__ void c51_row(const C51Arrays& a, const C51Row& row, size_t number,
                                        bool live, unsigned B, unsigned n) {
  const unsigned lane = threadIdx.x % kGroup;
  const unsigned chunk = (n + kGroup - 1) / kGroup;
  const unsigned from = live ? min(lane * chunk, n) : 0;
  const unsigned to = live ? min(from + chunk, n) : 0;
  const size_t r = live ? number : 0;
  const float gaps = static_cast<float>(n - 1);
  const Support on = read_support(a.support + 3 * r, gaps);
  const Support next = read_support(a.next_support + 3 * r, gaps);
  const float R = a.returns[r];
  const float D = a.discount[r];
  const float omega = a.weight[r / kBranches] * (kBranchWeight / static_cast<float>(B));
  const float shift = a.shift[r];
  const float first = shifted(on.low, shift);
  const float scale = kPositions ? on.span : on.step;
  const Online online = {first, place<kPositions>(a.positions, n - 1, scale, on.low, shift),
                         on.span, on.step, 1.0f / on.step};
  const float next_shift = a.next_shift[r];
  const float next_scale = next.valid ? (kPositions ? next.span : next.step) : 0.0f;

  const float2 sums = normalise(row, from, to);
  __syncwarp();  // a slope reads the neighbour's first logit
  const float poison = sums.x - sums.x;  // NaN where the logits have no distribution
  bool unknown = !(fabsf(first) < infinity());
  float d_shift = 0.0f;
  for (unsigned j = from; j < to; ++j) {
    const float t = fmaf(D, place<kPositions>(a.positions, j, next_scale, next.low, next_shift),
                         R);
    const float p = row.p[j];
    unknown |= t != t || !(fabsf(p) < infinity());
    const float2 at = locate<kPositions>(a.positions, online, t, n);
    const unsigned cell = on.valid ? static_cast<unsigned>(at.x) : 0;
    row.cell[j] = static_cast<unsigned char>(cell);
    row.share[j] = at.y;
    if (t > online.first && t < online.last && p != 0.0f) {
      const float rise = row.below[cell + 1] - row.below[cell] + poison;
      if constexpr (kPositions) {
        const float width = (a.positions[cell + 1] - a.positions[cell]) * on.span;
        d_shift += p * (rise / width);
      } else {
        d_shift = fmaf(p, rise, d_shift);
      }
    }
  }
  if (!kPositions) d_shift *= online.per_step;
  unknown = group_any(unknown);
  __syncwarp();
  float loss = 0.0f;
  if (on.valid && !unknown) {
    loss = walk(row, n, from, to, sums.x, sums.y, omega);
  } else {
    Settled out;
    for (unsigned i = from; i < to; ++i) {
      const float mass = on.valid ? not_a_number() : (i == 0 ? 1.0f : 0.0f);
      out.settle(row, i, mass, sums.x, sums.y, omega);
    }
    loss = out.loss;
    d_shift = on.valid ? not_a_number() : 0.0f;
  }
  loss = group_sum(loss);
  d_shift = group_sum(d_shift);
  if (live && lane == 0) {
    a.loss[r] = loss;
    a.d_shift[r] = d_shift;
    a.invalid[r] = on.valid && next.valid && !unknown ? 0 : 1;
  }
}

template <bool kPositions>
__device__ __forceinline__ void c51_block(const C51Arrays& a, float* shared, unsigned B,
                                          unsigned n) {
  const size_t rows = static_cast<size_t>(B) * kBranches;
  const size_t begin = static_cast<size_t>(blockIdx.x) * kC51Rows;
  const unsigned here = static_cast<unsigned>(min(static_cast<size_t>(kC51Rows), rows - begin));
  float* const below = shared;
  float* const grown = below + kC51Rows * n;
  float* const p = grown + kC51Rows * n;
  float* const share = p + kC51Rows * n;
  unsigned char* const cell = reinterpret_cast<unsigned char*>(share + kC51Rows * n);
  stage(below, a.logits + begin * n, here * n);
  stage(p, a.p_next + begin * n, here * n);
  __syncthreads();
  const unsigned own = threadIdx.x / kGroup;
  const unsigned at = own * n;
  c51_row<kPositions>(a, {below + at, grown + at, p + at, share + at, cell + at}, begin + own,
                      own < here, B, n);
  __syncthreads();
  unstage(a.d_logits + begin * n, grown, here * n);
}

}  // namespace trueup
