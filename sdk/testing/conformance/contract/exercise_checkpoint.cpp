// SPDX-License-Identifier: MIT
//
// Save a tensor and a blob, read them back, remove the checkpoint.
#include <numeric>
#include <vector>

#include <ciuic/abi/checkpoint.h>
#include <ciuic/testing/guarded_struct.hpp>

#include "exercise.hpp"

namespace ciuic::testing::contract {
namespace {

constexpr const char* kKey = "value/model.embed.weight";
constexpr const char* kBlobKey = "config.json";
constexpr const char* kBlob = "{\"hidden_size\": 4}";

/// An archive, closed with this object.
class OpenArchive {
 public:
  explicit OpenArchive(const Instance& checkpoint) : checkpoint_(checkpoint) {}
  OpenArchive(const OpenArchive&) = delete;
  OpenArchive& operator=(const OpenArchive&) = delete;
  ~OpenArchive() {
    if (archive_ != nullptr) {
      checkpoint_.table<ciuic_checkpoint_vt>().close(archive_);
    }
  }
  void close() {
    if (ciuic_archive* archive = std::exchange(archive_, nullptr)) {
      checkpoint_.calls().run("close",
                              [&] { checkpoint_.table<ciuic_checkpoint_vt>().close(archive); });
    }
  }
  [[nodiscard]] ciuic_archive** out() { return &archive_; }
  [[nodiscard]] ciuic_archive* get() const { return archive_; }

 private:
  const Instance& checkpoint_;
  ciuic_archive* archive_ = nullptr;
};

class CheckpointExercise final : public Exercise {
 public:
  using Exercise::Exercise;

  std::string round(const Instance& c, uint64_t number) override {
    const std::string uri = "/runs/step-" + std::to_string(number);
    std::iota(values_.begin(), values_.end(), static_cast<float>(number));
    save(c, uri, number);
    std::string results = read(c, uri);
    const auto& vt = c.table<ciuic_checkpoint_vt>();
    if (CIUIC_CAN(&vt, remove)) {
      c.calls().check("remove", [&] { return vt.remove(c.self(), to_str(uri)); });
    }
    return results;
  }

 private:
  void save(const Instance& c, const std::string& uri, uint64_t number) {
    const auto& vt = c.table<ciuic_checkpoint_vt>();
    ciuic_save_request r{};
    r.struct_size = sizeof(r);
    r.uri = to_str(uri);
    r.step = number + 1;
    const std::vector<ciuic_entry> entries = {entry(), blob_entry()};
    r.entries = to_array(entries);
    const GuardedStruct<ciuic_save_request> request(r);
    OpenArchive archive(c);
    c.calls().check("begin", [&] { return vt.begin(c.self(), request.get(), archive.out()); });
    put(c, archive.get());
    c.calls().check("put_blob", [&] {
      return vt.put_blob(archive.get(), to_str(kBlobKey), kBlob, std::string_view(kBlob).size());
    });
    ciuic_work* work = nullptr;
    c.calls().check("commit", [&] { return vt.commit(archive.get(), &work); });
    c.calls().finish(work, context_.patience);
    archive.close();
  }
  void put(const Instance& c, ciuic_archive* archive) {
    const auto& vt = c.table<ciuic_checkpoint_vt>();
    const Place place(shape_);
    const Tensor tensor(values_.data(), kF32, shape_);
    const GuardedStruct<ciuic_place> place_c(place.c());
    const GuardedStruct<ciuic_tensor> tensor_c(tensor.c());
    ciuic_work* work = nullptr;
    c.calls().check("put", [&] {
      return vt.put(archive, to_str(kKey), place_c.get(), tensor_c.get(), nullptr, &work);
    });
    c.calls().finish(work, context_.patience);
  }

  std::string read(const Instance& c, const std::string& uri) {
    const auto& vt = c.table<ciuic_checkpoint_vt>();
    const GuardedStruct<ciuic_open_request> request(
        ciuic_open_request{sizeof(ciuic_open_request), 0, to_str(uri)});
    OpenArchive archive(c);
    c.calls().check("open", [&] { return vt.open(c.self(), request.get(), archive.out()); });
    ciuic_array entries{};
    c.calls().check("list", [&] { return vt.list(archive.get(), &entries); });
    c.calls().check("verify", [&] { return vt.verify(archive.get(), to_str("")); });
    const void* blob = nullptr;
    size_t size = 0;
    c.calls().check("get_blob",
                    [&] { return vt.get_blob(archive.get(), to_str(kBlobKey), &blob, &size); });
    std::string results = bytes_of(blob, size) + get(c, archive.get());
    archive.close();
    return results;
  }
  std::string get(const Instance& c, ciuic_archive* archive) const {
    const auto& vt = c.table<ciuic_checkpoint_vt>();
    std::vector<float> out(values_.size(), -1.0F);
    const Place place(shape_);
    const Tensor tensor(out.data(), kF32, shape_);
    const GuardedStruct<ciuic_place> place_c(place.c());
    const GuardedStruct<ciuic_tensor> tensor_c(tensor.c());
    ciuic_work* work = nullptr;
    c.calls().check("get", [&] {
      return vt.get(archive, to_str(kKey), place_c.get(), tensor_c.get(), nullptr, &work);
    });
    c.calls().finish(work, context_.patience);
    return bytes_of(out.data(), out.size() * sizeof(float));
  }

  [[nodiscard]] ciuic_entry entry() const {
    ciuic_entry e{};
    e.struct_size = sizeof(e);
    e.key = to_str(kKey);
    e.dtype = kF32;
    e.ndim = static_cast<int32_t>(shape_.size());
    e.global_shape = shape_.data();
    e.bytes = values_.size() * sizeof(float);
    return e;
  }
  static ciuic_entry blob_entry() {
    ciuic_entry e{};
    e.struct_size = sizeof(e);
    e.flags = CIUIC_ENTRY_BLOB;
    e.key = to_str(kBlobKey);
    e.bytes = std::string_view(kBlob).size();
    return e;
  }

  std::vector<int64_t> shape_ = {6, 4};
  std::vector<float> values_ = std::vector<float>(24);
};

}  // namespace

std::unique_ptr<Exercise> exercise_checkpoint(const TestContext& context, Bench& bench) {
  return std::make_unique<CheckpointExercise>(context, bench);
}

}  // namespace ciuic::testing::contract
