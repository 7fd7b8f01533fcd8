// SPDX-License-Identifier: MIT
//
// The probe: is this a plugin, and which ones does it hold?
#include <algorithm>
#include <dirent.h>
#include <filesystem>

#include "runner.hpp"
#include "runner_options.hpp"
#include "runner_process.hpp"
#include "static/advice.hpp"

namespace ciuic::testing {
namespace {

constexpr double kLoadSeconds = 60;  // a library of 1 GB from a slow disk
constexpr uint32_t kMostPlugins = CIUIC_NOTE_MAX_PLUGINS;

size_t count_threads() {
  size_t count = 0;
  if (DIR* tasks = opendir("/proc/self/task")) {
    while (const dirent* entry = readdir(tasks)) {
      count += entry->d_name[0] == '.' ? 0 : 1;
    }
    closedir(tasks);
  }
  return count;
}

std::string text(const char* s) { return s == nullptr ? "" : s; }

void check_settings(const ciuic_descriptor& descriptor, const Settings& settings,
                    std::vector<bool>& known) {
  typed_options(descriptor, settings);
  for (size_t i = 0; i < settings.size(); ++i) {
    known[i] = known[i] || declares(descriptor, settings[i].first);
  }
}

/// In the child: "ok", threads, then four texts for each plugin.
Message probe(const Arguments& arguments) {
  const LoadedPlugin first(arguments.path);
  Message out = {"ok", count_threads() > 1 ? "threads" : ""};
  std::vector<bool> known(arguments.settings.size());
  for (uint32_t i = 0; i < kMostPlugins; ++i) {
    const ciuic_descriptor* d = first.query(CIUIC_ABI_MAJOR, i);
    if (d == nullptr) {
      break;
    }
    if (d->abi_major != CIUIC_ABI_MAJOR || d->abi_minor != CIUIC_ABI_MINOR) {
      return {"no", "it was built for ABI " + std::to_string(d->abi_major) + "." +
                        std::to_string(d->abi_minor) + "; this kit checks " +
                        std::to_string(CIUIC_ABI_MAJOR) + "." + std::to_string(CIUIC_ABI_MINOR) +
                        ": rebuild it with this SDK"};
    }
    if (arguments.plugin.empty() || arguments.plugin == text(d->name)) {
      check_settings(*d, arguments.settings, known);
      out.insert(out.end(),
                 {std::to_string(i), std::to_string(d->kind), text(d->name), text(d->version)});
    }
  }
  for (size_t i = 0; i < known.size(); ++i) {
    if (!known[i] && out.size() > 2) {
      throw UsageError("--set: no plugin here has an option " + arguments.settings[i].first);
    }
  }
  return out;
}

Message guarded_probe(const Arguments& arguments) {
  try {
    return probe(arguments);
  } catch (const UsageError& e) {
    return {"usage", e.what()};
  } catch (const std::exception& e) {
    return {"no", e.what()};
  }
}

/// A pipe would be waited for without end when it is mapped or read.
void require_file(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    throw NotAPlugin(error ? error.message() : "there is no such file");
  }
  if (!std::filesystem::is_regular_file(status)) {
    throw NotAPlugin(std::filesystem::is_directory(status)
                         ? "it is a folder; expected a file"
                         : "it is a pipe or a device; expected a file");
  }
}

/// The probe's answer. The plugin's code ran in that process, so nothing in it is taken for granted.
Library library_of(const Message& m) {
  const NotAPlugin unclear("while it was loaded, it changed what the kit says about it");
  if (m.size() < 2 || m.size() % 4 != 2 || m[0] != "ok") {
    throw NotAPlugin(unclear);
  }
  Library out;
  out.starts_threads = m[1] == "threads";
  for (size_t i = 2; i < m.size(); i += 4) {
    const auto index = whole_number(m[i]);
    const auto kind = whole_number(m[i + 1]);
    if (!index || !kind || *index >= kMostPlugins || *kind > UINT32_MAX) {
      throw NotAPlugin(unclear);
    }
    out.plugins.push_back(
        {static_cast<uint32_t>(*index), static_cast<uint32_t>(*kind), m[i + 2], m[i + 3]});
  }
  return out;
}

}  // namespace

Library look_at(const Arguments& arguments) {
  require_file(arguments.path);
  const double limit = kLoadSeconds * arguments.patience;
  const Ended ended = run_isolated([&] { return guarded_probe(arguments); }, limit);
  if (!ended.message) {
    throw NotAPlugin("while it was loaded, it " + describe_end(ended, limit) +
                     (ended.output.empty() ? "" : "\n" + ended.output));
  }
  const Message& m = *ended.message;
  if (m.size() == 2 && m[0] == "usage") {
    throw UsageError(m[1]);
  }
  if (m.size() == 2 && m[0] == "no") {
    throw NotAPlugin(m[1]);
  }
  Library out = library_of(m);
  if (out.plugins.empty()) {
    throw UsageError("--plugin: " + arguments.path + " holds no plugin " + arguments.plugin);
  }
  out.advice = advice_on(arguments.path);
  return out;
}

}  // namespace ciuic::testing
