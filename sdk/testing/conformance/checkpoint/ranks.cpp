// SPDX-License-Identifier: MIT
#include "ranks.hpp"

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>

namespace ciuic::testing::checkpoint {
namespace {

constexpr int64_t kWorkLimitNs = 20'000'000'000;

/// Memory that is handed to one call and spoiled after it.
template <typename T>
class Spoiled {
 public:
  Spoiled(const T* from, size_t count) : items_(from, from + count) {}
  Spoiled(const Spoiled&) = delete;
  Spoiled& operator=(const Spoiled&) = delete;
  ~Spoiled() {
    if (!items_.empty()) {
      std::memset(items_.data(), 0x5D, items_.size() * sizeof(T));
    }
  }
  [[nodiscard]] const T* data() const { return items_.data(); }

 private:
  std::vector<T> items_;
};

class SpoiledText {
 public:
  explicit SpoiledText(const std::string& text)
      : bytes_(text.data(), text.size()), size_(text.size()) {}
  [[nodiscard]] ciuic_str str() const { return {bytes_.data(), size_}; }

 private:
  Spoiled<char> bytes_;
  size_t size_;
};

class SpoiledPlace {
 public:
  explicit SpoiledPlace(const ciuic_place& p)
      : place_(p),
        shape_(p.global_shape, static_cast<size_t>(p.ndim)),
        offset_(p.offset, static_cast<size_t>(p.ndim)),
        box_(p.box, static_cast<size_t>(p.ndim)) {
    place_.global_shape = shape_.data();
    place_.offset = offset_.data();
    place_.box = box_.data();
  }
  [[nodiscard]] const ciuic_place* ptr() const { return &place_; }

 private:
  ciuic_place place_;
  Spoiled<int64_t> shape_, offset_, box_;
};

/// A tensor's description; its data stays.
class SpoiledTensor {
 public:
  explicit SpoiledTensor(const ciuic_tensor& t)
      : tensor_(t),
        shape_(t.t.shape, static_cast<size_t>(t.t.ndim)),
        strides_(t.t.strides, static_cast<size_t>(t.t.ndim)) {
    tensor_.t.shape = const_cast<int64_t*>(shape_.data());
    tensor_.t.strides = const_cast<int64_t*>(strides_.data());
  }
  [[nodiscard]] const ciuic_tensor* ptr() const { return &tensor_; }

 private:
  ciuic_tensor tensor_;
  Spoiled<int64_t> shape_, strides_;
};

Value described(const ciuic_entry& e) {
  Value v;
  v.is_blob = (e.flags & CIUIC_ENTRY_BLOB) != 0;
  if (v.is_blob) {
    v.shape = {static_cast<int64_t>(e.bytes)};
  } else {
    v.dtype = e.dtype;
    v.shape.assign(e.global_shape, e.global_shape + e.ndim);
  }
  return v;
}

}  // namespace

// ---- archive ----

void OpenArchive::close() {
  if (archive_ != nullptr) {
    rank_->vt().close(std::exchange(archive_, nullptr));
  }
}

void OpenArchive::put(const std::string& key, const Value& value, Share share) const {
  const int64_t width = dtype_bytes(value.dtype);
  auto* data = const_cast<char*>(value.bytes.data()) + share.begin * width;
  const bool is_whole = share.begin == 0 && share.count == value.elements();
  const Tensor tensor(data, value.dtype, is_whole ? value.shape : std::vector<int64_t>{share.count},
                      {CIUIC_DEVICE_CPU, 0}, CIUIC_TENSOR_READ_ONLY);
  put_at(key, Place(value.shape, share.begin).c(), tensor.c());
}

void OpenArchive::put_at(const std::string& key, const ciuic_place& place,
                         const ciuic_tensor& tensor) const {
  ciuic_work* work = nullptr;
  {
    const SpoiledText name(key);
    const SpoiledPlace at(place);
    const SpoiledTensor from(tensor);
    rank_->check(rank_->vt().put(archive_, name.str(), at.ptr(), from.ptr(), nullptr, &work));
  }
  rank_->finish(work);
}

void OpenArchive::put_blob(const std::string& key, const std::string& bytes) const {
  const SpoiledText name(key);
  const SpoiledText data(bytes);
  rank_->check(rank_->vt().put_blob(archive_, name.str(), data.str().data, data.str().size));
}

void OpenArchive::commit() const {
  ciuic_work* work = nullptr;
  rank_->check(rank_->vt().commit(archive_, &work));
  rank_->finish(work);
}

State OpenArchive::list() const {
  ciuic_array entries{};
  rank_->check(rank_->vt().list(archive_, &entries));
  State state;
  for (const ciuic_entry& e : ArrayView<ciuic_entry>(entries)) {
    const Value v = described(e);
    const std::string key(to_view(e.key));
    require(v.is_blob || e.bytes == static_cast<uint64_t>(v.elements() * dtype_bytes(v.dtype)),
            "list: " + shown(key) + ", " + describe(v) + ", has bytes = " +
                std::to_string(e.bytes) + ", expected elements times their size");
    require(state.emplace(key, v).second, "list shows " + shown(key) + " twice");
  }
  return state;
}

void OpenArchive::verify(const std::string& key) const {
  const SpoiledText name(key);
  rank_->check(rank_->vt().verify(archive_, name.str()));
}

std::string OpenArchive::get(const std::string& key, const Value& like, Share share) const {
  std::string bytes(static_cast<size_t>(share.count * dtype_bytes(like.dtype)), '\xA5');
  const bool is_whole = share.begin == 0 && share.count == like.elements();
  const Tensor into(bytes.data(), like.dtype,
                    is_whole ? like.shape : std::vector<int64_t>{share.count});
  get_at(key, Place(like.shape, share.begin).c(), into.c());
  return bytes;
}

void OpenArchive::get_at(const std::string& key, const ciuic_place& place,
                         const ciuic_tensor& into) const {
  ciuic_work* work = nullptr;
  {
    const SpoiledText name(key);
    const SpoiledPlace at(place);
    const SpoiledTensor to(into);
    rank_->check(rank_->vt().get(archive_, name.str(), at.ptr(), to.ptr(), nullptr, &work));
  }
  rank_->finish(work);
}

std::string OpenArchive::get_blob(const std::string& key) const {
  const SpoiledText name(key);
  const void* data = nullptr;
  size_t size = 0;
  rank_->check(rank_->vt().get_blob(archive_, name.str(), &data, &size));
  return std::string(static_cast<const char*>(data), size);
}

State OpenArchive::read() const {
  State state = list();
  for (auto& [key, v] : state) {
    if (v.is_blob) {
      v = blob(get_blob(key));
    } else {
      v.bytes = get(key, v, {0, v.elements()});
    }
  }
  return state;
}

// ---- rank ----

CheckpointRank::CheckpointRank(const TestContext& context, Rank& rank, FileStore& files,
                               IoPlan& plan)
    : context_(context), rank_(rank), io_(rank.host.host(), files, plan) {
  rank_.host.offer("ciuic.io", io_.table());
  if (rank_.world() == 1) {
    rank_.host.offer("ciuic.comm", nullptr);
  }
  instance_.emplace(context.create(rank_.host, {}, rank_.seat()));
}

void CheckpointRank::finish(ciuic_work* work) const {
  if (work == nullptr) {
    return;
  }
  const auto limit = static_cast<int64_t>(static_cast<double>(kWorkLimitNs) * context_.patience);
  ciuic_status* status = work->ops->wait(work, limit);
  int32_t done = 0;
  if (ciuic_status* again = work->ops->test(work, &done)) {
    (void)rank_.host.host().take(again);
  }
  work->ops->release(work);
  if (done == 0 && status != nullptr) {
    throw CheckFailed("a work has not ended after " + std::to_string(limit / 1'000'000'000) +
                      " s: " + rank_.host.host().take(status).what());
  }
  check(status);
}

OpenArchive CheckpointRank::begin(const std::string& uri, uint64_t step,
                                  const State& announced) const {
  std::vector<ciuic_entry> entries;
  for (const auto& [key, v] : announced) {
    ciuic_entry e{};
    e.struct_size = sizeof(e);
    e.flags = v.is_blob ? CIUIC_ENTRY_BLOB : 0;
    e.key = to_str(key);
    e.bytes = v.bytes.size();
    if (!v.is_blob) {
      e.dtype = v.dtype;
      e.ndim = static_cast<int32_t>(v.shape.size());
      e.global_shape = v.shape.data();
    }
    entries.push_back(e);
  }
  const SpoiledText where(uri);
  const Spoiled<ciuic_entry> given(entries.data(), entries.size());
  ciuic_save_request request{};
  request.struct_size = sizeof(request);
  request.uri = where.str();
  request.step = step;
  request.entries = {given.data(), static_cast<uint32_t>(entries.size()), sizeof(ciuic_entry)};
  ciuic_archive* archive = nullptr;
  check(vt().begin(instance_->self(), &request, &archive));
  return {*this, archive};
}

OpenArchive CheckpointRank::open(const std::string& uri) const {
  const SpoiledText where(uri);
  ciuic_open_request request{};
  request.struct_size = sizeof(request);
  request.uri = where.str();
  ciuic_archive* archive = nullptr;
  check(vt().open(instance_->self(), &request, &archive));
  return {*this, archive};
}

void CheckpointRank::remove(const std::string& uri) const {
  if (!CIUIC_CAN(&vt(), remove)) {
    throw NotOffered("the plugin has no remove");
  }
  const SpoiledText where(uri);
  check(vt().remove(instance_->self(), where.str()));
}

// ---- ranks ----

Ranks::Ranks(const TestContext& context, FileStore& files, IoPlan& plan, int world)
    : context_(context), files_(files), group_(world) {
  for (int r = 0; r < world; ++r) {
    ranks_.push_back(std::make_unique<CheckpointRank>(context, group_.rank(r), files, plan));
  }
}

Ranks::~Ranks() {
  for (const auto& rank : ranks_) {
    rank->instance_.reset();
  }
}

std::vector<std::optional<Error>> Ranks::run(const std::function<void(CheckpointRank&)>& body) {
  std::vector<std::optional<Error>> errors(ranks_.size());
  std::exception_ptr other;
  std::mutex mutex;
  const auto one = [&](size_t r) {
    try {
      body(*ranks_[r]);
    } catch (const Error& e) {
      errors[r] = e;
      group_.leave(static_cast<int>(r));
    } catch (...) {  // rethrown below, in the test's own thread
      const std::lock_guard<std::mutex> lock(mutex);
      other = other == nullptr ? std::current_exception() : other;
      group_.leave(static_cast<int>(r));
    }
  };
  std::vector<std::thread> threads;
  for (size_t r = 1; r < ranks_.size(); ++r) {
    threads.emplace_back(one, r);
  }
  one(0);
  for (std::thread& thread : threads) {
    thread.join();
  }
  if (other != nullptr) {
    std::rethrow_exception(other);
  }
  return errors;
}

std::optional<Error> Ranks::try_save(const std::string& uri, uint64_t step, const State& state,
                                     bool is_announced) {
  const bool is_alone = has_feature(context_, "writer:rank0");
  const auto errors = run([&](CheckpointRank& r) {
    const OpenArchive archive = r.begin(uri, step, is_announced ? state : State());
    for (const auto& [key, v] : state) {
      if (v.is_blob) {
        if (r.rank() == 0) {
          archive.put_blob(key, v.bytes);
        }
      } else if (!is_alone || r.rank() == 0) {
        archive.put(key, v, share_of(v.elements(), r.rank(), is_alone ? 1 : r.world()));
      }
    }
    archive.commit();
  });
  for (const auto& error : errors) {
    if (error.has_value() != errors.front().has_value()) {
      throw CheckFailed(
          "a save of " + std::to_string(errors.size()) +
          " ranks failed on one and not on all: " + (error ? *error : *errors.front()).what());
    }
  }
  // Not the echo of another rank's failure, where there is a choice.
  const auto own = std::find_if(errors.begin(), errors.end(),
                                [](const auto& e) { return e && e->code() != CIUIC_UNAVAILABLE; });
  return own == errors.end() ? errors.front() : *own;
}

void Ranks::save(const std::string& uri, uint64_t step, const State& state, bool is_announced) {
  if (const auto error = try_save(uri, step, state, is_announced)) {
    if (error->code() == CIUIC_UNIMPLEMENTED) {
      throw NotOffered(error->what());
    }
    throw CheckFailed("a save to " + uri + " failed (" + code_name(error->code()) +
                      "): " + error->what());
  }
}

State Ranks::load(const std::string& uri) {
  State whole;
  std::mutex mutex;
  const auto errors = run([&](CheckpointRank& r) {
    const OpenArchive archive = r.open(uri);
    State mine = archive.list();
    for (auto& [key, v] : mine) {
      if (v.is_blob) {
        v = blob(archive.get_blob(key));
        const std::lock_guard<std::mutex> lock(mutex);
        whole[key] = v;
        continue;
      }
      const Share share = share_of(v.elements(), r.rank(), r.world());
      const std::string part = archive.get(key, v, share);
      const std::lock_guard<std::mutex> lock(mutex);
      Value& all = whole.emplace(key, v).first->second;
      all.bytes.resize(static_cast<size_t>(v.elements() * dtype_bytes(v.dtype)));
      std::copy(part.begin(), part.end(), all.bytes.begin() + share.begin * dtype_bytes(v.dtype));
    }
  });
  for (const auto& error : errors) {
    if (error) {
      throw CheckFailed("reading " + uri + " failed (" + code_name(error->code()) +
                        "): " + error->what());
    }
  }
  return whole;
}

void Ranks::finish() {
  for (const auto& rank : ranks_) {
    rank->instance_.reset();
    require(rank->host().balanced(),
            "after destroy, rank " + std::to_string(rank->rank()) + " still holds " +
                std::to_string(rank->host().live_statuses()) + " statuses and " +
                std::to_string(rank->host().live_bytes()) + " bytes of the host");
  }
  if (const auto* memory = dynamic_cast<const MemoryFiles*>(&files_)) {
    require(memory->open_files() == 0, "after close and destroy, " +
                                           std::to_string(memory->open_files()) +
                                           " files of ciuic.io are still open");
  }
}

// ---- looks ----

Finding look(const TestContext& context, MemoryFiles& files, const std::string& uri) {
  IoPlan plan;
  Ranks reader(context, files, plan);
  try {
    const OpenArchive archive = reader.rank().open(uri);
    archive.verify();
    return {Finding::Kind::Whole, archive.read(), ""};
  } catch (const Error& e) {
    if (e.code() == CIUIC_NOT_FOUND) {
      return {Finding::Kind::Absent, {}, e.what()};
    }
    if (e.code() == CIUIC_DATA_LOSS) {
      return {Finding::Kind::Damaged, {}, e.what()};
    }
    throw CheckFailed("reading " + uri + " reports " + code_name(e.code()) +
                      ", expected success, not found or data loss: " + e.what());
  }
}

void require_saved(const TestContext& context, MemoryFiles& files, const std::string& uri,
                   const State& state, const std::string& when) {
  const Finding found = look(context, files, uri);
  require(found.kind == Finding::Kind::Whole, when + ": " + uri + " does not read: " + found.text);
  const std::string wrong = difference(found.state, state);
  require(wrong.empty(), when + ": " + uri + " holds other data: " + wrong);
}

Error expect_error(const std::vector<int32_t>& codes, const std::string& what,
                   const std::function<void()>& body) {
  std::string expected;
  for (const int32_t code : codes) {
    expected += (expected.empty() ? "" : " or ") + std::string(code_name(code));
  }
  try {
    body();
  } catch (const Error& e) {
    require(
        std::find(codes.begin(), codes.end(), e.code()) != codes.end(),
        what + ": got \"" + code_name(e.code()) + "\" (" + e.what() + "), expected " + expected);
    return e;
  }
  throw CheckFailed(what + ": got success, expected " + expected);
}

}  // namespace ciuic::testing::checkpoint
