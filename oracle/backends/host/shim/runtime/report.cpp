// Tells the Python side what went wrong, and leaves the kernel where it cannot go on.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime.h"

namespace cuhost {

const char* name_of(Op op) {
  static const char* const names[] = {
      "__syncwarp",          "__shfl_sync",      "__shfl_up_sync",    "__shfl_down_sync",
      "__shfl_xor_sync",     "__ballot_sync",    "__any_sync",        "__all_sync",
      "__match_any_sync",    "__match_all_sync", "__reduce_add_sync", "__reduce_min_sync",
      "__reduce_max_sync",   "__reduce_min_sync", "__reduce_max_sync", "__reduce_and_sync",
      "__reduce_or_sync",    "__reduce_xor_sync"};
  return names[op];
}

// The last place is kept for what ends the run.
Report* new_report(Kind kind, int line, const char* file) {
  const bool final = kind != UNDEFINED && kind != OUT_OF_BOUNDS;
  const uint64_t room = options->report_capacity - (final ? 0 : 1);
  if (*options->report_count >= room) {
    if (!final) return nullptr;
    *options->report_count = room - 1;
  }
  Report* report = &options->reports[(*options->report_count)++];
  memset(report, 0, offsetof(Report, file));
  report->kind = kind;
  report->line = line;
  report->block[0] = blockIdx.x, report->block[1] = blockIdx.y, report->block[2] = blockIdx.z;
  const uint3 index = current ? current->index : uint3{0, 0, 0};
  report->thread[0] = index.x, report->thread[1] = index.y, report->thread[2] = index.z;
  snprintf(report->file, sizeof report->file, "%s", file ? file : "");
  report->message[0] = 0;
  return report;
}

void fail(Kind kind, int line, const char* file, const char* format, ...) {
  Report* report = new_report(kind, line, file);
  va_list args;
  va_start(args, format);
  if (report) vsnprintf(report->message, sizeof report->message, format, args);
  va_end(args);
  abandon();
}

// Where a thread waits, and whether another waits for the same.
static bool same_wait(const Thread& a, const Thread& b) {
  return a.state == b.state && a.line == b.line && a.file == b.file &&
         (a.state != AT_WARP_OP || (a.op == b.op && a.mask == b.mask));
}

void fail_deadlock() {
  Report* report = new_report(DEADLOCK, 0, nullptr);
  size_t used = 0;
  auto add = [&](const char* format, auto... values) {
    if (used < sizeof report->message)
      used += size_t(snprintf(report->message + used, sizeof report->message - used, format,
                              values...));
  };
  add("no thread of the block can go on: ");
  const char* separator = "";
  for (unsigned first = 0; first < block_size;) {
    const Thread& t = threads[first];
    unsigned last = first;
    while (last + 1 < block_size && same_wait(threads[last + 1], t)) ++last;
    if (t.state != DONE) {
      if (!report->line) {
        report->line = t.line;
        report->thread[0] = t.index.x, report->thread[1] = t.index.y, report->thread[2] = t.index.z;
        snprintf(report->file, sizeof report->file, "%s", t.file);
      }
      if (last > first) add("%sthreads %u..%u wait at ", separator, first, last);
      else add("%sthread %u waits at ", separator, first);
      if (t.state == AT_WARP_OP) add("%s(0x%08x) in %s:%d", name_of(t.op), t.mask, t.file, t.line);
      else add("__syncthreads in %s:%d", t.file, t.line);
      separator = "; ";
    }
    first = last + 1;
  }
  abandon();
}

// Not stdio's buffer: a run that is given up in the middle must not leave its lock taken.
int print(const char* format, ...) {
  char text[4096];
  va_list args;
  va_start(args, format);
  const int wanted = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  const size_t length = wanted < 0 ? 0 : strnlen(text, sizeof text);
  return write(STDOUT_FILENO, text, length) < 0 ? -1 : wanted;
}

uint64_t clock_ticks() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return uint64_t(now.tv_sec) * 1000000000u + uint64_t(now.tv_nsec);
}

}  // namespace cuhost

// What assert() calls.
extern "C" void __assert_fail(const char* expression, const char* file, unsigned line,
                              const char* function) noexcept {
  cuhost::fail(cuhost::CRASH, int(line), file, "assertion failed: %s, in %s", expression, function);
}

// What a function calls that finds its stack frame overwritten.
extern "C" [[noreturn]] void __stack_chk_fail() {
  cuhost::Report* report = cuhost::new_report(cuhost::OUT_OF_BOUNDS, 0, nullptr);
  if (report) {
    report->pc = reinterpret_cast<uint64_t>(__builtin_return_address(0)) - 1;
    snprintf(report->message, sizeof report->message, "a local array of the thread was overrun");
  }
  cuhost::abandon();
}
