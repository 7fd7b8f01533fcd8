// SPDX-License-Identifier: MIT
//
// Faults that a plugin of any kind can have. Each class is the subject with one thing broken.
#include <array>
#include <cfenv>
#include <chrono>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <ciuic/abi/services.h>

#include "subject.hpp"

namespace ciuic::mutants {
namespace {

/// A table with one function replaced.
template <typename Change>
ciuic_profiler_vt changed_table(Change change) {
  ciuic_profiler_vt vt = Profiler::table();
  change(vt);
  return vt;
}

void poll_for_ever() {
  while (true) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

// ---- what it leaves behind ----

class LeakPerCall final : public Subject {
 public:
  static constexpr const char* name = "leak_per_call";
  using Subject::Subject;
  void emit(ArrayView<ciuic_event> events) noexcept override {
    Subject::emit(events);
    kept_ = new char[64];  // and forgets the last one
    kept_[0] = 1;
  }

 private:
  volatile char* kept_ = nullptr;
};

class LeakPerCreate final : public Subject {
 public:
  static constexpr const char* name = "leak_per_create";
  explicit LeakPerCreate(const Context& c) : Subject(c) { (void)c.host().alloc(c.device(), 64); }
};

class ThreadLeftBehind final : public Subject {
 public:
  static constexpr const char* name = "thread_left_behind";
  explicit ThreadLeftBehind(const Context& c) : Subject(c) { std::thread(poll_for_ever).detach(); }
};

class FileLeftOpen final : public Subject {
 public:
  static constexpr const char* name = "file_left_open";
  explicit FileLeftOpen(const Context& c) : Subject(c), file_(open("/dev/null", O_RDONLY)) {}

 private:
  [[maybe_unused]] int file_;
};

class StatusFreedTwice final : public Subject {
 public:
  static constexpr const char* name = "status_freed_twice";
  explicit StatusFreedTwice(const Context& c) : Subject(c) {
    const ciuic_host* h = c.host().table();
    ciuic_status* status = c.host().status(CIUIC_INTERNAL, "tried something");
    h->status_free(h->ctx, status);
    h->status_free(h->ctx, status);
  }
};

class ThreadAfterQuiesce final : public Subject {
 public:
  static constexpr const char* name = "thread_after_quiesce";
  explicit ThreadAfterQuiesce(const Context& c)
      : Subject(c), thread_([this] {
          while (!stop_.load()) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
          }
        }) {}
  ~ThreadAfterQuiesce() override {
    stop_.store(true);
    thread_.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// ---- what it does to the boundary ----

class ThrowsAcross final : public Subject {
 public:
  static constexpr const char* name = "throws_across";
  using Subject::Subject;
  static const ciuic_profiler_vt& table() {
    static const ciuic_profiler_vt vt = changed_table([](ciuic_profiler_vt& t) {
      t.flush = [](ciuic_instance*, int64_t) -> ciuic_status* {
        throw std::runtime_error("nothing to flush");
      };
    });
    return vt;
  }
};

class ReadsPastTheEnd final : public Subject {
 public:
  static constexpr const char* name = "reads_past_the_end";
  using Subject::Subject;
  void emit(ArrayView<ciuic_event> events) noexcept override {
    for (size_t i = 0; i <= events.size(); ++i) {
      count_ += events[i].type != 0 ? 1 : 0;
    }
  }
};

class KeepsTheArguments final : public Subject {
 public:
  static constexpr const char* name = "keeps_the_arguments";
  explicit KeepsTheArguments(const Context& c) : Subject(c), options_(c.options()) {}
  void flush(int64_t) override { count_ += static_cast<uint64_t>(options_.i64("categories") * 0); }

 private:
  Options options_;
};

class ExitsTheProcess final : public Subject {
 public:
  static constexpr const char* name = "exits_the_process";
  using Subject::Subject;
  void flush(int64_t) override { std::_Exit(1); }
};

class WritesIntoFilesInFlush final : public Subject {
 public:
  static constexpr const char* name = "writes_into_files_in_flush";
  using Subject::Subject;
  void flush(int64_t) override {
    for (int fd = 3; fd < 64; ++fd) {
      [[maybe_unused]] const ssize_t n = write(fd, "a line that nobody asked for\n", 29);
    }
  }
};

class HangsInFlush final : public Subject {
 public:
  static constexpr const char* name = "hangs_in_flush";
  using Subject::Subject;
  void flush(int64_t) override { poll_for_ever(); }
};

class SharesItsOptions final : public Subject {
 public:
  static constexpr const char* name = "shares_its_options";
  explicit SharesItsOptions(const Context& c) : Subject(c) { shared() = categories_; }
  [[nodiscard]] uint64_t mask() const noexcept override {
    return (uint64_t{2} << static_cast<unsigned>(shared())) - 2;
  }

 private:
  static int64_t& shared() {
    static int64_t categories = 0;
    return categories;
  }
};

class NotReentrant final : public Subject {
 public:
  static constexpr const char* name = "not_reentrant";
  using Subject::Subject;
  void emit(ArrayView<ciuic_event> events) noexcept override {
    if (busy_.exchange(true)) {
      std::abort();
    }
    Subject::emit(events);
    busy_.store(false);
  }

 private:
  std::atomic<bool> busy_{false};
};

// ---- what it does to the process ----

class ChangesTheLocale final : public Subject {
 public:
  static constexpr const char* name = "changes_the_locale";
  explicit ChangesTheLocale(const Context& c) : Subject(c) { std::setlocale(LC_ALL, "C.UTF-8"); }
};

class ChangesRounding final : public Subject {
 public:
  static constexpr const char* name = "changes_rounding";
  using Subject::Subject;
  void flush(int64_t) override { std::fesetround(FE_UPWARD); }
};

class HandlesSignals final : public Subject {
 public:
  static constexpr const char* name = "handles_signals";
  explicit HandlesSignals(const Context& c) : Subject(c) { std::signal(SIGTERM, SIG_IGN); }
};

class ChangesDirectory final : public Subject {
 public:
  static constexpr const char* name = "changes_directory";
  using Subject::Subject;
  void flush(int64_t) override {
    if (chdir("/") != 0) {
      throw Error(CIUIC_INTERNAL, "cannot change to /");
    }
  }
};

class SetsTheEnvironment final : public Subject {
 public:
  static constexpr const char* name = "sets_the_environment";
  explicit SetsTheEnvironment(const Context& c) : Subject(c) { setenv("OMP_NUM_THREADS", "1", 1); }
};

class SeedsRandomNumbers final : public Subject {
 public:
  static constexpr const char* name = "seeds_random_numbers";
  explicit SeedsRandomNumbers(const Context& c) : Subject(c) { std::srand(1); }
};

class Prints final : public Subject {
 public:
  static constexpr const char* name = "prints";
  using Subject::Subject;
  void flush(int64_t) override { std::printf("flushed\n"); }
};

// ---- options ----

class DefaultOutOfRange final : public Subject {
 public:
  static constexpr const char* name = "default_out_of_range";
  inline static const auto options =
      option_table(option_i64("categories", 10, 1, 8, "Listens to the first so many categories"),
                   option_string("label", "events", "A text that stands in its log lines"));
  using Subject::Subject;
};

class OptionWithoutText final : public Subject {
 public:
  static constexpr const char* name = "option_without_text";
  inline static const auto options =
      option_table(option_i64("categories", 10, 1, 10, "Listens to the first so many categories"),
                   option_string("label", "events", ""));
  using Subject::Subject;
};

class DividesByItsOption final : public Subject {
 public:
  static constexpr const char* name = "divides_by_its_option";
  inline static const auto options =
      option_table(option_i64("categories", 10, 1, 10, "Listens to the first so many categories"),
                   option_string("label", "events", "A text that stands in its log lines"),
                   option_i64("every", 100, 0, 1000, "A log line each so many events"));
  explicit DividesByItsOption(const Context& c) : Subject(c), every_(c.options().i64("every")) {}
  void flush(int64_t) override {
    const volatile int64_t every = every_;
    if (static_cast<int64_t>(count_) % every == 0) {
      Subject::flush(0);
    }
  }

 private:
  int64_t every_;
};

class ShortTextBuffer final : public Subject {
 public:
  static constexpr const char* name = "short_text_buffer";
  explicit ShortTextBuffer(const Context& c) : Subject(c) {
    char text[64];
    char* volatile into = text;
    std::memcpy(into, label_.data(), label_.size());
    count_ = into[0] == '\0' ? 1 : 0;
  }
};

class ValidateAsksServices final : public Subject {
 public:
  static constexpr const char* name = "validate_asks_services";
  using Subject::Subject;
  static void validate(const Context& c) {
    (void)c.host().find_service<ciuic_metrics_service>("ciuic.metrics");
  }
};

class LiveWithoutSetter final : public Subject {
 public:
  static constexpr const char* name = "live_without_setter";
  inline static const auto options =
      option_table(option_i64("categories", 10, 1, 10, "Listens to the first so many categories",
                              CIUIC_OPTION_LIVE),
                   option_string("label", "events", "A text that stands in its log lines"));
  using Subject::Subject;
};

// ---- when the host has troubles ----

class IgnoresFailedAllocation final : public Subject {
 public:
  static constexpr const char* name = "ignores_failed_allocation";
  explicit IgnoresFailedAllocation(const Context& c) : Subject(c) {
    const ciuic_host* h = c.host().table();
    void* memory = h->alloc(h->ctx, c.device(), 64, 0, nullptr);
    std::memset(memory, 0, 64);
    h->dealloc(h->ctx, c.device(), memory, 64, nullptr);
  }
};

class AssumesAService final : public Subject {
 public:
  static constexpr const char* name = "assumes_a_service";
  explicit AssumesAService(const Context& c) : Subject(c) {
    const auto* threads = c.host().find_service<ciuic_thread_service>("ciuic.threads");
    count_ = threads->count(threads->ctx) * 0;
  }
};

class LeaksAfterFailure final : public Subject {
 public:
  static constexpr const char* name = "leaks_after_failure";
  explicit LeaksAfterFailure(const Context& c) : Subject(c) {
    void* memory = c.host().alloc(c.device(), 64);
    const auto& kv = c.host().service<ciuic_kv_service>("ciuic.kv");
    c.host().check(kv.set(kv.ctx, to_str("here"), to_str("yes")));  // throws past the next line
    c.host().dealloc(c.device(), memory, 64);
  }
};

// ---- state ----

class StateDrifts final : public Subject {
 public:
  static constexpr const char* name = "state_drifts";
  using Subject::Subject;
  void load(const StateReader& reader) override { count_ = parse(reader.blob("count")) + 1; }
};

class AssertsOnDamagedState final : public Subject {
 public:
  static constexpr const char* name = "asserts_on_damaged_state";
  using Subject::Subject;
  void load(const StateReader& reader) override {
    const std::string text = reader.blob("count");
    if (text.empty()) {
      std::abort();
    }
    count_ = parse(text);
  }
};

// ---- descriptor ----

class LooseVersion final : public Subject {
 public:
  static constexpr const char* name = "loose_version";
  static constexpr const char* version = "1.0";
  using Subject::Subject;
};

class UnknownFeature final : public Subject {
 public:
  static constexpr const char* name = "unknown_feature";
  static constexpr std::array<const char*, 3> features{"mine:own", "output:cvs", nullptr};
  using Subject::Subject;
};

class UnknownFlag final : public Subject {
 public:
  static constexpr const char* name = "unknown_flag";
  static constexpr uint32_t flags = 1U << 20;
  using Subject::Subject;
};

class MissingFunction final : public Subject {
 public:
  static constexpr const char* name = "missing_function";
  using Subject::Subject;
  static const ciuic_profiler_vt& table() {
    static const ciuic_profiler_vt vt =
        changed_table([](ciuic_profiler_vt& t) { t.flush = nullptr; });
    return vt;
  }
};

class WorksWhenQuiet final : public Subject {
 public:
  static constexpr const char* name = "works_when_quiet";
  using Subject::Subject;
  static const ciuic_profiler_vt& table() {
    static const ciuic_profiler_vt vt = changed_table([](ciuic_profiler_vt& t) {
      t.flush = [](ciuic_instance* self, int64_t timeout_ns) {
        auto& subject = from_handle<Profiler>(self);
        return guard(subject.host(), [&] { subject.flush(timeout_ns); });
      };
    });
    return vt;
  }
};

}  // namespace
}  // namespace ciuic::mutants

using namespace ciuic::mutants;
CIUIC_PLUGINS(Subject, LeakPerCall, LeakPerCreate, ThreadLeftBehind, FileLeftOpen, StatusFreedTwice,
              ThreadAfterQuiesce, ThrowsAcross, ReadsPastTheEnd, KeepsTheArguments, ExitsTheProcess,
              WritesIntoFilesInFlush, HangsInFlush, SharesItsOptions, NotReentrant,
              ChangesTheLocale, ChangesRounding, HandlesSignals, ChangesDirectory,
              SetsTheEnvironment, SeedsRandomNumbers, Prints, DefaultOutOfRange, OptionWithoutText,
              DividesByItsOption, ShortTextBuffer, ValidateAsksServices, LiveWithoutSetter,
              IgnoresFailedAllocation, AssumesAService, LeaksAfterFailure, StateDrifts,
              AssertsOnDamagedState, LooseVersion, UnknownFeature, UnknownFlag, MissingFunction,
              WorksWhenQuiet)
