// SPDX-License-Identifier: MIT
#include "checkpoint_host.h"

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <numeric>
#include <random>
#include <sstream>
#include <stdlib.h>
#include <thread>
#include <unistd.h>

#include <ciuic/work.hpp>

struct ciuic_status {
  int32_t code;
  uint32_t flags;
  int32_t peer;
  std::string message;
};

namespace ciuic::test {

// ---- values ----

int64_t Value::elements() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

bool Value::operator==(const Value& o) const {
  return is_blob == o.is_blob && same(dtype, o.dtype) && shape == o.shape && bytes == o.bytes;
}

Value blob(std::string bytes) {
  Value v;
  v.is_blob = true;
  v.shape = {static_cast<int64_t>(bytes.size())};
  v.bytes = std::move(bytes);
  return v;
}

Value random_tensor(ciuic_dtype dtype, std::vector<int64_t> shape, uint32_t seed) {
  Value v;
  v.dtype = dtype;
  v.shape = std::move(shape);
  std::mt19937 random(seed);
  v.bytes.resize(static_cast<size_t>(v.elements() * dtype_bytes(dtype)));
  std::generate(v.bytes.begin(), v.bytes.end(), [&] { return static_cast<char>(random()); });
  return v;
}

State small_state(uint32_t seed) {
  return {{"value/embedding.weight", random_tensor(kF32, {5, 4}, seed)},
          {"master/embedding.weight", random_tensor(kF32, {5, 4}, seed + 1)},
          {"moment/exp_avg/embedding.weight", random_tensor(kBF16, {5, 4}, seed + 2)},
          {"moment/step", random_tensor(kI64, {}, seed + 3)},
          {"value/unused", random_tensor(kF32, {0, 7}, seed + 4)},
          {"config.json", blob("{\"hidden_size\":4}")},
          {"train.json", blob("{\"seed\":" + std::to_string(seed) + "}")}};
}

// ---- ranks as threads ----

/// Blocking all-reduce (MAX of i64) and broadcast: what a save needs.
class ThreadGroup final {
 public:
  explicit ThreadGroup(int32_t size) : size_(size), ranks_(static_cast<size_t>(size)) {
    std::iota(ranks_.begin(), ranks_.end(), 0);
    members_.resize(ranks_.size());
    for (int32_t r = 0; r < size; ++r) {
      members_[static_cast<size_t>(r)] = {this, nullptr, r};
    }
    vt_.struct_size = sizeof(vt_);
    vt_.submit = &ThreadGroup::submit;
  }

  [[nodiscard]] int32_t size() const { return size_; }
  [[nodiscard]] ciuic_group describe(int32_t rank, const ciuic_host* host) {
    Member& m = members_[static_cast<size_t>(rank)];
    m.host = host;
    ciuic_group g{};
    g.struct_size = sizeof(g);
    g.rank = rank;
    g.size = size_;
    g.ranks = ranks_.data();
    g.name = to_str("control");
    g.vt = &vt_;
    g.self = reinterpret_cast<ciuic_instance*>(&m);
    return g;
  }

 private:
  struct Member {
    ThreadGroup* group;
    const ciuic_host* host;
    int32_t rank;
  };

  static ciuic_status* submit(ciuic_instance* self, ciuic_array collectives, const ciuic_stream*,
                              ciuic_work** work) {
    const Member& m = *reinterpret_cast<Member*>(self);
    *work = nullptr;
    for (const ciuic_collective& c : ArrayView<ciuic_collective>(collectives)) {
      const bool is_reduce = c.op == CIUIC_OP_ALL_REDUCE && c.reduce == CIUIC_REDUCE_MAX;
      if ((!is_reduce && c.op != CIUIC_OP_BROADCAST) || c.timeout_ns <= 0) {
        return m.host->status_new(m.host->ctx, CIUIC_UNIMPLEMENTED, 0, -1,
                                  to_str("test group: no such op"));
      }
      m.group->exchange(m.rank, c);
    }
    return nullptr;
  }

  void exchange(int32_t rank, const ciuic_collective& c) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return leaving_ == 0; });
    const auto bytes = static_cast<size_t>(tensor_bytes(*c.out));
    if (c.op == CIUIC_OP_BROADCAST) {
      if (rank == c.peer) {
        value_.assign(static_cast<const char*>(tensor_data(*c.out)), bytes);
      }
    } else {
      std::string mine(static_cast<const char*>(tensor_data(*c.in)), bytes);
      value_ = arrived_ == 0 ? mine : larger(value_, mine);
    }
    if (++arrived_ == size_) {
      arrived_ = 0;
      leaving_ = size_;
      changed_.notify_all();
    } else {
      changed_.wait(lock, [&] { return leaving_ > 0; });
    }
    std::memcpy(tensor_data(*c.out), value_.data(), bytes);
    if (--leaving_ == 0) {
      changed_.notify_all();
    }
  }

  static std::string larger(std::string a, const std::string& b) {
    for (size_t at = 0; at < a.size(); at += sizeof(int64_t)) {
      int64_t x = 0;
      int64_t y = 0;
      std::memcpy(&x, &a[at], sizeof(x));
      std::memcpy(&y, &b[at], sizeof(y));
      x = std::max(x, y);
      std::memcpy(&a[at], &x, sizeof(x));
    }
    return a;
  }

  int32_t size_;
  std::vector<int32_t> ranks_;
  std::vector<Member> members_;
  ciuic_communicator_vt vt_{};
  std::mutex mutex_;
  std::condition_variable changed_;
  int32_t arrived_ = 0, leaving_ = 0;
  std::string value_;
};

// ---- host ----

struct Rank::Services {
  Services(ThreadGroup& threads, int32_t rank, FaultPlan* faults) : io(&table) {
    table.struct_size = sizeof(table);
    table.ctx = this;
    table.status_new = [](void*, int32_t code, uint32_t flags, int32_t peer, ciuic_str message) {
      return new ciuic_status{code, flags, peer, std::string(to_view(message))};
    };
    table.status_get = [](void*, const ciuic_status* s, uint32_t* flags, int32_t* peer,
                          ciuic_str* message) {
      if (flags != nullptr) *flags = s->flags;
      if (peer != nullptr) *peer = s->peer;
      if (message != nullptr) *message = to_str(s->message);
      return s->code;
    };
    table.status_free = [](void*, ciuic_status* s) { delete s; };
    table.log_enabled = [](void*, int32_t) { return 0; };
    table.log = [](void*, int32_t, ciuic_str, ciuic_array) {};
    table.service = [](void* ctx, const char* name, uint32_t) -> const void* {
      const auto& s = *static_cast<const Services*>(ctx);
      if (std::string_view(name) == "ciuic.io") {
        return s.faulty ? &s.faulty->table() : &s.io.table();
      }
      if (std::string_view(name) == "ciuic.tensor") {
        return &s.tensors;
      }
      if (std::string_view(name) == "ciuic.stream") {
        return &s.streams;
      }
      return std::string_view(name) == "ciuic.comm" && s.group.size > 1 ? &s.comm : nullptr;
    };
    group = threads.describe(rank, &table);
    comm.struct_size = sizeof(comm);
    comm.ctx = this;
    comm.find = [](void* ctx, ciuic_str, const ciuic_group** out) -> ciuic_status* {
      *out = &static_cast<const Services*>(ctx)->group;
      return nullptr;
    };
    // A device whose memory the host can see: contiguous copies, and a record of what was asked
    // for.
    tensors.struct_size = sizeof(tensors);
    tensors.ctx = this;
    tensors.copy = [](void* ctx, const ciuic_tensor* in, const ciuic_tensor* out,
                      const ciuic_stream*) -> ciuic_status* {
      std::memcpy(tensor_data(*out), tensor_data(*in), static_cast<size_t>(tensor_bytes(*in)));
      ++static_cast<Services*>(ctx)->device_calls.copies;
      return nullptr;
    };
    streams.struct_size = sizeof(streams);
    streams.ctx = this;
    streams.record = [](void* ctx, const ciuic_stream*, ciuic_work** work) -> ciuic_status* {
      *work = nullptr;
      ++static_cast<Services*>(ctx)->device_calls.records;
      return nullptr;
    };
    if (faults != nullptr) {
      faulty.emplace(&table, io.table(), *faults);
    }
  }

  ciuic_host table{};
  core::IoService io;
  std::optional<FaultyIo> faulty;
  ciuic_group group{};
  ciuic_comm_service comm{};
  ciuic_tensor_service tensors{};
  ciuic_stream_service streams{};
  DeviceCalls device_calls;
};

namespace {

const ciuic_descriptor* load_plugin(const std::string& name) {
  const std::string path = std::string(CIUIC_BUILD_DIR) + "/plugins/lib" + name + ".so";
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw std::runtime_error(::dlerror());
  }
  auto* query =
      reinterpret_cast<decltype(&ciuic_plugin_query)>(::dlsym(library, "ciuic_plugin_query"));
  return query(CIUIC_ABI_MAJOR, 0);
}

}  // namespace

Rank::Rank(const std::string& plugin, ThreadGroup& group, int32_t rank, FaultPlan* faults,
           const OptionValues& values)
    : services_(std::make_unique<Services>(group, rank, faults)),
      rank_(rank),
      world_(group.size()),
      host_(&services_->table),
      descriptor_(load_plugin(plugin)),
      vt_(static_cast<const ciuic_checkpoint_vt*>(descriptor_->vt)) {
  std::vector<ciuic_option> options;
  for (const ciuic_option_spec& spec : ArrayView<ciuic_option_spec>(descriptor_->options)) {
    options.push_back({sizeof(ciuic_option), 0, spec.type, 0, to_str(spec.key), spec.def});
    if (const auto given = values.find(spec.key); given != values.end()) {
      if (const auto* text = std::get_if<std::string>(&given->second)) {
        options.back().value.s = to_str(*text);
      } else {
        options.back().value.i = std::get<int64_t>(given->second);
      }
    }
  }
  ciuic_create_args args{};
  args.struct_size = sizeof(args);
  args.host = &services_->table;
  args.options = to_array(options);
  args.rank = rank;
  args.world = world_;
  args.name = to_str(plugin);
  host_.check(descriptor_->validate(&args));
  host_.check(descriptor_->create(&args, &self_));
}

Rank::DeviceCalls Rank::device_calls() const { return services_->device_calls; }

Rank::~Rank() { descriptor_->destroy(self_); }

Rank::Open Rank::begin(const std::string& uri, uint64_t step, const State& announced) const {
  std::vector<ciuic_entry> entries;
  for (const auto& [key, v] : announced) {
    ciuic_entry e{};
    e.struct_size = sizeof(e);
    e.key = to_str(key);
    e.bytes = v.bytes.size();
    if (v.is_blob) {
      e.flags = CIUIC_ENTRY_BLOB;
    } else {
      e.dtype = v.dtype;
      e.ndim = static_cast<int32_t>(v.shape.size());
      e.global_shape = v.shape.data();
    }
    entries.push_back(e);
  }
  ciuic_save_request request{};
  request.struct_size = sizeof(request);
  request.uri = to_str(uri);
  request.step = step;
  request.entries = to_array(entries);
  ciuic_archive* archive = nullptr;
  host_.check(vt_->begin(self_, &request, &archive));
  return {*this, archive};
}

Rank::Open Rank::open(const std::string& uri) const {
  ciuic_open_request request{};
  request.struct_size = sizeof(request);
  request.uri = to_str(uri);
  ciuic_archive* archive = nullptr;
  host_.check(vt_->open(self_, &request, &archive));
  return {*this, archive};
}

void Rank::remove(const std::string& uri) const { host_.check(vt_->remove(self_, to_str(uri))); }

// ---- archive ----

Rank::Open::~Open() {
  if (archive_ != nullptr) {
    rank_->vt_->close(archive_);
  }
}

void Rank::Open::put(const std::string& key, const Value& v, int64_t begin, int64_t count) const {
  if (v.is_blob) {
    rank_->host_.check(rank_->vt_->put_blob(archive_, to_str(key), v.bytes.data(), v.bytes.size()));
    return;
  }
  // A copy that is gone after the call: only STABLE tensors may be read later.
  std::string part = v.bytes.substr(static_cast<size_t>(begin * dtype_bytes(v.dtype)),
                                    static_cast<size_t>(count * dtype_bytes(v.dtype)));
  put_at(key, Place(v.shape, begin).c(), Tensor(part.data(), v.dtype, {count}).c());
  std::fill(part.begin(), part.end(), '\x5a');
}

void Rank::Open::put_at(const std::string& key, const ciuic_place& place,
                        const ciuic_tensor& tensor, const ciuic_stream* stream) const {
  ciuic_work* work = nullptr;
  rank_->host_.check(rank_->vt_->put(archive_, to_str(key), &place, &tensor, stream, &work));
  Work(work).wait(rank_->host_);
}

void Rank::Open::commit() const {
  ciuic_work* work = nullptr;
  rank_->host_.check(rank_->vt_->commit(archive_, &work));
  Work(work).wait(rank_->host_);
}

State Rank::Open::list() const {
  ciuic_array entries{};
  rank_->host_.check(rank_->vt_->list(archive_, &entries));
  State state;
  for (const ciuic_entry& e : ArrayView<ciuic_entry>(entries)) {
    Value v;
    v.is_blob = (e.flags & CIUIC_ENTRY_BLOB) != 0;
    v.dtype = e.dtype;
    v.shape.assign(e.global_shape, e.global_shape + e.ndim);
    if (v.is_blob) {
      v.shape = {static_cast<int64_t>(e.bytes)};
    } else {
      EXPECT_EQ(e.bytes, static_cast<uint64_t>(v.elements() * dtype_bytes(v.dtype)));
    }
    EXPECT_TRUE(state.emplace(to_view(e.key), v).second) << "listed twice: " << to_view(e.key);
  }
  return state;
}

void Rank::Open::verify(const std::string& key) const {
  rank_->host_.check(rank_->vt_->verify(archive_, to_str(key)));
}

std::string Rank::Open::get(const std::string& key, const Value& like, int64_t begin,
                            int64_t count) const {
  std::string bytes(static_cast<size_t>(count * dtype_bytes(like.dtype)), '\x5a');
  get_at(key, Place(like.shape, begin).c(), Tensor(bytes.data(), like.dtype, {count}).c());
  return bytes;
}

void Rank::Open::get_at(const std::string& key, const ciuic_place& place, const ciuic_tensor& into,
                        const ciuic_stream* stream) const {
  ciuic_work* work = nullptr;
  rank_->host_.check(rank_->vt_->get(archive_, to_str(key), &place, &into, stream, &work));
  Work(work).wait(rank_->host_);
}

std::string Rank::Open::get_blob(const std::string& key) const {
  const void* data = nullptr;
  size_t size = 0;
  rank_->host_.check(rank_->vt_->get_blob(archive_, to_str(key), &data, &size));
  return {static_cast<const char*>(data), size};
}

State Rank::Open::read() const {
  State state = list();
  for (auto& [key, v] : state) {
    v.bytes = v.is_blob ? get_blob(key) : get(key, v, 0, v.elements());
  }
  return state;
}

// ---- cluster ----

Cluster::Cluster(const std::string& plugin, int32_t world, FaultPlan* faults,
                 const OptionValues& options)
    : group_(std::make_unique<ThreadGroup>(world)) {
  for (int32_t r = 0; r < world; ++r) {
    ranks_.push_back(std::make_unique<Rank>(plugin, *group_, r, faults, options));
  }
}
Cluster::~Cluster() = default;

std::vector<std::optional<Error>> Cluster::run(const std::function<void(Rank&)>& body) {
  std::vector<std::optional<Error>> errors(ranks_.size());
  std::vector<std::thread> threads;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    threads.emplace_back([&, r] {
      try {
        body(*ranks_[r]);
      } catch (const Error& e) {
        errors[r] = e;
      }
    });
  }
  for (std::thread& t : threads) {
    t.join();
  }
  return errors;
}

std::optional<Error> Cluster::save(const std::string& uri, uint64_t step, const State& state,
                                   bool is_announced) {
  const auto errors = run([&](Rank& rank) {
    const auto archive = rank.begin(uri, step, is_announced ? state : State());
    for (const auto& [key, v] : state) {
      const int64_t n = v.elements();
      const int64_t begin = n * rank.rank() / rank.world();
      if (!v.is_blob) {
        archive.put(key, v, begin, n * (rank.rank() + 1) / rank.world() - begin);
      } else if (rank.rank() == 0) {
        archive.put(key, v);
      }
    }
    archive.commit();
  });
  for (const auto& e : errors) {
    EXPECT_EQ(e.has_value(), errors[0].has_value());
    if (e && errors[0]) {
      EXPECT_EQ(e->code(), errors[0]->code());
      EXPECT_STREQ(e->what(), errors[0]->what());
    }
  }
  return errors[0];
}

State Cluster::load(const std::string& uri) {
  std::vector<State> parts(ranks_.size());
  const auto errors = run([&](Rank& rank) {
    const auto archive = rank.open(uri);
    State state = archive.list();
    for (auto& [key, v] : state) {
      const int64_t n = v.elements();
      const int64_t begin = n * rank.rank() / rank.world();
      const int64_t end = n * (rank.rank() + 1) / rank.world();
      v.bytes = v.is_blob ? archive.get_blob(key) : archive.get(key, v, begin, end - begin);
    }
    parts[static_cast<size_t>(rank.rank())] = std::move(state);
  });
  for (const auto& e : errors) {
    if (e) {
      throw Error(*e);
    }
  }
  State whole = parts[0];
  for (size_t r = 1; r < parts.size(); ++r) {
    for (auto& [key, v] : whole) {
      if (!v.is_blob) {
        v.bytes += parts[r].at(key).bytes;
      }
    }
  }
  return whole;
}

// ---- files ----

/// Memory where there is any: thousands of saves sync, and what a disk makes of that is not under
/// test here.
TemporaryFolder::TemporaryFolder() {
  const bool is_free = std::getenv("TEST_TMPDIR") == nullptr && ::access("/dev/shm", W_OK) == 0;
  std::string path = (is_free ? "/dev/shm/" : ::testing::TempDir()) + "ciuic-checkpoint-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) {
    throw std::runtime_error("mkdtemp " + path);
  }
  path_ = path;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string read_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

std::vector<std::string> tree(const std::string& path) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    names.push_back(std::filesystem::relative(entry.path(), path).string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Error expect_error(int32_t code, const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << "got " << code_name(e.code()) << ": " << e.what();
    return e;
  }
  ADD_FAILURE() << "expected " << code_name(code) << ", nothing was thrown";
  return Error(CIUIC_OK, "");
}

}  // namespace ciuic::test
