// SPDX-License-Identifier: MIT
//
// One rank's end of a communicator under test: made by create or by split, destroyed with the
// object.
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <vector>

#include <ciuic/communicator.hpp>
#include <ciuic/testing/conformance.hpp>
#include <ciuic/testing/rank_processes.hpp>

namespace ciuic::testing::communicator {

inline constexpr int64_t kMillisecond = 1'000'000;
inline constexpr int64_t kSecond = 1'000 * kMillisecond;

/// create refuses this size of group.
class WorldNotServed : public NotOffered {
 public:
  using NotOffered::NotOffered;
};

/// How a work, or the submit that should have made it, ended.
struct Outcome {
  bool has_ended = true;
  std::optional<Error> error;  // of the work; the wait's own DEADLINE shows as has_ended = false
  double seconds = 0;

  [[nodiscard]] bool ok() const noexcept { return has_ended && !error; }
  [[nodiscard]] int32_t code() const noexcept { return error ? error->code() : int32_t{CIUIC_OK}; }
  [[nodiscard]] int32_t peer() const noexcept { return error ? error->peer() : -1; }
  [[nodiscard]] std::string describe() const;
};

/// Thread rules are those of the instance.
class Group {
 public:
  /// Throws WorldNotServed when the plugin does not serve groups of this size.
  static Group create(const TestContext& test, const ProcessRank& rank, uint64_t generation = 0);

  Group(const ciuic_descriptor& descriptor, Host host, ciuic_instance* self, int rank, int size)
      : descriptor_(&descriptor), host_(host), self_(self), rank_(rank), size_(size) {}
  Group(Group&& o) noexcept
      : descriptor_(o.descriptor_),
        host_(o.host_),
        self_(std::exchange(o.self_, nullptr)),
        rank_(o.rank_),
        size_(o.size_) {}
  Group& operator=(Group&&) = delete;
  /// While an exception unwinds, the instance is left to the end of the process: destroying it with
  /// works under way could hang or crash, and the exception would never be told.
  ~Group() {
    if (std::uncaught_exceptions() == 0) {
      destroy();
    }
  }

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] const Host& host() const noexcept { return host_; }
  [[nodiscard]] ciuic_instance* self() const noexcept { return self_; }
  [[nodiscard]] const ciuic_communicator_vt& vt() const noexcept {
    return *static_cast<const ciuic_communicator_vt*>(descriptor_->vt);
  }
  [[nodiscard]] const ciuic_descriptor& descriptor() const noexcept { return *descriptor_; }

  /// CIUIC_COMM_ bits in host memory.
  [[nodiscard]] uint64_t capabilities(uint32_t op, uint32_t reduce, ciuic_dtype dtype) const;
  [[nodiscard]] bool can(uint32_t op, uint32_t reduce, ciuic_dtype dtype,
                         uint64_t bits = CIUIC_COMM_SUPPORTED) const {
    bits |= CIUIC_COMM_SUPPORTED;
    return (capabilities(op, reduce, dtype) & bits) == bits;
  }

  /// Throws what submit reports. Checks that a failed call leaves no work behind.
  [[nodiscard]] Work submit(const std::vector<ciuic_collective>& collectives) const;
  /// Waits; never throws what the work says.
  [[nodiscard]] Outcome wait(const Work& work, int64_t timeout_ns) const;
  /// Submits and waits; a failure of either is the outcome.
  [[nodiscard]] Outcome run(const std::vector<ciuic_collective>& collectives,
                            int64_t timeout_ns) const;
  /// A barrier, or a small all-reduce where there is none. Throws its error.
  void barrier(int64_t timeout_ns = 20 * kSecond) const;

  /// This rank's group of a split; nothing for an empty list.
  [[nodiscard]] std::optional<Group> split(const std::vector<int32_t>& ranks,
                                           const std::string& name = "part") const;
  void abort(int32_t code) const noexcept { vt().abort(self_, code); }
  /// Nothing when healthy.
  [[nodiscard]] std::optional<Error> health() const;
  /// As quiesce; nothing to do when the plugin has none.
  void quiesce(int64_t timeout_ns) const;
  void resume() const;
  void destroy() noexcept;

 private:
  const ciuic_descriptor* descriptor_;
  Host host_;
  ciuic_instance* self_;
  int rank_;
  int size_;
};

/// A collective without tensors, for tests that fill in the rest.
inline ciuic_collective make_collective(uint32_t op, uint32_t reduce = 0) {
  ciuic_collective c{};
  c.struct_size = sizeof(c);
  c.op = op;
  c.reduce = reduce;
  c.timeout_ns = 20 * kSecond;
  return c;
}

}  // namespace ciuic::testing::communicator
