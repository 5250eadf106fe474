// Empty on purpose: NVRTC or the prelude has what kernels take from <stdio.h>.
#pragma once
