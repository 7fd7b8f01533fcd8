// SPDX-License-Identifier: MIT
#include "save.h"

#include <ciuic/error.hpp>
#include <ciuic/work.hpp>

#include "index.h"
#include "publish.h"
#include "shard.h"

namespace ciuic::plugins::sharded {
namespace {

using checkpoint::join;
using checkpoint::partial_of;

/// What a save needs beyond its data: names, shapes and checksums of each entry, and a few blocks
/// per file.
uint64_t overhead_bytes(size_t entries, int64_t world) {
  return uint64_t{512} * entries + uint64_t{8192} * static_cast<uint64_t>(world);
}

}  // namespace

Save::Save(const Host& host, const ciuic_save_request& request, int64_t timeout_ns)
    : Archive(host), files_(host), group_(host, timeout_ns), puts_(host) {
  group_.together([&] { request_.emplace(request); });
  group_.same_everywhere(request_->fingerprint, "path, step or entries of a save");
  try {
    group_.together([&] {
      if (group_.rank() == 0) {
        make_room();
      }
    });
  } catch (...) {
    clean();  // the destructor of what was not made does not run
    throw;
  }
}

Save::~Save() { clean(); }

Work Save::put(std::string_view key, const ciuic_place& place, const ciuic_tensor& tensor,
               const ciuic_stream* stream) {
  check_open();
  puts_.put(key, place, tensor, stream);
  return {};
}

void Save::put_blob(std::string_view key, std::string_view bytes) {
  check_open();
  puts_.put_blob(key, bytes);
}

Work Save::commit() {
  check_open();
  is_ended_ = true;
  try {
    group_.together([&] { write_part(); });
    group_.together([&] {
      if (group_.rank() == 0) {
        join_parts();
      }
    });
    is_prepared_ = false;
    return {};
  } catch (const Error& e) {
    clean();
    const Completion failed(host());
    failed.fail(e);
    return failed.work();
  }
}

void Save::make_room() {
  prepare(files_, request_->path);
  is_prepared_ = true;
  if (!request_->entries.empty()) {
    checkpoint::check_space(
        files_, request_->path,
        request_->bytes + overhead_bytes(request_->entries.size(), group_.size()));
  }
}

void Save::write_part() {
  puts_.check();
  const std::string aside = partial_of(request_->path);
  checkpoint::check_space(files_, request_->path,
                          puts_.bytes() + overhead_bytes(puts_.pieces().size(), 1));
  const ShardIdentity who{request_->step, group_.rank(), group_.size()};
  const Index part = write_shard(files_, aside, who, puts_.pieces());
  files_.write_new(join(aside, sidecar_name(group_.rank())), to_text(part));
}

void Save::join_parts() {
  const std::string aside = partial_of(request_->path);
  std::vector<Index> parts;
  for (int64_t rank = 0; rank < group_.size(); ++rank) {
    const std::string path = join(aside, sidecar_name(rank));
    parts.push_back(from_text(files_.read_all(path, kMaxIndexBytes), path, false));
    files_.remove(path, false);
  }
  Index whole = merge(std::move(parts));
  std::map<std::string, checkpoint::Described, std::less<>> got;
  for (const Entry& e : whole.entries) {
    got.emplace(e.key, e.tensor);
  }
  checkpoint::check_announced(*request_, got);
  publish(host(), files_, request_->path, std::move(whole));
}

void Save::clean() noexcept {
  if (!std::exchange(is_prepared_, false) || group_.rank() != 0) {
    return;
  }
  try {
    files_.remove_if_there(partial_of(request_->path), true);
  } catch (const std::exception& e) {
    host().warn("sharded: " + partial_of(request_->path) +
                " stays, the next save there removes it: " + e.what());
  }
}

void Save::check_open() const {
  if (is_ended_) {
    throw Error(CIUIC_PRECONDITION, "this save was committed already");
  }
}

}  // namespace ciuic::plugins::sharded
