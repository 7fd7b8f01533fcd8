// SPDX-License-Identifier: MIT
//
// The plugin under test on one or more ranks over one store of files, and what a host does with it:
// save a state, load it, look what lies there.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ciuic/abi/checkpoint.h>
#include <ciuic/testing/conformance.hpp>
#include <ciuic/testing/features.hpp>
#include <ciuic/testing/io_plan.hpp>
#include <ciuic/testing/memory_files.hpp>
#include <ciuic/testing/rank_group.hpp>
#include <ciuic/testing/reference_io.hpp>

#include "state.hpp"

namespace ciuic::testing::checkpoint {

class CheckpointRank;

/// An archive, closed with this object. All calls throw Error with what the plugin reports; a work
/// is waited for, and fails the test when it does not end. What `in` arguments point at (keys,
/// places, entries) is overwritten after each call, because the plugin may not keep it.
class OpenArchive {
 public:
  OpenArchive(const CheckpointRank& rank, ciuic_archive* archive)
      : rank_(&rank), archive_(archive) {}
  OpenArchive(OpenArchive&& o) noexcept
      : rank_(o.rank_), archive_(std::exchange(o.archive_, nullptr)) {}
  OpenArchive& operator=(OpenArchive&&) = delete;
  ~OpenArchive() { close(); }
  void close();

  /// Elements [begin, begin + count) of a tensor; `data` is all of its bytes and stays the caller's.
  void put(const std::string& key, const Value& value, Share share) const;
  void put_at(const std::string& key, const ciuic_place& place, const ciuic_tensor& tensor) const;
  void put_blob(const std::string& key, const std::string& bytes) const;
  void commit() const;

  /// Without bytes.
  [[nodiscard]] State list() const;
  void verify(const std::string& key = "") const;
  [[nodiscard]] std::string get(const std::string& key, const Value& like, Share share) const;
  void get_at(const std::string& key, const ciuic_place& place, const ciuic_tensor& into) const;
  [[nodiscard]] std::string get_blob(const std::string& key) const;
  /// Everything that list shows.
  [[nodiscard]] State read() const;

 private:
  const CheckpointRank* rank_;
  ciuic_archive* archive_;
};

/// One rank's host, services and instance.
class CheckpointRank {
 public:
  CheckpointRank(const TestContext& context, Rank& rank, FileStore& files, IoPlan& plan);

  [[nodiscard]] OpenArchive begin(const std::string& uri, uint64_t step,
                                  const State& announced) const;
  [[nodiscard]] OpenArchive open(const std::string& uri) const;
  void remove(const std::string& uri) const;

  [[nodiscard]] int rank() const noexcept { return rank_.rank(); }
  [[nodiscard]] int world() const noexcept { return rank_.world(); }
  [[nodiscard]] const ciuic_checkpoint_vt& vt() const noexcept {
    return instance_->table<ciuic_checkpoint_vt>();
  }
  void check(ciuic_status* status) const { rank_.host.host().check(status); }
  /// Waits for a work, releases it, throws its error.
  void finish(ciuic_work* work) const;
  [[nodiscard]] const TestHost& host() const noexcept { return rank_.host; }

 private:
  friend class Ranks;
  const TestContext& context_;
  Rank& rank_;
  ReferenceIo io_;
  std::optional<PluginInstance> instance_;
};

/// All ranks. One alone has no "ciuic.comm", as in a host without communicator.
class Ranks {
 public:
  Ranks(const TestContext& context, FileStore& files, IoPlan& plan, int world = 1);
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  ~Ranks();

  [[nodiscard]] int world() const noexcept { return group_.world(); }
  [[nodiscard]] CheckpointRank& rank(int r = 0) { return *ranks_.at(static_cast<size_t>(r)); }
  /// Runs `body` on every rank at once; what each threw. Exceptions other than Error come through.
  std::vector<std::optional<Error>> run(const std::function<void(CheckpointRank&)>& body);

  /// Each rank puts its even share of every tensor (or, of a plugin with the feature writer:rank0,
  /// rank 0 all), rank 0 the blobs. The failure, which must be one on all ranks or on none.
  std::optional<Error> try_save(const std::string& uri, uint64_t step, const State& state,
                                bool is_announced = true);
  /// Fails the test where try_save fails; skips it when the plugin says UNIMPLEMENTED.
  void save(const std::string& uri, uint64_t step, const State& state, bool is_announced = true);
  /// Each rank opens and reads its share; the whole.
  State load(const std::string& uri);

  /// Destroys the instances and fails the test when statuses or files stayed behind.
  void finish();

 private:
  const TestContext& context_;
  FileStore& files_;
  RankGroup group_;
  std::vector<std::unique_ptr<CheckpointRank>> ranks_;
};

/// What a fresh instance finds at a uri.
struct Finding {
  enum class Kind { Absent, Damaged, Whole } kind;
  State state;       // when whole: verified and read
  std::string text;  // what the plugin said when it is not
};
[[nodiscard]] Finding look(const TestContext& context, MemoryFiles& files, const std::string& uri);
/// Fails the test unless `state` lies at the uri, whole.
void require_saved(const TestContext& context, MemoryFiles& files, const std::string& uri,
                   const State& state, const std::string& when);

[[nodiscard]] inline bool has_feature(const TestContext& context, const char* feature) {
  return testing::has_feature(context.plugin.descriptor(), feature);
}
/// Runs `body` and returns the error that it throws; fails the test when it throws none, or one
/// with a code that is not in `codes`.
Error expect_error(const std::vector<int32_t>& codes, const std::string& what,
                   const std::function<void()>& body);

}  // namespace ciuic::testing::checkpoint
