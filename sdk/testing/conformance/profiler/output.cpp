// SPDX-License-Identifier: MIT
//
// Profilers that write files: into the output folder of create, or to a path of their options. What
// is unwritable or full must end in a status, and what is written must parse.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/resource.h>

#include <ciuic/testing/features.hpp>

#include "bench.hpp"
#include "file_text.hpp"
#include "profiler_tests.hpp"

namespace ciuic::testing::profiler {
namespace {

namespace fs = std::filesystem;

/// Options that name a file or folder, by type and key.
std::vector<std::string> path_options(const TestContext& context) {
  std::vector<std::string> keys;
  for (const ciuic_option_spec& spec :
       ArrayView<ciuic_option_spec>(context.plugin.descriptor().options)) {
    const std::string key = spec.key;
    for (const char* part : {"path", "file", "folder", "output", "directory", "dir"}) {
      if (spec.type == CIUIC_TYPE_STRING && key.find(part) != std::string::npos &&
          context.options.count(key) == 0) {
        keys.push_back(key);
        break;
      }
    }
  }
  return keys;
}

/// Creates, emits, flushes and destroys; any clean status will do.
void use(const TestContext& context, const OptionValues& own) {
  try {
    Bench bench(context, own);
    for (uint64_t step = 1; step <= 300; ++step) {
      bench.emit(step_events(bench, step));
    }
    try {
      bench.flush();
    } catch (const Error& e) {
      require(std::string(e.what()).size() > 3, "flush failed without saying why");
    }
    bench.finish();
  } catch (const Error& e) {
    require(std::string(e.what()).size() > 3, "create failed without saying why");
  }
}

/// All files below the output folder that end so.
std::vector<std::string> contents(const TestContext& context, const std::string& ending) {
  std::vector<std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(context.scratch)) {
    if (entry.is_regular_file() && entry.path().extension().string().rfind(ending, 0) == 0) {
      std::ostringstream text;
      text << std::ifstream(entry.path(), std::ios::binary).rdbuf();
      out.push_back(text.str());
    }
  }
  return out;
}

/// One JSON text, or one a line.
bool is_json_or_lines(const std::string& text) {
  if (is_json(text)) {
    return true;
  }
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    if (!line.empty() && !is_json(line)) {
      return false;
    }
  }
  return true;
}

/// Writes that fail with EFBIG beyond `bytes`, in this process, until destruction.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : old_handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{bytes, old_.rlim_max};
    require(::setrlimit(RLIMIT_FSIZE, &limit) == 0, "cannot limit the size of files");
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, old_handler_);
  }

 private:
  rlimit old_{};
  void (*old_handler_)(int);
};

}  // namespace

void output_unwritable(const TestContext& context) {
  for (const char* place :
       {"/dev/null/below/a/file", "/nonexistent/folder/file", "/", "/dev/full"}) {
    const std::string where = place;
    const TestContext elsewhere{context.path, context.plugin,   context.options,     context.seed,
                                where,        context.patience, context.soak_seconds};
    use(elsewhere, {});
    for (const std::string& key : path_options(context)) {
      use(context, {{key, where}});
    }
  }
}

void output_full(const TestContext& context) {
  for (const rlim_t bytes : {rlim_t{0}, rlim_t{5000}}) {
    const FileSizeLimit limit(bytes);
    use(context, {});
  }
}

void output_parses(const TestContext& context) {
  const ciuic_descriptor& descriptor = context.plugin.descriptor();
  const bool is_csv = has_feature(descriptor, "output:csv");
  const bool is_json_kind = has_feature(descriptor, "output:json");
  if (!is_csv && !is_json_kind) {
    throw NotOffered("the plugin has neither the feature output:csv nor output:json");
  }
  {
    Bench bench(context);
    for (const char* name : {"plain", "a,b", "quote\"d", "line\nbreak", "back\\slash", "",
                             "\xff not UTF-8", "\x01 control"}) {
      for (uint32_t type = 1; type <= 5; ++type) {
        ciuic_event e = event(type, CIUIC_CATEGORY_STEP, bench.names(name), type);
        e.value = type == 4 ? 0.1 : 0;
        bench.emit(e);
      }
    }
    bench.emit(step_events(bench, 1));
    bench.flush();
    bench.finish();
  }
  for (const char* ending : {".csv", ".json"}) {
    if (!(ending[1] == 'c' ? is_csv : is_json_kind)) {
      continue;
    }
    const std::vector<std::string> files = contents(context, ending);
    require(!files.empty(), std::string("after flush and destroy there is no *") + ending +
                                " file in the output folder");
    for (const std::string& text : files) {
      require(ending[1] == 'c' ? csv_rows(text) > 0 : is_json_or_lines(text),
              std::string("a *") + ending + " file of the output folder does not parse");
    }
  }
}

void output_complete(const TestContext& context) {
  if (!has_feature(context.plugin.descriptor(), "events:all")) {
    throw NotOffered("the plugin does not promise to keep all events (events:all)");
  }
  constexpr size_t kEvents = 5000;
  const std::string marker = "every_one_of_these";
  {
    Bench bench(context);
    const ciuic_str name = bench.names(marker);
    uint32_t category = CIUIC_CATEGORY_STEP;
    while (((bench.mask() >> category) & 1) == 0 && category < CIUIC_CATEGORY_ERROR) {
      ++category;
    }
    for (size_t i = 0; i < kEvents; ++i) {
      bench.emit(event(CIUIC_EVENT_INSTANT, category, name, i + 1));
      if (i % 500 == 499) {
        bench.flush();
      }
    }
    bench.flush(-1);
    bench.finish();
  }
  size_t found = 0;
  for (const std::string& text : contents(context, ".")) {
    for (size_t at = text.find(marker); at != std::string::npos; at = text.find(marker, at + 1)) {
      ++found;
    }
  }
  require(found == kEvents, "the plugin promises to keep all events (events:all): of " +
                                std::to_string(kEvents) + " its files show " +
                                std::to_string(found));
}

}  // namespace ciuic::testing::profiler
