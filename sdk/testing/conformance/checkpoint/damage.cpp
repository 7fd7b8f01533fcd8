// SPDX-License-Identifier: MIT
//
// A checkpoint whose files changed after the commit: found, and never read as other data.
#include <algorithm>
#include <random>
#include <set>

#include "checkpoint_tests.hpp"
#include "ranks.hpp"

namespace ciuic::testing::checkpoint {
namespace {

constexpr size_t kUnrecognised = 64;  // bytes of a file that may be what a format is known by

/// A checkpoint, and what becomes of it when its files are changed.
class Damage {
 public:
  explicit Damage(const TestContext& context, int world = 1)
      : has_checksums_(!has_feature(context, "checksums:none")), state_(model_state(context.seed)) {
    files_.make_directory(kFolder);
    ranks_ = std::make_unique<Ranks>(context, files_, plan_, world);
    ranks_->save(kUri, 1, state_);
    for (const std::string& path : files_.tree(kUri)) {
      if (path.back() != '/') {
        paths_.push_back(path);
      }
    }
    if (paths_.empty()) {
      paths_.push_back(kUri);  // the checkpoint is one file
    }
  }

  [[nodiscard]] const std::vector<std::string>& paths() const { return paths_; }
  [[nodiscard]] MemoryFiles& files() { return files_; }
  [[nodiscard]] Ranks& ranks() { return *ranks_; }
  [[nodiscard]] const State& state() const { return state_; }
  [[nodiscard]] bool has_checksums() const { return has_checksums_; }
  [[nodiscard]] size_t unrecognised() const { return unrecognised_; }

  /// Reads everything. Fails the test where wrong data is delivered, the status is not DATA_LOSS,
  /// or (of a format with checksums) verify finds nothing.
  void check(const std::string& what, bool must_be_found = true) {
    std::optional<OpenArchive> archive;
    if (!tried(what + ": open", true, [&] { archive.emplace(ranks_->rank().open(kUri)); })) {
      return;
    }
    for (const auto& [key, v] : state_) {
      std::string got = v.bytes;
      (void)tried(what + ": get of " + key, false, [&, name = key, value = &v] {
        got = value->is_blob ? archive->get_blob(name)
                             : archive->get(name, *value, {0, value->elements()});
      });
      require(!has_checksums_ || got == v.bytes,
              what + ": get of " + key + " returns other bytes and reports success");
    }
    const bool is_good = tried(what + ": verify", false, [&] { archive->verify(); });
    require(!is_good || !has_checksums_ || !must_be_found, what + ": verify finds nothing");
  }

 private:
  /// True when `body` succeeds; a status that says something else than damage fails the test.
  bool tried(const std::string& what, bool is_open, const std::function<void()>& body) {
    try {
      body();
      return true;
    } catch (const Error& e) {
      const bool is_unrecognised = is_open && e.code() == CIUIC_UNIMPLEMENTED;
      unrecognised_ += is_unrecognised ? 1 : 0;
      const bool is_lenient =
          !has_checksums_ && (e.code() == CIUIC_NOT_FOUND || e.code() == CIUIC_INVALID);
      require(e.code() == CIUIC_DATA_LOSS || is_unrecognised || is_lenient,
              what + " reports " + code_name(e.code()) + ", expected data loss: " + e.what());
      return false;
    }
  }

  bool has_checksums_;
  State state_;
  MemoryFiles files_;
  IoPlan plan_;
  std::unique_ptr<Ranks> ranks_;
  std::vector<std::string> paths_;
  size_t unrecognised_ = 0;
};

/// All positions of a small file; the head, the tail and a sample of a large one.
std::set<size_t> positions(size_t size, uint64_t seed) {
  std::set<size_t> out;
  std::mt19937_64 random(seed);
  for (size_t i = 0; i < size; ++i) {
    if (size <= 3000 || i < 2000 || i + 256 >= size) {
      out.insert(i);
    }
  }
  for (int i = 0; size > 3000 && i < 500; ++i) {
    out.insert(random() % size);
  }
  return out;
}

std::string relative(const std::string& path) {
  return path == kUri ? "the file" : path.substr(std::string(kUri).size() + 1);
}

}  // namespace

void damage_flipped(const TestContext& context) {
  Damage damage(context);
  for (const std::string& path : damage.paths()) {
    const std::string good = damage.files().content(path);
    for (const size_t at : positions(good.size(), context.seed)) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << (at % 8)));
      damage.files().set_content(path, bad);
      damage.check("byte " + std::to_string(at) + " of " + relative(path) + " (" +
                   std::to_string(good.size()) + " bytes) flipped");
    }
    damage.files().set_content(path, good);
  }
  require(!damage.has_checksums() || damage.unrecognised() <= kUnrecognised,
          "open reports \"not supported\" for " + std::to_string(damage.unrecognised()) +
              " flipped bytes; a checkpoint that is ours and damaged is DATA_LOSS");
  require(difference(damage.ranks().load(kUri), damage.state()).empty(),
          "repaired, it does not read");
}

void damage_truncated(const TestContext& context) {
  Damage damage(context);
  for (const std::string& path : damage.paths()) {
    const std::string good = damage.files().content(path);
    std::set<size_t> sizes = {0, 1, 7, 8, 9, good.size() / 2, good.size() - 8, good.size() - 1};
    for (size_t i = 1; i < 32; ++i) {
      sizes.insert(good.size() * i / 32);
    }
    for (const size_t size : sizes) {
      if (size < good.size()) {
        damage.files().set_content(path, good.substr(0, size));
        damage.check(relative(path) + " cut from " + std::to_string(good.size()) + " to " +
                     std::to_string(size) + " bytes");
      }
    }
    damage.files().set_content(path, std::string(good.size(), '\0'));
    damage.check(relative(path) + " filled with zeros");
    damage.files().set_content(path, good);
  }
}

void damage_missing(const TestContext& context) {
  Damage damage(context);
  if (damage.paths() == std::vector<std::string>{kUri}) {
    throw NotOffered("a checkpoint of this plugin is one file");
  }
  for (const std::string& path : damage.paths()) {
    const std::string good = damage.files().content(path);
    damage.files().remove(path, false);
    damage.check(relative(path) + " is missing");
    damage.files().set_content(path, good);
  }
  // One file may be what the format is known by.
  require(!damage.has_checksums() || damage.unrecognised() <= 1,
          "open reports \"not supported\" whichever file is missing");
}

void damage_mixed(const TestContext& context) {
  // Two ranks, so that there are two files to mix; one where the plugin serves no more.
  std::optional<Damage> two;
  try {
    two.emplace(context, 2);
  } catch (const NotOffered&) {
    two.emplace(context, 1);
  }
  Damage& damage = *two;
  State other = damage.state();
  for (auto& [key, v] : other) {
    v = v.is_blob ? v : random_tensor(v.dtype, v.shape, context.seed + 77 + key.size());
  }
  const std::string uri = std::string(kUri) + "-other";
  damage.ranks().save(uri, 2, other);
  for (const std::string& path : damage.paths()) {
    const std::string twin = uri + path.substr(std::string(kUri).size());
    const std::string good = damage.files().content(path);
    if (!damage.files().exists(twin) || damage.files().content(twin) == good) {
      continue;
    }
    damage.files().set_content(path, damage.files().content(twin));
    const Finding found = look(context, damage.files(), kUri);
    require(
        found.kind != Finding::Kind::Whole || found.state == other || found.state == damage.state(),
        relative(path) + " is that of another step: what is read is of neither step");
    damage.files().set_content(path, good);
  }
}

}  // namespace ciuic::testing::checkpoint
