#pragma once
#include "deep/storage.cuh"
template <typename T> __device__ T* dynamic_tile() { return reinterpret_cast<T*>(raw_storage()); }
