// SPDX-License-Identifier: MIT
#include "checkpoint_format/safetensors_header.h"

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include <ciuic/error.hpp>

#include "checkpoint_format/strict_json.h"
#include "checkpoint_format/tensor_types.h"

namespace ciuic::plugins::checkpoint {
namespace {

constexpr size_t kLengthBytes = 8;
constexpr const char* kMetadata = "__metadata__";

std::string counted(uint64_t bytes) { return std::to_string(bytes) + " bytes"; }

uint64_t read_length(std::string_view bytes) {
  uint64_t length = 0;
  for (size_t i = kLengthBytes; i-- > 0;) {
    length = (length << 8) | static_cast<unsigned char>(bytes[i]);
  }
  return length;
}

std::string write_length(uint64_t length) {
  std::string bytes;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    bytes += static_cast<char>((length >> (8 * i)) & 0xff);
  }
  return bytes;
}

/// Takes the header's JSON event by event, so that nothing is built from what is refused.
class HeaderReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  HeaderReader(const std::string& where, SafetensorsHeader& header)
      : where_(where), header_(header) {}

  bool start_object(size_t) override {
    switch (state_) {
      case State::Start:
        return enter(State::Top);
      case State::TensorValue:
        header_.tensors.push_back({name_, {}, {}, 0, 0});
        has_dtype_ = has_shape_ = has_offsets_ = false;
        fields_.clear();
        return enter(State::Tensor);
      case State::MetadataValue:
        return enter(State::Metadata);
      case State::Ignored:
        return descend();
      default:
        unexpected("an object");
    }
  }

  bool end_object() override {
    switch (state_) {
      case State::Top:
        return enter(State::End);
      case State::Tensor:
        finish_tensor();
        return enter(State::Top);
      case State::Metadata:
        return enter(State::Top);
      default:
        return ascend();
    }
  }

  bool key(string_t& text) override {
    switch (state_) {
      case State::Top:
        return top_key(text);
      case State::Tensor:
        return tensor_key(text);
      case State::Metadata:
        once(header_.metadata.try_emplace(text).second, text);
        name_ = text;
        return enter(State::MetadataText);
      default:
        return true;
    }
  }

  bool start_array(size_t) override {
    switch (state_) {
      case State::ShapeValue:
        return enter(State::Shape);
      case State::OffsetsValue:
        return enter(State::Offsets);
      case State::Ignored:
        return descend();
      default:
        unexpected("a list");
    }
  }

  bool end_array() override {
    switch (state_) {
      case State::Shape:
        return enter(State::Tensor);
      case State::Offsets:
        if (offsets_ != 2) {
          refuse("data_offsets has " + std::to_string(offsets_) + " numbers, expected 2");
        }
        return enter(State::Tensor);
      default:
        return ascend();
    }
  }

  bool string(string_t& text) override {
    if (state_ == State::DtypeValue) {
      const auto dtype = type_from_name(text);
      if (!dtype) {
        refuse("unknown dtype \"" + printable(text) + "\"");
      }
      tensor().dtype = *dtype;
      return enter(State::Tensor);
    }
    if (state_ == State::MetadataText) {
      header_.metadata[name_] = text;
      return enter(State::Metadata);
    }
    return scalar("a string");
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (state_ == State::Shape) {
      if (value > uint64_t{INT64_MAX}) {
        refuse("the dimension " + std::to_string(value) + " does not fit 63 bits");
      }
      if (tensor().shape.size() == kMaxDimensions) {
        refuse("more than " + std::to_string(kMaxDimensions) + " dimensions");
      }
      tensor().shape.push_back(static_cast<int64_t>(value));
      return true;
    }
    if (state_ == State::Offsets) {
      if (offsets_ < 2) {
        (offsets_ == 0 ? tensor().begin : tensor().end) = value;
      }
      ++offsets_;
      return true;
    }
    return scalar("a number");
  }

  bool number_integer(number_integer_t value) override {
    return number("the negative number " + std::to_string(value));
  }
  bool number_float(number_float_t, const string_t& text) override {
    return number("the number " + printable(text) + " (no integer, or beyond 64 bits)");
  }
  bool null() override { return scalar("null"); }
  bool boolean(bool) override { return scalar("a boolean"); }
  bool binary(binary_t&) override { return scalar("binary data"); }

  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception& e) override {
    damaged(where_, "header is no valid JSON at byte " + std::to_string(position) + ": " +
                        printable(e.what()));
  }

 private:
  enum class State {
    Start,
    Top,
    End,
    TensorValue,
    Tensor,
    DtypeValue,
    ShapeValue,
    Shape,
    OffsetsValue,
    Offsets,
    MetadataValue,
    Metadata,
    MetadataText,
    Ignored  // the value of a field that we do not know, depth_ levels deep
  };

  bool enter(State next) {
    state_ = next;
    return true;
  }
  bool descend() {
    if (++depth_ > 8) {
      refuse("JSON nested too deeply");
    }
    return true;
  }
  bool ascend() {
    if (--depth_ == 0) {
      state_ = State::Tensor;
    }
    return true;
  }

  bool top_key(const std::string& text) {
    if (text == kMetadata) {
      once(!std::exchange(has_metadata_, true), text);
      return enter(State::MetadataValue);
    }
    name_ = text;
    if (text.find('\0') != std::string::npos) {
      damaged(where_, "the tensor name \"" + printable(text) + "\" holds a NUL");
    }
    once(names_.insert(text).second, text);
    return enter(State::TensorValue);
  }

  bool tensor_key(const std::string& text) {
    once(fields_.insert(text).second, text);
    if (text == "dtype") {
      has_dtype_ = true;
      return enter(State::DtypeValue);
    }
    if (text == "shape") {
      has_shape_ = true;
      return enter(State::ShapeValue);
    }
    if (text == "data_offsets") {
      has_offsets_ = true;
      offsets_ = 0;
      return enter(State::OffsetsValue);
    }
    return enter(State::Ignored);
  }

  void finish_tensor() const {
    for (const auto& [is_there, field] :
         {std::pair(has_dtype_, "dtype"), std::pair(has_shape_, "shape"),
          std::pair(has_offsets_, "data_offsets")}) {
      if (!is_there) {
        refuse(std::string(field) + " is missing");
      }
    }
  }

  bool number(const std::string& what) {
    if (state_ == State::Shape) {
      refuse("shape holds " + what);
    }
    if (state_ == State::Offsets) {
      refuse("data_offsets holds " + what);
    }
    return scalar("a number");
  }

  /// A value that is neither object nor list, where only an ignored field may have one.
  bool scalar(const char* what) {
    if (state_ != State::Ignored) {
      unexpected(what);
    }
    if (depth_ == 0) {
      state_ = State::Tensor;
    }
    return true;
  }

  [[noreturn]] void unexpected(const char* got) const {
    switch (state_) {
      case State::Start:
        damaged(where_, std::string("header is ") + got + ", expected an object");
      case State::TensorValue:
        refuse(std::string("described by ") + got + ", expected an object");
      case State::DtypeValue:
        refuse(std::string("dtype is ") + got + ", expected a string");
      case State::ShapeValue:
        refuse(std::string("shape is ") + got + ", expected a list");
      case State::Shape:
        refuse(std::string("shape holds ") + got + ", expected numbers");
      case State::OffsetsValue:
        refuse(std::string("data_offsets is ") + got + ", expected a list");
      case State::Offsets:
        refuse(std::string("data_offsets holds ") + got + ", expected numbers");
      case State::MetadataValue:
        damaged(where_, std::string("__metadata__ is ") + got + ", expected an object");
      case State::MetadataText:
        damaged(where_,
                "__metadata__ \"" + printable(name_) + "\" is " + got + ", expected a string");
      default:
        damaged(where_, std::string("header: did not expect ") + got);
    }
  }

  [[noreturn]] void refuse(const std::string& what) const {
    damaged(where_, "tensor \"" + printable(name_) + "\": " + what);
  }
  void once(bool is_first, const std::string& text) const {
    if (!is_first) {
      damaged(where_, "the name \"" + printable(text) + "\" stands twice in one JSON object");
    }
  }
  TensorInfo& tensor() { return header_.tensors.back(); }

  const std::string& where_;
  SafetensorsHeader& header_;
  State state_ = State::Start;
  std::set<std::string> names_;   // of tensors so far
  std::set<std::string> fields_;  // of this tensor so far
  std::string name_;              // of this tensor or metadata text
  bool has_metadata_ = false, has_dtype_ = false, has_shape_ = false, has_offsets_ = false;
  int offsets_ = 0;
  int depth_ = 0;
};

/// Sizes and offsets: each tensor as long as its shape says, one after the other, up to the file's
/// end.
void check_layout(SafetensorsHeader& header, uint64_t file_bytes, const std::string& where) {
  auto& tensors = header.tensors;
  std::sort(tensors.begin(), tensors.end(), [](const TensorInfo& a, const TensorInfo& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  const uint64_t data_bytes = file_bytes - header.data_offset;
  uint64_t expected = 0;
  for (const TensorInfo& t : tensors) {
    const std::string who = where + ": tensor \"" + printable(t.name) + "\"";
    const std::string range =
        "data_offsets [" + std::to_string(t.begin) + ", " + std::to_string(t.end) + "]";
    if (t.end < t.begin) {
      damaged(who, range + " are reversed");
    }
    const auto elements = shape_elements(t.shape, t.dtype);
    if (!elements) {
      damaged(who, "the shape " + shape_text(t.shape) + " overflows 63 bits");
    }
    const uint64_t needed = static_cast<uint64_t>(*elements) * type_bytes(t.dtype);
    if (t.end - t.begin != needed) {
      damaged(who, range + " hold " + counted(t.end - t.begin) + ", " + type_name(t.dtype) + " " +
                       shape_text(t.shape) + " needs " + counted(needed));
    }
    if (t.begin != expected) {
      damaged(who, range + (t.begin < expected ? " overlap another tensor" : " leave a hole") +
                       ", expected begin " + std::to_string(expected));
    }
    if (t.end > data_bytes) {
      damaged(who, range + " reach beyond the file's " + counted(data_bytes) + " of data");
    }
    expected = t.end;
  }
  if (expected != data_bytes) {
    damaged(where, counted(data_bytes - expected) + " after the last tensor, expected none");
  }
}

}  // namespace

std::string read_safetensors_prefix(const File& file, uint64_t file_bytes) {
  const std::string& where = file.path();
  if (file_bytes < kLengthBytes) {
    damaged(where, "the file has " + counted(file_bytes) + ", expected at least 8");
  }
  std::string prefix(kLengthBytes, '\0');
  file.read(0, prefix.data(), kLengthBytes);
  const uint64_t length = read_length(prefix);
  if (length > kMaxHeaderBytes) {
    damaged(where, "a header of " + counted(length) + ", expected at most " +
                       std::to_string(kMaxHeaderBytes));
  }
  if (length > file_bytes - kLengthBytes) {
    damaged(where,
            "a header of " + counted(length) + " in a file of " + std::to_string(file_bytes));
  }
  prefix.resize(kLengthBytes + length);
  file.read(kLengthBytes, prefix.data() + kLengthBytes, length);
  return prefix;
}

SafetensorsHeader parse_safetensors_prefix(std::string_view prefix, uint64_t file_bytes,
                                           const std::string& where) {
  SafetensorsHeader header;
  header.data_offset = prefix.size();
  const std::string_view text = prefix.substr(kLengthBytes);
  if (text.empty() || text.front() != '{') {
    damaged(where, "header " +
                       (text.empty() ? std::string("is empty")
                                     : "starts with \"" + printable(text.substr(0, 1)) + "\"") +
                       ", expected \"{\"");
  }
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
    damaged(where, "header holds a NUL byte at " + std::to_string(nul));
  }
  HeaderReader reader(where, header);
  nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
  check_layout(header, file_bytes, where);
  return header;
}

SafetensorsHeader read_safetensors_header(const File& file) {
  const uint64_t bytes = file.size();
  return parse_safetensors_prefix(read_safetensors_prefix(file, bytes), bytes, file.path());
}

std::string make_safetensors_prefix(std::vector<TensorInfo>& tensors,
                                    const std::map<std::string, std::string>& metadata) {
  std::string text = "{";
  const auto add = [&text](const std::string& name, const std::string& value) {
    text += (text.size() == 1 ? "" : ",") + json_string(name) + ":" + value;
  };
  if (!metadata.empty()) {
    add(kMetadata, nlohmann::json(metadata).dump());
  }
  uint64_t at = 0;
  for (TensorInfo& t : tensors) {
    t.begin = at;
    t.end =
        at + static_cast<uint64_t>(shape_elements(t.shape, t.dtype).value()) * type_bytes(t.dtype);
    at = t.end;
    add(t.name, "{\"dtype\":\"" + type_name(t.dtype) +
                    "\",\"shape\":" + nlohmann::json(t.shape).dump() + ",\"data_offsets\":[" +
                    std::to_string(t.begin) + "," + std::to_string(t.end) + "]}");
  }
  text += "}";
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > kMaxHeaderBytes) {
    throw Error(CIUIC_INVALID, "a safetensors header of " + counted(text.size()) + " for " +
                                   std::to_string(tensors.size()) + " tensors, the format allows " +
                                   std::to_string(kMaxHeaderBytes));
  }
  return write_length(text.size()) + text;
}

}  // namespace ciuic::plugins::checkpoint
