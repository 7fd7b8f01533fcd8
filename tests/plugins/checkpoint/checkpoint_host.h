// SPDX-License-Identifier: MIT
//
// The smallest host that can run a checkpoint plugin: statuses, the io service, and a control group
// whose ranks are threads.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include <ciuic/abi/ciuic.h>
#include <ciuic/host.hpp>
#include <ciuic/view.hpp>

#include "core/plugin/io_service.h"
#include "faulty_io.h"

namespace ciuic::test {

/// A tensor with its elements, or a blob.
struct Value {
  bool is_blob = false;
  ciuic_dtype dtype{};
  std::vector<int64_t> shape;
  std::string bytes;

  [[nodiscard]] int64_t elements() const;
  bool operator==(const Value& o) const;
};
using State = std::map<std::string, Value>;

[[nodiscard]] Value blob(std::string bytes);
/// Elements of all bit patterns, from a seed.
[[nodiscard]] Value random_tensor(ciuic_dtype dtype, std::vector<int64_t> shape, uint32_t seed);
/// A few tensors and blobs as a training run has them.
[[nodiscard]] State small_state(uint32_t seed);

class ThreadGroup;

/// Options of a plugin that are not the default.
using OptionValues = std::map<std::string, std::variant<int64_t, std::string>>;

/// A plugin instance on one rank.
class Rank final {
 public:
  Rank(const std::string& plugin, ThreadGroup& group, int32_t rank, FaultPlan* faults,
       const OptionValues& options);
  ~Rank();
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  class Open final {
   public:
    Open(const Rank& rank, ciuic_archive* archive) : rank_(&rank), archive_(archive) {}
    Open(Open&& o) noexcept : rank_(o.rank_), archive_(std::exchange(o.archive_, nullptr)) {}
    Open& operator=(Open&&) = delete;
    ~Open();

    /// Elements [begin, begin + count) of a value; a blob whole.
    void put(const std::string& key, const Value& value, int64_t begin, int64_t count) const;
    void put(const std::string& key, const Value& value) const {
      put(key, value, 0, value.elements());
    }
    void put_at(const std::string& key, const ciuic_place& place, const ciuic_tensor& tensor,
                const ciuic_stream* stream = nullptr) const;
    void commit() const;
    [[nodiscard]] State list() const;  // without elements
    void verify(const std::string& key = "") const;
    /// Elements of a tensor as bytes; the type and shape as the caller has them.
    [[nodiscard]] std::string get(const std::string& key, const Value& like, int64_t begin,
                                  int64_t count) const;
    void get_at(const std::string& key, const ciuic_place& place, const ciuic_tensor& into,
                const ciuic_stream* stream = nullptr) const;
    [[nodiscard]] std::string get_blob(const std::string& key) const;
    /// Everything.
    [[nodiscard]] State read() const;

   private:
    const Rank* rank_;
    ciuic_archive* archive_;
  };

  [[nodiscard]] Open begin(const std::string& uri, uint64_t step, const State& announced) const;
  [[nodiscard]] Open open(const std::string& uri) const;
  void remove(const std::string& uri) const;

  struct DeviceCalls {
    int copies = 0;   // through "ciuic.tensor"
    int records = 0;  // through "ciuic.stream"
  };
  [[nodiscard]] DeviceCalls device_calls() const;
  [[nodiscard]] int32_t rank() const noexcept { return rank_; }
  [[nodiscard]] int32_t world() const noexcept { return world_; }
  [[nodiscard]] const Host& host() const noexcept { return host_; }

 private:
  friend class Open;
  struct Services;
  std::unique_ptr<Services> services_;
  int32_t rank_, world_;
  Host host_;
  const ciuic_descriptor* descriptor_ = nullptr;
  const ciuic_checkpoint_vt* vt_ = nullptr;
  ciuic_instance* self_ = nullptr;
};

/// `world` ranks, each a thread while something runs.
class Cluster final {
 public:
  explicit Cluster(const std::string& plugin, int32_t world = 1, FaultPlan* faults = nullptr,
                   const OptionValues& options = {});
  ~Cluster();

  /// Runs `body` on all ranks; what each threw, or nothing.
  std::vector<std::optional<Error>> run(const std::function<void(Rank&)>& body);
  [[nodiscard]] Rank& rank(int32_t i) { return *ranks_.at(static_cast<size_t>(i)); }
  [[nodiscard]] int32_t world() const { return static_cast<int32_t>(ranks_.size()); }

  /// Saves, each rank its even share of every tensor, rank 0 the blobs; the errors, equal on all
  /// ranks.
  std::optional<Error> save(const std::string& uri, uint64_t step, const State& state,
                            bool is_announced = true);
  /// All ranks read their share; the whole, or the first error.
  State load(const std::string& uri);

 private:
  std::unique_ptr<ThreadGroup> group_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

/// A folder that is gone after the test.
class TemporaryFolder final {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

[[nodiscard]] std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& bytes);
/// Names, relative, of all files and folders below, sorted.
[[nodiscard]] std::vector<std::string> tree(const std::string& path);

/// The error that `body` throws, of the given code; fails the test otherwise.
Error expect_error(int32_t code, const std::function<void()>& body);

}  // namespace ciuic::test
