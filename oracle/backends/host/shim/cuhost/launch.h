// Calling a kernel from an array of pointers to its arguments (cuLaunchKernel's kernelParams) and
// telling what its parameters are, both deduced by the compiler.
#pragma once
#include <type_traits>
#include <utility>

#include "abi.h"

namespace cuhost {

// kind: 0 int, 1 float, 2 pointer, 3 const pointer, 4 struct. floating_bytes: of a float, or of
// what a pointer to floats points to; negative for bfloat16, else 0.
struct Parameter {
  uint32_t size;
  int32_t kind, floating_bytes;
};

template <class T> struct floating {
  static constexpr int bytes = std::is_floating_point_v<T> ? int(sizeof(T)) : 0;
};
template <> struct floating<void> { static constexpr int bytes = 0; };

template <class A> constexpr Parameter parameter() {
  using T = std::remove_cv_t<std::remove_reference_t<A>>;
  if constexpr (std::is_pointer_v<T>) {
    using P = std::remove_pointer_t<T>;
    return {sizeof(T), std::is_const_v<P> ? 3 : 2, floating<std::remove_cv_t<P>>::bytes};
  } else if constexpr (floating<T>::bytes != 0) {
    return {sizeof(T), 1, floating<T>::bytes};
  } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    return {sizeof(T), 0, 0};
  } else {
    return {sizeof(T), 4, 0};
  }
}

template <class... A> int describe(void (*)(A...), Parameter* out, int capacity) {
  const Parameter all[] = {parameter<A>()..., Parameter{}};
  for (int i = 0; i < int(sizeof...(A)) && i < capacity; ++i) out[i] = all[i];
  return int(sizeof...(A));
}

template <class... A, size_t... I>
int call(void (*kernel)(A...), void** args, const uint32_t* shape, const Options* options,
         std::index_sequence<I...>) {
  auto body = [&] {
    kernel(*static_cast<std::remove_cv_t<std::remove_reference_t<A>>*>(args[I])...);
  };
  using Body = decltype(body);
  return run_grid(shape, options, [](void* p) { (*static_cast<Body*>(p))(); }, &body);
}

template <class... A>
int launch(void (*kernel)(A...), void** args, const uint32_t* shape, const Options* options) {
  return call(kernel, args, shape, options, std::index_sequence_for<A...>{});
}

}  // namespace cuhost

#define CUHOST_PUBLIC extern "C" __attribute__((visibility("default")))
#define CUHOST_EXPORT(INDEX, ...)                                                               \
  CUHOST_PUBLIC int cuhost_launch_##INDEX(void** args, const uint32_t* shape,                   \
                                          const cuhost::Options* options) {                     \
    return cuhost::launch(__VA_ARGS__, args, shape, options);                                   \
  }                                                                                             \
  CUHOST_PUBLIC int cuhost_describe_##INDEX(cuhost::Parameter* out, int capacity) {             \
    return cuhost::describe(__VA_ARGS__, out, capacity);                                        \
  }
