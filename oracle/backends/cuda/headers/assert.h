// Empty on purpose: NVRTC or the prelude has what kernels take from <assert.h>.
#pragma once
