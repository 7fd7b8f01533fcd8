// SPDX-License-Identifier: MIT
#include "checkpoint_format/put_buffer.h"

#include <algorithm>

#include <xxhash.h>

#include <ciuic/view.hpp>

#include "checkpoint_format/files.h"
#include "checkpoint_format/flat_range.h"
#include "checkpoint_format/tensor_types.h"

namespace ciuic::plugins::checkpoint {
namespace {

uint64_t mix(uint64_t seed, std::string_view bytes) {
  return XXH64(bytes.data(), bytes.size(), seed);
}

std::string describe(const Described& d) {
  return (d.is_blob ? "a blob " : type_name(d.dtype) + " ") + shape_text(d.shape);
}

/// Blobs compare by kind alone: the size announced for one is an estimate.
bool agrees(const Described& a, const Described& b) {
  return a.is_blob == b.is_blob && (a.is_blob || (same(a.dtype, b.dtype) && a.shape == b.shape));
}

}  // namespace

// ---- request ----

SaveRequest::SaveRequest(const ciuic_save_request& request)
    : path(path_of_uri(to_view(request.uri))), step(request.step) {
  fingerprint = mix(step, path);
  for (const ciuic_entry& e : ArrayView<ciuic_entry>(request.entries)) {
    const std::string_view key = to_view(e.key);
    check_key(key);
    Described d;
    d.is_blob = (e.flags & CIUIC_ENTRY_BLOB) != 0;
    if (d.is_blob) {
      d.dtype = kU8;
      d.shape = {static_cast<int64_t>(e.bytes)};
      bytes += e.bytes;
    } else {
      d.dtype = e.dtype;
      d.shape.assign(e.global_shape, e.global_shape + e.ndim);
      const auto elements = shape_elements(d.shape, d.dtype);
      if (!elements || d.shape.size() > kMaxDimensions) {
        throw Error(CIUIC_INVALID,
                    printable(key) + ": the shape " + shape_text(d.shape) + " is too large");
      }
      bytes += static_cast<uint64_t>(*elements) * type_bytes(d.dtype);
    }
    fingerprint = mix(fingerprint, std::string(key) + '\n' + (d.is_blob ? "a blob" : describe(d)));
    if (!entries.emplace(key, std::move(d)).second) {
      throw Error(CIUIC_INVALID, printable(key) + " is announced twice");
    }
  }
}

void check_announced(const SaveRequest& request,
                     const std::map<std::string, Described, std::less<>>& got) {
  if (request.entries.empty()) {
    return;
  }
  for (const auto& [key, announced] : request.entries) {
    const auto found = got.find(key);
    if (found == got.end()) {
      throw Error(CIUIC_INVALID, printable(key) + " was announced at begin, and no rank put it");
    }
    if (!agrees(announced, found->second)) {
      throw Error(CIUIC_INVALID, printable(key) + ": got " + describe(found->second) +
                                     ", announced at begin was " + describe(announced));
    }
  }
  for (const auto& [key, unused] : got) {
    if (request.entries.find(key) == request.entries.end()) {
      throw Error(CIUIC_INVALID, printable(key) + " was put, but not announced at begin");
    }
  }
}

// ---- puts ----

void PutBuffer::put(std::string_view key, const ciuic_place& place, const ciuic_tensor& tensor,
                    const ciuic_stream* stream) {
  try {
    check_key(key);
    (void)type_name(tensor.t.dtype);
    FlatRange range = flat_range(key, place, tensor);
    if (range.count == 0 && range.total > 0) {
      return;  // a rank without elements of this tensor
    }
    pieces_.push_back({std::string(key),
                       {false, tensor.t.dtype, std::move(range.shape)},
                       range.begin,
                       range.count,
                       HostBytes(host_, tensor, stream)});
  } catch (const Error& e) {
    refuse(e);
  }
}

void PutBuffer::put_blob(std::string_view key, std::string_view bytes) {
  try {
    check_key(key);
    const auto count = static_cast<int64_t>(bytes.size());
    pieces_.push_back({std::string(key), {true, kU8, {count}}, 0, count, HostBytes(bytes)});
  } catch (const Error& e) {
    refuse(e);
  }
}

void PutBuffer::refuse(Error error) {
  if (!refused_) {
    refused_ = error;
  }
  throw error;
}

void PutBuffer::check() const {
  if (refused_) {
    throw Error(*refused_);
  }
}

uint64_t PutBuffer::bytes() const noexcept {
  uint64_t sum = 0;
  for (const PutPiece& p : pieces_) {
    sum += p.bytes.size();
  }
  return sum;
}

// ---- tiling ----

std::optional<std::string> tiling_problem(std::vector<Span>& spans, int64_t total) {
  std::sort(spans.begin(), spans.end(),
            [](const Span& a, const Span& b) { return a.begin < b.begin; });
  int64_t expected = 0;
  std::string before;
  for (const Span& s : spans) {
    if (s.begin > expected) {
      break;
    }
    if (s.begin < expected) {
      return "element " + std::to_string(s.begin) + " comes from " + before + " and from " +
             s.owner;
    }
    expected = s.begin + s.count;
    before = s.owner;
  }
  if (expected != total) {
    return "element " + std::to_string(expected) + " of " + std::to_string(total) +
           " comes from nowhere";
  }
  return std::nullopt;
}

}  // namespace ciuic::plugins::checkpoint
