// SPDX-License-Identifier: MIT
//
// A sharded checkpoint open for reading, at any world size.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include <ciuic/checkpoint.hpp>

#include "checkpoint_format/files.h"
#include "index.h"

namespace ciuic::plugins::sharded {

/// Every byte that get returns was compared with its checksum: a piece that is read in part is read
/// whole once, and remembered. One call at a time.
class Load final : public Archive {
 public:
  /// Checks the index, and that every file is there and as long as it should be.
  Load(const Host& host, std::string path);

  const std::vector<ciuic_entry>& list() override { return listed_; }
  void verify(std::string_view key) override;
  Work get(std::string_view key, const ciuic_place& place, const ciuic_tensor& into,
           const ciuic_stream* stream) override;
  std::string_view get_blob(std::string_view key) override;

 private:
  void list_entries();
  void check_files(const std::vector<checkpoint::Listed>& listing) const;
  [[nodiscard]] size_t find(std::string_view key) const;
  [[nodiscard]] const checkpoint::File& shard(size_t number);
  void read_range(size_t entry, int64_t begin, int64_t count, char* into);
  void read_piece(const Entry& entry, const Piece& piece, int64_t begin, int64_t count, char* into);
  void verify_piece(const Entry& entry, const Piece& piece);
  void compare(const Entry& entry, const Piece& piece, uint64_t got) const;

  checkpoint::Files files_;
  std::string path_;
  Index index_;
  std::vector<ciuic_entry> listed_;
  std::map<std::string, size_t, std::less<>> numbers_;  // key to number in index_.entries
  std::set<const Piece*> checked_;                      // against their checksums
  std::map<std::string, std::string, std::less<>> blobs_;
  checkpoint::File open_;  // the shard that was read last
  size_t open_number_ = 0;
};

}  // namespace ciuic::plugins::sharded
