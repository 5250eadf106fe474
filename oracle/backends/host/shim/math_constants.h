// Everything that a kernel can need of it is there already.
#pragma once
#include "cuda_host.h"
