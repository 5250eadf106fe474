// Empty on purpose: NVRTC or the prelude has what kernels take from <stdint.h>.
#pragma once
