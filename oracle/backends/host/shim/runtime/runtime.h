// The runtime's own state. One thread of the operating system runs one block at a time, and each
// CUDA thread of the block runs on a fiber.
#pragma once
#include "../cuhost/abi.h"
#include "../cuhost/types.h"

namespace cuhost {

constexpr unsigned MAX_THREADS = 1024;

struct Fiber;

enum State : uint8_t { RUNNABLE, AT_BARRIER, AT_WARP_OP, AT_ACTIVE_MASK, DONE };

// What a CUDA thread is and, while it waits, where and for what.
struct Thread {
  uint3 index;
  Fiber* fiber;
  const char* file;
  int line;
  State state;
  Op op;
  unsigned mask;
  int operand, width;  // of its shuffle
  uint64_t value, result;
  int flag;
};

// Lanes that have arrived at one warp operation under one mask.
struct Group {
  unsigned mask, arrived;
  Op op;
};

struct Warp {
  unsigned alive;  // lanes that exist and have not returned
  int group_count;
  Group groups[32];
};

struct Barrier {
  unsigned arrived;
  BarrierOp op;
  const char* file;
  int line;
  unsigned accumulated;  // lanes with a true predicate
  int result;
};

// block.cpp
extern Thread threads[MAX_THREADS];
extern Warp warps[MAX_THREADS / 32];
extern Barrier barrier_state;
extern Thread* current;
extern unsigned block_size, live;
extern const Options* options;
void release(Thread* thread);
void wait_for_release();
bool barrier_complete();
void finish_barrier(Thread* last);

// warp.cpp
void leave_warp(Thread* thread);
bool release_active_masks();

// fiber.cpp
void prepare_fibers();
void switch_to(Fiber* fiber);
void switch_to_launcher();
Fiber* idle_fiber();
void park(Fiber* fiber);
extern Fiber* running;
void fiber_main();
bool in_stack_guard(uint64_t address);

// report.cpp
Report* new_report(Kind kind, int line, const char* file);
[[noreturn]] void abandon();
[[noreturn]] void fail_deadlock();
const char* name_of(Op op);

// signals.cpp: runs `body` with every fatal signal and the time limit turned into a report.
// Returns 0 at its end, 1 after a report that ended it, -1 where there is no timer to be had.
int guarded(void (*body)());

inline unsigned number(const Thread* thread) { return unsigned(thread - threads); }

}  // namespace cuhost
