// SPDX-License-Identifier: MIT
#include "messages.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <ciuic/view.hpp>

namespace ciuic::plugins::shm {
namespace {

bool is_send(const Task& task) { return task.request.op == CIUIC_OP_SEND; }

int64_t bytes_of(const Request& r) {
  return r.op == CIUIC_OP_SEND ? r.in_part(0).bytes : r.out_part(0).bytes;
}

std::string size_text(int64_t bytes, ciuic_dtype dtype) {
  return std::to_string(bytes) + " bytes of " + dtype_name(dtype);
}

void copy(char* to, const char* from, int64_t bytes) {
  if (bytes > 0) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
  }
}

int free_offer(const Channel& channel) {
  for (int i = 0; i < kOffers; ++i) {
    if (channel.offers[i].state.load(std::memory_order_acquire) == OfferState::Free) {
      return i;
    }
  }
  return -1;
}

/// The oldest one with that tag that no receive has matched, of the first `num_offered`.
int oldest_offer(const Channel& channel, uint32_t tag, uint64_t num_offered) {
  int oldest = -1;
  for (int i = 0; i < kOffers; ++i) {
    const Offer& offer = channel.offers[i];
    if (offer.state.load(std::memory_order_acquire) == OfferState::Offered && offer.tag == tag &&
        offer.number < num_offered &&
        (oldest < 0 || offer.number < channel.offers[oldest].number)) {
      oldest = i;
    }
  }
  return oldest;
}

}  // namespace

Messages::Messages(Board& board, Ended ended)
    : board_(board), ended_(std::move(ended)), peers_(static_cast<size_t>(board.world())) {}

void Messages::post(Task task) {
  Peer& peer = peers_[static_cast<size_t>(task.request.peer)];
  ++num_open_;
  if (is_send(task)) {
    peer.sends.push_back({std::move(task), -1, 0});
  } else {
    peer.receives.push_back({std::move(task), -1, 0});
  }
}

bool Messages::advance() {
  bool has_moved = false;
  for (int p = 0; num_open_ > 0 && p < board_.world(); ++p) {
    const Peer& peer = peers_[static_cast<size_t>(p)];
    bool moved = false;
    if (!peer.sends.empty()) {
      moved = offer(p);
      moved = pump(p) || moved;
    }
    if (!peer.receives.empty()) {
      moved = match(p) || moved;
      moved = drain(p) || moved;
    }
    if (moved) {
      board_.ring(p);
    }
    has_moved = has_moved || moved;
  }
  return has_moved;
}

// ---- the sender ----

/// In the order of sending: when there is no place for one, those behind it wait too.
bool Messages::offer(int p) {
  Channel& channel = board_.channel(board_.rank(), p);
  Peer& peer = peers_[static_cast<size_t>(p)];
  bool moved = false;
  for (auto sending = peer.sends.begin(); sending != peer.sends.end();) {
    if (sending->offer >= 0) {
      ++sending;
      continue;
    }
    const int place = free_offer(channel);
    if (place < 0) {
      break;
    }
    const uint64_t number = channel.num_offered.load(std::memory_order_relaxed);
    const Request& r = sending->task.request;
    Offer& made = channel.offers[place];
    made.tag = r.tag;
    made.number = number;
    made.dtype = r.dtype;
    made.bytes = bytes_of(r);
    const bool is_small = made.bytes <= kEagerBytes;
    if (is_small) {
      copy(channel.eager[place], r.in, made.bytes);
    }
    made.state.store(OfferState::Offered, std::memory_order_release);
    channel.num_offered.store(number + 1, std::memory_order_release);
    moved = true;
    sending->offer = place;
    if (is_small) {
      end(sending->task);
      sending = peer.sends.erase(sending);
    } else {
      ++sending;
    }
  }
  return moved;
}

bool Messages::pump(int p) {
  Channel& channel = board_.channel(board_.rank(), p);
  Peer& peer = peers_[static_cast<size_t>(p)];
  const int active = static_cast<int>(channel.active.load(std::memory_order_acquire)) - 1;
  const auto sending =
      std::find_if(peer.sends.begin(), peer.sends.end(),
                   [active](const Sending& s) { return s.offer >= 0 && s.offer == active; });
  if (sending == peer.sends.end()) {
    return false;
  }
  const Request& r = sending->task.request;
  const int64_t bytes = bytes_of(r);
  bool moved = false;
  uint64_t written = channel.written.load(std::memory_order_relaxed);
  while (sending->sent < bytes &&
         written - channel.read.load(std::memory_order_acquire) < uint64_t{kCells}) {
    const int64_t part = std::min(kCellBytes, bytes - sending->sent);
    copy(channel.cells[written % kCells], r.in + sending->sent, part);
    sending->sent += part;
    channel.written.store(++written, std::memory_order_release);
    moved = true;
  }
  if (sending->sent == bytes) {
    end(sending->task);
    peer.sends.erase(sending);
  }
  return moved;
}

// ---- the receiver ----

/// All receives look at the same offers. One that comes meanwhile waits for the next round: else a
/// later receive could find what an earlier one of the same tag has just missed.
bool Messages::match(int p) {
  Channel& channel = board_.channel(p, board_.rank());
  Peer& peer = peers_[static_cast<size_t>(p)];
  const uint64_t num_offered = channel.num_offered.load(std::memory_order_acquire);
  bool moved = false;
  for (auto receiving = peer.receives.begin(); receiving != peer.receives.end();) {
    const int place = receiving->offer >= 0
                          ? -1
                          : oldest_offer(channel, receiving->task.request.tag, num_offered);
    if (place >= 0) {
      receiving->offer = place;
      moved = accept(p, *receiving) || moved;
    }
    const bool is_done = place >= 0 && bytes_of(receiving->task.request) <= kEagerBytes;
    receiving = is_done ? peer.receives.erase(receiving) : std::next(receiving);
  }
  return moved;
}

/// True when the sender must know of it.
bool Messages::accept(int p, Receiving& receiving) {
  Channel& channel = board_.channel(p, board_.rank());
  Offer& offer = channel.offers[receiving.offer];
  const Request& r = receiving.task.request;
  if (!same(offer.dtype, r.dtype) || offer.bytes != bytes_of(r)) {
    throw Error(CIUIC_INVALID, r.what + ": the message that was sent has " +
                                   size_text(offer.bytes, offer.dtype) + ", expected " +
                                   size_text(bytes_of(r), r.dtype));
  }
  if (offer.bytes > kEagerBytes) {
    offer.state.store(OfferState::Wanted, std::memory_order_relaxed);
    return false;
  }
  copy(r.out, channel.eager[receiving.offer], offer.bytes);
  offer.state.store(OfferState::Free, std::memory_order_release);
  end(receiving.task);
  return true;
}

bool Messages::drain(int p) {
  Channel& channel = board_.channel(p, board_.rank());
  Peer& peer = peers_[static_cast<size_t>(p)];
  const auto active = static_cast<int>(channel.active.load(std::memory_order_relaxed)) - 1;
  const auto receiving = std::find_if(
      peer.receives.begin(), peer.receives.end(),
      [active](const Receiving& r) { return r.offer >= 0 && (active < 0 || r.offer == active); });
  if (receiving == peer.receives.end()) {
    return false;
  }
  if (active < 0) {  // the cells are free: this one may come
    channel.active.store(static_cast<uint32_t>(receiving->offer) + 1, std::memory_order_release);
    return true;
  }
  const Request& r = receiving->task.request;
  const int64_t bytes = bytes_of(r);
  bool moved = false;
  uint64_t read = channel.read.load(std::memory_order_relaxed);
  while (read < channel.written.load(std::memory_order_acquire)) {
    const int64_t part = std::min(kCellBytes, bytes - receiving->received);
    copy(r.out + receiving->received, channel.cells[read % kCells], part);
    receiving->received += part;
    channel.read.store(++read, std::memory_order_release);
    moved = true;
  }
  if (receiving->received == bytes) {
    channel.active.store(0, std::memory_order_relaxed);
    channel.offers[receiving->offer].state.store(OfferState::Free, std::memory_order_release);
    end(receiving->task);
    peer.receives.erase(receiving);
  }
  return moved;
}

// ---- what is open ----

void Messages::end(const Task& task) {
  --num_open_;
  ended_(task);
}

bool Messages::has_open(int p) const {
  const Peer& peer = peers_[static_cast<size_t>(p)];
  return !peer.sends.empty() || !peer.receives.empty();
}

const Task* Messages::most_urgent() const {
  const Task* urgent = nullptr;
  const auto look = [&urgent](const Task& task) {
    urgent = urgent == nullptr || task.deadline < urgent->deadline ? &task : urgent;
  };
  for (const Peer& peer : peers_) {
    for (const Sending& s : peer.sends) {
      look(s.task);
    }
    for (const Receiving& r : peer.receives) {
      look(r.task);
    }
  }
  return urgent;
}

std::vector<Task> Messages::take_all() {
  std::vector<Task> all;
  for (Peer& peer : peers_) {
    for (Sending& s : peer.sends) {
      all.push_back(std::move(s.task));
    }
    for (Receiving& r : peer.receives) {
      all.push_back(std::move(r.task));
    }
    peer.sends.clear();
    peer.receives.clear();
  }
  num_open_ = 0;
  return all;
}

}  // namespace ciuic::plugins::shm
