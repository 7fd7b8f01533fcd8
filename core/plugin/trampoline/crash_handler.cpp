// SPDX-License-Identifier: MIT
#include "core/plugin/trampoline/crash_handler.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "core/log/failure.h"
#include "core/plugin/trampoline/breadcrumb.h"
#include "core/plugin/trampoline/last_words.h"
#include "core/plugin/trampoline/modules.h"

namespace ciuic::core {
namespace {

struct Named {
  int number;
  const char* name;
};
constexpr std::array<Named, 5> kSignals{{{SIGSEGV, "SIGSEGV"},
                                         {SIGBUS, "SIGBUS"},
                                         {SIGILL, "SIGILL"},
                                         {SIGFPE, "SIGFPE"},
                                         {SIGABRT, "SIGABRT"}}};

const char* name_of(int signal) noexcept {
  for (const Named& s : kSignals) {
    if (s.number == signal) {
      return s.name;
    }
  }
  return "?";
}

uintptr_t program_counter(const void* context) noexcept {
#if defined(__x86_64__)
  return static_cast<uintptr_t>(
      static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return static_cast<const ucontext_t*>(context)->uc_mcontext.pc;
#else
  return 0;
#endif
}

/// The innermost call of this thread.
bool innermost(Crumb& crumb) noexcept {
  const CrumbStack* stack = CrumbStack::mine_if_any();
  return stack != nullptr && stack->depth() > 0 && stack->read(stack->depth() - 1, crumb);
}

void on_crash(int signal, siginfo_t* info, void* context) {
  const int saved = errno;
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  sigaction(signal, &standard, nullptr);  // first: whatever fails below ends the process
  WordLine line;
  line << "ciuic: error: ";
  if (Crumb crumb; innermost(crumb)) {
    say_crumb(line, crumb, "crashed in");
  } else {
    line << "ciuic crashed outside of any plugin's call";
  }
  line << ": signal=" << name_of(signal);
  say_place(line);
  line << " module=" << module_at(program_counter(context));
  if (info->si_code <= 0 && info->si_pid != getpid()) {
    line << " sent_by_pid=" << info->si_pid;
  }
  write_last_words(line);
  errno = saved;
  raise(signal);  // pending until this returns, and then the default course
}

/// The innermost call of this thread, else of any.
bool any_innermost(Crumb& crumb) noexcept {
  if (innermost(crumb)) {
    return true;
  }
  for (const CrumbStack* s = CrumbStack::first(); s != nullptr; s = s->next()) {
    if (s->depth() > 0 && s->read(s->depth() - 1, crumb)) {
      return true;
    }
  }
  return false;
}

void on_end(int) {
  WordLine line;
  if (Crumb crumb; any_innermost(crumb)) {
    say_crumb(line, crumb, "had not returned from");
  } else {
    line << "no thread was inside of a plugin's call";
  }
  line << " when the rank was ended:";
  say_place(line);
  write_last_words(line);
  raise(SIGKILL);
}

/// For this thread; other threads crash on their own stacks.
void give_signal_stack() {
  constexpr size_t kBytes = 64 * 1024;
  void* memory =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  stack_t stack{};
  stack.ss_sp = memory;
  stack.ss_size = kBytes;
  if (memory == MAP_FAILED || sigaltstack(&stack, nullptr) != 0) {
    throw Failure(ExitCode::Environment,
                  std::string("cannot make a signal stack: ") + std::strerror(errno));
  }
}

}  // namespace

void install_crash_handler() {
  record_modules();
  give_signal_stack();
  struct sigaction action {};
  action.sa_sigaction = &on_crash;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigfillset(&action.sa_mask);
  for (const Named& s : kSignals) {
    sigaction(s.number, &action, nullptr);
  }
}

void install_end_handler() {
  struct sigaction action {};
  action.sa_handler = &on_end;
  action.sa_flags = SA_ONSTACK;
  sigfillset(&action.sa_mask);
  sigaction(SIGQUIT, &action, nullptr);
}

}  // namespace ciuic::core
