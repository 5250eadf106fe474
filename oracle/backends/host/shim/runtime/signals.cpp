// Turns fatal signals and the time limit into reports. Everything is as before when a run is over:
// handlers, signal stack and mask.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "runtime.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

namespace cuhost {

static sigjmp_buf way_out;
static volatile sig_atomic_t armed;
static pthread_t runner;
alignas(16) static char signal_stack[64 * 1024];

constexpr int COUNT_OF_FATAL = 4;
static const int fatal[COUNT_OF_FATAL] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
static struct sigaction before[COUNT_OF_FATAL], before_timer;

void abandon() {
  armed = 0;
  siglongjmp(way_out, 1);
}

// A real-time signal of its own, so that nobody's SIGALRM is taken away.
static int timer_signal() { return SIGRTMIN + 7; }

static const char* describe(int number) {
  switch (number) {
    case SIGSEGV: return "segmentation fault";
    case SIGBUS: return "bus error";
    case SIGFPE: return "arithmetic trap, such as an integer division by zero";
    default: return "illegal instruction";
  }
}

static void note_machine_state(Report* report, const siginfo_t* info, const void* context) {
  const auto* machine = static_cast<const ucontext_t*>(context);
  report->signal = info->si_signo;
  report->address = reinterpret_cast<uint64_t>(info->si_addr);
#if defined(__x86_64__)
  report->pc = uint64_t(machine->uc_mcontext.gregs[REG_RIP]);
  report->is_write = machine->uc_mcontext.gregs[REG_ERR] >> 1 & 1;
#elif defined(__aarch64__)
  report->pc = machine->uc_mcontext.pc;
  report->is_write = -1;
#else
  (void)machine;
  report->is_write = -1;
#endif
}

static void on_fatal(int number, siginfo_t* info, void* context) {
  if (!armed || !pthread_equal(pthread_self(), runner)) {
    // Not ours: put the handler back that was there; the instruction traps again and finds it.
    for (int i = 0; i < COUNT_OF_FATAL; ++i)
      if (fatal[i] == number) sigaction(number, &before[i], nullptr);
    return;
  }
  Report* report = new_report(CRASH, 0, nullptr);
  note_machine_state(report, info, context);
  const bool overflow = number == SIGSEGV && in_stack_guard(report->address);
  strncpy(report->message,
          overflow ? "stack overflow: the thread's local memory is used up" : describe(number),
          sizeof report->message - 1);
  abandon();
}

static void on_timer(int, siginfo_t* info, void* context) {
  if (!armed || !pthread_equal(pthread_self(), runner)) return;
  Report* report = new_report(TIME_LIMIT, 0, nullptr);
  note_machine_state(report, info, context);
  report->address = 0;
  // Its last barrier or warp operation: where it is now if the program counter does not tell.
  if (current && current->file) {
    report->line = current->line;
    strncpy(report->file, current->file, sizeof report->file - 1);
  }
  abandon();
}

static bool start_timer(double seconds, timer_t* timer) {
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = timer_signal();
  event.sigev_notify_thread_id = pid_t(syscall(SYS_gettid));
  if (timer_create(CLOCK_MONOTONIC, &event, timer) != 0) return false;
  itimerspec when{};
  when.it_value.tv_sec = time_t(seconds);
  when.it_value.tv_nsec = long((seconds - double(when.it_value.tv_sec)) * 1e9) + 1;
  if (when.it_value.tv_nsec > 999999999) when.it_value.tv_nsec = 999999999;
  return timer_settime(*timer, 0, &when, nullptr) == 0;
}

static void install_handlers() {
  struct sigaction action {};
  sigfillset(&action.sa_mask);
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  action.sa_sigaction = on_fatal;
  for (int i = 0; i < COUNT_OF_FATAL; ++i) sigaction(fatal[i], &action, &before[i]);
  action.sa_sigaction = on_timer;
  sigaction(timer_signal(), &action, &before_timer);
}

static void restore_handlers() {
  for (int i = 0; i < COUNT_OF_FATAL; ++i) sigaction(fatal[i], &before[i], nullptr);
  sigaction(timer_signal(), &before_timer, nullptr);
}

int guarded(void (*body)()) {
  stack_t stack{}, stack_before{};
  stack.ss_sp = signal_stack;
  stack.ss_size = sizeof signal_stack;
  sigaltstack(&stack, &stack_before);
  runner = pthread_self();
  install_handlers();
  timer_t timer{};
  volatile int outcome = -1;
  if (start_timer(options->time_limit, &timer)) {
    if (sigsetjmp(way_out, 1) == 0) {
      outcome = 1;
      armed = 1;
      body();
      outcome = 0;
    }
    armed = 0;
    timer_delete(timer);
  }
  restore_handlers();
  sigaltstack(&stack_before, nullptr);
  return outcome;
}

}  // namespace cuhost
