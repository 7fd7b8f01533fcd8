// SPDX-License-Identifier: MIT
#include "io_service.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace ciuic::core {
namespace {

/// Behind a ciuic_file.
struct OpenFile {
  int descriptor;
  bool is_direct;
  std::string path;
};

OpenFile& from_handle(ciuic_file* file) { return *reinterpret_cast<OpenFile*>(file); }

int32_t code_of(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return CIUIC_NOT_FOUND;
    case EEXIST:
    case ENOTEMPTY:
      return CIUIC_EXISTS;
    case EACCES:
    case EPERM:
    case EROFS:
      return CIUIC_PERMISSION;
    case ENOSPC:
    case EDQUOT:
    case ENOMEM:
      return CIUIC_EXHAUSTED;
    default:
      return CIUIC_DATA_LOSS;
  }
}

ciuic_status* make_status(void* ctx, int32_t code, const std::string& message) {
  const auto* host = static_cast<const ciuic_host*>(ctx);
  return host->status_new(host->ctx, code, 0, -1, {message.data(), message.size()});
}

/// "write runs/x/shard: No space left on device (errno 28)"
ciuic_status* failure(void* ctx, const char* what, const std::string& path, int error) {
  return make_status(ctx, code_of(error),
                     std::string(what) + " " + path + ": " +
                         std::generic_category().message(error) + " (errno " +
                         std::to_string(error) + ")");
}

/// Runs `body`, which returns a status, and lets no exception out.
template <typename Body>
ciuic_status* contain(void* ctx, Body&& body) noexcept {
  const auto* host = static_cast<const ciuic_host*>(ctx);
  const auto say = [host](int32_t code, std::string_view text) {
    return host->status_new(host->ctx, code, 0, -1, {text.data(), text.size()});
  };
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return say(CIUIC_EXHAUSTED, "out of memory in file access");
  } catch (const std::exception& e) {
    return say(CIUIC_INTERNAL, e.what());
  } catch (...) {
    return say(CIUIC_INTERNAL, "file access threw something unknown");
  }
}

/// Calls until it is not interrupted.
template <typename Call>
auto retry(Call&& call) {
  decltype(call()) result;
  do {
    result = call();
  } while (result == -1 && errno == EINTR);
  return result;
}

/// The path as a C string; a status when it cannot be one.
ciuic_status* to_path(void* ctx, ciuic_str from, std::string& path) {
  if (from.size == 0 || from.data == nullptr) {
    return make_status(ctx, CIUIC_INVALID, "a path is empty");
  }
  if (std::memchr(from.data, '\0', from.size) != nullptr) {
    return make_status(ctx, CIUIC_INVALID, "a path holds a NUL byte");
  }
  path.assign(from.data, from.size);
  return nullptr;
}

std::string parent_of(const std::string& path) {
  const size_t last = path.find_last_not_of('/');
  if (last == std::string::npos) {
    return "/";
  }
  const size_t slash = path.rfind('/', last);
  if (slash == std::string::npos) {
    return ".";
  }
  const size_t end = path.find_last_not_of('/', slash);
  return end == std::string::npos ? "/" : path.substr(0, end + 1);
}

/// 0 or an errno.
int sync_path(const std::string& path) {
  const int descriptor =
      retry([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (descriptor < 0) {
    return errno;
  }
  const int error = retry([&] { return ::fsync(descriptor); }) == 0 ? 0 : errno;
  ::close(descriptor);
  return error;
}

// ---- files ----

ciuic_status* open_file(void* ctx, ciuic_str name, uint32_t flags, ciuic_file** out) {
  *out = nullptr;
  return contain(ctx, [&]() -> ciuic_status* {
    std::string path;
    if (ciuic_status* status = to_path(ctx, name, path)) {
      return status;
    }
    if ((flags & (CIUIC_IO_READ | CIUIC_IO_CREATE)) == 0) {
      return make_status(ctx, CIUIC_INVALID,
                         "open " + path + ": neither READ nor CREATE is asked for");
    }
    // A pipe or a device in place of a file must not block the open: hence O_NONBLOCK, which files
    // ignore.
    const int mode =
        (flags & CIUIC_IO_CREATE) != 0 ? O_RDWR | O_CREAT | O_EXCL : O_RDONLY | O_NONBLOCK;
    auto file = std::make_unique<OpenFile>(OpenFile{-1, (flags & CIUIC_IO_DIRECT) != 0, path});
    file->descriptor =
        retry([&] { return ::open(path.c_str(), mode | O_CLOEXEC | O_NOCTTY, 0666); });
    if (file->descriptor < 0) {
      return failure(ctx, "open", path, errno);
    }
    struct stat info {};
    if (::fstat(file->descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
      ::close(file->descriptor);
      return make_status(ctx, CIUIC_DATA_LOSS, "open " + path + ": this is no regular file");
    }
    *out = reinterpret_cast<ciuic_file*>(file.release());
    return nullptr;
  });
}

ciuic_status* read_file(void* ctx, ciuic_file* handle, uint64_t offset, void* into, size_t size) {
  return contain(ctx, [&]() -> ciuic_status* {
    const OpenFile& file = from_handle(handle);
    size_t done = 0;
    while (done < size) {
      if (offset > uint64_t{INT64_MAX} - done) {
        return failure(ctx, "read", file.path, EOVERFLOW);
      }
      const ssize_t n = retry([&] {
        return ::pread(file.descriptor, static_cast<char*>(into) + done, size - done,
                       static_cast<off_t>(offset + done));
      });
      if (n < 0) {
        return failure(ctx, "read", file.path, errno);
      }
      if (n == 0) {
        return make_status(ctx, CIUIC_DATA_LOSS,
                           "read " + file.path + ": wanted " + std::to_string(size) +
                               " bytes at offset " + std::to_string(offset) +
                               ", the file ends after " + std::to_string(done));
      }
      done += static_cast<size_t>(n);
    }
    return nullptr;
  });
}

ciuic_status* write_file(void* ctx, ciuic_file* handle, uint64_t offset, const void* from,
                         size_t size) {
  return contain(ctx, [&]() -> ciuic_status* {
    const OpenFile& file = from_handle(handle);
    size_t done = 0;
    while (done < size) {
      if (offset > uint64_t{INT64_MAX} - done) {
        return failure(ctx, "write", file.path, EFBIG);
      }
      const ssize_t n = retry([&] {
        return ::pwrite(file.descriptor, static_cast<const char*>(from) + done, size - done,
                        static_cast<off_t>(offset + done));
      });
      if (n <= 0) {
        return failure(ctx, "write", file.path, n == 0 ? EIO : errno);
      }
      done += static_cast<size_t>(n);
    }
    return nullptr;
  });
}

ciuic_status* size_of(void* ctx, ciuic_file* handle, uint64_t* bytes) {
  return contain(ctx, [&]() -> ciuic_status* {
    struct stat info {};
    const OpenFile& file = from_handle(handle);
    if (::fstat(file.descriptor, &info) != 0) {
      return failure(ctx, "stat", file.path, errno);
    }
    *bytes = static_cast<uint64_t>(info.st_size);
    return nullptr;
  });
}

ciuic_status* sync_file(void* ctx, ciuic_file* handle) {
  return contain(ctx, [&]() -> ciuic_status* {
    const OpenFile& file = from_handle(handle);
    if (retry([&] { return ::fsync(file.descriptor); }) != 0) {
      return failure(ctx, "fsync", file.path, errno);
    }
    if (file.is_direct) {
      (void)::posix_fadvise(file.descriptor, 0, 0, POSIX_FADV_DONTNEED);
    }
    return nullptr;
  });
}

void close_file(void* /*ctx*/, ciuic_file* handle) {
  const std::unique_ptr<OpenFile> file(&from_handle(handle));
  ::close(file->descriptor);  // after EINTR the descriptor is gone too: no retry
}

// ---- names ----

ciuic_status* rename_path(void* ctx, ciuic_str from_name, ciuic_str to_name) {
  return contain(ctx, [&]() -> ciuic_status* {
    std::string from;
    std::string to;
    if (ciuic_status* status = to_path(ctx, from_name, from)) {
      return status;
    }
    if (ciuic_status* status = to_path(ctx, to_name, to)) {
      return status;
    }
    if (::rename(from.c_str(), to.c_str()) != 0) {
      const int error = errno;
      return failure(ctx, "rename", from + " to " + to, error);
    }
    return nullptr;
  });
}

ciuic_status* remove_path(void* ctx, ciuic_str name, uint32_t recursive) {
  return contain(ctx, [&]() -> ciuic_status* {
    std::string path;
    if (ciuic_status* status = to_path(ctx, name, path)) {
      return status;
    }
    if (recursive == 0) {
      return ::remove(path.c_str()) == 0 ? nullptr : failure(ctx, "remove", path, errno);
    }
    std::error_code error;
    const auto removed = std::filesystem::remove_all(path, error);  // does not follow links
    if (error) {
      return failure(ctx, "remove", path, error.value());
    }
    return removed == 0 ? failure(ctx, "remove", path, ENOENT) : nullptr;
  });
}

/// 0 or an errno. Syncs the parent of what it made, so that a new tree of folders is as durable as
/// what is put into it.
int make_one(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) == 0) {
    return sync_path(parent_of(path));
  }
  const int error = errno;
  struct stat info {};
  if (error == EEXIST && ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
    return 0;
  }
  if (error != ENOENT || parent_of(path) == path) {
    return error;
  }
  if (const int above = make_one(parent_of(path)); above != 0) {
    return above;
  }
  if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) {
    return errno;
  }
  return sync_path(parent_of(path));
}

ciuic_status* make_directory(void* ctx, ciuic_str name) {
  return contain(ctx, [&]() -> ciuic_status* {
    std::string path;
    if (ciuic_status* status = to_path(ctx, name, path)) {
      return status;
    }
    const int error = make_one(path);
    return error == 0 ? nullptr : failure(ctx, "make directory", path, error);
  });
}

ciuic_status* sync_directory(void* ctx, ciuic_str name) {
  return contain(ctx, [&]() -> ciuic_status* {
    std::string path;
    if (ciuic_status* status = to_path(ctx, name, path)) {
      return status;
    }
    const int error = sync_path(path);
    return error == 0 ? nullptr : failure(ctx, "fsync directory", path, error);
  });
}

ciuic_status* list_directory(void* ctx, ciuic_str name,
                             void (*each)(void* context, ciuic_str name, uint64_t bytes),
                             void* context) {
  return contain(ctx, [&]() -> ciuic_status* {
    std::string path;
    if (ciuic_status* status = to_path(ctx, name, path)) {
      return status;
    }
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), &::closedir);
    if (folder == nullptr) {
      return failure(ctx, "list", path, errno);
    }
    std::vector<std::pair<std::string, uint64_t>> found;
    for (;;) {
      errno = 0;
      const dirent* entry = ::readdir(folder.get());
      if (entry == nullptr) {
        if (errno != 0) {
          return failure(ctx, "list", path, errno);
        }
        break;
      }
      std::string_view child(entry->d_name);
      if (child == "." || child == "..") {
        continue;
      }
      struct stat info {};
      const bool is_file =
          ::fstatat(::dirfd(folder.get()), entry->d_name, &info, 0) == 0 && S_ISREG(info.st_mode);
      found.emplace_back(child, is_file ? static_cast<uint64_t>(info.st_size) : 0);
    }
    std::sort(found.begin(), found.end());
    for (const auto& [child, bytes] : found) {
      each(context, {child.data(), child.size()}, bytes);
    }
    return nullptr;
  });
}

ciuic_status* free_space(void* ctx, ciuic_str name, uint64_t* free_bytes) {
  return contain(ctx, [&]() -> ciuic_status* {
    std::string path;
    if (ciuic_status* status = to_path(ctx, name, path)) {
      return status;
    }
    struct statvfs info {};
    while (retry([&] { return ::statvfs(path.c_str(), &info); }) != 0) {
      const int error = errno;
      const std::string above = parent_of(path);
      if (error != ENOENT || above == path) {
        return failure(ctx, "free space of", path, error);
      }
      path = above;
    }
    *free_bytes = static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
    return nullptr;
  });
}

}  // namespace

IoService::IoService(const ciuic_host* host) noexcept {
  table_.struct_size = sizeof(table_);
  table_.ctx = const_cast<ciuic_host*>(host);
  table_.open = &open_file;
  table_.read = &read_file;
  table_.write = &write_file;
  table_.size = &size_of;
  table_.sync = &sync_file;
  table_.close = &close_file;
  table_.rename = &rename_path;
  table_.remove = &remove_path;
  table_.make_directory = &make_directory;
  table_.sync_directory = &sync_directory;
  table_.list = &list_directory;
  table_.space = &free_space;
}

}  // namespace ciuic::core
