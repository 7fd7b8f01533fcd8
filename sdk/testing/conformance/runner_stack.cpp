// SPDX-License-Identifier: MIT
#include "runner_stack.hpp"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <dirent.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <memory>
#include <new>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

#include "static/elf_file.hpp"
#include "vt_slots.hpp"

namespace ciuic::testing {
namespace {

constexpr size_t kNameBytes = 400;
constexpr int kAsk = SIGUSR2;

/// What the child tells its parent. The first thread that is inside the plugin writes.
struct Report {
  std::atomic<int> state;      // 0 empty, 1 being written, 2 written
  char entry[kNameBytes];      // the function of the table that was called
  char innermost[kNameBytes];  // where inside the plugin; mangled
};

/// A function of the plugin.
struct Function {
  uintptr_t begin;
  std::string name;
  bool in_table;
};

// Read by a signal handler, which gets no argument of ours: the only globals of the kit.
Report* report = nullptr;
std::vector<Function>* functions = nullptr;
uintptr_t module_begin = 0;
uintptr_t module_end = 0;

bool in_module(const void* pc) {
  const auto at = reinterpret_cast<uintptr_t>(pc);
  return at >= module_begin && at < module_end;
}

/// The function that a return address belongs to.
const Function* function_at(const void* pc) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(pc) - 1;
  const auto after = std::upper_bound(functions->begin(), functions->end(), at,
                                      [](uintptr_t a, const Function& f) { return a < f.begin; });
  return after == functions->begin() ? nullptr : &*(after - 1);
}

void copy(char (&into)[kNameBytes], const std::string& name) {
  const size_t size = std::min(name.size(), kNameBytes - 1);
  std::memcpy(into, name.data(), size);
  into[size] = '\0';
}

/// Async-signal-safe as far as the unwinder is, which watch_stack() has warmed up.
void write_report() {
  void* frames[128];
  const int count = backtrace(frames, 128);
  int outermost = count;
  int innermost = count;
  for (int i = count; i-- > 0;) {
    if (in_module(frames[i])) {
      outermost = outermost == count ? i : outermost;
      innermost = i;
    }
  }
  int expected = 0;
  if (outermost == count || functions == nullptr ||
      !report->state.compare_exchange_strong(expected, 1)) {
    return;
  }
  if (const Function* f = function_at(frames[outermost])) {
    copy(report->entry, f->name);
  }
  if (const Function* f = function_at(frames[innermost])) {
    copy(report->innermost, f->name);
  }
  report->state.store(2);
}

void on_crash(int signal) {
  write_report();
  std::signal(signal, SIG_DFL);
  raise(signal);
}

void on_ask(int) { write_report(); }

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_ONSTACK | SA_NODEFER | SA_RESTART;
  sigaction(signal, &action, nullptr);
}

void use_alternate_stack() {
  constexpr size_t kBytes = 1 << 16;
  stack_t stack{};
  stack.ss_sp = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  stack.ss_size = kBytes;
  sigaltstack(&stack, nullptr);  // a stack overflow leaves no room for a handler
}

/// Where the library with this address is mapped.
void find_module(const void* address) {
  Dl_info info{};
  module_begin = module_end = 0;
  if (dladdr(address, &info) == 0) {
    return;
  }
  module_begin = reinterpret_cast<uintptr_t>(info.dli_fbase);
  dl_iterate_phdr(
      [](dl_phdr_info* module, size_t, void*) {
        for (int i = 0; module->dlpi_addr == module_begin && i < module->dlpi_phnum; ++i) {
          const auto& s = module->dlpi_phdr[i];
          if (s.p_type == PT_LOAD) {
            module_end = std::max<uintptr_t>(module_end, module_begin + s.p_vaddr + s.p_memsz);
          }
        }
        return 0;
      },
      nullptr);
}

void add_table(const ciuic_descriptor& d, std::vector<Function>& out) {
  const auto add = [&](const void* address, const char* name) {
    if (address != nullptr && in_module(address)) {
      out.push_back({reinterpret_cast<uintptr_t>(address), name, true});
    }
  };
  const auto address = [](auto function) { return reinterpret_cast<const void*>(function); };
  add(address(d.validate), "validate");
  add(address(d.create), "create");
  add(address(d.quiesce), "quiesce");
  add(address(d.resume), "resume");
  add(address(d.set_option), "set_option");
  add(address(d.state_save), "state_save");
  add(address(d.state_load), "state_load");
  add(address(d.destroy), "destroy");
  const std::vector<Slot>& slots = slots_of(d.kind);
  for (size_t i = 0; d.vt != nullptr && i < slots.size(); ++i) {
    add(slot_address(d, i), slots[i].name);
  }
}

void add_symbols(const std::string& path, std::vector<Function>& out) {
  const size_t in_table = out.size();
  for (const ElfSymbol& s : ElfFile(path).all_symbols()) {
    const uintptr_t begin = module_begin + s.address;
    const bool known = std::any_of(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(in_table),
                                   [&](const Function& f) { return f.begin == begin; });
    if (s.type == STT_FUNC && s.defined && !known) {
      out.push_back({begin, s.name, false});
    }
  }
}

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
  return text == nullptr ? name : text.get();
}

}  // namespace

void prepare_stack_watch() {
  if (report == nullptr) {
    void* memory =
        mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      throw std::runtime_error("mmap: no memory for the crash report");
    }
    report = new (memory) Report{};
  }
  report->entry[0] = report->innermost[0] = '\0';
  report->state.store(0);
}

void watch_stack() {
  void* frame[4];
  backtrace(frame, 4);  // loads the unwinder now, not in a handler
  handle(kAsk, on_ask);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  use_alternate_stack();
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) {
    handle(signal, on_crash);
  }
#endif
}

void name_functions_of(const ciuic_descriptor& descriptor, const std::string& path) {
  find_module(&descriptor);
  auto found = std::make_unique<std::vector<Function>>();
  add_table(descriptor, *found);
  add_symbols(path, *found);
  std::sort(found->begin(), found->end(),
            [](const Function& a, const Function& b) { return a.begin < b.begin; });
  delete functions;
  functions = found.release();
}

void ask_for_stack(pid_t child) {
  const std::string folder = "/proc/" + std::to_string(child) + "/task";
  if (DIR* tasks = opendir(folder.c_str())) {
    while (const dirent* entry = readdir(tasks)) {
      const long thread = std::strtol(entry->d_name, nullptr, 10);
      if (thread > 0) {
        syscall(SYS_tgkill, child, thread, kAsk);
      }
    }
    closedir(tasks);
  }
  for (int i = 0; i < 200 && report->state.load() != 2; ++i) {
    usleep(1000);
  }
}

std::string last_call() {
  if (report == nullptr || report->state.load() != 2) {
    return "";
  }
  const std::string entry = demangled(report->entry);
  const std::string innermost = demangled(report->innermost);
  return entry == innermost || innermost.empty() ? entry : entry + " (at " + innermost + ")";
}

}  // namespace ciuic::testing
