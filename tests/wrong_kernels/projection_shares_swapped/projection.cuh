// projection.cuh: a target distribution laid onto evenly spaced atoms, by a group of 8 lanes.
//
// Targets t_j grow with j, and so do their cells. So each lane settles the atoms of its own chunk
// by walking the targets that fall on them, in order: a gather, without a write that another lane
// could meet.
#pragma once
#include "atoms.cuh"

namespace trueup {

// One row in shared memory, n numbers each: the target's probabilities, each target's share for
// the upper atom of its cell, the masses that come of it, and the cells.
struct ProjectedRow {
  float* p;
  float* share;
  float* mass;
  unsigned char* cell;

  static constexpr unsigned kBytes = 3 * sizeof(float) + 1;  // an atom

  // Row `own` of `rows` in a block's shared memory.
  __device__ __forceinline__ ProjectedRow(float* shared, unsigned own, unsigned rows, unsigned n)
      : p(shared + own * n),
        share(shared + (rows + own) * n),
        mass(shared + (2 * rows + own) * n),
        cell(reinterpret_cast<unsigned char*>(shared + 3 * rows * n) + own * n) {}
};

// The atoms that are projected onto.
struct EvenAtoms {
  float first;
  float last;
  float step;
  float per_step;
  bool valid;

  // The shift comes last: low + shift would round at the size of low, where the atom is small.
  __device__ __forceinline__ EvenAtoms(const float* __restrict__ support, float shift, unsigned n) {
    const float gaps = static_cast<float>(n - 1);
    const Support on = read_support(support, gaps);
    first = shifted(on.low, shift);
    last = shifted(fmaf(gaps, on.step, on.low), shift);
    step = on.step;
    per_step = 1.0f / on.step;
    valid = on.valid;
  }
};

// t_j = R + D z'_j; a degenerate support of s' counts as its atom 0 alone.
struct Targets {
  float R;
  float D;
  float low;
  float step;
  float shift;
  bool valid;

  __device__ __forceinline__ Targets(const float* __restrict__ support, float shift_, float R_,
                                     float D_, unsigned n)
      : R(R_), D(D_), shift(shift_) {
    const Support next = read_support(support, static_cast<float>(n - 1));
    low = next.low;
    step = next.valid ? next.step : 0.0f;
    valid = next.valid;
  }

  __device__ __forceinline__ float at(unsigned j) const {
    return fmaf(D, shifted(fmaf(static_cast<float>(j), step, low), shift), R);
  }
};

// Leaves cells and shares of the targets from..to, clamped: a share of exactly 0 at or below the
// first atom, exactly 1 at or beyond the last. Tells the group whether a number is none.
__device__ __forceinline__ bool locate_targets(const ProjectedRow& row, const EvenAtoms& on,
                                               const Targets& targets, unsigned from, unsigned to,
                                               unsigned n) {
  const float top = static_cast<float>(n - 2);
  bool unknown = !(fabsf(on.first) < infinity());
  for (unsigned j = from; j < to; ++j) {
    const float t = targets.at(j);
    unknown |= t != t || !(fabsf(row.p[j]) < infinity());
    const float above = t >= on.last ? infinity() : fmaxf(t - on.first, 0.0f);
    // The quotient can round up to n - 1 although t is below the last atom.
    const float cell = fminf(floorf(above * on.per_step), top);
    const float share = fmaf(-cell, on.step, above) * on.per_step;
    row.cell[j] = static_cast<unsigned char>(on.valid ? static_cast<unsigned>(cell) : 0);
    row.share[j] = fminf(fmaxf(share, 0.0f), 1.0f);
  }
  return group_any(unknown);
}

// Calls settle(atom, mass) for the atoms from..to, whatever lane located their targets.
template <class Settle>
__device__ __forceinline__ void settle_atoms(const ProjectedRow& row, unsigned n, unsigned from,
                                             unsigned to, Settle settle) {
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
  float here = 0.0f;  // mass on the atom, and on the one above it
  float above = 0.0f;
  for (unsigned atom = from == 0 ? 0 : from - 1; atom < to; ++atom) {
    for (; j < n && row.cell[j] == atom; ++j) {
      here = fmaf(row.p[j], row.share[j], here);
      above = fmaf(row.p[j], 1.0f - row.share[j], above);
    }
    if (atom >= from) settle(atom, here);
    here = above;
    above = 0.0f;
  }
}

}  // namespace trueup
