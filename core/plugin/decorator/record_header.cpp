// SPDX-License-Identifier: MIT
#include "core/plugin/decorator/record_header.h"

#include <algorithm>

#include "core/plugin/decorator/codec.h"
#include "core/plugin/kind.h"

namespace ciuic::core {
namespace {

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

/// Rows of equal length one after another, which is how most data look.
LogValue lengths_of(const ciuic_data_service& data) {
  constexpr uint64_t kChunk = 1 << 16;
  constexpr size_t kMostRuns = 1 << 20;
  const uint64_t rows = data.samples(data.ctx);
  std::vector<uint64_t> tokens(std::min(rows, kChunk));
  std::vector<std::pair<uint64_t, uint64_t>> runs;
  for (uint64_t row = 0; row < rows && runs.size() < kMostRuns; row += kChunk) {
    const uint64_t count = std::min(kChunk, rows - row);
    if (data.lengths(data.ctx, row, count, tokens.data()) != nullptr) {
      return {};  // a replay says that it has no data
    }
    for (uint64_t i = 0; i < count; ++i) {
      if (runs.empty() || runs.back().second != tokens[i]) {
        runs.emplace_back(0, tokens[i]);
      }
      ++runs.back().first;
    }
  }
  LogValue::List list;
  for (const auto& [count, length] : runs) {
    list.push_back({LogValue::List{{count}, {length}}});
  }
  return {std::move(list)};
}

}  // namespace

std::string record_path(const RecordSpec& spec, const DecoratorContext& context) {
  const std::string rank = std::to_string(context.rank);
  std::string path = spec.path;
  if (path.empty()) {
    path = context.folder + "/record/{kind}-{plugin}-rank-{rank}.log";
  } else if (context.world > 1 && path.find("{rank}") == std::string::npos) {
    path += ".rank-{rank}";
  }
  path = replaced(path, "{rank}", rank);
  path = replaced(path, "{plugin}", context.plugin);
  return replaced(path, "{kind}", std::string(kind_name(context.kind)));
}

LogValue record_header(const DecoratorContext& c) {
  LogValue::List options;
  for (const auto& [key, value] : c.options) {
    options.push_back({LogValue::List{{key}, {value}}});
  }
  // Only a batch scheduler's answers depend on the data.
  const bool has_data = c.data != nullptr && c.kind == CIUIC_KIND_BATCH_SCHEDULER;
  LogValue::List all{{uint64_t{c.kind}},
                     {c.plugin},
                     {c.version},
                     {std::move(options)},
                     {int64_t{c.rank}},
                     {int64_t{c.world}},
                     has_data ? lengths_of(*c.data) : LogValue{}};
  return {std::move(all), "kind,plugin,version,options,rank,world,data"};
}

RecordHeader read_record_header(const LogValue& value) {
  Decoder in;
  const auto& list = Decoder::get<LogValue::List>(value);
  Decoder::check(list.size() == 7, "the header has another number of members");
  RecordHeader h;
  in.decode(list[0], h.kind);
  h.plugin = Decoder::get<std::string>(list[1]);
  h.version = Decoder::get<std::string>(list[2]);
  for (const LogValue& option : Decoder::get<LogValue::List>(list[3])) {
    const auto& pair = Decoder::get<LogValue::List>(option);
    Decoder::check(pair.size() == 2, "an option has another number of members");
    h.options.emplace_back(Decoder::get<std::string>(pair[0]), Decoder::get<std::string>(pair[1]));
  }
  in.decode(list[4], h.rank);
  in.decode(list[5], h.world);
  h.has_data = list[6].value.index() != 0;
  if (h.has_data) {
    for (const LogValue& run : Decoder::get<LogValue::List>(list[6])) {
      const auto& pair = Decoder::get<LogValue::List>(run);
      Decoder::check(pair.size() == 2, "a run of rows has another number of members");
      h.lengths.emplace_back(Decoder::get<uint64_t>(pair[0]), Decoder::get<uint64_t>(pair[1]));
    }
  }
  return h;
}

}  // namespace ciuic::core
