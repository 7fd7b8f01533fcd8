// SPDX-License-Identifier: MIT
#include "core/plugin/quarantine.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>

#include <nlohmann/json.hpp>

#include "core/log/failure.h"
#include "core/plugin/open_file.h"
#include "core/plugin/private_folder.h"
#include "core/plugin/sha256.h"

namespace ciuic::core {
namespace {

using nlohmann::json;

constexpr size_t kMaxBytes = size_t{4} << 20;

std::string text_of(const json& entry, const char* key) {
  const auto at = entry.find(key);
  return at != entry.end() && at->is_string() ? at->get<std::string>() : "";
}

int64_t time_of(const json& entry, const char* key) {
  const auto at = entry.find(key);
  return at != entry.end() && at->is_number_integer() ? at->get<int64_t>() : 0;
}

}  // namespace

int64_t seconds_since_1970() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string time_text(int64_t seconds) {
  const auto time = static_cast<time_t>(seconds);
  tm parts{};
  std::array<char, 32> text{};
  if (gmtime_r(&time, &parts) == nullptr ||
      strftime(text.data(), text.size(), "%Y-%m-%d %H:%M UTC", &parts) == 0) {
    return std::to_string(seconds);
  }
  return text.data();
}

std::map<std::string, QuarantineEntry> Quarantine::entries() const {
  std::map<std::string, QuarantineEntry> all;
  const auto text = read_text(file_, kMaxBytes);
  const json root = text ? json::parse(*text, nullptr, false) : json();
  if (!root.is_object()) {
    return all;
  }
  const int64_t now = seconds_since_1970();
  for (const auto& [hash, entry] : root.items()) {
    if (!is_sha256(hash) || !entry.is_object()) {
      continue;
    }
    QuarantineEntry e{text_of(entry, "file"), text_of(entry, "reason"), time_of(entry, "since"),
                      time_of(entry, "until")};
    if (e.holds(now)) {
      all.emplace(hash, std::move(e));
    }
  }
  return all;
}

std::optional<QuarantineEntry> Quarantine::find(const std::string& sha256) const {
  const auto all = entries();
  const auto at = all.find(sha256);
  return at != all.end() ? std::optional(at->second) : std::nullopt;
}

void Quarantine::add(const std::string& sha256, const std::string& file, const std::string& reason,
                     std::chrono::seconds time) const {
  const FolderLock lock(guard_);
  auto all = entries();
  const int64_t now = seconds_since_1970();
  all[sha256] = {file, reason, now, now + time.count()};
  write(all);
}

size_t Quarantine::remove(std::string_view prefix) const {
  constexpr size_t kFewestDigits = 6;
  if (prefix.size() < kFewestDigits) {
    return 0;
  }
  const FolderLock lock(guard_);
  auto all = entries();
  const size_t removed =
      std::erase_if(all, [&](const auto& entry) { return entry.first.starts_with(prefix); });
  if (removed > 0) {
    write(all);
  }
  return removed;
}

void Quarantine::clear() const {
  const FolderLock lock(guard_);
  write({});
}

void Quarantine::write(const std::map<std::string, QuarantineEntry>& entries) const {
  json root = json::object();
  for (const auto& [hash, e] : entries) {
    root[hash] = {{"file", e.file}, {"reason", e.reason}, {"since", e.since}, {"until", e.until}};
  }
  if (!replace_text(file_, root.dump(2, ' ', false, json::error_handler_t::replace) + "\n")) {
    throw Failure(ExitCode::Environment,
                  std::string("the quarantine cannot be written: ") + std::strerror(errno), "",
                  {{"file", file_}});
  }
}

}  // namespace ciuic::core
