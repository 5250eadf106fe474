// WRONG ON PURPOSE: the shares of the two atoms of a cell are exchanged
//
// c51_projection: the C51 target of every branch, projected onto the atoms of the taken action.
//
// Equation     C51, arXiv:1707.06887, on a support for every row, with shifted atoms:
//                t_j = R + D z'_j clamped to the online atoms, in cell l with share w
//                m_l += p'_j (1 - w), m_{l+1} += p'_j w
// Reference    dqn.c51_projection
// Shapes       p_next, mass (B, 4, n_atoms); support, next_support (B, 4, 3); returns, discount,
//              shift, next_shift, invalid (B, 4); discount >= 0; n_atoms from 2 to 180
// Launch       1-D grid of ceil(B / 4), 128 threads: 16 rows a block, 8 lanes a row; 208 n_atoms
//              bytes of shared memory
// Traffic      p_next is read once, mass is written once, in 16-byte accesses
// Degenerate   a support that is none puts all mass on atom 0; NaN targets make their row NaN;
//              both set invalid
// Determinism  bitwise: every atom adds its targets in order; no atomics
// Numerics     float32; a share from (t - z_0) - l delta_z, times the rounded 1 / delta_z
#include "projection.cuh"

namespace {

constexpr unsigned kThreads = 128;
constexpr unsigned kRows = kThreads / trueup::kGroup;

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads)
    c51_projection(const float* __restrict__ p_next, const float* __restrict__ support,
                   const float* __restrict__ next_support, const float* __restrict__ returns,
                   const float* __restrict__ discount, const float* __restrict__ shift,
                   const float* __restrict__ next_shift, float* __restrict__ mass,
                   int* __restrict__ invalid, int B, int n_atoms) {
  extern __shared__ __align__(16) float shared[];
  const unsigned n = static_cast<unsigned>(n_atoms);
  const unsigned lane = threadIdx.x % trueup::kGroup;
  const unsigned own = threadIdx.x / trueup::kGroup;
  const size_t begin = static_cast<size_t>(blockIdx.x) * kRows;
  const size_t left = 4 * static_cast<size_t>(B) - begin;
  const unsigned here = static_cast<unsigned>(left < kRows ? left : kRows);
  trueup::stage(shared, p_next + begin * n, here * n);
  __syncthreads();
  const trueup::ProjectedRow row(shared, own, kRows, n);
  const bool live = own < here;
  const size_t r = live ? begin + own : begin;
  const unsigned chunk = (n + trueup::kGroup - 1) / trueup::kGroup;
  const unsigned from = live ? min(lane * chunk, n) : 0;
  const unsigned to = live ? min(from + chunk, n) : 0;
  const trueup::EvenAtoms on(support + 3 * r, shift[r], n);
  const trueup::Targets targets(next_support + 3 * r, next_shift[r], returns[r], discount[r], n);
  const bool unknown = trueup::locate_targets(row, on, targets, from, to, n);
  __syncwarp();
  if (on.valid && !unknown) {
    trueup::settle_atoms(row, n, from, to, [&](unsigned i, float m) { row.mass[i] = m; });
  } else {
    for (unsigned i = from; i < to; ++i) {
      row.mass[i] = on.valid ? trueup::not_a_number() : (i == 0 ? 1.0f : 0.0f);
    }
  }
  if (live && lane == 0) invalid[r] = on.valid && targets.valid && !unknown ? 0 : 1;
  __syncthreads();
  trueup::unstage(mass + begin * n, shared + 2 * kRows * n, here * n);
}
