// SPDX-License-Identifier: MIT
//
// Profiler "csv": one line an event: time, type, category, id, parent, name, value.
//
// emit may not block, so it only copies into a bounded queue under a short lock; flush, which the
// host calls between steps, does the writing. What does not fit is dropped and counted.
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <vector>

#include <ciuic/profiler.hpp>

namespace {

struct Row {
  uint64_t time_ns, id, parent;
  uint32_t type, category;
  double value;
  char name[48];  // longer ones are cut: a row has a fixed size
};

class Csv final : public ciuic::Profiler {
 public:
  static constexpr const char* name = "csv";
  static constexpr const char* version = "1.0.0";
  static constexpr const char* license = "MIT";
  static constexpr const char* summary = "events as lines of a CSV file";
  inline static const auto options = ciuic::option_table(
      ciuic::option_string("path", "events.csv",
                           "File; a relative one lies in the run's folder where there is one"),
      ciuic::option_count("buffer", 65536, 16, 1 << 24, "Events kept between two flushes"));

  explicit Csv(const ciuic::Context& c)
      : Profiler(c),
        path_(place(c.options().string("path"), c.output(), c.rank())),
        capacity_(static_cast<size_t>(c.options().i64("buffer"))),
        file_(std::fopen(path_.c_str(), "we")) {
    if (file_ == nullptr) {
      throw ciuic::Error(CIUIC_PERMISSION, "cannot write " + path_);
    }
    rows_.reserve(capacity_);
    std::fputs("time_ns,type,category,id,parent,name,value\n", file_);
  }
  ~Csv() override {
    write();
    std::fclose(file_);
  }

  uint64_t mask() const noexcept override { return ~uint64_t{0}; }

  void emit(ciuic::ArrayView<ciuic_event> events) noexcept override {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const ciuic_event& e : events) {
      if (rows_.size() == capacity_) {
        ++dropped_;
        continue;
      }
      rows_.push_back(row(e));  // within the reserved capacity: allocates nothing
    }
  }

  void flush(int64_t) override {
    write();
    if (std::fflush(file_) != 0) {
      throw ciuic::Error(CIUIC_EXHAUSTED, "cannot write " + path_);
    }
  }

 private:
  static std::string place(const std::string& path, const std::string& folder, int32_t rank) {
    const std::string own = rank == 0 ? path : path + "." + std::to_string(rank);
    return own.front() == '/' || folder.empty() ? own : folder + "/" + own;
  }
  static Row row(const ciuic_event& e) {
    Row r{e.time_ns, e.id, e.parent, e.type, e.category, e.value, {}};
    const std::string_view text = ciuic::to_view(e.name);
    text.copy(r.name, sizeof(r.name) - 1);
    for (char& c : r.name) {
      c = c == ',' || c == '"' || c == '\n' || c == '\r' ? ' ' : c;
    }
    return r;
  }
  void write() {
    std::vector<Row> rows;
    rows.reserve(capacity_);
    uint64_t dropped = 0;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      rows.swap(rows_);
      std::swap(dropped, dropped_);
    }
    for (const Row& r : rows) {
      std::fprintf(file_, "%lu,%u,%u,%lu,%lu,%s,%g\n", r.time_ns, r.type, r.category, r.id,
                   r.parent, r.name, r.value);
    }
    if (dropped != 0) {
      host().warn(std::to_string(dropped) + " events dropped; raise profiler.csv.buffer");
    }
  }

  std::string path_;
  size_t capacity_;
  std::FILE* file_;
  std::mutex mutex_;
  std::vector<Row> rows_;
  uint64_t dropped_ = 0;
};

}  // namespace

CIUIC_PLUGINS(Csv)
