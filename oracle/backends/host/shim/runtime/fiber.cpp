// Stacks to run CUDA threads on. A fiber is made when the first thread blocks that has none.
#include <sys/mman.h>

#include "runtime.h"

#if !defined(__x86_64__) || defined(CUHOST_UCONTEXT)
#define CUHOST_PORTABLE 1
#include <ucontext.h>
#endif

namespace cuhost {

struct Fiber {
#ifdef CUHOST_PORTABLE
  ucontext_t context;
#else
  void* stack_pointer;
#endif
};

static Fiber launcher, fibers[MAX_THREADS];
static Fiber* idle[MAX_THREADS];
static unsigned fiber_count, idle_count;
Fiber* running = &launcher;

#ifdef CUHOST_PORTABLE

static void jump(Fiber* from, Fiber* to) { swapcontext(&from->context, &to->context); }

static void enter(Fiber* fiber, char* stack, size_t bytes, unsigned) {
  getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = stack;
  fiber->context.uc_stack.ss_size = bytes;
  fiber->context.uc_link = nullptr;
  makecontext(&fiber->context, fiber_main, 0);
}

#else

// Saves the registers that a call preserves, swaps stacks, restores the other side's.
extern "C" void cuhost_switch(void** save, void* restore);
asm(R"(
.text
.p2align 4
.globl cuhost_switch
.hidden cuhost_switch
.type cuhost_switch, @function
cuhost_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size cuhost_switch, .-cuhost_switch
)");

static void jump(Fiber* from, Fiber* to) { cuhost_switch(&from->stack_pointer, to->stack_pointer); }

static void enter(Fiber* fiber, char* stack, size_t bytes, unsigned number) {
  // Each stack starts at another cache line, or all the tops would share one set of the cache.
  char* top = stack + bytes - (number * 192 % 4096 & ~63u);
  void** cell = reinterpret_cast<void**>(top) - 2;
  *--cell = nullptr;  // where fiber_main would return to: it never does
  *--cell = reinterpret_cast<void*>(fiber_main);
  for (int i = 0; i < 6; ++i) *--cell = nullptr;
  fiber->stack_pointer = cell;
}

#endif

static char* stack_of(unsigned number) { return options->stacks + number * options->stack_bytes; }

// After a fault the suspended fibers are abandoned: every run starts with none.
void prepare_fibers() {
  fiber_count = idle_count = 0;
  running = &launcher;
}

Fiber* idle_fiber() {
  if (idle_count) return idle[--idle_count];
  constexpr size_t guard = 4096;
  const unsigned number = fiber_count++;
  char* stack = stack_of(number) + guard;
  const size_t bytes = options->stack_bytes - guard;
  if (mprotect(stack, bytes, PROT_READ | PROT_WRITE) != 0)
    fail(CRASH, 0, nullptr, "no memory for the stack of thread %u of the block", number);
  enter(&fibers[number], stack, bytes, number);
  return &fibers[number];
}

void park(Fiber* fiber) { idle[idle_count++] = fiber; }

void switch_to(Fiber* fiber) {
  if (fiber == running) return;
  Fiber* from = running;
  running = fiber;
  jump(from, fiber);
}

void switch_to_launcher() { switch_to(&launcher); }

bool in_stack_guard(uint64_t address) {
  const uint64_t offset = address - reinterpret_cast<uint64_t>(options->stacks);
  return offset < options->stack_bytes * options->stack_count &&
         offset % options->stack_bytes < 4096;
}

}  // namespace cuhost
