// Runs the threads of a block, one block after the other, in the order that the seed says.
#include <string.h>

#include "runtime.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace cuhost {

Thread threads[MAX_THREADS];
Warp warps[MAX_THREADS / 32];
Barrier barrier_state;
Thread* current;
unsigned block_size, live;
const Options* options;
void* dynamic_base;

static unsigned start_order[MAX_THREADS], next_start;
static Thread* queue[MAX_THREADS];  // a ring: its size is a power of two
static unsigned queue_head, queue_count;
// Odd seeds let one warp run ahead of the others as far as it can: warps by rank, lanes that wait.
static unsigned ranked_warps[MAX_THREADS / 32], waiting[MAX_THREADS / 32];
static void (*thread_body)(void*);
static void* thread_argument;
static uint64_t random_state;

static uint64_t next_random() {  // splitmix64
  uint64_t z = random_state += 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}
static unsigned random_below(unsigned n) { return unsigned((next_random() >> 32) * n >> 32); }

static bool warp_runs_ahead() { return options->order > 1 && options->order % 2 == 1; }

void release(Thread* thread) {
  thread->state = RUNNABLE;
  if (warp_runs_ahead()) {
    waiting[number(thread) / 32] |= 1u << number(thread) % 32;
    ++queue_count;
    return;
  }
  queue[(queue_head + queue_count++) % MAX_THREADS] = thread;
}

static Thread* take_of_first_warp() {
  const unsigned* warp = ranked_warps;
  while (waiting[*warp] == 0) ++warp;
  const unsigned lane = unsigned(__builtin_ctz(waiting[*warp]));
  waiting[*warp] &= waiting[*warp] - 1;
  --queue_count;
  return &threads[*warp * 32 + lane];
}

static Thread* take() {
  if (warp_runs_ahead()) return take_of_first_warp();
  if (options->order > 1) {
    Thread*& picked = queue[(queue_head + random_below(queue_count)) % MAX_THREADS];
    Thread* thread = picked;
    picked = queue[(queue_head + --queue_count) % MAX_THREADS];
    return thread;
  }
  Thread* thread = queue[queue_head % MAX_THREADS];
  ++queue_head;
  --queue_count;
  return thread;
}

// Whether to start a thread rather than go on with one: seldom in the natural order, so that few
// stacks are in use; always in the reversed one, so that the warps interleave; else by chance.
static bool start_next() {
  if (next_start == block_size) return false;
  if (queue_count == 0 || options->order == 1) return true;
  return options->order > 1 && random_below(2) == 0;
}

// Goes on with some other thread. Returns when `running`'s turn comes again, if it comes.
static void go_on() {
  for (;;) {
    if (start_next()) return switch_to(idle_fiber());
    if (queue_count) {
      Thread* thread = take();
      current = thread;
      return switch_to(thread->fiber);
    }
    if (live == 0) return switch_to_launcher();
    if (!release_active_masks()) fail_deadlock();
  }
}

void wait_for_release() {
  Thread* self = current;
  go_on();
  current = self;
  threadIdx = self->index;
}

static void thread_exit(Thread* thread) {
  thread->state = DONE;
  --live;
  leave_warp(thread);
  if (live && barrier_complete()) finish_barrier(nullptr);
}

// Runs threads that have not started, as a plain loop for as long as none of them blocks.
void fiber_main() {
  Fiber* self = running;
  for (;;) {
    while (start_next()) {
      Thread* thread = &threads[start_order[next_start++]];
      thread->fiber = self;
      thread->state = RUNNABLE;
      current = thread;
      threadIdx = thread->index;
      thread_body(thread_argument);
      thread_exit(current);
    }
    park(self);
    go_on();
  }
}

bool barrier_complete() { return barrier_state.arrived && barrier_state.arrived == live; }

void finish_barrier(Thread* last) {
  Barrier& b = barrier_state;
  b.result = b.op == AND ? b.accumulated == b.arrived : b.op == OR ? b.accumulated != 0
                                                                    : int(b.accumulated);
  b.arrived = b.accumulated = 0;
  for (unsigned i = 0; i < block_size; ++i) {
    Thread* thread = &threads[start_order[i]];
    if (thread->state == AT_BARRIER && thread != last) release(thread);
  }
  if (last) last->state = RUNNABLE;
}

int barrier(BarrierOp op, int predicate, int line, const char* file) {
  Barrier& b = barrier_state;
  Thread* self = current;
  self->line = line, self->file = file;
  if (b.arrived == 0) {
    b.op = op, b.line = line, b.file = file;
  } else if (b.op != op || b.line != line || (b.file != file && strcmp(b.file, file) != 0)) {
    fail(DIVERGENT_BARRIER, line, file,
         "divergent __syncthreads: %u thread(s) of the block wait at the one in %s:%d, and this "
         "thread came to another",
         b.arrived, b.file, b.line);
  }
  self->state = AT_BARRIER;
  b.accumulated += predicate != 0;
  ++b.arrived;
  if (barrier_complete()) {
    finish_barrier(self);
  } else {
    wait_for_release();
  }
  return b.result;
}

// Pointers at file scope that stand for `extern __shared__` arrays: each launch moves them along.
static void** tracked[64];
static unsigned tracked_count;

void* track_dynamic(void** variable) {
  if (tracked_count < 64) tracked[tracked_count++] = variable;
  return nullptr;
}

unsigned linear_thread() { return number(current); }
unsigned lane() { return number(current) % 32; }

static void poison(void* start, uint64_t bytes) {
  const uint64_t word = options->fill * 0x0001000100010001ull;
  char* at = static_cast<char*>(start);
  for (; bytes >= 8; at += 8, bytes -= 8) memcpy(at, &word, 8);
  memcpy(at, &word, bytes);
}

static void prepare_block() {
  poison(options->dynamic_shared, options->dynamic_bytes);
  for (uint64_t i = 0; i < options->static_count; ++i)
    poison(options->statics[i].start, options->statics[i].bytes);
  live = block_size;
  next_start = queue_head = queue_count = 0;
  barrier_state = Barrier{};
  for (unsigned w = 0; w * 32 < block_size; ++w) {
    const unsigned lanes = block_size - w * 32;
    warps[w].alive = lanes >= 32 ? 0xffffffffu : (1u << lanes) - 1;
    warps[w].group_count = 0;
  }
  if (options->order > 1) {
    for (unsigned i = block_size - 1; i > 0; --i) {
      const unsigned j = random_below(i + 1);
      const unsigned kept = start_order[i];
      start_order[i] = start_order[j];
      start_order[j] = kept;
    }
    for (unsigned w = 0; w < MAX_THREADS / 32; ++w) {
      const unsigned j = random_below(w + 1);
      ranked_warps[w] = ranked_warps[j];
      ranked_warps[j] = w;
      waiting[w] = 0;
    }
  }
}

static uint64_t common_divisor(uint64_t a, uint64_t b) {
  while (b) {
    const uint64_t rest = a % b;
    a = b, b = rest;
  }
  return a;
}

// Visits the blocks forward, backward, or in steps that pass through each of them once.
static void run_blocks() {
  const uint64_t plane = uint64_t(gridDim.x) * gridDim.y, blocks = plane * gridDim.z;
  uint64_t at = 0, step = 1;
  if (options->order == 1) {
    at = blocks - 1, step = blocks - 1;
  } else if (options->order > 1 && blocks > 1) {
    at = next_random() % blocks;
    do {
      step = 1 + next_random() % (blocks - 1);
    } while (common_divisor(step, blocks) != 1);
  }
  for (uint64_t done = 0; done < blocks; ++done, at = (at + step) % blocks) {
    blockIdx = {unsigned(at % gridDim.x), unsigned(at / gridDim.x % gridDim.y),
                unsigned(at / plane)};
    prepare_block();
    switch_to(idle_fiber());
  }
}

int run_grid(const uint32_t* shape, const Options* with, void (*body)(void*), void* argument) {
  gridDim = {shape[0], shape[1], shape[2]};
  blockDim = {shape[3], shape[4], shape[5]};
  options = with;
  dynamic_base = with->dynamic_shared;
  for (unsigned i = 0; i < tracked_count; ++i) *tracked[i] = dynamic_base;
  thread_body = body, thread_argument = argument;
  block_size = blockDim.x * blockDim.y * blockDim.z;
  random_state = with->order;
  current = nullptr;
  for (unsigned i = 0; i < block_size; ++i) {
    threads[i].index = {i % blockDim.x, i / blockDim.x % blockDim.y,
                        i / (blockDim.x * blockDim.y)};
    threads[i].state = DONE;
    start_order[i] = with->order == 1 ? block_size - 1 - i : i;
  }
  prepare_fibers();
  const int outcome = guarded(run_blocks);
  options = nullptr;
  return outcome;
}

}  // namespace cuhost
