// WRONG ON PURPOSE: masked tokens contribute to the gradients
//
// cms_level_update: one chunk update of an MLP level of the continuum memory system.
//
// Equation     Nested Learning, Eq. 31 with f the gradient of Eq. 30's level, reading `sum`:
//                z = W1 x_t    a = silu(z)    e = (W2^T delta_t) silu'(z)
//                W1' = W1 - eta sum e x_t^T        W2' = W2 - eta sum delta_t a^T
// Reference    nl.cms_level_update
// Shapes       W1 (h, d) and W2 (d, h) row-major, updated in place; x, delta (C, d), a token per
//              row; mask (C) bytes, not 0 for active tokens; counts (4) integers: updates, tokens
//              of updates, active tokens, tokens of fully masked chunks; workspaces Z, D
//              (slices, C, h)
// Launch       128 threads a block, then 256, then 128: see cms_level.cuh
// Determinism  bitwise: fixed order of summation, no atomics
// Numerics     float32 by products of split factors
#include "cms_level.cuh"

CMS_LEVEL_UPDATE(cms_level_update, kSplit, false)
