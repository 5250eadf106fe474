// WRONG ON PURPOSE: dB is not halved
//
// differential_sharpe: what a bar's return adds to the Sharpe ratio of each of n portfolios.
//
// Equation     Moody and Saffell (2001), Eq. 14:
//                dA = R - A,  dB = R^2 - B,  D = (B dA - A dB / 2) / (B - A^2)^(3/2)
//                A += eta dA,  B += eta dB;  D = 0 where B - A^2 <= 1e-12, and in the warm-up
// Reference    dqn.differential_sharpe
// Shapes       R, D (n) float32; A, B (n) float64, updated in place; step (1) int, on the device;
//              eta, warm_up by value
// Launch       1-D grid of ceil(n / block), any block size; one thread a portfolio
// Traffic      R, A, B are read once, D, A, B are written once: 40 n bytes
// Determinism  bitwise: no portfolio sees another
// Numerics     float64 throughout, since B - A^2 and the numerator both cancel; D is rounded once
#include "common.cuh"

extern "C" __global__ void differential_sharpe(const float* __restrict__ R, double* __restrict__ A,
                                               double* __restrict__ B,
                                               const int* __restrict__ step, float* __restrict__ D,
                                               float eta, float warm_up, int n) {
  constexpr float kFloor = 1e-12f;
  const size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= static_cast<size_t>(n)) return;
  const double r = R[i];
  const double a = A[i];
  const double b = B[i];
  const double d_a = r - a;
  const double d_b = __dsub_rn(__dmul_rn(r, r), b);
  const double variance = __dsub_rn(b, __dmul_rn(a, a));
  const double top = __dsub_rn(__dmul_rn(b, d_a), __dmul_rn(a, d_b));
  const bool silent = variance <= static_cast<double>(kFloor) ||
                      static_cast<float>(*step) < warm_up;
  D[i] = silent ? 0.0f : static_cast<float>(top / (variance * sqrt(variance)));
  A[i] = fma(static_cast<double>(eta), d_a, a);
  B[i] = fma(static_cast<double>(eta), d_b, b);
}
