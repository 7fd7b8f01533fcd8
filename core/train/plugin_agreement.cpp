// SPDX-License-Identifier: MIT
#include "core/train/plugin_agreement.h"

#include <map>

#include "core/log/failure.h"
#include "core/plugin/kind.h"
#include "core/plugin/sha256.h"

namespace ciuic::core {
namespace {

constexpr const char* kDigestKey = "run/plugins/digest";
constexpr const char* kListKey = "run/plugins/list";

std::string text_of(const std::vector<PluginDigest>& digests) {
  std::string text;
  for (const PluginDigest& d : digests) {
    text += d.sha256 + " " + d.plugin + "\n";
  }
  return text;
}

std::map<std::string, std::string> parse(const std::string& text) {
  constexpr size_t kDigits = 64;
  std::map<std::string, std::string> all;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    if (end - begin > kDigits + 1) {
      all[text.substr(begin + kDigits + 1, end - begin - kDigits - 1)] =
          text.substr(begin, kDigits);
    }
    begin = end + 1;
  }
  return all;
}

/// The first plugin that differs, in words.
std::string difference(const std::vector<PluginDigest>& mine, const std::string& list) {
  std::map<std::string, std::string> theirs = parse(list);
  for (const PluginDigest& d : mine) {
    const auto at = theirs.find(d.plugin);
    if (at == theirs.end()) {
      return "this rank runs " + d.plugin + " (sha256 " + d.sha256 + "), rank 0 does not";
    }
    if (at->second != d.sha256) {
      return d.plugin + " has sha256 " + d.sha256 + " on this rank and " + at->second +
             " on rank 0";
    }
    theirs.erase(at);
  }
  return theirs.empty() ? "they differ"
                        : "rank 0 runs " + theirs.begin()->first + " (sha256 " +
                              theirs.begin()->second + "), this rank does not";
}

}  // namespace

std::vector<PluginDigest> plugin_digests(const RunPlan& plan) {
  std::vector<PluginDigest> all;
  const auto add = [&](const ChosenPlugin& chosen) {
    const DescriptorInfo& d = *chosen.found.descriptor;
    all.push_back({std::string(kind_name(d.kind)) + " " + d.name + " " + d.version,
                   chosen.found.file->digest});
  };
  for (const auto& [kind, chosen] : plan.plugins) {
    add(chosen);
  }
  for (const ChosenPlugin& chosen : plan.profilers) {
    add(chosen);
  }
  return all;
}

void agree_on_plugins(Rendezvous& rendezvous, int rank, const std::vector<PluginDigest>& mine,
                      std::chrono::nanoseconds timeout) {
  const std::string list = text_of(mine);
  const std::string digest = sha256(list);
  if (rank == 0) {
    rendezvous.set(kListKey, list);
    rendezvous.set(kDigestKey, digest);
    return;
  }
  const auto theirs = rendezvous.get(kDigestKey, timeout);
  if (!theirs) {
    throw Failure(ExitCode::Communication, "rank 0 did not say which plugins it runs");
  }
  if (*theirs != digest) {
    throw Failure(ExitCode::Communication,
                  "the plugins of this rank are not those of rank 0: " +
                      difference(mine, rendezvous.get(kListKey, timeout).value_or("")),
                  "install the same builds on all machines, and name them in plugins.lock");
  }
}

}  // namespace ciuic::core
