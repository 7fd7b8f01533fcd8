// SPDX-License-Identifier: MIT
#include "core/plugin/loading_pipeline.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "core/config/joined.h"
#include "core/log/failure.h"
#include "core/plugin/instance.h"
#include "core/plugin/kind.h"
#include "core/plugin/library_check.h"
#include "core/plugin/private_folder.h"
#include "core/plugin/probe_mark.h"
#include "core/plugin/sha256.h"

namespace ciuic::core {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxStagedBytes = size_t{512} << 20;

/// Adds the time until its end to a sum.
class Timer {
 public:
  explicit Timer(double& sum) : sum_(sum) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() {
    sum_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  double& sum_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// The remedy says so; or a warning, where it cannot be written: then it is tried again next time.
void put_into_quarantine(LibraryFile& file, Refusal& refusal, bool is_crash) {
  try {
    // Slowness is the machine's as often as the plugin's: it gets another try sooner.
    const std::chrono::hours time = is_crash ? Quarantine::kDefaultTime : std::chrono::hours(1);
    Quarantine(state_folder()).add(file.sha256, file.path, refusal.text(), time);
    refusal.remedy = "it is in quarantine for " + std::to_string(time.count()) +
                     " h; lift that: ciuic plugin quarantine remove " + file.sha256.substr(0, 12);
  } catch (const Failure& f) {
    file.warnings.emplace_back(f.what());
  }
}

Refusal refusal_of(const LibraryFile& file, const QuarantineEntry& entry) {
  return {"quarantine",
          "this content is in quarantine until " + time_text(entry.until) + ": " + entry.reason,
          "rebuild it, or lift that: ciuic plugin quarantine remove " + file.sha256.substr(0, 12)};
}

/// Not there, rather than not to be seen by us.
bool is_missing(const std::error_code& ec) {
  return ec == std::errc::no_such_file_or_directory || ec == std::errc::not_a_directory;
}

/// The loader names the copy; a person knows the original.
void name_original(std::string& text, const LibraryFile& file) {
  for (size_t at = 0;
       !file.staged.empty() && (at = text.find(file.staged, at)) != std::string::npos;
       at += file.path.size()) {
    text.replace(at, file.staged.size(), file.path);
  }
}

}  // namespace

LoadingPipeline::LoadingPipeline(LoadRules rules)
    : rules_(std::move(rules)), trust_(TrustContext::of_this_process()) {
  if (!rules_.lock.empty()) {
    lock_ = LockFile::read(rules_.lock);
  }
}

std::shared_ptr<LibraryFile> LoadingPipeline::examine(const std::string& path) {
  Known& known = known_[path];
  if (known.file == nullptr) {
    const Timer timer(times_.examine);
    known.file = std::make_shared<LibraryFile>();
    known.file->path = path;
    examine(known);
    if (known.file->refusal) {
      known.bytes = {};
      known.bundle.reset();
    }
  }
  return known.file;
}

void LoadingPipeline::examine(Known& known) {
  LibraryFile& file = *known.file;
  std::error_code ec;
  const fs::path absolute = fs::absolute(file.path, ec);
  const auto status = fs::symlink_status(absolute, ec);
  if (!fs::exists(status)) {
    file.refusal = is_missing(ec) ? Refusal{"resolve", "there is no such file", ""}
                                  : Refusal{"resolve", "it cannot be looked at: " + ec.message(),
                                            "may you read its folder, and enter those above it?"};
    return;
  }
  file.steps.emplace_back("resolve");
  auto opened = open_trusted(absolute.string(), rules_.trust, trust_);
  if (const auto* problem = std::get_if<TrustProblem>(&opened)) {
    file.refusal = Refusal{"trust", problem->reason, problem->remedy};
    return;
  }
  file.steps.emplace_back("trust");
  auto bytes = std::get<OpenFile>(opened).read_all(kMaxLibraryBytes);
  if (!bytes) {
    file.refusal = Refusal{"hash", std::string("it cannot be read: ") + std::strerror(errno), ""};
    return;
  }
  known.bytes = std::move(*bytes);
  file.bytes = known.bytes.size();
  try {
    file.elf = ElfFile::parse(known.bytes);
    if (!file.elf->exports_symbol("ciuic_plugin_query")) {
      throw ElfError(
          "it lacks the symbol ciuic_plugin_query; end its source with CIUIC_PLUGINS(...)");
    }
    file.note = LibraryNote::read(*file.elf);
  } catch (const ElfError& e) {
    // Said only after the hash: a file that the lock refuses is refused for that.
    file.refusal = Refusal{"note", e.what(), ""};
  }
  // A large library that is no plugin, but lies beside some, is not worth the time.
  constexpr size_t kAlwaysHashed = size_t{8} << 20;
  if (file.note || file.bytes <= kAlwaysHashed) {
    file.sha256 = core::sha256(known.bytes);
  }
  check_hash(known);
  if (!file.refusal || file.refusal->step == "note") {
    check_quarantine(file);
  }
  if (!file.refusal) {
    file.refusal = library_problem(*file.elf, *file.note);
    file.warnings = library_warnings(*file.elf);
  }
  if (!file.refusal) {
    file.steps.emplace_back("note");
  }
}

const Bundle& LoadingPipeline::bundle_of(Known& known) const {
  if (!known.bundle) {
    LibraryFile& file = *known.file;
    known.bundle = core::bundle_of(fs::absolute(file.path).string(), *file.elf, file.sha256,
                                   rules_.trust, trust_);
    for (const BundledFile& d : known.bundle->dependencies) {
      file.brings.push_back(d.path + (d.is_linked ? " (in place)" : ""));
    }
    file.digest = known.bundle->digest;
    file.bundle = known.bundle->locked;
  }
  return *known.bundle;
}

void LoadingPipeline::check_hash(Known& known) const {
  LibraryFile& file = *known.file;
  const auto refuse = [&](std::string problem) {
    file.refusal = Refusal{"hash", std::move(problem),
                           "put the locked file back, or write the lock anew: ciuic plugin "
                           "lock -o " +
                               lock_->path()};
  };
  if (lock_ && file.note) {
    for (const NoteRecord& record : file.note->plugins) {
      if (std::string problem =
              lock_->problem_with(kind_name(record.kind), record.name, file.sha256);
          !problem.empty()) {
        return refuse(std::move(problem));
      }
    }
    try {
      const std::string& bundle = bundle_of(known).locked;
      for (const NoteRecord& record : file.note->plugins) {
        if (std::string problem =
                lock_->bundle_problem(kind_name(record.kind), record.name, bundle);
            !problem.empty()) {
          return refuse(problem + (file.brings.empty()
                                       ? "; it brings nothing along"
                                       : "; it brings along " + joined(file.brings, ", ")));
        }
      }
    } catch (const ElfError& e) {
      return refuse(std::string("what it brings along cannot be compared: ") + e.what());
    }
  }
  file.steps.emplace_back("hash");
}

void LoadingPipeline::check_quarantine(LibraryFile& file) {
  if (!quarantined_) {
    const Quarantine quarantine(state_folder());
    ProbeMark::settle_stale(state_folder(), quarantine);
    quarantined_ = quarantine.entries();
  }
  const auto at = quarantined_->find(file.sha256);
  if (at == quarantined_->end()) {
    file.steps.emplace_back("quarantine");
    return;
  }
  file.refusal = refusal_of(file, at->second);
}

ProbeCache& LoadingPipeline::cache() {
  if (!cache_) {
    cache_.emplace(cache_folder(), Probe::find_executable());
  }
  return *cache_;
}

void LoadingPipeline::stage(Known& known) {
  LibraryFile& file = *known.file;
  const Timer timer(times_.stage);
  try {
    const Bundle& bundle = bundle_of(known);
    const StagingArea area(cache().staging_folder());
    file.staged = area.stage(bundle, known.bytes);
    file.steps.emplace_back("stage");
  } catch (const ElfError& e) {
    file.refusal = Refusal{"stage", e.what(), ""};
  }
  known.bytes = {};
  known.bundle.reset();
}

void LoadingPipeline::admit(const std::vector<std::shared_ptr<LibraryFile>>& files) {
  std::vector<LibraryFile*> open;
  for (const auto& file : files) {
    if (file->refusal || !file->plugins.empty()) {
      continue;
    }
    if (file->staged.empty()) {
      stage(known_.at(file->path));
    }
    if (!file->refusal && !take_from_cache(*file)) {
      open.push_back(file.get());
    }
  }
  if (!open.empty()) {
    probe(std::move(open));
  }
}

bool LoadingPipeline::take_from_cache(LibraryFile& file) {
  const Timer timer(times_.cache);
  auto answer = cache().find(file.digest);
  if (!answer) {
    return false;
  }
  file.is_from_cache = true;
  take(file, std::move(*answer));
  return true;
}

void LoadingPipeline::probe(std::vector<LibraryFile*> files) {
  const Timer timer(times_.probe);
  const double patience = std::chrono::duration<double>(rules_.probe_timeout).count();
  const FolderLock guard(cache().guard(), patience * static_cast<double>(files.size()));
  // Whoever held the guard until now may have asked the same.
  const auto quarantined = Quarantine(state_folder()).entries();
  std::erase_if(files, [&](LibraryFile* file) {
    if (const auto at = quarantined.find(file->sha256); at != quarantined.end()) {
      file->refusal = refusal_of(*file, at->second);
      return true;
    }
    return take_from_cache(*file);
  });
  if (files.empty()) {
    return;
  }
  times_.probed += files.size();
  std::vector<ProbeRequest> requests;
  for (const LibraryFile* file : files) {
    requests.push_back({file->staged, 0, "", {}, file->sha256, file->path});
  }
  const InterruptsHeldBack later;
  const ProbeMark mark(state_folder());
  std::vector<ProbeAnswer> answers =
      Probe(cache().probe_executable(), rules_.probe_timeout, mark.path()).look(requests);
  for (size_t i = 0; i < files.size(); ++i) {
    LibraryFile& file = *files[i];
    if (answers[i].has_crashed) {
      put_into_quarantine(file, *answers[i].refusal, !answers[i].has_hung);
    } else if (!answers[i].refusal) {
      cache().keep(file.digest, answers[i]);
    }
    take(file, std::move(answers[i]));
  }
  StagingArea(cache().staging_folder()).remove_old(kMaxStagedBytes);
  cache().remove_old();
}

void LoadingPipeline::take(LibraryFile& file, ProbeAnswer answer) {
  if (!answer.refusal) {
    if (std::string problem = note_problem(*file.note, answer.plugins); !problem.empty()) {
      answer.refusal = Refusal{"descriptor", std::move(problem), ""};
    }
  }
  static constexpr const char* kProbeSteps[] = {"load", "query", "descriptor"};
  for (const char* step : kProbeSteps) {
    if (answer.refusal && answer.refusal->step == step) {
      break;
    }
    file.steps.emplace_back(step);
  }
  file.refusal = std::move(answer.refusal);
  if (file.refusal) {
    name_original(file.refusal->reason, file);
    return;
  }
  file.plugins = std::move(answer.plugins);
  file.stays_resident = answer.stays_resident;
  file.warnings.insert(file.warnings.end(), answer.warnings.begin(), answer.warnings.end());
  for (const auto& plugin : file.plugins) {
    if ((plugin->flags & CIUIC_FLAG_RELOADABLE) != 0 && file.stays_resident) {
      file.warnings.push_back(plugin->name +
                              " says RELOADABLE, but stays mapped after dlclose: it is not "
                              "believed");
    }
  }
}

std::vector<std::string> LoadingPipeline::validate(const std::vector<ValidateCall>& calls) {
  std::vector<std::string> refused(calls.size());
  std::vector<ProbeRequest> requests;
  std::vector<size_t> asked;
  for (size_t i = 0; i < calls.size(); ++i) {
    const ValidateCall& call = calls[i];
    if ((call.plugin.functions & kHasValidate) == 0) {
      continue;
    }
    ProbeRequest request{call.file.staged, call.plugin.kind,
                         call.plugin.name, validate_arguments(call.options, call.placement),
                         call.file.sha256, call.file.path};
    if (auto known = cache().find_validated(call.file.digest, request)) {
      refused[i] = std::move(*known);
    } else {
      requests.push_back(std::move(request));
      asked.push_back(i);
    }
  }
  if (requests.empty()) {
    return refused;
  }
  const Timer timer(times_.probe);
  const InterruptsHeldBack later;
  const ProbeMark mark(state_folder());
  std::vector<ProbeAnswer> answers =
      Probe(cache().probe_executable(), rules_.probe_timeout, mark.path()).validate(requests);
  for (size_t k = 0; k < asked.size(); ++k) {
    const ValidateCall& call = calls[asked[k]];
    if (answers[k].refusal) {
      // The library itself loads: it is one set of options that it does not survive. So no
      // quarantine, and nothing is kept.
      throw Failure(ExitCode::Plugin,
                    std::string(kind_name(call.plugin.kind)) + " plugin \"" + call.plugin.name +
                        "\" cannot check its options: " + answers[k].refusal->text(),
                    "this is a bug in the plugin", {{"file", call.file.path}});
    }
    cache().keep_validated(call.file.digest, requests[k], answers[k].validated);
    refused[asked[k]] = std::move(answers[k].validated);
  }
  return refused;
}

}  // namespace ciuic::core
