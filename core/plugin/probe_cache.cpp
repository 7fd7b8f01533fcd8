// SPDX-License-Identifier: MIT
#include "core/plugin/probe_cache.h"

#include <chrono>
#include <filesystem>
#include <gnu/libc-version.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "core/log/failure.h"
#include "core/plugin/open_file.h"
#include "core/plugin/private_folder.h"
#include "core/plugin/sha256.h"

namespace ciuic::core {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr size_t kMaxBytes = size_t{4} << 20;

std::string dump(const json& j) { return j.dump(-1, ' ', false, json::error_handler_t::replace); }

/// Changes whenever another probe is put in its place.
std::string identity(const std::string& executable) {
  struct stat s {};
  if (stat(executable.c_str(), &s) != 0) {
    return "none";
  }
  return std::to_string(s.st_dev) + ":" + std::to_string(s.st_ino) + ":" +
         std::to_string(s.st_size) + ":" + std::to_string(s.st_mtim.tv_sec) + "." +
         std::to_string(s.st_mtim.tv_nsec);
}

std::string validate_key(const std::string& digest, const ProbeRequest& request) {
  return "validate " + digest + " " + std::to_string(request.kind) + " " + request.name + " " +
         dump(request.arguments);
}

json read_json(const std::string& path) {
  const auto text = read_text(path, kMaxBytes);
  return text ? json::parse(*text, nullptr, false) : json();
}

}  // namespace

ProbeCache::ProbeCache(const std::string& folder, std::string probe_executable)
    : folder_(folder), probe_(std::move(probe_executable)) {
  host_ = identity(probe_) + " glibc " + gnu_get_libc_version() + " abi " +
          std::to_string(CIUIC_ABI_MAJOR) + "." + std::to_string(CIUIC_ABI_MINOR);
  for (const char* name : {"/staged", "/probed"}) {
    if (!make_private_folder(folder_ + name)) {
      throw Failure(ExitCode::Environment, "a folder for private copies cannot be made",
                    "free space, or set XDG_CACHE_HOME to a folder of yours",
                    {{"file", folder_ + name}});
    }
  }
}

std::string ProbeCache::path_of(const std::string& what) const {
  return folder_ + "/probed/" + core::sha256(host_ + "\n" + what) + ".json";
}

std::optional<ProbeAnswer> ProbeCache::find(const std::string& digest) const {
  const json j = read_json(path_of(digest));
  if (!j.is_object()) {
    return std::nullopt;
  }
  try {
    ProbeAnswer answer;
    for (const json& d : j.at("descriptors")) {
      answer.plugins.push_back(DescriptorInfo::from_json(d));
    }
    j.at("warnings").get_to(answer.warnings);
    j.at("stays").get_to(answer.stays_resident);
    return answer.plugins.empty() ? std::nullopt : std::optional(std::move(answer));
  } catch (const std::exception&) {
    return std::nullopt;  // torn by a power cut: asked again and written anew
  }
}

void ProbeCache::keep(const std::string& digest, const ProbeAnswer& answer) const {
  json list = json::array();
  for (const auto& plugin : answer.plugins) {
    list.push_back(plugin->to_json());
  }
  // A cache that cannot be written costs time at the next start and nothing else.
  (void)replace_text(path_of(digest), dump({{"descriptors", std::move(list)},
                                            {"warnings", answer.warnings},
                                            {"stays", answer.stays_resident}}));
}

std::optional<std::string> ProbeCache::find_validated(const std::string& digest,
                                                      const ProbeRequest& request) const {
  const json j = read_json(path_of(validate_key(digest, request)));
  const auto at = j.is_object() ? j.find("validated") : j.end();
  return j.is_object() && at != j.end() && at->is_string() ? std::optional(at->get<std::string>())
                                                           : std::nullopt;
}

void ProbeCache::keep_validated(const std::string& digest, const ProbeRequest& request,
                                const std::string& refused) const {
  (void)replace_text(path_of(validate_key(digest, request)), dump({{"validated", refused}}));
}

void ProbeCache::remove_old() const {
  constexpr size_t kMany = 2000;
  std::vector<fs::path> old;
  size_t count = 0;
  std::error_code ec;
  const auto month_ago = fs::file_time_type::clock::now() - std::chrono::hours(24 * 30);
  for (const auto& entry : fs::directory_iterator(folder_ + "/probed", ec)) {
    ++count;
    if (entry.last_write_time(ec) < month_ago) {
      old.push_back(entry.path());
    }
  }
  if (count > kMany) {
    for (const fs::path& path : old) {
      fs::remove(path, ec);
    }
  }
}

}  // namespace ciuic::core
