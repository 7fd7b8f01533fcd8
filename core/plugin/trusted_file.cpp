// SPDX-License-Identifier: MIT
#include "core/plugin/trusted_file.h"

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <grp.h>
#include <memory>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ciuic::core {
namespace {

namespace fs = std::filesystem;

std::string quoted(const std::string& path) {
  std::string out = "'";
  for (const char c : path) {
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return out + "'";
}

std::string user_text(uid_t user) {
  std::vector<char> buffer(4096);
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(user, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) {
    return found->pw_name;
  }
  return "user " + std::to_string(user);
}

/// One component of a path: a folder, or the file at its end.
class Judge {
 public:
  Judge(Trust rule, const TrustContext& context) : rule_(rule), context_(context) {}

  [[nodiscard]] bool is_trusted_owner(uid_t owner) const {
    return owner == 0 || owner == context_.user ||
           (rule_ == Trust::Owner && owner == context_.executable_owner);
  }

  [[nodiscard]] bool spares_common_folders() const { return rule_ == Trust::Owner; }

  [[nodiscard]] std::variant<std::monostate, TrustProblem> owner_problem(
      const std::string& path, const struct stat& status) const {
    if (is_trusted_owner(status.st_uid)) {
      return {};
    }
    return TrustProblem{path + " belongs to " + user_text(status.st_uid) + ", expected " +
                            user_text(context_.user) + " or root",
                        "have its owner install it, or chown it after a look at what it is"};
  }

  [[nodiscard]] bool is_writable_by_others(const struct stat& status) const {
    if ((status.st_mode & S_IWOTH) != 0) {
      return true;
    }
    return (status.st_mode & S_IWGRP) != 0 &&
           (rule_ == Trust::Strict || !is_private_group(status.st_uid, status.st_gid));
  }

  [[nodiscard]] std::variant<std::monostate, TrustProblem> write_problem(
      const std::string& path, const struct stat& status) const {
    if (!is_writable_by_others(status)) {
      return {};
    }
    const bool by_all = (status.st_mode & S_IWOTH) != 0;
    return TrustProblem{
        path + (by_all ? " may be written by everybody" : " may be written by its group"),
        "chmod go-w " + quoted(path) + ", or set plugins.trust = \"any\" where modes mean nothing"};
  }

  /// A folder above the plugin's own: in a sticky one (/tmp) an entry can be replaced by its owner
  /// alone, and that one is judged.
  [[nodiscard]] bool is_safely_sticky(const struct stat& status) const {
    return rule_ != Trust::Strict && (status.st_mode & S_ISVTX) != 0;
  }

 private:
  Trust rule_;
  const TrustContext& context_;
};

TrustProblem system_problem(const std::string& path) {
  return {path + " cannot be opened: " + std::strerror(errno), ""};
}

using Verdict = std::variant<std::monostate, TrustProblem>;

/// All folders from the plugin's own up to the first that the executable lies in too.
Verdict judge_folders(const std::string& folder, const Judge& judge, const TrustContext& context) {
  bool is_own = true;
  for (fs::path at = folder;; at = at.parent_path()) {
    if (!is_own && judge.spares_common_folders() && !context.executable_folder.empty() &&
        (context.executable_folder + "/").rfind(at == "/" ? "/" : at.string() + "/", 0) == 0) {
      return {};
    }
    struct stat status {};
    if (lstat(at.c_str(), &status) != 0) {
      return system_problem(at.string());
    }
    if (Verdict v = judge.owner_problem(at.string(), status); v.index() != 0) {
      return v;
    }
    if (is_own || !judge.is_safely_sticky(status)) {
      if (Verdict v = judge.write_problem(at.string(), status); v.index() != 0) {
        return v;
      }
    }
    if (at == at.root_path()) {
      return {};
    }
    is_own = false;
  }
}

}  // namespace

TrustContext TrustContext::of_this_process() {
  TrustContext context;
  context.user = geteuid();
  context.executable_owner = context.user;
  struct stat status {};
  if (stat("/proc/self/exe", &status) == 0) {
    context.executable_owner = status.st_uid;
  }
  std::error_code ec;
  const fs::path executable = fs::read_symlink("/proc/self/exe", ec);
  if (!ec) {
    context.executable_folder = executable.parent_path().string();
  }
  return context;
}

bool is_private_group(uid_t owner, gid_t group) {
  if (group == 0) {
    return true;  // root's own
  }
  std::vector<char> buffer(1 << 16);
  passwd user_entry{};
  passwd* user = nullptr;
  if (getpwuid_r(owner, &user_entry, buffer.data(), buffer.size(), &user) != 0 || user == nullptr ||
      user->pw_gid != group) {
    return false;
  }
  const std::string name = user->pw_name;
  struct group group_entry {};
  struct group* found = nullptr;
  if (getgrgid_r(group, &group_entry, buffer.data(), buffer.size(), &found) != 0 ||
      found == nullptr || name != found->gr_name) {
    return false;
  }
  for (char** member = found->gr_mem; *member != nullptr; ++member) {
    if (name != *member) {
      return false;
    }
  }
  return true;
}

std::variant<OpenFile, TrustProblem> open_trusted(const std::string& path, Trust rule,
                                                  const TrustContext& context) {
  // The folder is resolved first and then judged, so that no link on the way can lead elsewhere
  // between the two.
  const std::unique_ptr<char, void (*)(void*)> folder(
      realpath(fs::path(path).parent_path().c_str(), nullptr), &std::free);
  if (folder == nullptr) {
    return system_problem(path);
  }
  const std::string real = (fs::path(folder.get()) / fs::path(path).filename()).string();
  // Not blocking: a pipe of that name must not hold the host.
  OpenFile file(::open(real.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!file && errno == ELOOP) {
    return TrustProblem{"it is a symbolic link", "name or copy the file that it points to"};
  }
  struct stat status {};
  if (!file || fstat(file.fd(), &status) != 0) {
    return system_problem(path);
  }
  if (!S_ISREG(status.st_mode)) {
    return TrustProblem{"it is no regular file", ""};
  }
  if (rule == Trust::Any) {
    return file;
  }
  const Judge judge(rule, context);
  if (Verdict v = judge.owner_problem(path, status); v.index() != 0) {
    return std::get<TrustProblem>(v);
  }
  if (Verdict v = judge.write_problem(path, status); v.index() != 0) {
    return std::get<TrustProblem>(v);
  }
  if (Verdict v = judge_folders(folder.get(), judge, context); v.index() != 0) {
    return std::get<TrustProblem>(v);
  }
  return file;
}

}  // namespace ciuic::core
