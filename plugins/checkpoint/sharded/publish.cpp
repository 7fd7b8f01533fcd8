// SPDX-License-Identifier: MIT
#include "publish.h"

#include <algorithm>
#include <set>

#include <ciuic/error.hpp>

namespace ciuic::plugins::sharded {
namespace {

using checkpoint::Files;
using checkpoint::join;
using checkpoint::Listed;

/// "shard-00000-of-00002.r3.safetensors"
std::string tagged(const std::string& name, int64_t tag) {
  const size_t dot = name.rfind('.');
  return name.substr(0, dot) + ".r" + std::to_string(tag) + name.substr(dot);
}

/// Gives the index's files names that are not in the folder yet.
void rename_files(Index& index, const std::vector<Listed>& listing) {
  std::set<std::string> taken;
  for (const Listed& l : listing) {
    taken.insert(l.name);
  }
  int64_t tag = 1;
  const auto clashes = [&] {
    return std::any_of(index.files.begin(), index.files.end(),
                       [&](const ShardFile& f) { return taken.count(tagged(f.name, tag)) != 0; });
  };
  while (clashes()) {
    ++tag;
  }
  for (ShardFile& f : index.files) {
    f.name = tagged(f.name, tag);
  }
}

void publish_new(const Files& files, const std::string& path, const Index& index) {
  const std::string aside = checkpoint::partial_of(path);
  files.write_new(join(aside, kIndexName), to_text(index));
  files.sync_directory(aside);
  files.rename(aside, path);
  files.sync_directory(checkpoint::parent_of(path));
}

/// What the new checkpoint at `path` does not need. It is committed already: nothing here may fail
/// it.
void sweep(const Host& host, const Files& files, const std::string& path,
           const Index& index) noexcept {
  try {
    std::set<std::string> needed;
    for (const ShardFile& f : index.files) {
      needed.insert(f.name);
    }
    for (const Listed& l : files.list(path)) {
      if (is_shard_name(l.name) && needed.count(l.name) == 0) {
        files.remove(join(path, l.name), false);
      }
    }
    files.remove_if_there(checkpoint::partial_of(path), true);
  } catch (const std::exception& e) {
    host.warn(std::string("sharded: the old files of ") + path + " stay: " + e.what());
  }
}

/// The old checkpoint's folder takes in the new shards under other names; then the new index
/// replaces the old one.
void publish_over(const Host& host, const Files& files, const std::string& path, Index index,
                  const std::vector<Listed>& listing) {
  const std::string aside = checkpoint::partial_of(path);
  const std::vector<ShardFile> written = index.files;
  rename_files(index, listing);
  files.write_new(join(aside, kIndexName), to_text(index));
  bool is_visible = false;
  try {
    for (size_t i = 0; i < written.size(); ++i) {
      files.rename(join(aside, written[i].name), join(path, index.files[i].name));
    }
    files.sync_directory(path);
    files.rename(join(aside, kIndexName), join(path, kIndexName));
    is_visible = true;
    files.sync_directory(path);
  } catch (const Error&) {
    for (size_t i = 0; !is_visible && i < index.files.size(); ++i) {
      try {
        files.remove_if_there(join(path, index.files[i].name), false);
      } catch (const Error&) {  // the next save to this path removes it
      }
    }
    throw;
  }
  sweep(host, files, path, index);
}

}  // namespace

std::string removed_of(const std::string& path) { return path + ".removed"; }

bool is_ours(const Files& files, const std::string& path, const std::vector<Listed>& listing) {
  const auto has = [&](auto&& is_it) { return std::any_of(listing.begin(), listing.end(), is_it); };
  if (has([](const Listed& l) { return is_shard_name(l.name); })) {
    return true;
  }
  return has([](const Listed& l) { return l.name == kIndexName; }) &&
         files.read_all(join(path, kIndexName), kMaxIndexBytes).find(kFormat) != std::string::npos;
}

void prepare(const Files& files, const std::string& path) {
  std::vector<Listed> listing;
  const Files::Found found = files.look(path, listing);
  if (found == Files::Found::File ||
      (found == Files::Found::Folder && !listing.empty() && !is_ours(files, path, listing))) {
    throw Error(
        CIUIC_EXISTS,
        path + " exists and is no checkpoint of this format; move it away or choose another name");
  }
  files.remove_if_there(checkpoint::partial_of(path), true);
  files.remove_if_there(removed_of(path), true);
  files.make_directory(checkpoint::partial_of(path));
}

void publish(const Host& host, const Files& files, const std::string& path, Index index) {
  std::vector<Listed> listing;
  if (files.look(path, listing) == Files::Found::Folder && !listing.empty()) {
    publish_over(host, files, path, std::move(index), listing);
  } else {
    publish_new(files, path, index);
  }
}

}  // namespace ciuic::plugins::sharded
