#pragma once
__device__ inline unsigned char* raw_storage() {
  /* "extern __shared__" in a header is rewritten too */
  extern __shared__ __align__(16) unsigned char storage[];
  return storage;
}
