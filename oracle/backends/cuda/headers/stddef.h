// Empty on purpose: NVRTC or the prelude has what kernels take from <stddef.h>.
#pragma once
