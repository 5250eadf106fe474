// Empty on purpose: NVRTC or the prelude has what kernels take from <cuda_runtime.h>.
#pragma once
