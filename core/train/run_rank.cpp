// SPDX-License-Identifier: MIT
#include "core/train/run_rank.h"

#include <chrono>
#include <cmath>
#include <optional>
#include <unistd.h>

#include <ATen/Parallel.h>

#include <ciuic/error.hpp>

#include "core/launch/device_check.h"
#include "core/parallel/collective.h"
#include "core/parallel/local_rendezvous.h"
#include "core/plugin/archive_opener.h"
#include "core/plugin/trampoline/last_words.h"
#include "core/plugin/trampoline/watchdog.h"
#include "core/train/model_tokenizer.h"
#include "core/train/plugin_agreement.h"
#include "core/train/process_memory.h"
#include "core/train/run_data.h"
#include "core/train/stop_request.h"
#include "core/train/stopwatch.h"
#include "core/train/trainer.h"

namespace ciuic::core {
namespace {

using Clock = std::chrono::steady_clock;

/// Exit code of a rendezvous that failed: a stop is a stop, the rest is the environment.
Failure rendezvous_failure(const Error& e) {
  return Failure(e.code() == CIUIC_CANCELLED ? ExitCode::Stopped : ExitCode::Environment, e.what());
}

std::unique_ptr<Rendezvous> meet(const RankOptions& options, const RunPlan& plan, Log& log) {
  const bool is_auto = plan.config.run.rendezvous == "auto";
  if (options.is_launched && is_auto && options.identity.world == 1) {
    return std::make_unique<LocalRendezvous>();
  }
  RendezvousOptions request;
  request.rank = options.identity.rank;
  request.world = options.identity.world;
  request.address = is_auto ? "env://" : plan.config.run.rendezvous;
  request.run_id = options.run_id.empty() ? plan.hash() : options.run_id;
  request.timeout =
      std::chrono::duration_cast<std::chrono::milliseconds>(plan.config.communicator.timeout);
  request.stop = &StopRequest::flag();
  request.listen_socket = options.store_fd;
  request.progress = [&log](std::string_view what) { log.info(what); };
  try {
    return join(request);
  } catch (const Error& e) {
    throw rendezvous_failure(e);
  }
}

/// Rank 0 decides, everybody hears: small facts that all ranks must share before there is a
/// communicator.
std::string share(Rendezvous& rendezvous, const RankOptions& options, const std::string& key,
                  const std::string& mine, std::chrono::nanoseconds timeout) {
  if (options.identity.rank == 0) {
    rendezvous.set("run/" + key, mine);
    return mine;
  }
  try {
    if (auto value = rendezvous.get("run/" + key, timeout)) {
      return *value;
    }
  } catch (const Error& e) {
    throw rendezvous_failure(e);
  }
  throw Failure(ExitCode::Environment, "rank 0 did not say where the run goes on");
}

/// "" for a start from the beginning.
std::string choose_checkpoint(const RankOptions& options, const RunFolder& folder,
                              const ArchiveOpener& opener, Log& log) {
  if (options.resume == "none") {
    return "";
  }
  if (options.resume != "auto") {
    try {
      std::string path = resolve_model_path(options.resume);
      (void)opener.open(path);  // throws where nothing can be read from it
      return path;
    } catch (const Failure& failure) {
      throw Failure(failure.code(), "--resume " + options.resume + ": " + failure.what(),
                    failure.remedy(), failure.fields());
    }
  }
  return Checkpointing::find_resume(folder, opener, log).value_or("");
}

void warn_of_changes(const TrainState& state, const Session& session, Log& log) {
  if (const std::string changes = changed_settings(state.numerics, numerics_of(session));
      !changes.empty()) {
    log.warn("settings that move the loss differ from the checkpoint's: " + changes);
  }
}

int threads_of(const RunPlan& plan, const RankIdentity& identity) {
  const auto wanted = static_cast<int>(plan.config.run.threads);
  return wanted > 0 ? wanted : std::max(1, usable_cores() / identity.local_world);
}

void write_end(MetricsFile* metrics, int code, Clock::time_point begin,
               const std::vector<double>& peaks) {
  if (metrics != nullptr && metrics->has_begun()) {
    metrics->write(JsonLine("end")
                       .add("exit_code", code)
                       .add("seconds", seconds_since(begin))
                       .add("rss_peak_bytes", peaks));
  }
}

/// Peak of every rank, by a sum into a vector with one place each.
std::vector<double> gather_peaks(const Group& control) {
  std::vector<double> peaks(static_cast<size_t>(control.size()), 0.0);
  peaks[static_cast<size_t>(control.rank())] = static_cast<double>(peak_resident_bytes());
  reduce_in_place(control, peaks, {}, "memory peaks");
  return peaks;
}

std::vector<double> own_peak(const RankIdentity& identity) {
  std::vector<double> peaks(static_cast<size_t>(identity.world), std::nan(""));
  peaks[static_cast<size_t>(identity.rank)] = static_cast<double>(peak_resident_bytes());
  return peaks;
}

/// The failure with what the last line says of this rank: who, where, when.
Failure located(const std::exception& e, const RankIdentity& id, uint64_t step) {
  char host[256] = "unknown";
  gethostname(host, sizeof(host) - 1);
  Failure failure = to_failure(e);
  failure.with("rank", std::to_string(id.rank)).with("host", host);
  if (step > 0) {
    failure.with("step", std::to_string(step));
  }
  return failure;
}

void watch_calls(std::optional<Watchdog>& watchdog, const RunPlan& plan) {
  const std::chrono::nanoseconds limit = plan.config.plugins.call_timeout;
  if (limit.count() > 0) {
    constexpr auto kSlack = std::chrono::seconds(10);  // for the communicator to say it itself
    watchdog.emplace(limit, plan.collective_timeout() + kSlack,
                     [limit](const HungCall& call) { end_hung_rank(call, limit); });
  }
}

/// Both the log and what a dying rank says last.
void open_log(Log& log, const std::string& path) {
  log.open_file(path);
  set_last_words_log(path.c_str());
}

/// What rank 0 finds in the folder and everybody must know.
struct Beginning {
  std::optional<std::string> checkpoint;
  uint64_t attempt = 1;
};

Beginning agree_on_beginning(const RankOptions& options, const RunPlan& plan,
                             const RunFolder& folder, Rendezvous& rendezvous,
                             const ArchiveOpener& opener, const MetricsFile* metrics, Log& log) {
  std::string checkpoint;
  uint64_t attempt = 1;
  if (metrics != nullptr) {
    for (const std::string& warning : plan.warnings) {
      log.warn(warning);
    }
    for (const std::string& note : plan.notes) {
      log.info(note);
    }
    for (const std::string& path : sweep_unfinished(folder)) {
      log.info("removed an unfinished checkpoint: " + path);
    }
    checkpoint = choose_checkpoint(options, folder, opener, log);
    attempt = metrics->attempt();
  }
  // Rank 0 reads every byte of a checkpoint before it trusts it; the others wait for that as long as it takes.
  constexpr std::chrono::nanoseconds timeout = std::chrono::minutes(30);
  checkpoint = share(rendezvous, options, "checkpoint", checkpoint, timeout);
  attempt = std::stoull(share(rendezvous, options, "attempt", std::to_string(attempt), timeout));
  return {checkpoint.empty() ? std::nullopt : std::optional(checkpoint), attempt};
}

/// Loads; and when that went well, the folder is this run's: what it holds from here on says so.
TrainState load(Session& session, const Beginning& beginning, const RunFolder& folder,
                const ArchiveOpener& opener) {
  TrainState start = load_training_state(session, beginning.checkpoint, opener);
  if (session.is_first()) {
    for (const std::string& path : set_aside_above(folder, start.step)) {
      session.log().info("a checkpoint of later steps is set aside: " + path);
    }
    replace_file(folder.resolved_config(), session.plan().resolved());
    if (const std::string& tokenizer = session.plan().config.data.tokenizer; tokenizer != "bytes") {
      keep_tokenizer(tokenizer_file(tokenizer), folder.path());
    }
  }
  if (beginning.checkpoint && session.is_first()) {
    session.log().info("going on from " + *beginning.checkpoint + " (step " +
                       std::to_string(start.step) + ")");
    warn_of_changes(start, session, session.log());
  }
  return start;
}

void lap(const RankOptions& options, const char* part) {
  if (options.startup != nullptr) {
    options.startup->lap(part);
  }
}

/// What makes up for it when the communicator that the file names cannot serve here.
[[noreturn]] void refuse_communicator(NotServed refusal) {
  refusal.set_remedy("set communicator.plugin = \"auto\", which finds one that can");
  throw Failure(std::move(refusal));
}

/// When the communicator that "auto" chose cannot serve, which it tells all ranks alike, all go on
/// with what "auto" chooses without it.
void open_session(std::optional<Session>& session, RunPlan& plan, PlanRequest request,
                  const RankIdentity& id, Rendezvous& rendezvous, int threads, Log& log,
                  StartupClock* startup) {
  while (true) {
    try {
      session.emplace(plan, id, rendezvous, threads, log, startup);
      return;
    } catch (const NotServed& refusal) {
      const std::string used = plan.config.communicator.used();
      if (refusal.kind() != CIUIC_KIND_COMMUNICATOR) {
        throw;
      }
      if (!plan.config.communicator.is_auto()) {
        refuse_communicator(refusal);
      }
      request.refused_communicators.push_back({used, refusal.what()});
      RunPlan next = make_plan(request, log);
      if (next.config.communicator.used() == used) {
        throw;
      }
      plan = std::move(next);
    }
  }
}

}  // namespace

ExitCode run_rank(const RankOptions& options, Log& log) {
  const auto begin = Clock::now();
  const RankIdentity& id = options.identity;
  PlanRequest request = options.request;
  request.world = id.world;
  request.local_world = id.local_world;
  RunPlan plan = make_plan(request, log);
  check_device(plan.config.run.device);
  lap(options, "plugins");
  const int threads = threads_of(plan, id);
  at::set_num_threads(threads);

  // A launcher of ours has looked at the data and claimed the folder. Else that is rank 0's to do: the folder last, so
  // that a run which cannot start leaves nothing.
  const bool claims = id.rank == 0 && !options.is_launched;
  if (!options.is_launched) {
    open_data(plan,
              log);  // of every rank, so that nobody waits for a rendezvous with one who tokenizes
  }
  const std::unique_ptr<Rendezvous> rendezvous = meet(options, plan, log);
  const RunFolder folder = claims
                               ? RunFolder::claim(plan.config.run.output, options.resume == "none")
                               : RunFolder::join(plan.config.run.output);
  if (claims) {
    log.info("run folder: " + folder.path());
  }
  std::optional<MetricsFile> file;
  if (id.rank == 0) {
    open_log(log, folder.log_of_rank(0));
    file.emplace(folder.metrics());
  }
  MetricsFile* metrics = file ? &*file : nullptr;
  const ArchiveOpener opener(plan.catalog, log);
  std::optional<Watchdog> watchdog;
  watch_calls(watchdog, plan);
  std::optional<Session> session;
  std::optional<Trainer> trainer;
  try {
    agree_on_plugins(*rendezvous, id.rank, plugin_digests(plan), plan.config.communicator.timeout);
    const Beginning beginning =
        agree_on_beginning(options, plan, folder, *rendezvous, opener, metrics, log);
    if (id.rank != 0) {
      open_log(log, folder.log_of_rank(id.rank));  // rank 0 has spoken, so the folder is there
    }
    log.debug("rank " + std::to_string(id.rank) + " of " + std::to_string(id.world) + ", " +
              std::to_string(threads) + " threads, " +
              rendezvous->members()[static_cast<size_t>(id.rank)]);
    lap(options, "rendezvous");
    open_session(session, plan, request, id, *rendezvous, threads, log, options.startup);
    if (id.rank == 0) {
      log.info(plan.communicator_choice);
    }
    lap(options, "session");
    if (options.watches_numbers) {
      session->watch_numbers(folder.path());
    }
    trainer.emplace(*session, folder, metrics, beginning.attempt,
                    load(*session, beginning, folder, opener),
                    TrainerOptions{options.is_quiet, options.steps_on_lines, options.observer,
                                   options.startup});
    lap(options, "model");
    const ExitCode code = trainer->run();
    if (options.observer != nullptr && code == ExitCode::Done) {
      options.observer->finish(*session, *options.startup);
    }
    const std::vector<double> peaks = gather_peaks(session->control());
    // The end is written when no plugin is left that could make it another one.
    session->finish();
    trainer.reset();
    session.reset();
    write_end(metrics, static_cast<int>(code), begin, peaks);
    return code;
  } catch (const std::exception& e) {
    const Failure failure = located(e, id, trainer ? trainer->state().step : 0);
    log.debug(format(failure));
    if (session) {
      session->control().plugin().abort(CIUIC_ABORTED);
      trainer.reset();
      session.reset();
    }
    try {
      write_end(metrics, static_cast<int>(failure.code()), begin, own_peak(id));
    } catch (const Failure& second) {
      log.warn(second.what());  // a full disk has no room for the end line either
    }
    throw failure;
  }
}

}  // namespace ciuic::core
