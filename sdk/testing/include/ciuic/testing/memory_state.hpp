// SPDX-License-Identifier: MIT
//
// A state in memory, shared by the ranks of a test: writers put placed pieces, readers get any
// other pieces, as after a checkpoint at another world size. It knows which elements were written
// twice or never.
#pragma once

#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <ciuic/abi/state.h>
#include <ciuic/testing/numbers.hpp>
#include <ciuic/testing/test_host.hpp>

namespace ciuic::testing {

class MemoryState {
 public:
  struct Entry {
    ciuic_dtype dtype{};
    std::vector<int64_t> shape;
    std::vector<char> data;
    std::vector<int> written;  // how often, by element

    [[nodiscard]] double at(int64_t index) const {
      return load_element(dtype, data.data() + index * dtype_bytes(dtype));
    }
  };

  // ---- what a test puts in and looks at ----

  void put(const std::string& key, std::vector<int64_t> shape, const std::vector<double>& values,
           ciuic_dtype dtype = kF32) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Entry& entry = make(key, dtype, std::move(shape));
    for (size_t i = 0; i < values.size(); ++i) {
      store_element(dtype, entry.data.data() + static_cast<int64_t>(i) * dtype_bytes(dtype),
                    values[i]);
      entry.written[i] = 1;
    }
  }
  [[nodiscard]] const std::map<std::string, Entry>& entries() const { return entries_; }
  [[nodiscard]] const std::map<std::string, std::string>& blobs() const { return blobs_; }
  [[nodiscard]] bool has(const std::string& key) const { return entries_.count(key) > 0; }
  [[nodiscard]] const Entry& entry(const std::string& key) const { return entries_.at(key); }
  void erase(const std::string& key) {
    entries_.erase(key);
    blobs_.erase(key);
  }
  void put_blob(const std::string& key, std::string bytes) { blobs_[key] = std::move(bytes); }
  /// Everything that the other one holds, and nothing else.
  void copy_from(const MemoryState& o) {
    entries_ = o.entries_;
    blobs_ = o.blobs_;
  }

  /// Keys with an element that was not written exactly once.
  [[nodiscard]] std::vector<std::string> uneven() const {
    std::vector<std::string> out;
    for (const auto& [key, entry] : entries_) {
      for (const int times : entry.written) {
        if (times != 1) {
          out.push_back(key);
          break;
        }
      }
    }
    return out;
  }
  /// Same keys, types, shapes and bits.
  [[nodiscard]] bool operator==(const MemoryState& o) const {
    if (entries_.size() != o.entries_.size() || blobs_ != o.blobs_) {
      return false;
    }
    for (const auto& [key, a] : entries_) {
      const auto b = o.entries_.find(key);
      if (b == o.entries_.end() || !same(a.dtype, b->second.dtype) || a.shape != b->second.shape ||
          a.data != b->second.data) {
        return false;
      }
    }
    return true;
  }

  // ---- what an instance is handed ----

  /// For one rank: errors are made by its host. Valid as long as this object.
  [[nodiscard]] const ciuic_writer* writer(Host host) {
    Port& port = open(host);
    port.writer.blob = [](void* ctx, ciuic_str key, const void* data, size_t size) {
      return guard(port_of(ctx).host, [&] {
        MemoryState& s = *port_of(ctx).state;
        const std::lock_guard<std::mutex> lock(s.mutex_);
        s.blobs_[std::string(to_view(key))] = std::string(static_cast<const char*>(data), size);
      });
    };
    port.writer.tensor = [](void* ctx, ciuic_str key, const ciuic_place* place,
                            const ciuic_tensor* tensor, const ciuic_stream*) {
      return guard(port_of(ctx).host,
                   [&] { port_of(ctx).state->write(std::string(to_view(key)), *place, *tensor); });
    };
    return &port.writer;
  }
  [[nodiscard]] const ciuic_reader* reader(Host host, uint64_t schema = 1) {
    Port& port = open(host);
    port.reader.schema = schema;
    port.reader.list = [](void* ctx, ciuic_array* entries) {
      return guard(port_of(ctx).host, [&] { *entries = port_of(ctx).state->list(port_of(ctx)); });
    };
    port.reader.blob = [](void* ctx, ciuic_str key, const void** data, size_t* size) {
      return guard(port_of(ctx).host, [&] {
        const auto& blobs = port_of(ctx).state->blobs_;
        const auto found = blobs.find(std::string(to_view(key)));
        if (found == blobs.end()) {
          throw Error(CIUIC_NOT_FOUND, "no blob " + std::string(to_view(key)));
        }
        *data = found->second.data();
        *size = found->second.size();
      });
    };
    port.reader.tensor = [](void* ctx, ciuic_str key, const ciuic_place* place,
                            const ciuic_tensor* into, const ciuic_stream*, ciuic_work** work) {
      *work = nullptr;
      return guard(port_of(ctx).host,
                   [&] { port_of(ctx).state->read(std::string(to_view(key)), *place, *into); });
    };
    return &port.reader;
  }

 private:
  struct Port {
    MemoryState* state;
    Host host;
    ciuic_writer writer;
    ciuic_reader reader;
    std::vector<ciuic_entry> listed{};
  };
  static Port& port_of(void* ctx) { return *static_cast<Port*>(ctx); }

  Port& open(Host host) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Port& port = ports_.emplace(next_port_++, Port{this, host, {}, {}}).first->second;
    port.writer.struct_size = sizeof(port.writer);
    port.writer.ctx = &port;
    port.reader.struct_size = sizeof(port.reader);
    port.reader.ctx = &port;
    return port;
  }

  ciuic_array list(Port& port) {
    const std::lock_guard<std::mutex> lock(mutex_);
    port.listed.clear();
    for (const auto& [key, entry] : entries_) {
      port.listed.push_back({sizeof(ciuic_entry), 0, to_str(key), entry.dtype,
                             static_cast<int32_t>(entry.shape.size()), entry.shape.data(),
                             entry.data.size()});
    }
    for (const auto& [key, bytes] : blobs_) {
      port.listed.push_back({sizeof(ciuic_entry), CIUIC_ENTRY_BLOB, to_str(key), ciuic_dtype{}, 0,
                             nullptr, bytes.size()});
    }
    return to_array(port.listed);
  }

  Entry& make(const std::string& key, ciuic_dtype dtype, std::vector<int64_t> shape) {
    Entry& entry = entries_[key];
    int64_t count = 1;
    for (const int64_t n : shape) {
      count *= n;
    }
    entry.dtype = dtype;
    entry.shape = std::move(shape);
    entry.data.resize(static_cast<size_t>(count * dtype_bytes(dtype)));
    entry.written.resize(static_cast<size_t>(count));
    return entry;
  }

  void write(const std::string& key, const ciuic_place& place, const ciuic_tensor& tensor) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::vector<int64_t> shape(place.global_shape, place.global_shape + place.ndim);
    const auto found = entries_.find(key);
    Entry& entry = found == entries_.end() ? make(key, tensor.t.dtype, shape) : found->second;
    if (entry.shape != shape || !same(entry.dtype, tensor.t.dtype)) {
      throw Error(CIUIC_INVALID, key + " is written with two shapes or types");
    }
    const int64_t bytes = dtype_bytes(entry.dtype);
    for (int64_t i = 0; i < num_elements(tensor); ++i) {
      const int64_t at = global_index(place, place.begin + i);
      std::memcpy(entry.data.data() + at * bytes, element_at(tensor, i),
                  static_cast<size_t>(bytes));
      ++entry.written[static_cast<size_t>(at)];
    }
  }
  void read(const std::string& key, const ciuic_place& place, const ciuic_tensor& into) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = entries_.find(key);
    if (found == entries_.end()) {
      throw Error(CIUIC_NOT_FOUND, "no tensor " + key);
    }
    for (int64_t i = 0; i < num_elements(into); ++i) {
      store_element(into.t.dtype, element_at(into, i),
                    found->second.at(global_index(place, place.begin + i)));
    }
  }

  std::mutex mutex_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::string> blobs_;
  std::map<int, Port> ports_;
  int next_port_ = 0;
};

}  // namespace ciuic::testing
