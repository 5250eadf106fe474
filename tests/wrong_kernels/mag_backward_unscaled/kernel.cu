// WRONG ON PURPOSE: the values' gradient without the scale
//
// mag_concat_backward: gradient of the features and of the direction's values at that input.
//
// Equation     DQN programme, 6: dh = d[:, :D],  dQ_dir = c d[:, D:], with c as in the forward
//                pass, held constant
// Reference    dqn.mag_concat_backward
// Shapes       d_mag (B, D + 4); q_dir, d_q (B, 4); h_rms (1), on the device; d_h (B, D); c_max by
//              value; workspace part (blocks of the first launch)
// Launch       squares: 256 threads, min(ceil(B / 256), 264) blocks; then rows: 256 threads, any
//              number of blocks, each of which adds up the parts
// Traffic      d_mag is read once, d_h and d_q are written once, in 16-byte accesses where D is a
//              multiple of 4 and the arrays are aligned to that
// Determinism  bitwise: fixed trees over a block, parts in a fixed order; no atomics
// Numerics     float32
#include "mag_concat.cuh"

extern "C" __global__ void __launch_bounds__(trueup::kLossThreads)
    mag_concat_backward_squares(const float* __restrict__ q_dir, float* __restrict__ part, int B) {
  trueup::sum_squares(q_dir, part, static_cast<unsigned>(B));
}

extern "C" __global__ void __launch_bounds__(trueup::kLossThreads)
    mag_concat_backward_rows(const float* __restrict__ d_mag, const float* __restrict__ h_rms,
                             const float* __restrict__ part, float c_max, float* __restrict__ d_h,
                             float* __restrict__ d_q, int B, int D) {
  using trueup::Reuse;
  const float scale = trueup::matched_scale(part, h_rms, c_max, static_cast<unsigned>(B));
  const unsigned width = D;
  if (width % 4 == 0 && trueup::aligned16(d_mag) && trueup::aligned16(d_h) &&
      trueup::aligned16(d_q)) {
    const unsigned quads = width / 4;
    trueup::each_element(B, quads + 1, [=](size_t row, unsigned quad) {
      const float4 v = trueup::load<Reuse::kOnce>(reinterpret_cast<const float4*>(d_mag) +
                                                  row * (quads + 1) + quad);
      if (quad < quads) {
        trueup::store_once(reinterpret_cast<float4*>(d_h) + row * quads + quad, v);
      } else {
        reinterpret_cast<float4*>(d_q)[row] = v;
      }
    });
    return;
  }
  trueup::each_element(B, width + 4, [=](size_t row, unsigned column) {
    const float value = d_mag[row * (width + 4) + column];
    if (column < width) {
      d_h[row * width + column] = value;
    } else {
      d_q[4 * row + column - width] = value;
    }
  });
}
