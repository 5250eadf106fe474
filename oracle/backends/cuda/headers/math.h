// Empty on purpose: NVRTC or the prelude has what kernels take from <math.h>.
#pragma once
