// WRONG ON PURPOSE: the scale has no limit
//
// mag_concat: the input of the magnitude branch, the trunk's features and the direction's values.
//
// Equation     DQN programme, 6: mag_in = [h, c Q_dir],
//                c = min(h_rms / max(rms(Q_dir), 1e-6), c_max), the rms over the whole block
// Reference    dqn.mag_concat
// Shapes       h (B, D); q_dir (B, 4); h_rms (1), on the device; mag_in (B, D + 4); c (1);
//              c_max by value; workspace part (blocks of the first launch)
// Launch       squares: 256 threads, min(ceil(B / 256), 264) blocks; then rows: 256 threads, any
//              number of blocks, each of which adds up the parts
// Traffic      h is read once, mag_in is written once, in 16-byte accesses where D is a multiple
//              of 4 and the arrays are aligned to that
// Determinism  bitwise: fixed trees over a block, parts in a fixed order; no atomics
// Numerics     float32
#include "mag_concat.cuh"

extern "C" __global__ void __launch_bounds__(trueup::kLossThreads)
    mag_concat_squares(const float* __restrict__ q_dir, float* __restrict__ part, int B) {
  trueup::sum_squares(q_dir, part, static_cast<unsigned>(B));
}

extern "C" __global__ void __launch_bounds__(trueup::kLossThreads)
    mag_concat_rows(const float* __restrict__ h, const float* __restrict__ q_dir,
                    const float* __restrict__ h_rms, const float* __restrict__ part, float c_max,
                    float* __restrict__ mag_in, float* __restrict__ c, int B, int D) {
  using trueup::Reuse;
  const float scale = trueup::matched_scale(part, h_rms, c_max, static_cast<unsigned>(B));
  const unsigned width = D;
  if (blockIdx.x == 0 && threadIdx.x == 0) *c = scale;
  if (width % 4 == 0 && trueup::aligned16(h) && trueup::aligned16(q_dir) &&
      trueup::aligned16(mag_in)) {
    const unsigned quads = width / 4;
    trueup::each_element(B, quads + 1, [=](size_t row, unsigned quad) {
      float4 v;
      if (quad < quads) {
        v = trueup::load<Reuse::kOnce>(reinterpret_cast<const float4*>(h) + row * quads + quad);
      } else {
        v = reinterpret_cast<const float4*>(q_dir)[row];
        v = {scale * v.x, scale * v.y, scale * v.z, scale * v.w};
      }
      trueup::store_once(reinterpret_cast<float4*>(mag_in) + row * (quads + 1) + quad, v);
    });
    return;
  }
  trueup::each_element(B, width + 4, [=](size_t row, unsigned column) {
    mag_in[row * (width + 4) + column] = column < width
                                             ? h[row * width + column]
                                             : scale * q_dir[4 * row + column - width];
  });
}
