// SPDX-License-Identifier: MIT
//
// A rank's breadcrumbs in memory that its launcher shares, so that they outlive the rank. A process
// that a plugin ends by exit(), _exit() or exec, or that the kernel ends, says no last words: what
// it was inside of still stands on the board.
//
// The launcher makes one for each rank and hands over its descriptor; the rank puts its crumb stacks
// there. Pointers on the board are the rank's: the launcher takes them for keys and never follows
// them, bounds every number, and the memory cannot be cut under it.
#pragma once

#include <string>
#include <sys/types.h>
#include <vector>

namespace ciuic::core {

class CrumbStack;

class CrumbBoard {
 public:
  /// The launcher's side. Throws Failure (Environment) when there is no memory for it.
  CrumbBoard();
  CrumbBoard(CrumbBoard&& other) noexcept;
  CrumbBoard& operator=(CrumbBoard&&) = delete;
  ~CrumbBoard();

  [[nodiscard]] int fd() const noexcept { return fd_; }
  /// Has the rank come as far as its own code?
  [[nodiscard]] bool is_in_use() const noexcept;
  /// What the threads of the process `pid` were inside of: "plugin gloo 1.2.0 in communicator.submit,
  /// call 81023". Its main thread first; those that only waited last.
  [[nodiscard]] std::vector<std::string> inside(pid_t pid) const;

  /// The rank's side: from here on this process's crumbs lie on the board behind `fd`. Before its
  /// first call into a plugin. Throws Failure (Environment).
  static void use(int fd);

  // For breadcrumb.cpp.
  /// Room for one more stack; NULL when there is none, or no board.
  static void* room_for_stack() noexcept;
  /// Says what a pointer in a crumb means.
  static void name(const void* key, const char* text) noexcept;

  struct Memory;

 private:
  int fd_ = -1;
  Memory* memory_ = nullptr;
};

}  // namespace ciuic::core
