// SPDX-License-Identifier: MIT
//
// All-reduce of fp32 by the plugins gloo and shm, in turn: 2 and 4 ranks as processes, each pinned to a
// core (rank modulo cores), from ordinary memory and from memory_alloc's. The counter of_copy is the
// fraction of the memory's limit: the time in which all ranks copy as many bytes at once, which is what
// an all-reduce must at least read and write, over the time of the all-reduce.
//
//   all_reduce_benchmark --benchmark_repetitions=5 --benchmark_enable_random_interleaving=true
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <iterator>
#include <map>
#include <memory>
#include <sched.h>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <benchmark/benchmark.h>

#include <ciuic/abi/ciuic.h>
#include <ciuic/testing/rank_processes.hpp>
#include <ciuic/view.hpp>
#include <ciuic/work.hpp>

namespace ciuic::benchmarks {
namespace {

using Clock = std::chrono::steady_clock;

enum Memory : int { Ordinary, Shared };

/// What rank 0 asks the others to do with it; in memory that all of them share.
struct Order {
  std::atomic<uint64_t> number{0};
  std::atomic<int> plugin{0};  // -1: the end
  std::atomic<int> memory{Ordinary};
  std::atomic<int64_t> bytes{0};
  std::atomic<int> repeats{0};
};

const char* const kPlugins[] = {"gloo", "shm"};

/// One communicator of one rank.
class Peer {
 public:
  Peer(const std::string& plugin, testing::TestHost& host, int rank, int world) : host_(host) {
    void* library = ::dlopen((CIUIC_BUILD_DIR "/plugins/lib" + plugin + ".so").c_str(), RTLD_NOW);
    if (library == nullptr) {
      throw std::runtime_error(::dlerror());
    }
    using Query = const ciuic_descriptor* (*)(uint32_t, uint32_t);
    descriptor_ =
        reinterpret_cast<Query>(::dlsym(library, "ciuic_plugin_query"))(CIUIC_ABI_MAJOR, 0);
    std::vector<ciuic_option> options;
    for (const ciuic_option_spec& spec : ArrayView<ciuic_option_spec>(descriptor_->options)) {
      options.push_back({sizeof(ciuic_option), 0, spec.type, 0, to_str(spec.key), spec.def});
    }
    ciuic_create_args args{};
    args.struct_size = sizeof(args);
    args.host = host.table();
    args.options = to_array(options);
    args.rank = args.local_rank = rank;
    args.world = args.local_world = world;
    args.device = {CIUIC_DEVICE_CPU, 0};
    host.host().check(descriptor_->create(&args, &self_));
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  ~Peer() { descriptor_->destroy(self_); }

  void all_reduce(float* data, int64_t count) const {
    const Tensor tensor(data, kF32, {count});
    ciuic_collective c{};
    c.struct_size = sizeof(c);
    c.op = CIUIC_OP_ALL_REDUCE;
    c.reduce = CIUIC_REDUCE_SUM;
    c.in = c.out = tensor.ptr();
    run(c);
  }
  void barrier() const {
    ciuic_collective c{};
    c.struct_size = sizeof(c);
    c.op = CIUIC_OP_BARRIER;
    run(c);
  }
  /// Memory for the tensor; freed with the process.
  [[nodiscard]] float* memory(Memory kind, int64_t bytes) {
    void*& kept = memory_[{kind, bytes}];
    if (kept == nullptr && kind == Shared) {
      host_.host().check(
          vt().memory_alloc(self_, {CIUIC_DEVICE_CPU, 0}, static_cast<size_t>(bytes), 0, &kept));
    } else if (kept == nullptr) {
      kept = std::aligned_alloc(4096, static_cast<size_t>((bytes + 4095) / 4096 * 4096));
    }
    std::memset(kept, 0, static_cast<size_t>(bytes));
    return static_cast<float*>(kept);
  }

 private:
  [[nodiscard]] const ciuic_communicator_vt& vt() const {
    return *static_cast<const ciuic_communicator_vt*>(descriptor_->vt);
  }
  void run(const ciuic_collective& c) const {
    ciuic_work* work = nullptr;
    host_.host().check(vt().submit(self_, {&c, 1, sizeof(c)}, nullptr, &work));
    Work(work).wait(host_.host());
  }

  testing::TestHost& host_;
  const ciuic_descriptor* descriptor_ = nullptr;
  ciuic_instance* self_ = nullptr;
  std::map<std::pair<int, int64_t>, void*> memory_;
};

struct Times {
  double all_reduce = 0;  // seconds of one
  double copy = 0;
};

/// One rank with both plugins.
class Rank {
 public:
  Rank(int rank, int world, testing::SharedStore& store) : self_(rank, world, store) {
    cpu_set_t core;
    CPU_ZERO(&core);
    CPU_SET(static_cast<size_t>(rank) % std::thread::hardware_concurrency(), &core);
    ::sched_setaffinity(0, sizeof(core), &core);
    for (size_t p = 0; p < std::size(kPlugins); ++p) {
      self_.start_generation(p + 1);  // keys of their own
      peers_.push_back(std::make_unique<Peer>(kPlugins[p], self_.host, rank, world));
    }
  }

  Times run(const Order& order) {
    Peer& peer = *peers_[static_cast<size_t>(order.plugin)];
    const int64_t bytes = order.bytes;
    float* data = peer.memory(static_cast<Memory>(order.memory.load()), bytes);
    const int64_t count = bytes / static_cast<int64_t>(sizeof(float));
    peer.all_reduce(data, count);
    Times times;
    times.all_reduce = timed(peer, order.repeats, [&] { peer.all_reduce(data, count); });
    copy_.resize(static_cast<size_t>(bytes));
    times.copy = timed(peer, order.repeats, [&] {
      std::memcpy(copy_.data(), data, static_cast<size_t>(bytes));
      benchmark::ClobberMemory();
    });
    return times;
  }

 private:
  template <typename Body>
  double timed(const Peer& peer, int repeats, const Body& body) {
    peer.barrier();
    const auto begin = Clock::now();
    for (int i = 0; i < repeats; ++i) {
      body();
    }
    return std::chrono::duration<double>(Clock::now() - begin).count() / repeats;
  }

  testing::ProcessRank self_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::vector<char> copy_;
};

/// The ranks of one world; this process is rank 0 of each.
class World {
 public:
  explicit World(int size) : size_(size), order_(shared_order()) {
    for (int rank = 1; rank < size_; ++rank) {
      if (::fork() == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        obey(rank);
      }
    }
  }

  Times run(int plugin, Memory memory, int64_t bytes, int repeats) {
    if (!first_) {
      first_ = std::make_unique<Rank>(0, size_, store_);
    }
    order_.plugin = plugin;
    order_.memory = memory;
    order_.bytes = bytes;
    order_.repeats = repeats;
    ++order_.number;
    return first_->run(order_);
  }

 private:
  static Order& shared_order() {
    void* memory =
        ::mmap(nullptr, sizeof(Order), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return *new (memory) Order;
  }
  [[noreturn]] void obey(int rank) {
    Rank self(rank, size_, store_);
    for (uint64_t done = 0;; ++done) {
      while (order_.number.load() == done) {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
      self.run(order_);
    }
  }

  int size_;
  Order& order_;
  testing::SharedStore store_;
  std::unique_ptr<Rank> first_;
};

void all_reduce(benchmark::State& state, World& world, int plugin, Memory memory, int64_t bytes) {
  const int repeats = static_cast<int>(std::clamp<int64_t>((64 << 20) / bytes, 3, 200));
  double copy = 0;
  double total = 0;
  double best = 1e9;
  for (auto _ : state) {
    const Times times = world.run(plugin, memory, bytes, repeats);
    state.SetIterationTime(times.all_reduce);
    copy += times.copy;
    total += times.all_reduce;
    best = std::min(best, times.all_reduce);
  }
  state.counters["of_copy"] = copy / total;
  state.counters["best_us"] = 1e6 * best;
  state.counters["GB/s"] = 1e-9 * static_cast<double>(bytes * state.iterations()) / total;
}

void add(World& world, int size, int plugin, Memory memory, int64_t bytes) {
  const std::string name = std::to_string(size) + " ranks/" + std::to_string(bytes >> 10) +
                           " KiB/" + kPlugins[plugin] + (memory == Shared ? " memory_alloc" : "");
  benchmark::RegisterBenchmark(name.c_str(),
                               [&world, plugin, memory, bytes](benchmark::State& state) {
                                 all_reduce(state, world, plugin, memory, bytes);
                               })
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond)
      ->Iterations(5);
}

}  // namespace
}  // namespace ciuic::benchmarks

int main(int argc, char** argv) {
  using namespace ciuic::benchmarks;
  benchmark::Initialize(&argc, argv);
  std::vector<std::unique_ptr<World>> worlds;  // before any thread is there: they fork
  for (const int size : {2, 4}) {
    worlds.push_back(std::make_unique<World>(size));
  }
  for (size_t w = 0; w < worlds.size(); ++w) {
    const int size = w == 0 ? 2 : 4;
    for (const int64_t bytes :
         {int64_t{64} << 10, int64_t{1} << 20, int64_t{16} << 20, int64_t{64} << 20}) {
      add(*worlds[w], size, 0, Ordinary, bytes);
      add(*worlds[w], size, 1, Ordinary, bytes);
      add(*worlds[w], size, 1, Shared, bytes);
    }
  }
  benchmark::RunSpecifiedBenchmarks();
  std::fflush(stdout);
  ::_exit(0);  // the other ranks go with this process
}
