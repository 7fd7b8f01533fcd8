// SPDX-License-Identifier: MIT
//
// ciuic plugin replay LOG: runs what the decorator `record` wrote again, with the same plugin or
// another build of it, and compares bit by bit.
#include <algorithm>
#include <span>

#include <ATen/Parallel.h>

#include "core/config/plain_file.h"
#include "core/config/toml_reader.h"
#include "core/plugin/decorator/codec.h"
#include "core/plugin/decorator/replay.h"
#include "core/plugin/kind.h"
#include "core/plugin/thread_service.h"
#include "core/train/run_plan.h"
#include "core/train/tensor_service.h"
#include "tools/ciuic/plugin/search_options.h"
#include "tools/worker/commands.h"

namespace ciuic::tools {
namespace {

namespace po = boost::program_options;
using core::ExitCode;
using core::Failure;

core::CallLog read_log(const std::string& path) {
  constexpr size_t kMostBytes = size_t{4} << 30;  // it is held in memory, and its values beside it
  const core::PlainFile file = core::read_plain_file(path, kMostBytes);
  if (!file.problem.empty()) {
    throw Failure(ExitCode::Storage, "the call log " + file.problem,
                  "expected the file that the decorator record wrote", {{"file", path}});
  }
  core::CallLog log = core::parse_call_log(std::as_bytes(std::span(file.bytes)));
  if (!log.problem.empty()) {
    throw Failure(ExitCode::Storage,
                  "the call log is damaged: " + log.problem + " (at byte " +
                      std::to_string(log.problem_at) + ")",
                  "expected the file that the decorator record wrote", {{"file", path}});
  }
  return log;
}

/// The recorded plugin by name, or the one of its kind in a file.
core::FoundPlugin find_plugin(const core::Catalog& catalog, const core::RecordHeader& header,
                              const std::string& file) {
  if (file.empty()) {
    return catalog.find(header.kind, header.plugin);
  }
  const auto looked_at = files_named(catalog, file).front();
  if (looked_at->refusal) {
    throw refusal_of(*looked_at);
  }
  for (const auto& plugin : looked_at->plugins) {
    if (plugin->kind == header.kind) {
      return {plugin, looked_at->path, false, looked_at};
    }
  }
  throw Failure(
      ExitCode::Plugin,
      "the log is of a " + std::string(core::kind_name(header.kind)) + ", and the file has none",
      "give a plugin of that kind with --plugin", {{"file", file}});
}

core::PluginOptions options_of(const core::RecordHeader& header, const core::FoundPlugin& found) {
  std::string toml;
  for (const auto& [key, value] : header.options) {
    toml += core::toml_key(key) + " = " + value + "\n";
  }
  std::vector<core::Problem> problems;
  const core::Node table = core::parse_toml(toml, "the log's options", problems);
  core::PluginOptions options = core::PluginOptions::from(&table, found.descriptor->options,
                                                          found.descriptor->name, {}, problems);
  if (!problems.empty()) {
    throw core::configuration_failure(problems);
  }
  return options;
}

/// The data as its lengths stood in the log.
struct RecordedData {
  explicit RecordedData(const core::RecordHeader& header) {
    for (const auto& [count, tokens] : header.lengths) {
      ends.emplace_back((ends.empty() ? 0 : ends.back().first) + count, tokens);
    }
    service.struct_size = sizeof(service);
    service.ctx = this;
    service.samples = [](void* ctx) {
      const auto& all = static_cast<RecordedData*>(ctx)->ends;
      return all.empty() ? uint64_t{0} : all.back().first;
    };
    service.lengths = [](void* ctx, uint64_t first, uint64_t count, uint64_t* tokens) {
      auto& me = *static_cast<RecordedData*>(ctx);
      for (uint64_t i = 0; i < count; ++i) {
        tokens[i] = me.length_of(first + i);
      }
      return static_cast<ciuic_status*>(nullptr);
    };
  }

  /// Samples count without end: their rows repeat.
  [[nodiscard]] uint64_t length_of(uint64_t sample) const {
    const uint64_t rows = ends.empty() ? 0 : ends.back().first;
    if (rows == 0) {
      return 0;
    }
    const auto run =
        std::upper_bound(ends.begin(), ends.end(), sample % rows,
                         [](uint64_t row, const auto& end) { return row < end.first; });
    return run->second;
  }

  std::vector<std::pair<uint64_t, uint64_t>> ends;  // row past the run, tokens
  ciuic_data_service service{};
};

std::unique_ptr<core::HostContext> host_for(const core::FoundPlugin& found, RecordedData* data,
                                            core::Log& log) {
  auto host = std::make_unique<core::HostContext>(found.descriptor->name, log);
  host->own_service<core::ThreadService>(
      "ciuic.threads", static_cast<unsigned>(at::get_num_threads()),
      [](int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
        at::parallel_for(0, count, grain, body);
      });
  host->own_service<core::TensorService>("ciuic.tensor");
  if (data != nullptr) {
    host->add_service("ciuic.data", &data->service);
  }
  return host;
}

int report(const core::CallLog& log, const core::RecordHeader& header,
           const core::FoundPlugin& found, const core::ReplayResult& r) {
  const std::string kind(core::kind_name(header.kind));
  std::cout << kind << " " << header.plugin << " " << header.version << ", rank " << header.rank
            << " of " << header.world << ": " << r.calls << " calls, again with "
            << found.descriptor->name << " " << found.descriptor->version << " (" << found.path
            << ")\n";
  if (r.skipped > 0) {
    std::cout << r.skipped << " calls are skipped: " << r.skipped_why << "\n";
  }
  if (log.is_torn) {
    std::cout << "the log's last record is cut off\n";
  }
  if (!r.cut_off.empty()) {
    std::cout << "never returned in the log, and returned now: " << r.cut_off << "\n";
  }
  if (!r.difference.empty()) {
    throw Failure(ExitCode::Numbers, "the replay differs in " + r.difference,
                  "the first difference of " + std::to_string(r.compared) + " calls compared");
  }
  std::cout << r.compared << " calls compared: the same, bit for bit\n";
  return 0;
}

}  // namespace

int replay(const Arguments& arguments) {
  CommandLine line("plugin replay", "ciuic plugin replay LOG [--plugin NAME|FILE.so]",
                   "Runs a log of the decorator record again and compares results, outputs and "
                   "tensors bit by bit.\nThe first difference ends it, with exit code 7.",
                   "  ciuic plugin replay runs/a/record/batch_scheduler-fixed-rank-0.log\n"
                   "  ciuic plugin replay calls.log --plugin build/plugins/libmine.so\n");
  line.options().add_options()("plugin", po::value<std::string>()->value_name("NAME|FILE"),
                               "Another plugin, or another build of it");
  add_search_options(line);
  line.positional("log", 1);
  const auto values = line.parse(arguments);
  if (!values) {
    return 0;
  }
  const std::string path = get(*values, "log");
  if (path.empty()) {
    throw line.usage_failure("no LOG is given");
  }
  const core::CallLog log = read_log(path);
  try {
    const core::RecordHeader header = core::read_record_header(log.records.front().value);
    if (const std::string refusal = core::replay_refusal(header); !refusal.empty()) {
      throw Failure(ExitCode::Usage, "this log cannot be run again: " + refusal,
                    "docs/decorators.md says which can", {{"file", path}});
    }
    core::Log messages({0, 1, core::LogLevel::Warn, "", has_color(2)});
    const core::Catalog catalog = catalog_of(*values, line);
    const core::FoundPlugin found = find_plugin(catalog, header, get(*values, "plugin"));
    RecordedData data(header);
    core::Placement placement;
    placement.rank = header.rank;
    placement.world = header.world;
    const core::Instance instance(found,
                                  host_for(found, header.has_data ? &data : nullptr, messages),
                                  options_of(header, found), placement);
    return report(log, header, found, core::replay(log, header, instance));
  } catch (const core::LogMismatch& e) {
    throw Failure(ExitCode::Storage,
                  std::string("the call log does not fit this host: ") + e.what(),
                  "replay it with the ciuic that wrote it", {{"file", path}});
  }
}

}  // namespace ciuic::tools
