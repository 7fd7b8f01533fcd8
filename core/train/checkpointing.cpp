// SPDX-License-Identifier: MIT
#include "core/train/checkpointing.h"

#include <filesystem>
#include <set>
#include <unistd.h>

#include <c10/core/InferenceMode.h>

#include "core/parallel/collective.h"
#include "core/train/archive_model.h"
#include "core/train/model_files.h"
#include "core/train/tensor_bridge.h"

namespace ciuic::core {
namespace {

namespace fs = std::filesystem;

/// Plugins whose own state (a loss scale, a ramp) goes into a checkpoint beside the tensors, each
/// under its kind.
std::vector<std::pair<const Instance*, std::string>> stateful(const Session& session) {
  return {{&session.precision().instance(), "precision/"},
          {&session.scheduler().instance(), "batch_scheduler/"}};
}

std::string with_epoch(std::string tag, uint64_t epoch, uint64_t step) {
  const auto replace = [&tag](const std::string& what, const std::string& by) {
    for (size_t at = tag.find(what); at != std::string::npos; at = tag.find(what, at + by.size())) {
      tag.replace(at, what.size(), by);
    }
  };
  replace("{epoch}", std::to_string(epoch));
  replace("{step}", std::to_string(step));
  return tag;
}

/// Runs `body` on all ranks; where it failed on one, all throw. Collective.
template <typename Body>
void agree_on(const Session& session, const char* what, Body&& body) {
  std::optional<Failure> mine;
  try {
    body();
  } catch (const std::exception& e) {
    mine = to_failure(e);
  }
  agree(session.control(), mine ? &*mine : nullptr, what);
}

bool is_frozen(const ciuic_param& parameter) { return (parameter.flags & CIUIC_PARAM_FROZEN) != 0; }

/// Where a parameter's numbers are kept, and in which type: a master is what is trained.
std::pair<std::string, ciuic_dtype> state_key(const ciuic_param& parameter) {
  const std::string name(to_view(parameter.name));
  const bool has_master = !is_frozen(parameter) && !same(parameter.master, parameter.value);
  return has_master ? std::pair("master/" + name, parameter.master)
                    : std::pair("value/" + name, parameter.value);
}

/// The names of optimizer states in a checkpoint that this run's rule does not have, or of the
/// rule's that the checkpoint lacks: what a swapped rule forgets and begins anew.
void warn_of_moments(const TensorSource& source, Session& session) {
  constexpr std::string_view kPrefix = "moment/";
  std::set<std::string> saved, wanted;
  for (const ArchiveEntry& entry : source.entries()) {
    if (entry.key.starts_with(kPrefix)) {
      saved.insert(
          entry.key.substr(kPrefix.size(), entry.key.find('/', kPrefix.size()) - kPrefix.size()));
    }
  }
  for (const ciuic_param& p : session.parameters()) {
    if (p.tied_to < 0 && !is_frozen(p)) {
      for (const ciuic_state_spec& spec : optimizer_state(session.optimizer(), p)) {
        wanted.insert(std::string(to_view(spec.name)));
      }
    }
  }
  for (const std::string& name : saved) {
    if (!wanted.contains(name)) {
      session.log().warn("the checkpoint's optimizer state " + name + " is not used: optimizer " +
                         session.optimizer().name() + " has none of that name");
    }
  }
  for (const std::string& name : wanted) {
    if (!saved.contains(name)) {
      session.log().warn("optimizer " + session.optimizer().name() +
                         " begins with fresh state: the "
                         "checkpoint has no " +
                         name);
    }
  }
}

}  // namespace

Checkpointing::Checkpointing(Session& session, const RunFolder& folder)
    : session_(session), folder_(folder) {}

bool Checkpointing::is_due(const TrainState& before, const TrainState& after) const {
  const Interval every = session_.plan().config.checkpoint.every;
  switch (every.unit) {
    case Interval::Unit::Never:
      return false;
    case Interval::Unit::Steps:
      return after.step % static_cast<uint64_t>(every.count) == 0;
    case Interval::Unit::Epochs: {
      const uint64_t epoch_samples =
          static_cast<uint64_t>(session_.data().train_rows()) * static_cast<uint64_t>(every.count);
      return before.samples / epoch_samples != after.samples / epoch_samples;
    }
    case Interval::Unit::Time:
      return session_.is_first() &&
             std::chrono::steady_clock::now() - last_save_ >= std::chrono::nanoseconds(every.count);
  }
  return false;
}

std::vector<ArchiveEntry> Checkpointing::entries(const std::string& train_json,
                                                 const std::string& config_json) const {
  std::vector<ArchiveEntry> all;
  const auto add = [&all](std::string key, ciuic_dtype dtype, std::vector<int64_t> shape) {
    int64_t elements = 1;
    for (const int64_t s : shape) {
      elements *= s;
    }
    all.push_back({std::move(key), false, dtype, std::move(shape),
                   static_cast<uint64_t>(elements * dtype_bytes(dtype))});
  };
  for (const ciuic_param& p : session_.all_parameters()) {
    if (p.tied_to >= 0) {
      continue;  // a tied one is kept once, under its root's name
    }
    const std::vector<int64_t> shape(p.global_shape, p.global_shape + p.ndim);
    const auto [key, dtype] = state_key(p);
    add(key, dtype, shape);
    if (is_frozen(p)) {
      continue;
    }
    for (const ciuic_state_spec& spec : optimizer_state(session_.optimizer(), p)) {
      const bool like_parameter = spec.granule == 1 && spec.per_granule == 1;
      add("moment/" + std::string(to_view(spec.name)) + "/" + std::string(to_view(p.name)),
          spec.dtype,
          like_parameter ? shape
                         : std::vector<int64_t>{p.num_elements / spec.granule * spec.per_granule});
    }
  }
  for (const BufferSpec& buffer : buffer_specs(session_.plan().model)) {
    add("value/" + buffer.name, kF32, buffer.shape);
  }
  for (const auto& [instance, prefix] : stateful(session_)) {
    save_state(
        *instance,
        [&, p = prefix](std::string_view key, const ciuic_place& place, const ciuic_tensor& t) {
          add(p + std::string(key), t.t.dtype,
              {place.global_shape, place.global_shape + place.ndim});
        },
        [&, p = prefix](std::string_view key, std::string_view bytes) {
          all.push_back({p + std::string(key), true, {}, {}, bytes.size()});
        });
  }
  all.push_back({"config.json", true, {}, {}, config_json.size()});
  all.push_back({"train.json", true, {}, {}, train_json.size()});
  return all;
}

void Checkpointing::put_all(const Archive& archive, const std::string& train_json,
                            const std::string& config_json) const {
  const auto put = [&archive](std::string_view key, const ciuic_place& place,
                              const ciuic_tensor& tensor) { archive.put(key, place, tensor); };
  save_state(
      session_.sharding().instance(), put,
      [&archive](std::string_view key, std::string_view bytes) { archive.put_blob(key, bytes); });
  if (!session_.is_first()) {
    return;
  }
  for (const auto& [instance, prefix] : stateful(session_)) {
    save_state(
        *instance,
        [&, p = prefix](std::string_view key, const ciuic_place& place,
                        const ciuic_tensor& tensor) {
          archive.put(p + std::string(key), place, tensor);
        },
        [&, p = prefix](std::string_view key, std::string_view bytes) {
          archive.put_blob(p + std::string(key), bytes);
        });
  }
  for (const auto& [name, bias] : session_.model().expert_biases()) {
    const Place place(bias.sizes().vec());
    const at::Tensor whole = bias.cpu().contiguous();
    archive.put("value/" + name, place.c(), to_abi(whole, CIUIC_TENSOR_READ_ONLY).c());
  }
  archive.put_blob("config.json", config_json);
  archive.put_blob("train.json", train_json);
}

void Checkpointing::save(const TrainState& state, uint64_t epoch) {
  const auto begin = std::chrono::steady_clock::now();
  const Span span(session_.events(), CIUIC_CATEGORY_CHECKPOINT, "save", state.step);
  const std::string uri = folder_.checkpoint_of_step(state.step);
  const std::string config_json = session_.plan().model.to_json().dump(2);
  const std::string train_json = state.to_json();

  std::optional<Archive> archive;
  agree_on(session_, "opening the checkpoint", [&] {
    archive.emplace(session_.checkpoint().begin(uri, state.step, entries(train_json, config_json)));
  });
  agree_on(session_, "writing the checkpoint", [&] { put_all(*archive, train_json, config_json); });
  archive->commit();  // agrees on its own
  archive.reset();
  if (session_.is_first()) {
    tidy(uri, epoch, state.step);
  }
  last_save_ = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(last_save_ - begin).count();
  session_.log().debug("saved " + uri + " in " + std::to_string(seconds) + " s");
}

void Checkpointing::tidy(const std::string& newest, uint64_t epoch, uint64_t step) const {
  const CheckpointSection& config = session_.plan().config.checkpoint;
  const std::string name = fs::path(newest).filename();
  replace_file(folder_.checkpoints() + "/latest", name + "\n");
  if (!config.tag.empty()) {
    const std::string link = folder_.checkpoints() + "/" + with_epoch(config.tag, epoch, step);
    const std::string aside = link + ".partial";
    std::error_code ec;
    fs::remove(aside, ec);
    fs::create_directory_symlink(name, aside, ec);
    if (!ec && (!fs::exists(fs::symlink_status(link)) || fs::is_symlink(link))) {
      fs::rename(aside, link, ec);
    } else if (!ec) {
      fs::remove(aside, ec);
      ec = std::make_error_code(std::errc::file_exists);
    }
    if (ec) {
      session_.log().warn("cannot name the checkpoint " + link + ": " + ec.message());
    }
  }
  if (config.keep == 0) {
    return;
  }
  const auto all = checkpoints_in(folder_.path());
  for (size_t i = static_cast<size_t>(config.keep); i < all.size(); ++i) {
    try {
      session_.checkpoint().remove(all[i].second);
    } catch (const Failure& failure) {
      session_.log().warn("an old checkpoint stays: " + std::string(failure.what()));
    }
  }
}

std::optional<std::string> Checkpointing::find_resume(const RunFolder& folder,
                                                      const ArchiveOpener& opener, Log& log) {
  for (const auto& [step, path] : checkpoints_in(folder.path())) {
    try {
      opener.open(path)->verify();
      return path;
    } catch (const Failure& failure) {
      log.warn("skipping a checkpoint that does not verify: " + path + ": " + failure.what());
    }
  }
  return std::nullopt;
}

TomlEntries numerics_of(const Session& session) {
  TomlEntries all = session.plan().numerics();
  all.emplace_back("data: tokens", std::to_string(session.data().num_tokens()));
  if (const std::string& tokenizer = session.data().tokenizer_sha256(); !tokenizer.empty()) {
    all.emplace_back("data: tokenizer", tokenizer);
  }
  all.emplace_back("data: training rows", std::to_string(session.data().train_rows()));
  return all;
}

TrainState load_training_state(Session& session, const std::optional<std::string>& checkpoint,
                               const ArchiveOpener& opener) {
  const c10::InferenceMode no_autograd;
  const RunConfig& config = session.plan().config;
  if (!checkpoint && config.model.from.empty()) {
    load_state(session.sharding().instance(),
               InitialValues(session.plan().model, static_cast<uint64_t>(config.run.seed)));
    return {};
  }
  const OpenArchive archive = opener.open(checkpoint ? *checkpoint : config.model.from);
  const ArchiveSource source(*archive);
  if (checkpoint) {
    check_same_model(*archive, session.plan().model);
  }
  check_tensors(source, session.plan().model, archive->uri());
  if (!checkpoint) {
    // One rank looks: what it reads is as large as the embedding and the head, more than once.
    agree_on(session, "comparing tensors that the folder repeats", [&] {
      if (session.is_first()) {
        check_copies(source, session.plan().model, archive->uri());
      }
    });
  }
  load_state(session.sharding().instance(), source);
  load_expert_biases(source, session.model().expert_biases());
  if (!checkpoint) {
    return {};
  }
  if (session.is_first()) {
    warn_of_moments(source, session);
  }
  for (const auto& [instance, prefix] : stateful(session)) {
    load_state(*instance, source, prefix);
  }
  const auto train_json = source.blob("train.json");
  if (!train_json) {
    throw Failure(ExitCode::Storage, "it has no train.json, so training cannot go on from it",
                  "start from its weights with model.from", {{"file", archive->uri()}});
  }
  return TrainState::from_json(*train_json, archive->uri());
}

}  // namespace ciuic::core
