// What compiled kernels, the runtime and the Python side agree on.
#pragma once
#include <stddef.h>
#include <stdint.h>

#define CUHOST_SITE int line = __builtin_LINE(), const char* file = __builtin_FILE()

namespace cuhost {

// The order is the Python side's too: faults.py names each.
enum Kind : int32_t {
  CRASH = 0,
  TIME_LIMIT,
  DEADLOCK,
  DIVERGENT_BARRIER,
  UNDEFINED,
  OUT_OF_BOUNDS,
  MISUSE,
  MISALIGNED,
};

struct Report {
  int32_t kind, signal;
  uint64_t address, pc;
  int32_t is_write, line, column;
  uint32_t block[3], thread[3];
  char file[256];
  char message[3072];
};

struct Range {
  void* start;
  uint64_t bytes;
};

struct Options {
  uint64_t order;
  double time_limit;
  void* dynamic_shared;
  uint64_t dynamic_bytes;
  const Range* statics;  // the static __shared__ objects
  uint64_t static_count;
  char* stacks;  // `stack_count` slots of `stack_bytes`, all unmapped; a page of each stays so
  uint64_t stack_bytes, stack_count;
  Report* reports;
  uint64_t report_capacity;
  uint64_t* report_count;
  uint32_t fill;
};

enum Op : int {
  SYNC = 0,
  SHFL,
  SHFL_UP,
  SHFL_DOWN,
  SHFL_XOR,
  BALLOT,
  ANY,
  ALL,
  MATCH_ANY,
  MATCH_ALL,
  REDUCE_ADD,
  REDUCE_MIN,
  REDUCE_MAX,
  REDUCE_UMIN,
  REDUCE_UMAX,
  REDUCE_AND,
  REDUCE_OR,
  REDUCE_XOR,
};

enum BarrierOp : int { PLAIN = 0, COUNT, AND, OR };

extern void* dynamic_base;

int barrier(BarrierOp op, int predicate, int line, const char* file);
// `operand` is the lane, delta or lane mask of a shuffle. `flag` takes match_all's predicate.
uint64_t warp(Op op, unsigned mask, uint64_t value, int operand, int width, int* flag, int line,
              const char* file);
unsigned active_mask(int line, const char* file);
unsigned lane();
unsigned linear_thread();
[[noreturn]] void fail(Kind kind, int line, const char* file, const char* format, ...)
    __attribute__((format(printf, 4, 5)));
int print(const char* format, ...) __attribute__((format(printf, 1, 2)));
void* track_dynamic(void** variable);
uint64_t clock_ticks();
int run_grid(const uint32_t* shape, const Options* options, void (*body)(void*), void* argument);

}  // namespace cuhost
