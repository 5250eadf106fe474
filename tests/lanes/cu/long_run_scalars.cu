// The kernels that keep an average, in one translation unit: test_long_run_scalars.py.
#include "isv/plan_threshold.cu"
#include "isv/polyak.cu"
#include "isv/reward_emas.cu"
#include "isv/rms_ema.cu"
#include "isv/soft_reset.cu"
#include "isv/state_kl.cu"
#include "dqn/attention_focus.cu"
#include "dqn/attention_summary.cu"
