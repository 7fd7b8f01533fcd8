// SPDX-License-Identifier: MIT
//
// ciuic plugin quarantine: what crashed or hung while it was looked at, and is not tried again for a
// while.
#include "core/plugin/quarantine.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <iostream>

#include "core/config/quantity.h"
#include "core/log/visible.h"
#include "core/plugin/open_file.h"
#include "core/plugin/private_folder.h"
#include "core/plugin/sha256.h"
#include "core/plugin/staging.h"
#include "tools/ciuic/plugin/actions.h"
#include "tools/ciuic/plugin/search_options.h"

namespace ciuic::tools {
namespace {

namespace po = boost::program_options;
using core::ExitCode;
using core::Failure;

int list(const core::Quarantine& quarantine) {
  const auto entries = quarantine.entries();
  if (entries.empty()) {
    std::cout << "nothing is in quarantine (" << quarantine.path() << ")\n";
  }
  for (const auto& [hash, e] : entries) {
    std::cout << hash << "\n  file    " << core::visible(e.file) << "\n  reason  "
              << core::visible(e.reason) << "\n  since   " << core::time_text(e.since)
              << "\n  until   " << core::time_text(e.until) << "\n";
  }
  return 0;
}

/// The hash of a file as it is: no trust is asked of what is only to be kept out.
std::string hash_of(const std::string& path) {
  const core::OpenFile file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const auto bytes = file ? file.read_all(core::kMaxLibraryBytes) : std::nullopt;
  if (!bytes) {
    throw Failure(ExitCode::Plugin, std::string("the file cannot be read: ") + std::strerror(errno),
                  "give a plugin's file, or its SHA-256", {{"file", path}});
  }
  return core::sha256(*bytes);
}

int add(const core::Quarantine& quarantine, const std::string& path, const std::string& reason,
        std::chrono::nanoseconds time) {
  const std::string hash = hash_of(path);
  quarantine.add(hash, path, reason, std::chrono::duration_cast<std::chrono::seconds>(time));
  std::cout << path << " (" << hash << ") is in quarantine\n";
  return 0;
}

/// A hash as it is kept, whichever way its digits are written.
std::string lower_case(std::string digits) {
  for (char& c : digits) {
    c = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return digits;
}

int remove(const core::Quarantine& quarantine, const std::string& what) {
  const std::string hash = is_file_name(what) ? hash_of(what) : lower_case(what);
  const size_t removed = quarantine.remove(hash);
  if (removed == 0) {
    throw Failure(ExitCode::Plugin, "\"" + what + "\" is not in quarantine",
                  "see ciuic plugin quarantine list; a hash needs at least 6 digits");
  }
  std::cout << removed << (removed == 1 ? " plugin is" : " plugins are") << " free again\n";
  return 0;
}

int clear(const core::Quarantine& quarantine) {
  const size_t count = quarantine.entries().size();
  quarantine.clear();
  std::cout << count << (count == 1 ? " plugin is" : " plugins are") << " free again\n";
  return 0;
}

}  // namespace

int plugin_quarantine(const Arguments& arguments) {
  CommandLine line(
      "plugin quarantine",
      "ciuic plugin quarantine [list]\n       ciuic plugin quarantine add FILE.so --reason TEXT "
      "[--for TIME]\n       ciuic plugin quarantine remove SHA256|FILE.so\n       ciuic plugin "
      "quarantine clear [SHA256|FILE.so]",
      "A library that crashes or hangs while it is looked at is refused for a day, by the hash of "
      "its content:\na rebuilt one has another. Entries end by themselves.",
      "  ciuic plugin quarantine\n  ciuic plugin quarantine add libold.so --reason \"loses "
      "messages\" --for 7d\n  ciuic plugin quarantine remove 3f2a9c\n");
  line.options().add_options()("reason", po::value<std::string>()->value_name("TEXT"),
                               "Shown to whoever meets it")(
      "for", po::value<std::string>()->default_value("24h")->value_name("TIME"),
      "When the entry ends");
  line.positional("action", 1);
  line.positional("what", 1);
  const auto values = line.parse(arguments);
  if (!values) {
    return 0;
  }
  const core::Quarantine quarantine(core::state_folder());
  const std::string action = get(*values, "action");
  const std::string what = get(*values, "what");
  if (action.empty() || action == "list") {
    if (!what.empty()) {
      throw line.usage_failure("got \"" + what + "\", and list shows all");
    }
    return list(quarantine);
  }
  if (action == "clear") {
    return what.empty() ? clear(quarantine) : remove(quarantine, what);
  }
  if (action != "add" && action != "remove") {
    throw line.usage_failure("got \"" + action + "\", expected list, add, remove or clear");
  }
  if (what.empty()) {
    throw line.usage_failure("no SHA256 or FILE is given");
  }
  if (action == "remove") {
    return remove(quarantine, what);
  }
  const auto time = core::parse_duration(get(*values, "for"));
  if (!time || time->count() < 1'000'000'000) {
    throw line.usage_failure("--for: got " + get(*values, "for") +
                             ", expected a duration such as \"24h\"");
  }
  if (values->count("reason") == 0) {
    throw line.usage_failure("no --reason is given");
  }
  return add(quarantine, what, get(*values, "reason"), *time);
}

}  // namespace ciuic::tools
