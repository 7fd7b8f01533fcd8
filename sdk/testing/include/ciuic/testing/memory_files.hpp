// SPDX-License-Identifier: MIT
//
// A file system in memory that knows what a power cut would leave. Data of a file is durable once
// the file was synced; a name (of a new, renamed or removed file or folder) once its folder was
// synced; what make_directory made is durable at once, as the host promises.
//
//   MemoryFiles files;
//   ...a save...
//   files.power_cut(PowerCut::OnlySynced);   // and now read what is left
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <ciuic/abi/services.h>
#include <ciuic/testing/file_store.hpp>
#include <ciuic/testing/sparse_bytes.hpp>

namespace ciuic::testing {

/// What survives of what was not synced. Real file systems do any of these.
enum class PowerCut {
  OnlySynced,  // nothing
  NamesOnly,   // all names; data is zeros, as after a rename that overtook its file's data
  Random       // each folder's names and each file's data: kept, lost or torn
};

class MemoryFiles final : public FileStore {
 public:
  static constexpr uint64_t kCapacity = uint64_t{1} << 40;

  std::unique_ptr<File> open(const std::string& path, uint32_t flags) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    Spot spot = find(path);
    NodePtr node = spot.node();
    if ((flags & CIUIC_IO_CREATE) != 0) {
      if (node != nullptr || spot.folder == nullptr) {
        throw node != nullptr ? Error(CIUIC_EXISTS, "create " + path + ": it is there (EEXIST)")
                              : Error(CIUIC_NOT_FOUND, "create " + path + ": no such folder");
      }
      node = std::make_shared<Node>();
      spot.folder->names[spot.name] = node;
    } else if (node == nullptr) {
      throw Error(CIUIC_NOT_FOUND, "open " + path + ": there is nothing (ENOENT)");
    }
    if (node->is_folder) {
      throw Error(CIUIC_DATA_LOSS, "open " + path + ": this is no regular file");
    }
    return std::make_unique<Open>(*this, std::move(node), path, (flags & CIUIC_IO_CREATE) != 0);
  }

  void rename(const std::string& from, const std::string& to) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    Spot source = find(from);
    Spot target = find(to);
    const NodePtr node = source.node();
    if (node == nullptr || target.folder == nullptr) {
      throw Error(CIUIC_NOT_FOUND, "rename " + from + " to " + to + ": there is nothing (ENOENT)");
    }
    const NodePtr old = target.node();
    if (old != nullptr && old != node &&
        (old->is_folder ? !node->is_folder || !old->names.empty() : node->is_folder)) {
      throw Error(CIUIC_EXISTS, "rename " + from + " to " + to + ": the target is in the way");
    }
    source.folder->names.erase(source.name);
    target.folder->names[target.name] = node;
  }

  void remove(const std::string& path, bool is_recursive) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    Spot spot = find(path);
    const NodePtr node = spot.node();
    if (node == nullptr) {
      throw Error(CIUIC_NOT_FOUND, "remove " + path + ": there is nothing (ENOENT)");
    }
    if (!is_recursive && !node->names.empty()) {
      throw Error(CIUIC_EXISTS, "remove " + path + ": the folder is not empty");
    }
    spot.folder->names.erase(spot.name);
  }

  void make_directory(const std::string& path) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    NodePtr at = root_;
    for (const std::string& name : parts(path)) {
      const auto found = at->names.find(name);
      if (found == at->names.end()) {
        auto made = std::make_shared<Node>();
        made->is_folder = true;
        at->names[name] = at->durable_names[name] = made;
        at = made;
      } else if (found->second->is_folder) {
        at = found->second;
      } else {
        throw Error(CIUIC_EXISTS, "make directory " + path + ": a file is in the way");
      }
    }
  }

  void sync_directory(const std::string& path) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    Node& folder = folder_at(path, "sync directory");
    folder.durable_names = folder.names;
  }

  void list(const std::string& path,
            const std::function<void(const std::string&, uint64_t)>& each) override {
    std::vector<std::pair<std::string, uint64_t>> found;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (const auto& [name, node] : folder_at(path, "list").names) {
        found.emplace_back(name, node->data.size());
      }
    }
    for (const auto& [name, bytes] : found) {
      each(name, bytes);
    }
  }

  uint64_t space(const std::string& path) override {
    check_path(path);
    return kCapacity;
  }

  // ---- what a test does to it and asks of it ----

  /// Paths of all files and folders below `path`, sorted; folders end in "/".
  [[nodiscard]] std::vector<std::string> tree(const std::string& path = "/") const {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<std::string> out;
    if (const NodePtr node = find(path).node()) {
      walk(*node, path == "/" ? "" : path, out);
    }
    return out;
  }
  [[nodiscard]] bool exists(const std::string& path) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return find(path).node() != nullptr;
  }
  [[nodiscard]] std::string content(const std::string& path) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const NodePtr node = find(path).node();
    std::string bytes(node == nullptr ? 0 : node->data.size(), '\0');
    if (node != nullptr) {
      node->data.read(0, bytes.data(), bytes.size());
    }
    return bytes;
  }
  /// Replaces a file, durably; makes its folders.
  void set_content(const std::string& path, const std::string& bytes) {
    const size_t slash = path.rfind('/');
    make_directory(path.substr(0, slash + 1));
    const std::lock_guard<std::mutex> lock(mutex_);
    Spot spot = find(path);
    auto node = std::make_shared<Node>();
    node->data.write(0, bytes.data(), bytes.size());
    node->durable = node->data;
    spot.folder->names[spot.name] = spot.folder->durable_names[spot.name] = node;
  }
  /// What a power cut now could take from `path` and everything below it: "X: its data", "X: its
  /// name".
  [[nodiscard]] std::vector<std::string> not_durable(const std::string& path) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<std::string> out;
    const Spot spot = find(path);
    if (const NodePtr node = spot.node()) {
      if (!is_durable_name(*spot.folder, spot.name, node)) {
        out.push_back(path + ": its name");
      }
      collect_not_durable(*node, path, out);
    }
    return out;
  }
  void power_cut(PowerCut how, uint64_t seed = 0) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::mt19937_64 random(seed);
    cut(*root_, how, random);
  }
  [[nodiscard]] int64_t open_files() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return open_files_;
  }

 private:
  struct Node;
  using NodePtr = std::shared_ptr<Node>;
  using Names = std::map<std::string, NodePtr>;
  struct Node {
    bool is_folder = false;
    SparseBytes data, durable;
    Names names, durable_names;
  };
  /// A name in a folder; folder is NULL where the path's parent is none.
  struct Spot {
    NodePtr folder;
    std::string name;
    [[nodiscard]] NodePtr node() const {
      if (folder == nullptr) {
        return nullptr;
      }
      if (name.empty()) {
        return folder;  // the root itself
      }
      const auto found = folder->names.find(name);
      return found == folder->names.end() ? nullptr : found->second;
    }
  };

  class Open final : public File {
   public:
    Open(MemoryFiles& files, NodePtr node, std::string path, bool is_writable)
        : files_(files), node_(std::move(node)), path_(std::move(path)), is_writable_(is_writable) {
      ++files_.open_files_;
    }
    ~Open() override {
      const std::lock_guard<std::mutex> lock(files_.mutex_);
      --files_.open_files_;
    }
    void read(uint64_t offset, char* into, size_t bytes) override {
      const std::lock_guard<std::mutex> lock(files_.mutex_);
      const uint64_t size = node_->data.size();
      if (bytes > size || offset > size - bytes) {
        throw Error(CIUIC_DATA_LOSS, "read " + path_ + ": wanted " + std::to_string(bytes) +
                                         " bytes at " + std::to_string(offset) + " of " +
                                         std::to_string(size));
      }
      node_->data.read(offset, into, bytes);
    }
    void write(uint64_t offset, const char* from, size_t bytes) override {
      const std::lock_guard<std::mutex> lock(files_.mutex_);
      if (!is_writable_) {
        throw Error(CIUIC_PERMISSION, "write " + path_ + ": opened for reading (EBADF)");
      }
      node_->data.write(offset, from, bytes);
    }
    uint64_t size() override {
      const std::lock_guard<std::mutex> lock(files_.mutex_);
      return node_->data.size();
    }
    void sync() override {
      const std::lock_guard<std::mutex> lock(files_.mutex_);
      node_->durable = node_->data;
    }

   private:
    MemoryFiles& files_;
    NodePtr node_;
    std::string path_;
    bool is_writable_;
  };

  /// The names of a path, without "." and with ".." applied.
  static std::vector<std::string> parts(const std::string& path) {
    check_path(path);
    if (path.size() > 4095) {
      throw Error(CIUIC_DATA_LOSS,
                  "a path of " + std::to_string(path.size()) + " bytes is too long (ENAMETOOLONG)");
    }
    std::vector<std::string> out;
    for (size_t begin = 0; begin <= path.size();) {
      const size_t end = std::min(path.find('/', begin), path.size());
      const std::string name = path.substr(begin, end - begin);
      begin = end + 1;
      if (name == "..") {
        if (!out.empty()) {
          out.pop_back();
        }
      } else if (name.size() > 255) {
        throw Error(CIUIC_DATA_LOSS, "a name of " + std::to_string(name.size()) +
                                         " bytes is too long (ENAMETOOLONG)");
      } else if (!name.empty() && name != ".") {
        out.push_back(name);
      }
    }
    return out;
  }
  [[nodiscard]] Spot find(const std::string& path) const {
    std::vector<std::string> names = parts(path);
    NodePtr at = root_;
    if (names.empty()) {
      return {at, ""};
    }
    const std::string last = names.back();
    names.pop_back();
    for (const std::string& name : names) {
      const auto found = at->names.find(name);
      if (found == at->names.end() || !found->second->is_folder) {
        return {nullptr, last};
      }
      at = found->second;
    }
    return {at, last};
  }
  [[nodiscard]] Node& folder_at(const std::string& path, const char* what) const {
    const NodePtr node = find(path).node();
    if (node == nullptr || !node->is_folder) {
      throw Error(CIUIC_NOT_FOUND, std::string(what) + " " + path + ": there is no such folder");
    }
    return *node;
  }
  static void walk(const Node& folder, const std::string& prefix, std::vector<std::string>& out) {
    for (const auto& [name, node] : folder.names) {
      out.push_back(prefix + "/" + name + (node->is_folder ? "/" : ""));
      walk(*node, prefix + "/" + name, out);
    }
  }
  static bool is_durable_name(const Node& folder, const std::string& name, const NodePtr& node) {
    const auto found = folder.durable_names.find(name);
    return found != folder.durable_names.end() && found->second == node;
  }
  static void collect_not_durable(const Node& node, const std::string& path,
                                  std::vector<std::string>& out) {
    if (!node.is_folder && !(node.data == node.durable)) {
      out.push_back(path + ": its data");
    }
    for (const auto& [name, child] : node.names) {
      const std::string below = path + "/" + name;
      if (!is_durable_name(node, name, child)) {
        out.push_back(below + ": its name");
      }
      collect_not_durable(*child, below, out);
    }
  }

  static void cut(Node& node, PowerCut how, std::mt19937_64& random) {
    const uint64_t choice = random() % 3;
    if (!node.is_folder && !(node.data == node.durable)) {
      if (how == PowerCut::OnlySynced || (how == PowerCut::Random && choice == 0)) {
        node.data = node.durable;
      } else if (how == PowerCut::NamesOnly || choice == 1) {
        tear(node, 0);
      } else {
        tear(node, random() % (node.data.size() + 1));
      }
    }
    if (how == PowerCut::OnlySynced || (how == PowerCut::Random && choice == 0)) {
      node.names = node.durable_names;
    }
    node.durable = node.data;
    node.durable_names = node.names;
    for (const auto& [name, child] : node.names) {
      cut(*child, how, random);
    }
  }
  /// The first `kept` bytes arrived; of the rest, only what was synced before.
  static void tear(Node& node, uint64_t kept) {
    const uint64_t size = node.data.size();
    std::string head(kept, '\0');
    node.data.read(0, head.data(), head.size());
    node.data = node.durable;
    node.data.resize(size);
    node.data.write(0, head.data(), head.size());
  }

  mutable std::mutex mutex_;
  NodePtr root_ = make_root();
  int64_t open_files_ = 0;

  static NodePtr make_root() {
    auto root = std::make_shared<Node>();
    root->is_folder = true;
    return root;
  }
};

}  // namespace ciuic::testing
