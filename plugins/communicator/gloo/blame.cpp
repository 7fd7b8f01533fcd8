// SPDX-License-Identifier: MIT
#include "blame.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "communicator/liveness.h"
#include "communicator/text.h"

namespace ciuic::plugins::gloo {
namespace {

constexpr const char* kSomebodyFailed = "failed/any";
std::string failed_key(int rank) { return "failed/" + std::to_string(rank); }

}  // namespace

Blame::Blame(KeyValue kv, std::vector<Member> members, int rank)
    : kv_(std::move(kv)), members_(std::move(members)), rank_(rank) {}

std::string Blame::look_around() const {
  for (const Member& member : members_) {
    if (!death_of(member.identity).empty()) {
      return "a peer's process has ended";
    }
  }
  try {
    return kv_.get(kSomebodyFailed, Clock::now()) ? "the group has failed elsewhere" : "";
  } catch (const Error&) {
    return "";  // the store is gone: that alone ends no operation
  }
}

std::optional<Error> Blame::find_dead(const Error& cause) const {
  for (const Member& member : members_) {
    if (const std::string death = death_of(member.identity); !death.empty()) {
      return Error(CIUIC_UNAVAILABLE,
                   std::string(cause.what()) + "; rank " + std::to_string(member.global_rank) +
                       " is gone: " + death,
                   member.global_rank);
    }
  }
  return std::nullopt;
}

void Blame::announce(const Error& cause) const {
  kv_.set(failed_key(rank_), std::to_string(cause.code()) + " " + cause.what());
  kv_.set(kSomebodyFailed, std::to_string(rank_));
}

bool Blame::waits_for(const Failure& failure, int rank) const {
  const std::vector<int>& partners = failure.partners;
  return rank != rank_ &&
         (partners.empty() || std::find(partners.begin(), partners.end(), rank) != partners.end());
}

Blame::Hearing Blame::listen(const Failure& failure, Clock::time_point deadline) const {
  Hearing heard;
  for (int r = 0; r < static_cast<int>(members_.size()); ++r) {
    if (r == rank_) {
      continue;
    }
    const Member& member = members_[static_cast<size_t>(r)];
    // One that this operation does not wait for may have noticed nothing: it is asked once.
    const bool matters = waits_for(failure, r);
    const auto said = kv_.get(failed_key(r), matters ? deadline : Clock::now());
    if (!said && matters) {
      heard.silent.push_back(member.global_rank);
      const std::string stop = stop_of(member.identity);
      heard.stopped += stop.empty() ? "" : " (" + stop + ")";
    }
    if (!said) {
      continue;
    }
    const int code = std::atoi(said->c_str());
    const std::string text = said->substr(said->find(' ') + 1);
    if (code != CIUIC_DEADLINE && code != CIUIC_UNAVAILABLE) {
      heard.gave_up = Error(CIUIC_UNAVAILABLE,
                            std::string(failure.cause.what()) + "; rank " +
                                std::to_string(member.global_rank) + " gave up: " + text,
                            member.global_rank);
      return heard;
    }
    heard.deadline_passed = heard.deadline_passed || code == CIUIC_DEADLINE;
    if (heard.other.empty()) {
      heard.other = "; rank " + std::to_string(member.global_rank) + " says: " + text;
    }
  }
  return heard;
}

Error Blame::find_culprit(const Failure& failure, Clock::time_point deadline) const {
  const Hearing heard = listen(failure, deadline);
  if (heard.gave_up) {
    return *heard.gave_up;
  }
  const Error& cause = failure.cause;
  if (const auto dead = find_dead(cause)) {
    return *dead;
  }
  const std::string text = cause.what();
  const int32_t code = heard.deadline_passed || cause.code() == CIUIC_DEADLINE
                           ? int32_t{CIUIC_DEADLINE}
                           : cause.code();
  if (heard.silent.empty()) {  // all are there, but perhaps not in the same operation
    return Error(code, text + heard.other, cause.peer());
  }
  return Error(code, text + "; no sign of " + name_ranks(heard.silent) + heard.stopped,
               heard.silent.front());
}

Error Blame::guess(const Failure& failure) const {
  const Error& cause = failure.cause;
  int32_t only = cause.peer();
  int num_partners = 0;
  for (int r = 0; r < static_cast<int>(members_.size()); ++r) {
    const Member& member = members_[static_cast<size_t>(r)];
    if (const std::string stop = stop_of(member.identity); !stop.empty()) {
      const std::string text =
          std::string(cause.what()) + "; no sign of rank " + std::to_string(member.global_rank);
      return Error(cause.code(), text + ": " + stop, member.global_rank);
    }
    if (waits_for(failure, r)) {
      only = ++num_partners == 1 ? member.global_rank : cause.peer();
    }
  }
  return Error(cause.code(), cause.what(), only);
}

}  // namespace ciuic::plugins::gloo
