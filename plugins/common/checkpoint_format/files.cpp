// SPDX-License-Identifier: MIT
#include "checkpoint_format/files.h"

#include <algorithm>

#include <ciuic/error.hpp>

#include "checkpoint_format/tensor_types.h"

namespace ciuic::plugins::checkpoint {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

}  // namespace

// ---- file ----

File::File(const Host& host, const ciuic_io_service& io, std::string path, uint32_t flags)
    : host_(host), io_(&io), path_(std::move(path)) {
  host_.check(io_->open(io_->ctx, to_str(path_), flags, &file_));
}

File& File::operator=(File&& o) noexcept {
  std::swap(host_, o.host_);
  std::swap(io_, o.io_);
  std::swap(path_, o.path_);
  std::swap(file_, o.file_);
  return *this;
}

File::~File() {
  if (file_ != nullptr) {
    io_->close(io_->ctx, file_);
  }
}

uint64_t File::size() const {
  uint64_t bytes = 0;
  host_.check(io_->size(io_->ctx, file_, &bytes));
  return bytes;
}

void File::read(uint64_t offset, void* into, size_t bytes) const {
  if (bytes > 0) {
    host_.check(io_->read(io_->ctx, file_, offset, into, bytes));
  }
}

void File::write(uint64_t offset, const void* from, size_t bytes) const {
  if (bytes > 0) {
    host_.check(io_->write(io_->ctx, file_, offset, from, bytes));
  }
}

void File::sync() const { host_.check(io_->sync(io_->ctx, file_)); }

// ---- files ----

Files::Files(const Host& host) : host_(host), io_(&host.service<ciuic_io_service>("ciuic.io")) {}

std::string Files::read_all(const std::string& path, uint64_t limit) const {
  const File file = open(path);
  const uint64_t bytes = file.size();
  if (bytes > limit) {
    throw Error(CIUIC_DATA_LOSS, path + " has " + std::to_string(bytes) +
                                     " bytes, expected at most " + std::to_string(limit));
  }
  std::string text(bytes, '\0');
  file.read(0, text.data(), text.size());
  return text;
}

void Files::write_new(const std::string& path, std::string_view bytes) const {
  const File file = create(path);
  file.write(0, bytes.data(), bytes.size());
  file.sync();
}

void Files::rename(const std::string& from, const std::string& to) const {
  host_.check(io_->rename(io_->ctx, to_str(from), to_str(to)));
}

void Files::remove(const std::string& path, bool is_recursive) const {
  host_.check(io_->remove(io_->ctx, to_str(path), is_recursive ? 1 : 0));
}

bool Files::remove_if_there(const std::string& path, bool is_recursive) const {
  ciuic_status* status = io_->remove(io_->ctx, to_str(path), is_recursive ? 1 : 0);
  if (status == nullptr) {
    return true;
  }
  Error error = host_.take(status);
  if (error.code() == CIUIC_NOT_FOUND) {
    return false;
  }
  throw error;
}

void Files::make_directory(const std::string& path) const {
  host_.check(io_->make_directory(io_->ctx, to_str(path)));
}

void Files::sync_directory(const std::string& path) const {
  host_.check(io_->sync_directory(io_->ctx, to_str(path)));
}

std::vector<Listed> Files::list(const std::string& path) const {
  std::vector<Listed> found;
  const auto each = [](void* context, ciuic_str name, uint64_t bytes) {
    static_cast<std::vector<Listed>*>(context)->push_back({std::string(to_view(name)), bytes});
  };
  host_.check(io_->list(io_->ctx, to_str(path), each, &found));
  return found;
}

uint64_t Files::free_bytes(const std::string& path) const {
  uint64_t bytes = 0;
  host_.check(io_->space(io_->ctx, to_str(path), &bytes));
  return bytes;
}

Files::Found Files::look(const std::string& path, std::vector<Listed>& listing) const {
  try {
    listing = list(path);
    return Found::Folder;
  } catch (const Error& no_folder) {
    try {
      const File file = open(path);
      return Found::File;
    } catch (const Error& no_file) {
      if (no_file.code() == CIUIC_NOT_FOUND) {
        return Found::Nothing;
      }
      throw no_folder.code() == CIUIC_NOT_FOUND ? no_file : no_folder;
    }
  }
}

// ---- sequential writer ----

void SequentialWriter::append(const void* data, size_t bytes) {
  if (bytes >= kBufferBytes) {
    flush();
    file_.write(offset_, data, bytes);
    offset_ += bytes;
    return;
  }
  buffer_.append(static_cast<const char*>(data), bytes);
  if (buffer_.size() >= kBufferBytes) {
    flush();
  }
}

void SequentialWriter::flush() {
  file_.write(offset_, buffer_.data(), buffer_.size());
  offset_ += buffer_.size();
  buffer_.clear();
}

// ---- paths ----

std::string path_of_uri(std::string_view uri) {
  if (uri.find('\0') != std::string_view::npos) {
    throw Error(CIUIC_INVALID, "the path " + printable(uri) + " holds a NUL byte");
  }
  if (uri.find("://") != std::string_view::npos) {
    throw Error(CIUIC_UNIMPLEMENTED, printable(uri) + ": only plain paths are supported");
  }
  const size_t last = uri.find_last_not_of('/');
  if (last == std::string_view::npos) {
    throw Error(CIUIC_INVALID,
                "\"" + std::string(uri) + "\" can be no checkpoint; name a folder or file");
  }
  return std::string(uri.substr(0, last + 1));
}

std::string parent_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) {
    return ".";
  }
  const size_t end = path.find_last_not_of('/', slash);
  return end == std::string::npos ? "/" : path.substr(0, end + 1);
}

std::string join(const std::string& folder, std::string_view name) {
  return folder + "/" + std::string(name);
}

std::string partial_of(const std::string& path) { return path + ".partial"; }

bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
}

namespace {

/// As free_bytes, of the nearest folder that is there.
uint64_t free_above(const Files& files, const std::string& folder) {
  try {
    return files.free_bytes(folder);
  } catch (const Error& e) {
    if (e.code() != CIUIC_NOT_FOUND || parent_of(folder) == folder) {
      throw;
    }
    return free_above(files, parent_of(folder));
  }
}

}  // namespace

void check_space(const Files& files, const std::string& path, uint64_t needed) {
  const uint64_t free = free_above(files, parent_of(path));
  if (needed > free) {
    throw Error(CIUIC_EXHAUSTED, "saving " + path + " needs " + std::to_string(needed) +
                                     " bytes, " + std::to_string(free) +
                                     " are free; free some space or keep fewer checkpoints");
  }
}

}  // namespace ciuic::plugins::checkpoint
