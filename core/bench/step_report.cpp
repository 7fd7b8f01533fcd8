// SPDX-License-Identifier: MIT
#include "core/bench/step_report.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <utility>
#include <vector>

namespace ciuic::core {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kBarWidth = 40;

__attribute__((format(printf, 1, 2))) std::string text(const char* format, ...) {
  char line[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof(line), format, arguments);
  va_end(arguments);
  return line;
}

std::string bar(double share) {
  const int length = std::clamp(static_cast<int>(share * kBarWidth + 0.5), 0, kBarWidth);
  return std::string(static_cast<size_t>(length), '#');
}

std::string readable(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

double number(const Json& object, const char* key) { return object.at(key).get<double>(); }

std::string heading(const Json& found) {
  const Json& run = found.at("run");
  const Json& rate = found.at("tokens_per_second");
  const Json& step = found.at("step_seconds");
  const Json& gemm = found.at("gemm");
  std::string out =
      text("%d rank(s) x %d thread(s), %s, %s over %s\n", run.at("world_size").get<int>(),
           run.at("threads").get<int>(), run.at("precision").get<std::string>().c_str(),
           run.at("sharding").get<std::string>().c_str(),
           run.at("communicator").get<std::string>().c_str());
  out += text("%.1f M parameters, %.1f M of them active, %.0f tokens a step, %d timed steps\n\n",
              number(run, "parameters") / 1e6, number(run, "active_parameters") / 1e6,
              number(run, "tokens_per_step"), run.at("timed_steps").get<int>());
  out += text("tokens/s       %10.0f   (p10 %.0f, p90 %.0f)\n", number(rate, "median"),
              number(rate, "p10"), number(rate, "p90"));
  out += text("step           %10.1f ms\n", number(step, "median") * 1e3);
  const Json& model = found.at("model");
  out +=
      text("model FLOPs    %10.1f Gflop/s, %.1f %% of the GEMM rate\n",
           number(model, "flops_per_second") / 1e9, number(model, "fraction_of_gemm_rate") * 100);
  out += text("GEMM rate      %10.1f Gflop/s, at::mm in %s; rank 0 before/after, by size:",
              number(gemm, "flops_per_second") / 1e9, gemm.at("dtype").get<std::string>().c_str());
  for (size_t i = 0; i < gemm.at("sizes").size(); ++i) {
    out += text(" %d: %.0f/%.0f", gemm.at("sizes")[i].get<int>(),
                gemm.at("before")[i].get<double>() / 1e9, gemm.at("after")[i].get<double>() / 1e9);
  }
  out += text("\nown products   %10.1f Gflop/s, those of our layers; by size:",
              number(gemm, "own_flops_per_second") / 1e9);
  for (size_t i = 0; i < gemm.at("sizes").size(); ++i) {
    out += text(" %d: %.0f", gemm.at("sizes")[i].get<int>(),
                gemm.at("own_products")[i].get<double>() / 1e9);
  }
  out += text("\nmemory         %10.1f GB/s copied by each rank, reads and writes together",
              number(found.at("memory"), "copy_bytes_per_second") / 1e9);
  return out + "\n";
}

std::string phases(const Json& found) {
  const double mean = number(found.at("step_seconds"), "mean");
  std::string out = "\nwhere a step's time goes\n";
  double sum = 0;
  for (const auto& [name, value] : found.at("phase_seconds").items()) {
    const double seconds = value.get<double>();
    sum += seconds;
    out += text("  %-19s %9.2f ms %5.1f %%  %s\n", readable(name).c_str(), seconds * 1e3,
                seconds / mean * 100, bar(seconds / mean).c_str());
  }
  return out + text("  %-19s %9.2f ms, the mean step %.2f ms\n", "together", sum * 1e3, mean * 1e3);
}

std::string modules(const Json& found) {
  const double mean = number(found.at("step_seconds"), "mean");
  std::vector<std::pair<double, const Json*>> sorted;
  for (const Json& module : found.at("modules")) {
    sorted.emplace_back(number(module, "forward_seconds") + number(module, "backward_seconds"),
                        &module);
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string out =
      "\nparts of the model         forward  backward     Gflop   of GEMM  least GB/s\n";
  for (const auto& [seconds, module] : sorted) {
    const double flops = number(*module, "forward_flops") + number(*module, "backward_flops");
    out +=
        text("  %-19s %7.2f ms %6.2f ms ", readable(module->at("name").get<std::string>()).c_str(),
             number(*module, "forward_seconds") * 1e3, number(*module, "backward_seconds") * 1e3);
    out += flops > 0
               ? text("%9.2f %7.1f %%", flops / 1e9, number(*module, "fraction_of_gemm_rate") * 100)
               : text("%9s %7s  ", "-", "-");
    const double bytes = number(*module, "least_bytes");
    out += bytes > 0 ? text("  %10.1f", bytes / seconds / 1e9) : text("  %10s", "-");
    out += "  " + bar(seconds / mean) + "\n";
  }
  return out;
}

std::string memory_and_startup(const Json& found) {
  std::string out = "\n";
  const Json& storage = found.at("tensor_storage");
  out += text(
      "tensor storage a step   %.1f allocations of %.2f MB from the system, none given back; %.1f "
      "blocks of %.0f MB together in an arena of %.0f MB\n",
      number(storage, "system_allocations_per_step"),
      number(storage, "system_bytes_per_step") / 1e6, number(storage, "arena_blocks_per_step"),
      number(storage, "arena_block_bytes_per_step") / 1e6, number(storage, "arena_bytes") / 1e6);
  const Json& memory = found.at("plugin_memory");
  out += text("plugins' memory a step  %.1f allocations of %.2f MB together, %.1f frees\n",
              number(memory, "allocations_per_step"),
              number(memory, "allocated_bytes_per_step") / 1e6, number(memory, "frees_per_step"));
  out += text("page faults a step      %.1f\n", number(found, "page_faults_per_step"));
  out += text("peak resident memory    %.0f MB, all ranks\n",
              number(found.at("peak_rss_bytes"), "sum") / 1e6);
  const Json& startup = found.at("startup");
  out += text("start to first step     %.2f s:", number(startup, "seconds"));
  for (const auto& [name, value] : startup.items()) {
    if (name != "seconds") {
      out += text(" %s %.3f", readable(name).c_str(), value.get<double>());
    }
  }
  return out + "\n";
}

}  // namespace

std::string step_report(const Json& found) {
  return heading(found) + phases(found) + modules(found) + memory_and_startup(found);
}

}  // namespace ciuic::core
