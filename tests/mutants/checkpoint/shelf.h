// SPDX-License-Identifier: MIT
//
// "shelf": a small and right checkpoint plugin, from which the mutants differ in one habit each. A
// checkpoint is a folder of one part a rank and a manifest with their checksums; or one file.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <ciuic/checkpoint.hpp>

#include "folder.h"
#include "record.h"

namespace ciuic::mutants::checkpoint {

class ShelfSave final : public Archive {
 public:
  ShelfSave(const Host& host, Habits habits, const Team& team, const ciuic_save_request& request);
  ~ShelfSave() override;
  Work put(std::string_view key, const ciuic_place& place, const ciuic_tensor& tensor,
           const ciuic_stream* stream) override;
  void put_blob(std::string_view key, std::string_view bytes) override;
  Work commit() override;

 private:
  void prepare();
  void run_commit();
  void write_part();
  void publish();
  void check_key(std::string_view key) const;
  [[nodiscard]] std::string aside() const { return uri_ + ".aside"; }

  Habits habits_;
  Folder folder_;
  const Team& team_;
  std::string uri_;
  uint64_t step_;
  // Copied when the put's work is done (which may be in its wait), or at the commit.
  std::vector<std::shared_ptr<Record>> records_;
  std::vector<Work> pending_;
  std::map<Record*, ciuic_tensor> sources_;
  std::thread thread_;
  bool is_committed_ = false;
};

class ShelfLoad final : public Archive {
 public:
  ShelfLoad(const Host& host, Habits habits, std::string_view uri);
  const std::vector<ciuic_entry>& list() override { return listed_; }
  void verify(std::string_view key) override { (void)(key.empty() ? nullptr : &find(key)); }
  Work get(std::string_view key, const ciuic_place& place, const ciuic_tensor& into,
           const ciuic_stream* stream) override;
  std::string_view get_blob(std::string_view key) override;

 private:
  void open_folder(const std::string& uri);
  void open_file(const std::string& uri);
  void add_part(const std::string& bytes, uint64_t expected);
  const Record& find(std::string_view key) const;

  Habits habits_;
  Folder folder_;
  std::map<std::string, Record, std::less<>> whole_;  // every tensor, in one piece
  std::vector<ciuic_entry> listed_;
};

class Shelf : public Checkpoint {
 public:
  static constexpr const char* version = "1.0.0";
  static constexpr const char* license = "MIT";

  Shelf(const Context& context, Habits habits);
  std::unique_ptr<Archive> begin(const ciuic_save_request& request) override;
  std::unique_ptr<Archive> open(std::string_view uri) override;
  void remove(std::string_view uri) override;

 private:
  Habits habits_;
  Team team_;
};

/// A plugin class per set of habits.
template <const Habits& kHabits>
class ShelfOf final : public Shelf {
 public:
  static constexpr const char* name = kHabits.name;
  static constexpr const char* summary = kHabits.what;
  static constexpr std::array<const char*, 2> features{
      kHabits.is_one_file ? "writer:rank0" : nullptr, nullptr};
  explicit ShelfOf(const Context& context) : Shelf(context, kHabits) {}

  static const ciuic_checkpoint_vt& table() {
    static const ciuic_checkpoint_vt vt = [] {
      ciuic_checkpoint_vt all = Checkpoint::table();
      all.remove = kHabits.is_alone ? nullptr : all.remove;
      return all;
    }();
    return vt;
  }
};

}  // namespace ciuic::mutants::checkpoint
