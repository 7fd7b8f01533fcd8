// SPDX-License-Identifier: MIT
#include "layout.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include <ciuic/view.hpp>

#include "checkpoint_format/safetensors_header.h"
#include "checkpoint_format/tensor_types.h"
#include "fp8_blocks.h"

namespace ciuic::plugins::safetensors {
namespace {

using checkpoint::Described;
using checkpoint::TensorInfo;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// layers.2 before layers.10.
bool in_order(std::string_view a, std::string_view b) {
  size_t i = 0;
  size_t k = 0;
  while (i < a.size() && k < b.size()) {
    if (!is_digit(a[i]) || !is_digit(b[k])) {
      if (a[i] != b[k]) {
        return a[i] < b[k];
      }
      ++i;
      ++k;
      continue;
    }
    const auto number = [](std::string_view text, size_t& at) {
      const size_t begin = at;
      while (at < text.size() && is_digit(text[at])) {
        ++at;
      }
      const size_t first = std::min(text.find_first_not_of('0', begin), at);
      return text.substr(first, at - first);
    };
    const std::string_view x = number(a, i);
    const std::string_view y = number(b, k);
    if (x != y) {
      return x.size() != y.size() ? x.size() < y.size() : x < y;
    }
  }
  return a.size() - i < b.size() - k || (a.size() - i == b.size() - k && a < b);
}

Matrix matrix_of(const Target& t) { return {t.shape[0], t.shape[1]}; }

uint64_t bytes_of(const std::vector<int64_t>& shape, ciuic_dtype dtype) {
  return static_cast<uint64_t>(checkpoint::shape_elements(shape, dtype).value()) *
         checkpoint::type_bytes(dtype);
}

std::vector<int64_t> scale_shape(const Target& t) {
  return {matrix_of(t).block_rows(), matrix_of(t).block_columns()};
}

uint64_t target_bytes(const Target& t) {
  return bytes_of(t.shape, t.stored) + (t.scale_offset ? bytes_of(scale_shape(t), kF32) : 0);
}

std::string file_name(size_t number, size_t count) {
  if (count == 1) {
    return kModelName;
  }
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "model-%05zu-of-%05zu.safetensors", number + 1, count);
  return text.data();
}

/// Headers and offsets of the files that the targets name.
void place(Layout& layout, size_t num_files, const std::map<std::string, std::string>& metadata) {
  struct Part {
    TensorInfo info;
    uint64_t* offset;
  };
  std::vector<std::vector<Part>> parts(num_files);
  for (auto& [key, t] : layout.targets) {
    parts[t.file].push_back({{t.name, t.stored, t.shape, 0, 0}, &t.offset});
    if (t.scale_offset) {
      parts[t.file].push_back(
          {{t.name + kScaleEnding, kF32, scale_shape(t), 0, 0}, &t.scale_offset.value()});
    }
    layout.data_bytes += target_bytes(t);
  }
  for (size_t n = 0; n < num_files; ++n) {
    // Wide elements first: then every tensor lies aligned to its own type.
    std::stable_sort(parts[n].begin(), parts[n].end(), [](const Part& a, const Part& b) {
      return checkpoint::type_bytes(a.info.dtype) > checkpoint::type_bytes(b.info.dtype);
    });
    std::vector<TensorInfo> infos;
    for (const Part& part : parts[n]) {
      infos.push_back(part.info);
    }
    layout.files.push_back(
        {file_name(n, num_files), checkpoint::make_safetensors_prefix(infos, metadata)});
    for (size_t i = 0; i < infos.size(); ++i) {
      *parts[n][i].offset = layout.files.back().prefix.size() + infos[i].begin;
    }
  }
}

}  // namespace

uint64_t Layout::file_bytes() const {
  uint64_t bytes = data_bytes;
  for (const File& file : files) {
    bytes += file.prefix.size();
  }
  return bytes;
}

WeightMap Layout::weight_map() const {
  WeightMap map;
  for (const auto& [key, t] : targets) {
    map.emplace(t.name, files[t.file].name);
    if (t.scale_offset) {
      map.emplace(t.name + kScaleEnding, files[t.file].name);
    }
  }
  return map;
}

Layout file_layout(const DescribedTensors& tensors,
                   const std::map<std::string, std::string>& metadata) {
  Layout layout;
  for (const auto& [key, d] : tensors) {
    layout.targets.emplace(key, Target{key, d.shape, d.dtype, d.dtype, 0, 0, std::nullopt});
  }
  place(layout, 1, metadata);
  return layout;
}

Layout folder_layout(const DescribedTensors& tensors, std::string_view key_prefix, ExportType type,
                     uint64_t max_file_bytes) {
  Layout layout;
  std::vector<Target*> order;
  for (const auto& [key, d] : tensors) {
    Target t{key.substr(key_prefix.size()), d.shape, d.dtype, d.dtype, 0, 0, std::nullopt};
    t.stored = exported_dtype(t.name, t.put, t.shape, type);
    if (t.stored.code == CIUIC_DTYPE_FLOAT8_E4M3FN) {
      t.scale_offset = 0;
    }
    order.push_back(&layout.targets.emplace(key, std::move(t)).first->second);
  }
  std::sort(order.begin(), order.end(),
            [](const Target* a, const Target* b) { return in_order(a->name, b->name); });
  size_t file = 0;
  uint64_t filled = 0;
  for (Target* t : order) {
    const uint64_t bytes = target_bytes(*t);
    if (filled > 0 && bytes > max_file_bytes - std::min(filled, max_file_bytes)) {
      ++file;
      filled = 0;
    }
    t->file = file;
    filled += bytes;
  }
  place(layout, file + 1, {{"format", "pt"}});
  return layout;
}

}  // namespace ciuic::plugins::safetensors
