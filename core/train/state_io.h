// SPDX-License-Identifier: MIT
//
// Between plugins' state and where it lives: the ciuic_reader and ciuic_writer that state_load and
// state_save are given.
//
// First values, a checkpoint and a Hugging Face folder are the same thing to a plugin: a
// TensorSource. Keys and fallbacks are those of abi/state.h.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include <ciuic/abi/state.h>
#include <ciuic/host.hpp>

#include "core/model/parameter_specs.h"
#include "core/plugin/checkpoint.h"

namespace ciuic::core {

/// Named tensors to read ranges of.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  /// Fills `into` (contiguous, any float dtype, any device) with the elements at `place`. False: no
  /// such key.
  virtual bool read(std::string_view key, const ciuic_place& place, at::Tensor into) const = 0;
  [[nodiscard]] virtual std::vector<ArchiveEntry> entries() const = 0;
  [[nodiscard]] virtual std::optional<std::string> blob(std::string_view key) const = 0;
};

/// value/<parameter> as a function of (seed, name, element).
class InitialValues final : public TensorSource {
 public:
  InitialValues(const ModelConfig& config, uint64_t seed);
  bool read(std::string_view key, const ciuic_place& place, at::Tensor into) const override;
  [[nodiscard]] std::vector<ArchiveEntry> entries() const override;
  [[nodiscard]] std::optional<std::string> blob(std::string_view) const override {
    return std::nullopt;
  }

 private:
  double deviation_;
  uint64_t seed_;
  std::map<std::string, ParameterSpec, std::less<>> specs_;
};

/// An open archive; converts dtypes.
class ArchiveSource final : public TensorSource {
 public:
  explicit ArchiveSource(const Archive& archive);
  bool read(std::string_view key, const ciuic_place& place, at::Tensor into) const override;
  [[nodiscard]] std::vector<ArchiveEntry> entries() const override { return entries_; }
  [[nodiscard]] std::optional<std::string> blob(std::string_view key) const override {
    return archive_.get_blob(key);
  }
  [[nodiscard]] const ArchiveEntry* find(std::string_view key) const;

 private:
  const Archive& archive_;
  std::vector<ArchiveEntry> entries_;
  std::map<std::string, size_t, std::less<>> index_;
};

/// What state_load gets. `prefix` is put before keys, so that each plugin's own keys have a room of
/// their own.
class StateSource {
 public:
  StateSource(const ciuic_host* host, const TensorSource& source, std::string prefix = "");
  StateSource(const StateSource&) = delete;
  StateSource& operator=(const StateSource&) = delete;
  [[nodiscard]] const ciuic_reader& reader() const noexcept { return reader_; }
  [[nodiscard]] const std::optional<Failure>& failure() const noexcept { return failure_; }

 private:
  static ciuic_reader make_reader(StateSource* self);
  bool read(std::string_view key, const ciuic_place& place, const at::Tensor& into) const;

  Host host_;
  const TensorSource& source_;
  std::string prefix_;
  std::string blob_;
  std::vector<ArchiveEntry> entries_;
  std::vector<ciuic_entry> abi_entries_;
  std::optional<Failure> failure_;
  ciuic_reader reader_;
};

/// What state_save gets: two functions.
class StateSink {
 public:
  using Blob = std::function<void(std::string_view key, std::string_view bytes)>;
  using Put = std::function<void(std::string_view key, const ciuic_place&, const ciuic_tensor&)>;

  StateSink(const ciuic_host* host, Put put, Blob blob);
  StateSink(const StateSink&) = delete;
  StateSink& operator=(const StateSink&) = delete;
  [[nodiscard]] const ciuic_writer& writer() const noexcept { return writer_; }
  /// The failure behind the status that a plugin reported, with its own exit code: the plugin saw a
  /// plain status.
  [[nodiscard]] const std::optional<Failure>& failure() const noexcept { return failure_; }

 private:
  static ciuic_writer make_writer(StateSink* self);
  template <typename Body>
  ciuic_status* run(Body&& body);

  Host host_;
  Put put_;
  Blob blob_;
  std::optional<Failure> failure_;
  ciuic_writer writer_;
};

/// instance.state_load from a source; a failure to read keeps its own exit code.
void load_state(const Instance& instance, const TensorSource& source,
                const std::string& prefix = "");
/// instance.state_save into two functions; a failure to write keeps its own exit code.
void save_state(const Instance& instance, const StateSink::Put& put, const StateSink::Blob& blob);

}  // namespace ciuic::core
