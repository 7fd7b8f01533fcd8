// SPDX-License-Identifier: MIT
//
// Where added tokens stand in a text: leftmost, the longest of several, those that are not
// normalized first. A text is cut there before any word is looked for.
//
// Thread rule: const.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/data/tokenizer/tokenizer_spec.h"

namespace ciuic::core {

class AddedTokens {
 public:
  /// An added token, or the text between two (id -1).
  struct Part {
    int32_t id = -1;
    size_t begin = 0;
    size_t end = 0;
  };

  explicit AddedTokens(const std::vector<AddedTokenSpec>& tokens);

  /// The parts of `text`, in order, none empty.
  void split(std::string_view text, std::vector<Part>& out) const;

  /// Whether what is found after a point depends on what stands before it.
  [[nodiscard]] bool looks_behind() const { return looks_behind_; }
  /// Whether a token takes spaces around it, any number.
  [[nodiscard]] bool strips() const { return strips_; }
  /// Bytes of the longest.
  [[nodiscard]] size_t longest() const { return longest_; }

 private:
  /// A trie, its edges by byte in sorted order.
  class Trie {
   public:
    void add(std::string_view content, int32_t token);
    /// The longest token at the front of `text`, or -1.
    [[nodiscard]] int32_t longest_at(std::string_view text) const;
    [[nodiscard]] bool may_begin_with(char byte) const {
      return begins_[static_cast<unsigned char>(byte)];
    }
    [[nodiscard]] bool is_empty() const { return nodes_.size() == 1; }

   private:
    struct Edge {
      unsigned char byte = 0;
      int32_t node = 0;
    };
    struct Node {
      int32_t token = -1;
      std::vector<Edge> edges;
    };
    std::vector<Node> nodes_ = std::vector<Node>(1);
    std::array<bool, 256> begins_{};
  };

  void split_part(const Trie& trie, std::string_view text, Part part, std::vector<Part>& out) const;

  std::vector<AddedTokenSpec> tokens_;
  Trie plain_;
  Trie normalized_;
  bool looks_behind_ = false;
  bool strips_ = false;
  size_t longest_ = 0;
};

}  // namespace ciuic::core
