// SPDX-License-Identifier: MIT
//
// sharded: the native checkpoint format. One safetensors file per rank and an index with a checksum
// for every piece; any world size reads what any other wrote. Written aside, synced, then renamed:
// a crash leaves the old state or the new one.
//
// Format and guarantees: docs/checkpoint_format.md. Needs "ciuic.io"; "ciuic.comm" where there is
// more than one rank. All ranks write into one folder, so it lies on a file system that all of them
// share. Files are written in the call of commit, not beside the next steps.
#include <ciuic/checkpoint.hpp>
#include <ciuic/error.hpp>

#include "load.h"
#include "publish.h"
#include "save.h"

namespace ciuic::plugins::sharded {

using namespace std::string_literals;

class Sharded final : public Checkpoint {
 public:
  static constexpr const char* name = "sharded";
  static constexpr const char* version = "0.1.0";
  static constexpr const char* license = "MIT";
  static constexpr const char* summary =
      "Native training checkpoints: one file per rank, checksums, atomic commit";
  inline static const auto options = option_table(
      option_duration("timeout", 1'800'000'000'000, 1'000'000'000, 86'400'000'000'000,
                      "How long a rank waits at a commit for the others to have written"));

  explicit Sharded(const Context& context)
      : Checkpoint(context), timeout_ns_(context.options().i64("timeout")) {}

  std::unique_ptr<Archive> begin(const ciuic_save_request& request) override {
    return std::make_unique<Save>(host(), request, timeout_ns_);
  }

  /// Not collective: each rank reads what it needs.
  std::unique_ptr<Archive> open(std::string_view uri) override {
    return std::make_unique<Load>(host(), checkpoint::path_of_uri(uri));
  }

  void remove(std::string_view uri) override;

 private:
  int64_t timeout_ns_;
};

/// Out of the way first: whoever looks meanwhile sees a whole checkpoint or none.
void Sharded::remove(std::string_view uri) {
  const checkpoint::Files files(host());
  const std::string path = checkpoint::path_of_uri(uri);
  std::vector<checkpoint::Listed> listing;
  const checkpoint::Files::Found found = files.look(path, listing);
  const bool had_rest = files.remove_if_there(removed_of(path), true);
  if (found == checkpoint::Files::Found::Nothing) {
    if (!files.remove_if_there(checkpoint::partial_of(path), true) && !had_rest) {
      throw Error(CIUIC_NOT_FOUND, path + " does not exist");
    }
    return;
  }
  if (found == checkpoint::Files::Found::File || !is_ours(files, path, listing)) {
    throw Error(CIUIC_UNIMPLEMENTED, path + " holds no sharded checkpoint and is not removed");
  }
  files.rename(path, removed_of(path));
  files.sync_directory(checkpoint::parent_of(path));
  files.remove(removed_of(path), true);
  files.remove_if_there(checkpoint::partial_of(path), true);
}

}  // namespace ciuic::plugins::sharded

CIUIC_PLUGINS(ciuic::plugins::sharded::Sharded)
