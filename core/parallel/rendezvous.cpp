// SPDX-License-Identifier: MIT
#include "core/parallel/rendezvous.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>
#include <unistd.h>

#include <ciuic/error.hpp>

#include "core/parallel/rendezvous_store.h"

namespace ciuic::core {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

template <typename... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

template <typename T>
std::string list(const std::vector<T>& items, const char* separator) {
  std::ostringstream out;
  for (size_t i = 0; i < items.size(); ++i) {
    out << (i == 0 ? "" : separator) << items[i];
  }
  return out.str();
}

// Keys of the introduction. Everything else in the store begins with "kv/".
constexpr const char* kRun = "run";          // "<world> <run id>", by rank 0
constexpr const char* kComplete = "all";     // the members, one a line, by rank 0
constexpr const char* kRefused = "refused";  // "<code> <why>": nobody may go on
constexpr const char* kSeen = "seen";        // how many have read that
std::string claim_key(int rank) { return text("claim/", rank); }
std::string member_key(int rank, int64_t n = 1) { return text("member/", rank, "/", n); }

/// join's options together with what all its steps need.
struct Attempt {
  const RendezvousOptions& options;
  Clock::time_point deadline;
  std::string said;

  [[nodiscard]] bool is_late() const { return Clock::now() >= deadline; }
  [[nodiscard]] std::chrono::milliseconds left() const {
    return std::max(1ms,
                    std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()));
  }
  [[nodiscard]] std::string seconds() const { return text(options.timeout.count() / 1000.0, " s"); }
  void check_stop() const {
    if (options.stop != nullptr && options.stop->load()) {
      throw Error(CIUIC_CANCELLED, text("rank ", options.rank, " was stopped during rendezvous"));
    }
  }
  void report(const std::string& what) {
    if (options.progress && what != said) {
      options.progress(what);
    }
    said = what;
  }
};

std::string environment(const char* name, const RendezvousOptions& options) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') {
    throw Error(CIUIC_INVALID,
                text(name, " is not set, and the rendezvous of rank ", options.rank, " of ",
                     options.world, " is env://; set it, or give run.rendezvous an address"));
  }
  return value;
}

Endpoint read_endpoint(const RendezvousOptions& options) {
  constexpr std::string_view kTcp = "tcp://";
  if (options.address == "env://") {
    const std::string host = environment("MASTER_ADDR", options);
    const std::string port = environment("MASTER_PORT", options);
    const bool bare_v6 = host.find(':') != std::string::npos && host.front() != '[';
    return parse_endpoint((bare_v6 ? "[" + host + "]" : host) + ":" + port);
  }
  if (options.address.starts_with(kTcp)) {
    return parse_endpoint(std::string_view(options.address).substr(kTcp.size()));
  }
  throw Error(CIUIC_INVALID, text("rendezvous address \"", options.address,
                                  "\": expected env://, tcp://host:port or file:///path"));
}

// ---- opening the store ----

std::unique_ptr<BoundedStore> serve(Attempt& attempt, Endpoint& endpoint) {
  endpoint = resolve(endpoint).front();
  const int given = attempt.options.listen_socket;
  const int socket = given >= 0 ? given : listen_on(endpoint);
  endpoint.port = port_of(socket);
  const StoreAddress address{"",     endpoint.host,         endpoint.port,
                             socket, attempt.options.world, endpoint.text()};
  return std::make_unique<BoundedStore>(address, attempt.deadline);
}

/// Tries all addresses of rank 0 until one accepts; the pauses grow and differ between ranks.
Endpoint find_server(Attempt& attempt, const Endpoint& wanted) {
  const std::vector<Endpoint> candidates = resolve(wanted);
  std::minstd_rand random(static_cast<unsigned>(attempt.options.rank) + 1);
  for (auto pause = 10ms;; pause = std::min<std::chrono::milliseconds>(pause * 2, 400ms)) {
    std::string problem;
    for (const Endpoint& candidate : candidates) {
      problem = try_connect(candidate, std::min<std::chrono::milliseconds>(attempt.left(), 1000ms));
      if (problem.empty()) {
        return candidate;
      }
    }
    attempt.report(text("rank ", attempt.options.rank, " waits for rank 0 at ",
                        candidates.back().text(), ": ", problem));
    if (attempt.is_late()) {
      throw Error(CIUIC_DEADLINE,
                  text("rank ", attempt.options.rank, " found nobody at ", candidates.back().text(),
                       " within ", attempt.seconds(), " (", problem,
                       "); is rank 0 running there, and is the port open?"),
                  0);
    }
    attempt.check_stop();
    std::this_thread::sleep_for(
        std::min(pause + std::chrono::milliseconds(random() % 10), attempt.left()));
  }
}

std::unique_ptr<BoundedStore> connect(Attempt& attempt, Endpoint& endpoint) {
  endpoint = find_server(attempt, endpoint);
  const StoreAddress address{"", endpoint.host,         endpoint.port,
                             -1, attempt.options.world, endpoint.text()};
  return std::make_unique<BoundedStore>(address, attempt.deadline);
}

/// What a rendezvous file says: the run, and the attempt, which names the store beside it. So what an
/// earlier attempt left in its store is never read.
struct Announcement {
  std::string run;
  std::string attempt;
};

Announcement read_file(const fs::path& path) {
  std::ifstream file(path);
  Announcement found;
  std::getline(file, found.run);
  std::getline(file, found.attempt);
  return found;
}

/// Writes the announcement: the run, and a word that no earlier attempt at it used.
void announce(const fs::path& path, const std::string& run) {
  std::random_device random;
  const fs::path draft = text(path.string(), ".", ::getpid());
  std::ofstream(draft) << run << '\n' << random() << random() << '\n';
  std::error_code error;
  fs::rename(draft, path, error);
  if (error) {
    throw Error(CIUIC_UNAVAILABLE,
                text("cannot write the rendezvous file ", path.string(), ": ", error.message()));
  }
}

std::unique_ptr<BoundedStore> open_file(Attempt& attempt, const fs::path& path) {
  const std::string& run = attempt.options.run_id;
  if (attempt.options.rank == 0) {
    announce(path, run);
  }
  Announcement found;
  while ((found = read_file(path)).run != run || found.attempt.empty()) {
    if (attempt.is_late()) {
      if (found.run.empty()) {
        throw Error(CIUIC_DEADLINE,
                    text("rank ", attempt.options.rank, " found no rendezvous file ", path.string(),
                         " within ", attempt.seconds(), "; is rank 0 running?"),
                    0);
      }
      throw Error(CIUIC_INVALID,
                  text("rendezvous file ", path.string(), " belongs to another run (\"", found.run,
                       "\", this one is \"", run, "\"); choose another file"));
    }
    attempt.check_stop();
    std::this_thread::sleep_for(20ms);
  }
  const std::string file = text(path.string(), ".", found.attempt);
  return std::make_unique<BoundedStore>(
      StoreAddress{file, "", 0, -1, attempt.options.world, path.string()}, attempt.deadline);
}

// ---- the introduction ----

/// Tells everybody who still waits. The first reason stays.
void refuse(BoundedStore& store, const Error& error) {
  if (!store.peek(kRefused, Clock::now() + 1s)) {
    store.set(kRefused, text(error.code(), " ", error.what()));
  }
}

void check_refused(BoundedStore& store, Clock::time_point deadline) {
  const auto refusal = store.peek(kRefused, std::max(deadline, Clock::now() + 100ms));
  if (refusal) {
    store.add(kSeen, 1);
    throw Error(std::atoi(refusal->c_str()), refusal->substr(refusal->find(' ') + 1));
  }
}

/// Waits for a key; stops early when the run is refused or stop is raised.
std::optional<std::string> await(Attempt& attempt, BoundedStore& store, const std::string& key) {
  while (true) {
    if (auto value = store.get(key, std::min(attempt.deadline, Clock::now() + 20ms))) {
      return value;
    }
    check_refused(store, attempt.deadline);
    attempt.check_stop();
    if (attempt.is_late()) {
      return std::nullopt;
    }
  }
}

/// Is this the store of our run?
void check_run(Attempt& attempt, BoundedStore& store, const std::string& where) {
  const RendezvousOptions& o = attempt.options;
  if (o.rank == 0) {
    store.set(kRun, text(o.world, " ", o.run_id));
    return;
  }
  const auto announced = await(attempt, store, kRun);
  if (!announced) {
    throw Error(CIUIC_DEADLINE,
                text("rank ", o.rank, ": the store at ", where, " announced no run within ",
                     attempt.seconds(), ": is it another program's?"),
                0);
  }
  const std::string run = announced->substr(announced->find(' ') + 1);
  if (run != o.run_id) {
    throw Error(CIUIC_INVALID, text(where, " belongs to another run (\"", run, "\", this one is \"",
                                    o.run_id, "\"); choose another port or end that run"));
  }
  const int world = std::atoi(announced->c_str());
  if (world != o.world) {
    const Error error(CIUIC_INVALID, text("rank ", o.rank, " (", own_name(), ") was started for ",
                                          o.world, " ranks, rank 0 for ", world,
                                          ": the world size must be the same everywhere"));
    refuse(store, error);
    throw error;
  }
}

void claim_rank(const RendezvousOptions& o, BoundedStore& store) {
  const int64_t n = store.add(claim_key(o.rank), 1);
  store.set(member_key(o.rank, n), own_name());
  if (n > 1) {
    const std::string first = store.get(member_key(o.rank), Clock::now() + 1s).value_or("unknown");
    const Error error(CIUIC_INVALID,
                      text("rank ", o.rank, " of ", o.world, " was started twice: ", first, " and ",
                           own_name(), "; every process needs a rank of its own"));
    refuse(store, error);
    throw error;
  }
}

std::string name_ranks(const std::vector<int>& ranks) {
  return text(ranks.size() == 1 ? "rank" : "ranks", " ", list(ranks, ", "));
}

/// Rank 0: who is there? Adds new members; returns the ranks that are missing.
std::vector<int> missing_ranks(BoundedStore& store, std::vector<std::string>& members) {
  std::vector<int> missing;
  for (size_t rank = 0; rank < members.size(); ++rank) {
    if (members[rank].empty()) {
      members[rank] =
          store.peek(member_key(static_cast<int>(rank)), Clock::now() + 1s).value_or("");
    }
    if (members[rank].empty()) {
      missing.push_back(static_cast<int>(rank));
    }
  }
  return missing;
}

Error missing_error(const Attempt& attempt, const std::vector<int>& missing) {
  return Error(CIUIC_DEADLINE,
               text(name_ranks(missing), " of ", attempt.options.world, " did not join within ",
                    attempt.seconds()),
               missing.front());
}

/// Rank 0 leaves last, for the others learn from its store why the run is refused.
void wait_for_readers(BoundedStore& store, int64_t readers) {
  const auto limit = Clock::now() + 500ms;
  while (Clock::now() < limit && store.add(kSeen, 0) < readers) {
    std::this_thread::sleep_for(5ms);
  }
}

std::vector<std::string> gather_members(Attempt& attempt, BoundedStore& store) {
  std::vector<std::string> members(static_cast<size_t>(attempt.options.world));
  std::vector<int> missing;
  while (!(missing = missing_ranks(store, members)).empty()) {
    try {
      check_refused(store, attempt.deadline);
      attempt.check_stop();
      if (attempt.is_late()) {
        throw missing_error(attempt, missing);
      }
    } catch (const Error& error) {
      refuse(store, error);
      wait_for_readers(store, attempt.options.world - 1);
      throw;
    }
    attempt.report(text("rank 0 waits for ", name_ranks(missing)));
    std::this_thread::sleep_for(5ms);
  }
  store.set(kComplete, list(members, "\n"));
  return members;
}

std::vector<std::string> await_members(Attempt& attempt, BoundedStore& store) {
  attempt.report(text("rank ", attempt.options.rank, " waits for the others"));
  const auto complete = await(attempt, store, kComplete);
  std::vector<std::string> members(static_cast<size_t>(attempt.options.world));
  if (!complete) {
    throw missing_error(attempt, missing_ranks(store, members));
  }
  std::istringstream lines(*complete);
  for (std::string& member : members) {
    std::getline(lines, member);
  }
  return members;
}

class StoreRendezvous final : public Rendezvous {
 public:
  StoreRendezvous(std::unique_ptr<BoundedStore> store, Endpoint endpoint,
                  std::vector<std::string> members)
      : store_(std::move(store)), endpoint_(std::move(endpoint)), members_(std::move(members)) {}

  void set(const std::string& key, const std::string& value) override {
    store_->set("kv/" + key, value);
  }
  std::optional<std::string> get(const std::string& key,
                                 std::chrono::nanoseconds timeout) override {
    constexpr auto kForever = std::chrono::hours(24 * 365);
    return store_->get("kv/" + key, Clock::now() + (timeout < 0ns ? kForever : timeout));
  }
  int64_t add(const std::string& key, int64_t delta) override {
    return store_->add("kv/" + key, delta);
  }
  bool remove(const std::string& key) override { return store_->remove("kv/" + key); }
  const std::vector<std::string>& members() const override { return members_; }
  const Endpoint& endpoint() const override { return endpoint_; }

 private:
  std::unique_ptr<BoundedStore> store_;
  Endpoint endpoint_;
  std::vector<std::string> members_;
};

/// A rank that is not of the world says so where the others wait, if they do.
[[noreturn]] void reject_rank(const RendezvousOptions& o) {
  const Error error(CIUIC_INVALID, text("rank ", o.rank, " of ", o.world, " is out of range (",
                                        own_name(), "): ranks go from 0 to world size - 1"));
  if (o.rank > 0 && o.world > 0 && !o.address.starts_with("file://")) {
    try {
      Attempt attempt{o, Clock::now() + 2s, ""};
      Endpoint endpoint = read_endpoint(o);
      const auto store = connect(attempt, endpoint);
      const auto run = await(attempt, *store, kRun);
      if (run && run->substr(run->find(' ') + 1) == o.run_id &&
          !store->peek(kComplete, attempt.deadline)) {
        refuse(*store, error);
      }
    } catch (const Error&) {
      // they will miss a rank instead
    }
  }
  throw error;
}

}  // namespace

std::unique_ptr<Rendezvous> join(const RendezvousOptions& options) {
  if (options.world < 1 || options.rank < 0 || options.rank >= options.world) {
    reject_rank(options);
  }
  constexpr std::string_view kFile = "file://";
  Attempt attempt{options, Clock::now() + options.timeout, ""};
  Endpoint endpoint;
  std::unique_ptr<BoundedStore> store;
  if (options.address.starts_with(kFile)) {
    endpoint.host = options.address.substr(kFile.size());
    store = open_file(attempt, endpoint.host);
  } else {
    endpoint = read_endpoint(options);
    store = options.rank == 0 ? serve(attempt, endpoint) : connect(attempt, endpoint);
  }
  check_run(attempt, *store, endpoint.port == 0 ? endpoint.host : endpoint.text());
  claim_rank(options, *store);
  std::vector<std::string> members =
      options.rank == 0 ? gather_members(attempt, *store) : await_members(attempt, *store);
  if (endpoint.port == 0 && options.rank == 0) {
    // Everybody is here. A file that stays would send the ranks of the next attempt to this one's store.
    std::error_code ignored;
    fs::remove(endpoint.host, ignored);
  }
  return std::make_unique<StoreRendezvous>(std::move(store), std::move(endpoint),
                                           std::move(members));
}

}  // namespace ciuic::core
