// SPDX-License-Identifier: MIT
//
// The host's view of a checkpoint plugin and of one archive, open for writing or for reading.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ciuic/abi/checkpoint.h>
#include <ciuic/view.hpp>

#include "core/plugin/instance.h"

namespace ciuic::core {

/// An entry that owns its arrays.
struct ArchiveEntry {
  std::string key;
  bool is_blob = false;
  ciuic_dtype dtype{};
  std::vector<int64_t> shape;
  uint64_t bytes = 0;
};

/// The entries as the ABI shows them; they must outlive the result.
std::vector<ciuic_entry> abi_entries(const std::vector<ArchiveEntry>& entries);

class CheckpointPlugin {
 public:
  class Archive {
   public:
    Archive(const CheckpointPlugin& plugin, ciuic_archive* handle, std::string uri)
        : plugin_(&plugin), handle_(handle), uri_(std::move(uri)) {}
    Archive(Archive&& o) noexcept
        : plugin_(o.plugin_), handle_(std::exchange(o.handle_, nullptr)), uri_(std::move(o.uri_)) {}
    Archive& operator=(Archive&&) = delete;
    ~Archive();

    [[nodiscard]] const std::string& uri() const noexcept { return uri_; }
    [[nodiscard]] const CheckpointPlugin& plugin() const noexcept { return *plugin_; }

    void put(std::string_view key, const ciuic_place& place, const ciuic_tensor& tensor) const;
    void put_blob(std::string_view key, std::string_view bytes) const;
    /// Durable and visible on all ranks when it returns.
    void commit() const;

    [[nodiscard]] std::vector<ArchiveEntry> list() const;
    /// Throws Failure (Storage) with what is damaged. Empty key: everything.
    void verify(std::string_view key = {}) const;
    /// False when there is no such key.
    [[nodiscard]] bool get(std::string_view key, const ciuic_place& place,
                           const ciuic_tensor& into) const;
    [[nodiscard]] std::optional<std::string> get_blob(std::string_view key) const;

   private:
    void check(ciuic_status* status, const char* op) const;
    /// As check, but NOT_FOUND is false.
    bool check_found(ciuic_status* status, const char* op) const;
    void wait(ciuic_work* work, const char* op) const;

    const CheckpointPlugin* plugin_;
    ciuic_archive* handle_;
    std::string uri_;
  };

  template <typename... Args>
  explicit CheckpointPlugin(Args&&... args) : instance_(std::forward<Args>(args)...) {}

  [[nodiscard]] const Instance& instance() const noexcept { return instance_; }

  [[nodiscard]] Archive begin(const std::string& uri, uint64_t step,
                              const std::vector<ArchiveEntry>& entries) const;
  /// Nothing when it is not this plugin's format; throws Failure (Storage) when it is missing or
  /// damaged.
  [[nodiscard]] std::optional<Archive> open(const std::string& uri) const;
  void remove(const std::string& uri) const;

 private:
  [[nodiscard]] const ciuic_checkpoint_vt& vt() const noexcept {
    return instance_.vt<ciuic_checkpoint_vt>();
  }

  Instance instance_;
};

using Archive = CheckpointPlugin::Archive;

}  // namespace ciuic::core
