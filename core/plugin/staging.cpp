// SPDX-License-Identifier: MIT
#include "core/plugin/staging.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include "core/log/failure.h"

namespace ciuic::core {
namespace {

namespace fs = std::filesystem;
using std::chrono::hours;

[[noreturn]] void fail(const std::string& what, const std::string& path) {
  throw Failure(ExitCode::Environment,
                "a private copy of a plugin cannot be made: " + what + ": " + std::strerror(errno),
                "free space, or set XDG_CACHE_HOME to a folder of yours", {{"file", path}});
}

void write_file(const std::string& path, std::span<const std::byte> bytes) {
  const OpenFile file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0500));
  if (!file || !file.write_all(bytes)) {
    fail("writing", path);
  }
}

/// The staged file, if it is one that we made: ours, not a link, not writable by others.
bool has_bytes(const std::string& path, std::span<const std::byte> bytes) {
  const OpenFile file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat status {};
  if (!file || fstat(file.fd(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_uid != geteuid() || (status.st_mode & 0077) != 0) {
    return false;
  }
  const auto content = file.read_all(bytes.size());
  return content && content->size() == bytes.size() &&
         std::memcmp(content->data(), bytes.data(), bytes.size()) == 0;
}

/// Notes that a copy is in use; once an hour is enough.
void touch(const std::string& root) {
  struct stat status {};
  if (stat(root.c_str(), &status) == 0 && status.st_mtime + 3600 < time(nullptr)) {
    utimensat(AT_FDCWD, root.c_str(), nullptr, 0);
  }
}

size_t bytes_in(const fs::path& folder) {
  size_t bytes = 0;
  std::error_code ec;
  for (fs::recursive_directory_iterator at(folder, ec), end; !ec && at != end; at.increment(ec)) {
    if (at->is_regular_file(ec) && !at->is_symlink(ec)) {
      bytes += at->file_size(ec);
    }
  }
  return bytes;
}

}  // namespace

std::string StagingArea::stage(const Bundle& bundle, std::span<const std::byte> bytes) const {
  // The name takes part: the same content under two names is two copies, neither in the other's way.
  const std::string root =
      folder_ + "/" + bundle.digest + "." + fs::path(bundle.relative).stem().string();
  if (!is_intact(root, bundle, bytes)) {
    write(root, bundle, bytes);
  }
  touch(root);
  return root + "/" + bundle.relative;
}

bool StagingArea::is_intact(const std::string& root, const Bundle& bundle,
                            std::span<const std::byte> bytes) const {
  return has_bytes(root + "/" + bundle.relative, bytes) &&
         std::all_of(
             bundle.dependencies.begin(), bundle.dependencies.end(), [&](const BundledFile& d) {
               std::error_code ec;
               const std::string path = root + "/" + d.relative;
               return d.is_linked ? fs::read_symlink(path, ec) == d.path : has_bytes(path, d.bytes);
             });
}

void StagingArea::write(const std::string& root, const Bundle& bundle,
                        std::span<const std::byte> bytes) const {
  std::string beside = folder_ + "/new-XXXXXX";
  if (mkdtemp(beside.data()) == nullptr) {
    fail("a folder", beside);
  }
  try {
    const auto place = [&](const std::string& relative) {
      const fs::path path = fs::path(beside) / relative;
      fs::create_directories(path.parent_path());
      return path.string();
    };
    for (const BundledFile& d : bundle.dependencies) {
      if (d.is_linked) {
        fs::create_symlink(d.path, place(d.relative));
      } else {
        write_file(place(d.relative), d.bytes);
      }
    }
    write_file(place(bundle.relative), bytes);
    // No fsync: a copy that a power cut tore has other bytes than the original and is made anew.
    if (rename(beside.c_str(), root.c_str()) != 0) {
      // There is one of this name: another process was faster, or it is damaged and gives way.
      if (!is_intact(root, bundle, bytes)) {
        const std::string old = beside + ".old";
        rename(root.c_str(), old.c_str());
        const bool is_done = rename(beside.c_str(), root.c_str()) == 0;
        std::error_code ec;
        fs::remove_all(old, ec);
        if (!is_done && !is_intact(root, bundle, bytes)) {
          fail("renaming", root);
        }
      }
      std::error_code ec;
      fs::remove_all(beside, ec);
    }
  } catch (const fs::filesystem_error& e) {
    std::error_code ec;
    fs::remove_all(beside, ec);
    errno = e.code().value();
    fail("writing", beside);
  } catch (const Failure&) {
    std::error_code ec;
    fs::remove_all(beside, ec);
    throw;
  }
}

void StagingArea::remove_old(size_t limit) const {
  struct Copy {
    fs::file_time_type used;
    fs::path path;
    size_t bytes;
  };
  std::vector<Copy> copies;
  size_t total = 0;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(folder_, ec)) {
    copies.push_back({entry.last_write_time(ec), entry.path(), bytes_in(entry.path())});
    total += copies.back().bytes;
  }
  std::sort(copies.begin(), copies.end(),
            [](const Copy& a, const Copy& b) { return a.used < b.used; });
  const auto yesterday = fs::file_time_type::clock::now() - hours(24);
  for (const Copy& copy : copies) {
    const bool is_rest = copy.path.filename().string().starts_with("new-");
    if (copy.used > yesterday || (total <= limit && !is_rest)) {
      continue;
    }
    total -= copy.bytes;
    fs::remove_all(copy.path, ec);
  }
}

}  // namespace ciuic::core
