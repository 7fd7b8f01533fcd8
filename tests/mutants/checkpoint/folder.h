// SPDX-License-Identifier: MIT
//
// Whole files through "ciuic.io", and the ranks that save together.
#pragma once

#include <string>
#include <vector>

#include <ciuic/checkpoint.hpp>

#include "habits.h"

namespace ciuic::mutants::checkpoint {

[[nodiscard]] std::string parent_of(const std::string& path);

class Folder {
 public:
  Folder(const Host& host, Habits habits);

  void write(const std::string& path, std::string_view bytes) const;
  [[nodiscard]] std::string read(const std::string& path) const;
  void rename(const std::string& from, const std::string& to) const;
  void make(const std::string& path) const;
  void sync(const std::string& path) const;
  /// False when nothing is there.
  bool remove(const std::string& path) const;
  [[nodiscard]] bool is_file(const std::string& path) const;
  /// False when it is no folder.
  [[nodiscard]] bool list(const std::string& path, std::vector<std::string>& names) const;

 private:
  Host host_;
  Habits habits_;
  const ciuic_io_service* io_;
};

/// The ranks of a save; one alone without "ciuic.comm".
class Team {
 public:
  Team() = default;
  /// is_for_threads: a split of the control group, for threads of the plugin's own.
  Team(const Host& host, bool is_for_threads);
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  /// Waits for all ranks; throws the highest code that one of them brought.
  void agree(int32_t code) const;

 private:
  Host host_;
  const ciuic_group* group_ = nullptr;
  int rank_ = 0, size_ = 1;
};

}  // namespace ciuic::mutants::checkpoint
