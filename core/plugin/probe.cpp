// SPDX-License-Identifier: MIT
#include "core/plugin/probe.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <stdexcept>

#include <ciuic/view.hpp>

#include "core/launch/own_program.h"
#include "core/log/failure.h"
#include "core/plugin/instance.h"
#include "core/plugin/option_value.h"
#include "core/plugin/probe_process.h"

namespace ciuic::core {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr size_t kMaxPlugins = 256;
constexpr size_t kMaxReason = 2000;

json request_json(const ProbeRequest& request, size_t id) {
  json one = request.arguments.is_object() ? request.arguments : json::object();
  one["id"] = id;
  one["path"] = request.path;
  one["kind"] = request.kind;
  one["name"] = request.name;
  one["mark"] = request.sha256.empty() ? "" : request.sha256 + " " + request.original;
  return one;
}

/// A text from the probe, short and without control characters.
std::string tame(const json& text) {
  std::string out = text.get<std::string>().substr(0, kMaxReason);
  for (char& c : out) {
    c = static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  }
  return out;
}

/// An answer from a line that claims to be one. Throws std::exception when it is none.
ProbeAnswer answer_of(const json& line) {
  ProbeAnswer answer;
  if (line.contains("refused")) {
    answer.refusal = Refusal{tame(line.at("refused")), tame(line.at("reason")), ""};
    return answer;
  }
  if (line.contains("validated")) {
    answer.validated = tame(line.at("validated"));
    return answer;
  }
  const json& list = line.at("descriptors");
  if (!list.is_array() || list.empty() || list.size() > kMaxPlugins) {
    throw std::invalid_argument("no list of descriptors");
  }
  for (const json& d : list) {
    answer.plugins.push_back(DescriptorInfo::from_json(d));
  }
  for (const json& warning : line.at("warnings")) {
    answer.warnings.push_back(tame(warning));
  }
  answer.stays_resident = line.at("stays").get<bool>();
  return answer;
}

/// One run of the process over the requests that have no answer yet. Every call settles at least
/// one of them.
class Round {
 public:
  Round(const std::vector<ProbeRequest>& requests, std::vector<std::optional<ProbeAnswer>>& answers,
        std::chrono::milliseconds patience, const std::string& mark)
      : requests_(requests), answers_(answers), patience_(patience), mark_(mark) {}

  void run(const std::string& executable, const char* list) {
    json request{{"files", json::array()}, {"validate", json::array()}};
    request["mark"] = mark_;
    request["cpu_seconds"] = 1 + patience_.count() / 1000 * static_cast<int64_t>(requests_.size());
    for (size_t i = 0; i < requests_.size(); ++i) {
      if (!answers_[i]) {
        request[list].push_back(request_json(requests_[i], i));
        at_ = at_ == requests_.size() ? i : at_;
      }
    }
    ProbeProcess process(executable, request.dump(-1, ' ', false, json::error_handler_t::replace));
    std::string line;
    while (true) {
      switch (process.next_line(patience_, line)) {
        case ProbeProcess::Outcome::Line:
          if (!take(line)) {
            return blame("it wrote into the answers of ciuic-probe");
          }
          if (is_done_) {
            return;
          }
          break;
        case ProbeProcess::Outcome::Ended:
          return blame("it crashed in the probe: " + ended(process, executable));
        case ProbeProcess::Outcome::Silent:
          if (!has_spoken_) {
            ended(process, executable);
          }
          blame("it did not return within " + std::to_string(patience_.count()) + " ms");
          answers_[at_]->has_hung = true;
          return;
        case ProbeProcess::Outcome::Interrupted:
          throw Failure(ExitCode::Stopped, "stopped while plugins were looked at");
        case ProbeProcess::Outcome::TooMuch:
          return blame("it says too much");
      }
    }
  }

 private:
  /// False when the line is nonsense.
  bool take(const std::string& text) {
    try {
      const json line = json::parse(text);
      if (line.contains("done")) {
        is_done_ = true;
        return true;
      }
      const auto id = line.at("id").get<size_t>();
      if (id >= answers_.size() || answers_[id]) {
        return false;
      }
      at_ = id;
      has_spoken_ = true;
      if (line.contains("step")) {
        step_ = tame(line.at("step"));
      } else {
        answers_[id] = answer_of(line);
      }
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }

  /// How the process ended. If it never came to a plugin, that is nobody's fault but ours or the
  /// machine's.
  std::string ended(ProbeProcess& process, const std::string& executable) const {
    std::string how = process.how_it_ended();
    if (!has_spoken_) {
      throw Failure(ExitCode::Environment, "ciuic-probe does not work: " + how, "",
                    {{"file", executable}});
    }
    return how;
  }

  /// The file that was looked at last is why the process is gone, also when it had answered: what it
  /// left behind did it then, before the next one was announced.
  void blame(const std::string& how) {
    ProbeAnswer answer;
    answer.has_crashed = true;
    answer.refusal = Refusal{step_, how, ""};
    answers_[at_] = std::move(answer);
  }

  const std::vector<ProbeRequest>& requests_;
  std::vector<std::optional<ProbeAnswer>>& answers_;
  std::chrono::milliseconds patience_;
  const std::string& mark_;
  size_t at_ = requests_.size();
  std::string step_ = "probe";
  bool has_spoken_ = false;
  bool is_done_ = false;
};

}  // namespace

std::string Probe::find_executable() {
  std::error_code ec;
  const fs::path folder = own_program().parent_path();
  const std::array<fs::path, 3> places{folder / "ciuic-probe",
                                       folder.parent_path() / "bin" / "ciuic-probe",
                                       folder.parent_path() / "libexec" / "ciuic" / "ciuic-probe"};
  for (const fs::path& place : places) {
    if (fs::exists(place, ec)) {
      return place.string();
    }
  }
  throw Failure(ExitCode::Environment, "ciuic-probe is not beside ciuic",
                "build it (target ciuic-probe), or install both together",
                {{"file", places[0].string()}});
}

std::vector<ProbeAnswer> Probe::ask(const std::vector<ProbeRequest>& requests,
                                    const char* list) const {
  std::vector<std::optional<ProbeAnswer>> answers(requests.size());
  const auto is_open = [](const std::optional<ProbeAnswer>& a) { return !a.has_value(); };
  for (size_t round = 0;
       round <= requests.size() && std::any_of(answers.begin(), answers.end(), is_open); ++round) {
    Round(requests, answers, patience_, mark_).run(executable_, list);
  }
  std::vector<ProbeAnswer> out;
  for (std::optional<ProbeAnswer>& answer : answers) {
    if (!answer) {
      answer.emplace();
      answer->refusal = Refusal{"probe", "ciuic-probe gave no answer", ""};
    }
    out.push_back(std::move(*answer));
  }
  return out;
}

std::vector<ProbeAnswer> Probe::look(const std::vector<ProbeRequest>& files) const {
  return ask(files, "files");
}

std::vector<ProbeAnswer> Probe::validate(const std::vector<ProbeRequest>& requests) const {
  return ask(requests, "validate");
}

json validate_arguments(const PluginOptions& options, const Placement& placement) {
  json list = json::array();
  for (const ciuic_option& o : ArrayView<ciuic_option>(options.array())) {
    list.push_back({{"key", std::string(to_view(o.key))},
                    {"type", o.type},
                    {"line", o.toml_line},
                    {"value", OptionValue::of(o.type, o.value).to_json(o.type)}});
  }
  return {{"options", std::move(list)},
          {"rank", placement.rank},
          {"world", placement.world},
          {"local_rank", placement.local_rank},
          {"local_world", placement.local_world},
          {"device_type", placement.device.type},
          {"device_id", placement.device.id},
          {"generation", placement.generation}};
}

}  // namespace ciuic::core
