// SPDX-License-Identifier: MIT
//
// Level 4: offsets that 32 bits cannot hold, and a long run of random faults.
#include <chrono>
#include <random>
#include <sys/mman.h>

#include "checkpoint_tests.hpp"
#include "faults.hpp"
#include "ranks.hpp"

namespace ciuic::testing::checkpoint {
namespace {

/// Zeros that take no memory until they are written.
class Zeros {
 public:
  explicit Zeros(size_t bytes)
      : bytes_(bytes),
        data_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (data_ == MAP_FAILED) {
      throw NotOffered("this machine maps no " + std::to_string(bytes) + " bytes");
    }
  }
  Zeros(const Zeros&) = delete;
  Zeros& operator=(const Zeros&) = delete;
  ~Zeros() { ::munmap(data_, bytes_); }
  [[nodiscard]] char* data() const { return static_cast<char*>(data_); }

 private:
  size_t bytes_;
  void* data_;
};

}  // namespace

void large_offsets(const TestContext& context) {
  constexpr int64_t kElements = (int64_t{9} << 27) + 5;  // of 4 bytes: 4.5 GiB and 20 bytes
  const Zeros zeros(static_cast<size_t>(kElements) * 4);
  const Value mark = random_tensor(kF32, {4}, context.seed);
  const Value tail = random_tensor(kF32, {1000}, context.seed + 1);
  const std::vector<int64_t> marks = {0, int64_t{1} << 29, (int64_t{1} << 30) - 2, kElements - 4};
  for (const int64_t at : marks) {
    mark.bytes.copy(zeros.data() + at * 4, 16);
  }
  MemoryFiles files;
  files.make_directory(kFolder);
  IoPlan plan;
  Ranks ranks(context, files, plan);
  {
    const OpenArchive archive = ranks.rank().begin(kUri, 1, {});
    const Tensor tensor(zeros.data(), kF32, {kElements}, {CIUIC_DEVICE_CPU, 0},
                        CIUIC_TENSOR_READ_ONLY | CIUIC_TENSOR_STABLE);
    archive.put_at("value/large", Place({kElements}).c(), tensor.c());
    archive.put("value/tail", tail, {0, 1000});
    archive.put_blob("config.json", "{}");
    archive.commit();
  }
  const OpenArchive archive = ranks.rank().open(kUri);
  Value like;
  like.dtype = kF32;
  like.shape = {kElements};
  for (const int64_t at : marks) {
    require(archive.get("value/large", like, {at, 4}) == mark.bytes,
            "a tensor of 4.5 GiB: elements from " + std::to_string(at) + " have other bits");
  }
  require(archive.get("value/tail", tail, {0, 1000}) == tail.bytes,
          "the tensor after one of 4.5 GiB has other bits");
}

void fault_soak(const TestContext& context) {
  std::mt19937_64 random(context.seed);
  const std::vector<Scenario> scenarios = {
      {IoFault::Error, CIUIC_DATA_LOSS, {}, 3, false},
      {IoFault::Error, CIUIC_EXHAUSTED, {}, 1, true},
      {IoFault::ShortWrite, CIUIC_EXHAUSTED, {}, 2, true},
      {IoFault::Kill, CIUIC_DATA_LOSS, {}, 3, true},
      {IoFault::Kill, CIUIC_DATA_LOSS, PowerCut::OnlySynced, 2, true},
      {IoFault::Kill, CIUIC_DATA_LOSS, PowerCut::NamesOnly, 3, false},
      {IoFault::Kill, CIUIC_DATA_LOSS, PowerCut::Random, 1, true},
      {IoFault::Kill, CIUIC_DATA_LOSS, PowerCut::Random, 3, true}};
  std::vector<FaultySave> offered;
  for (const Scenario& scenario : scenarios) {
    try {
      offered.emplace_back(context, scenario);
    } catch (const NotOffered&) {  // this number of ranks, or a save over a checkpoint
    }
  }
  if (offered.empty()) {
    throw NotOffered("none of the scenarios");
  }
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(context.soak_seconds);
  while (Clock::now() < end) {
    FaultySave& save = offered[random() % offered.size()];
    (void)save.run(static_cast<int64_t>(1 + random() % 64), random());
  }
}

}  // namespace ciuic::testing::checkpoint
