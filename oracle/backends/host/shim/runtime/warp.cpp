// Warp operations: each lane leaves what it brings, and the last to arrive computes everyone's
// result. Lanes that have returned from the kernel no longer count.
#include <string.h>

#include "runtime.h"

namespace cuhost {

static Thread* lanes_of(const Thread* thread) { return &threads[number(thread) / 32 * 32]; }

// The lane a shuffle reads from; its own where the operation leaves its segment.
static int source_lane(Op op, int lane, int operand, int width) {
  const int first = lane & ~(width - 1), last = first + width - 1;
  switch (op) {
    case SHFL: return first + (operand & (width - 1));
    case SHFL_UP: return unsigned(operand) > unsigned(lane - first) ? lane : lane - operand;
    case SHFL_DOWN: return unsigned(operand) > unsigned(last - lane) ? lane : lane + operand;
    default: return (lane ^ operand) > last || (lane ^ operand) < 0 ? lane : lane ^ operand;
  }
}

static uint64_t poison_word() { return options->fill * 0x0001000100010001ull; }

static void shuffle_all(Thread* lanes, unsigned arrived) {
  for (unsigned rest = arrived; rest; rest &= rest - 1) {
    const int lane = __builtin_ctz(rest);
    Thread& t = lanes[lane];
    const int source = source_lane(t.op, lane, t.operand, t.width);
    t.result = arrived >> source & 1 ? lanes[source].value : poison_word();
  }
}

static unsigned combine(Op op, unsigned a, unsigned b) {
  switch (op) {
    case REDUCE_ADD: return a + b;
    case REDUCE_MIN: return int(b) < int(a) ? b : a;
    case REDUCE_MAX: return int(b) > int(a) ? b : a;
    case REDUCE_UMIN: return b < a ? b : a;
    case REDUCE_UMAX: return b > a ? b : a;
    case REDUCE_AND: return a & b;
    case REDUCE_OR: return a | b;
    default: return a ^ b;
  }
}

// The lanes whose value is lane `with`'s.
static unsigned equal_lanes(const Thread* lanes, unsigned arrived, int with) {
  unsigned equal = 0;
  for (unsigned rest = arrived; rest; rest &= rest - 1) {
    const int lane = __builtin_ctz(rest);
    if (lanes[lane].value == lanes[with].value) equal |= 1u << lane;
  }
  return equal;
}

static void compute(Op op, Thread* lanes, unsigned arrived) {
  if (op == SYNC) return;
  if (op >= SHFL && op <= SHFL_XOR) return shuffle_all(lanes, arrived);
  const int first = __builtin_ctz(arrived);
  unsigned voted = 0, folded = unsigned(lanes[first].value);
  for (unsigned rest = arrived; rest; rest &= rest - 1) {
    const int lane = __builtin_ctz(rest);
    if (lanes[lane].value) voted |= 1u << lane;
    if (lane != first) folded = combine(op, folded, unsigned(lanes[lane].value));
  }
  const bool all_equal = op == MATCH_ALL && equal_lanes(lanes, arrived, first) == arrived;
  for (unsigned rest = arrived; rest; rest &= rest - 1) {
    const int lane = __builtin_ctz(rest);
    Thread& t = lanes[lane];
    switch (op) {
      case BALLOT: t.result = voted; break;
      case ANY: t.result = voted != 0; break;
      case ALL: t.result = voted == arrived; break;
      case MATCH_ANY: t.result = equal_lanes(lanes, arrived, lane); break;
      case MATCH_ALL: t.flag = all_equal, t.result = all_equal ? arrived : 0; break;
      default: t.result = folded;
    }
  }
}

static void finish(Warp& warp, int at, Thread* lanes, Thread* last) {
  const Group group = warp.groups[at];
  warp.groups[at] = warp.groups[--warp.group_count];
  compute(group.op, lanes, group.arrived);
  for (unsigned rest = group.arrived; rest; rest &= rest - 1) {
    Thread* thread = &lanes[__builtin_ctz(rest)];
    if (thread != last) release(thread);
  }
  if (last) last->state = RUNNABLE;
}

static int find_group(Warp& warp, unsigned mask, Op op) {
  for (int i = 0; i < warp.group_count; ++i)
    if (warp.groups[i].mask == mask) return i;
  warp.groups[warp.group_count] = {mask, 0, op};
  return warp.group_count++;
}

static void check_call(const Thread* self, unsigned lane_bit) {
  if (!(self->mask & lane_bit))
    fail(MISUSE, self->line, self->file, "%s under mask 0x%08x, which leaves out the calling lane",
         name_of(self->op), self->mask);
  if (self->width < 1 || self->width > 32 || (self->width & (self->width - 1)))
    fail(MISUSE, self->line, self->file, "%s with width %d, which is no power of two up to 32",
         name_of(self->op), self->width);
}

uint64_t warp(Op op, unsigned mask, uint64_t value, int operand, int width, int* flag, int line,
              const char* file) {
  Thread* self = current;
  self->op = op, self->mask = mask, self->line = line, self->file = file;
  self->value = value, self->operand = operand, self->width = width;
  const unsigned bit = 1u << number(self) % 32;
  check_call(self, bit);
  Warp& warp = warps[number(self) / 32];
  Thread* lanes = lanes_of(self);
  const int at = find_group(warp, mask, op);
  Group& group = warp.groups[at];
  if (group.op != op) {
    const Thread& other = lanes[__builtin_ctz(group.arrived)];
    fail(MISUSE, line, file,
         "lanes of one warp meet in different operations under mask 0x%08x: %s here, %s in %s:%d",
         mask, name_of(op), name_of(group.op), other.file, other.line);
  }
  self->state = AT_WARP_OP;
  group.arrived |= bit;
  if (group.arrived == (mask & warp.alive)) {
    finish(warp, at, lanes, self);
  } else {
    wait_for_release();
  }
  if (flag) *flag = self->flag;
  return self->result;
}

void leave_warp(Thread* thread) {
  Warp& warp = warps[number(thread) / 32];
  warp.alive &= ~(1u << number(thread) % 32);
  for (int i = warp.group_count; i-- > 0;)
    if (warp.groups[i].arrived == (warp.groups[i].mask & warp.alive))
      finish(warp, i, lanes_of(thread), nullptr);
}

// Asked only when nothing else can run: the lanes of a warp that wait at one line are the active.
bool release_active_masks() {
  for (unsigned n = 0; n < block_size; ++n) {
    if (threads[n].state != AT_ACTIVE_MASK) continue;
    Thread* lanes = lanes_of(&threads[n]);
    unsigned mask = 0;
    for (int lane = 0; lane < 32 && &lanes[lane] < threads + block_size; ++lane) {
      const Thread& t = lanes[lane];
      if (t.state == AT_ACTIVE_MASK && t.line == threads[n].line &&
          strcmp(t.file, threads[n].file) == 0)
        mask |= 1u << lane;
    }
    for (unsigned rest = mask; rest; rest &= rest - 1) {
      lanes[__builtin_ctz(rest)].result = mask;
      release(&lanes[__builtin_ctz(rest)]);
    }
    return true;
  }
  return false;
}

unsigned active_mask(int line, const char* file) {
  Thread* self = current;
  self->line = line, self->file = file;
  self->state = AT_ACTIVE_MASK;
  wait_for_release();
  return unsigned(self->result);
}

}  // namespace cuhost
