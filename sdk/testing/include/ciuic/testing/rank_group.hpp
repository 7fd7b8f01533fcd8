// SPDX-License-Identifier: MIT
//
// Ranks as threads of one process: each has a host of its own with all reference services, and they
// share the groups "world", "data", "control", and those that the test adds.
//
//   RankGroup ranks(3);
//   ranks.run([&](Rank& rank) { auto sharding = ddp.create(rank.host, {}, rank.seat()); ... });
#pragma once

#include <algorithm>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <ciuic/abi/services.h>
#include <ciuic/testing/loaded_plugin.hpp>
#include <ciuic/testing/reference_communicator.hpp>
#include <ciuic/testing/reference_metrics.hpp>
#include <ciuic/testing/reference_tensor.hpp>
#include <ciuic/testing/reference_threads.hpp>
#include <ciuic/testing/test_host.hpp>

namespace ciuic::testing {

/// One rank's host, services and groups.
class Rank {
 public:
  Rank(int rank, int world)
      : threads(host.host()), tensor(host.host()), rank_(rank), world_(world) {
    host.offer("ciuic.threads", threads.table());
    host.offer("ciuic.tensor", tensor.table());
    host.offer("ciuic.metrics", metrics.table());
    comm_.struct_size = sizeof(comm_);
    comm_.ctx = this;
    comm_.find = [](void* ctx, ciuic_str name, const ciuic_group** out) {
      return from(ctx).found(to_view(name), from(ctx).find(to_view(name)), out);
    };
    comm_.by_id = [](void* ctx, uint32_t id, const ciuic_group** out) {
      const auto& groups = from(ctx).groups_;
      const auto at =
          std::find_if(groups.begin(), groups.end(), [id](const Group& g) { return g.c.id == id; });
      return from(ctx).found(std::to_string(id), at == groups.end() ? nullptr : &at->c, out);
    };
    comm_.split = [](void* ctx, uint32_t parent, const ciuic_split* request,
                     const ciuic_group** out) {
      return guard(from(ctx).host.host(), [&] { *out = from(ctx).split(parent, *request); });
    };
    host.offer("ciuic.comm", &comm_);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  TestHost host;
  ReferenceThreads threads;
  ReferenceTensor tensor;
  ReferenceMetrics metrics;

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int world() const noexcept { return world_; }
  [[nodiscard]] Seat seat() const noexcept { return {rank_, world_, {CIUIC_DEVICE_CPU, 0}}; }
  [[nodiscard]] const ciuic_group* find(std::string_view name) const {
    const auto at = std::find_if(groups_.begin(), groups_.end(),
                                 [&](const Group& g) { return g.name == name; });
    return at == groups_.end() ? nullptr : &at->c;
  }
  [[nodiscard]] const ciuic_group& group(std::string_view name) const { return *find(name); }
  /// All groups as this rank sees them.
  [[nodiscard]] std::vector<ciuic_group> groups() const {
    std::vector<ciuic_group> out;
    for (const Group& g : groups_) {
      out.push_back(g.c);
    }
    return out;
  }

  const ciuic_group& join(std::string name, std::vector<int32_t> ranks,
                          std::unique_ptr<Communicator> end) {
    Group& g = groups_.emplace_back();
    g.name = std::move(name);
    g.ranks = std::move(ranks);
    g.nodes.assign(g.ranks.size(), 0);
    g.end = std::move(end);
    const auto self = std::find(g.ranks.begin(), g.ranks.end(), rank_) - g.ranks.begin();
    g.c.struct_size = sizeof(g.c);
    g.c.id = static_cast<uint32_t>(groups_.size());
    g.c.rank = static_cast<int32_t>(self);
    g.c.size = static_cast<int32_t>(g.ranks.size());
    g.c.ranks = g.ranks.data();
    g.c.nodes = g.nodes.data();
    g.c.name = to_str(g.name);
    g.c.vt = &Communicator::table();
    g.c.self = to_handle(g.end.get());
    return g.c;
  }

 private:
  struct Group {
    std::string name;
    std::vector<int32_t> ranks, nodes;
    std::unique_ptr<Communicator> end;
    ciuic_group c{};
  };
  static Rank& from(void* ctx) { return *static_cast<Rank*>(ctx); }

  ciuic_status* found(std::string_view name, const ciuic_group* group,
                      const ciuic_group** out) const {
    *out = group;
    return group != nullptr ? nullptr
                            : host.host().status(CIUIC_NOT_FOUND, "no group " + std::string(name));
  }
  const ciuic_group* split(uint32_t parent, const ciuic_split& request) {
    const auto at = std::find_if(groups_.begin(), groups_.end(),
                                 [&](const Group& g) { return g.c.id == parent; });
    if (at == groups_.end()) {
      throw Error(CIUIC_NOT_FOUND, "no group " + std::to_string(parent));
    }
    std::vector<int32_t> ranks;
    for (uint32_t i = 0; i < request.count; ++i) {
      ranks.push_back(at->ranks[static_cast<size_t>(request.ranks[i])]);
    }
    std::unique_ptr<Communicator> end = at->end->split(request);
    return end == nullptr
               ? nullptr
               : &join(std::string(to_view(request.name)), std::move(ranks), std::move(end));
  }

  int rank_;
  int world_;
  std::deque<Group> groups_;
  ciuic_comm_service comm_{};
};

class RankGroup {
 public:
  explicit RankGroup(int world) {
    std::vector<int32_t> all;
    for (int r = 0; r < world; ++r) {
      all.push_back(r);
      ranks_.push_back(std::make_unique<Rank>(r, world));
    }
    for (const char* name : {"world", "data", "control"}) {
      add_group(name, {all});
    }
  }

  [[nodiscard]] int world() const noexcept { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] Rank& rank(int r) { return *ranks_[static_cast<size_t>(r)]; }
  /// Where the ranks of a group's first part meet.
  [[nodiscard]] Meeting& meeting(const std::string& name) { return *meetings_.at(name); }

  /// A group that cuts the world into parts, as "expert_data" does. Before run.
  void add_group(const std::string& name, const std::vector<std::vector<int32_t>>& parts) {
    for (const std::vector<int32_t>& part : parts) {
      const auto meeting = std::make_shared<Meeting>(static_cast<int>(part.size()));
      meetings_.emplace(name, meeting);
      all_meetings_.push_back(meeting);
      for (size_t i = 0; i < part.size(); ++i) {
        Rank& member = rank(part[i]);
        member.join(name, part,
                    std::make_unique<ReferenceCommunicator>(member.host.host(), meeting,
                                                            static_cast<int>(i)));
      }
    }
  }

  /// Runs `body` on every rank at once. When one throws, the others' collectives fail with
  /// UNAVAILABLE and its rank; the first exception is thrown here.
  void run(const std::function<void(Rank&)>& body) {
    std::vector<std::thread> threads;
    std::exception_ptr first;
    std::mutex mutex;
    for (const std::unique_ptr<Rank>& rank : ranks_) {
      threads.emplace_back([&, r = rank.get()] {
        try {
          body(*r);
        } catch (...) {
          {
            const std::lock_guard<std::mutex> lock(mutex);
            if (first == nullptr) {
              first = std::current_exception();
            }
          }
          leave(r->rank());
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    if (first != nullptr) {
      std::rethrow_exception(first);
    }
  }

  /// As if this rank had died: pending and later collectives of all groups fail.
  void leave(int rank) {
    for (const std::shared_ptr<Meeting>& meeting : all_meetings_) {
      meeting->abort(Error(CIUIC_UNAVAILABLE, "rank " + std::to_string(rank) + " is gone", rank));
    }
  }

 private:
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::map<std::string, std::shared_ptr<Meeting>> meetings_;
  std::vector<std::shared_ptr<Meeting>> all_meetings_;
};

}  // namespace ciuic::testing
