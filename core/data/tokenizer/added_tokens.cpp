// SPDX-License-Identifier: MIT
#include "core/data/tokenizer/added_tokens.h"

#include <algorithm>

#include "core/data/tokenizer/character.h"

namespace ciuic::core {

void AddedTokens::Trie::add(std::string_view content, int32_t token) {
  begins_[static_cast<unsigned char>(content[0])] = true;
  size_t node = 0;
  for (const char c : content) {
    const auto byte = static_cast<unsigned char>(c);
    std::vector<Edge>& edges = nodes_[node].edges;
    const auto at = std::find_if(edges.begin(), edges.end(),
                                 [byte](const Edge& edge) { return edge.byte == byte; });
    if (at != edges.end()) {
      node = static_cast<size_t>(at->node);
      continue;
    }
    edges.push_back({byte, static_cast<int32_t>(nodes_.size())});
    node = nodes_.size();
    nodes_.emplace_back();
  }
  nodes_[node].token = token;
}

int32_t AddedTokens::Trie::longest_at(std::string_view text) const {
  int32_t best = -1;
  size_t node = 0;
  for (const char c : text) {
    const std::vector<Edge>& edges = nodes_[node].edges;
    const auto at = std::find_if(edges.begin(), edges.end(), [c](const Edge& edge) {
      return edge.byte == static_cast<unsigned char>(c);
    });
    if (at == edges.end()) {
      break;
    }
    node = static_cast<size_t>(at->node);
    best = nodes_[node].token >= 0 ? nodes_[node].token : best;
  }
  return best;
}

AddedTokens::AddedTokens(const std::vector<AddedTokenSpec>& tokens) : tokens_(tokens) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const AddedTokenSpec& token = tokens_[i];
    (token.is_normalized ? normalized_ : plain_).add(token.content, static_cast<int32_t>(i));
    looks_behind_ = looks_behind_ || token.is_single_word;
    strips_ = strips_ || token.strips_left || token.strips_right;
    longest_ = std::max(longest_, token.content.size());
  }
}

void AddedTokens::split(std::string_view text, std::vector<Part>& out) const {
  out.clear();
  if (text.empty()) {
    return;
  }
  std::vector<Part> first;
  split_part(plain_, text, {-1, 0, text.size()}, normalized_.is_empty() ? out : first);
  for (const Part& part : first) {
    part.id >= 0 ? out.push_back(part) : split_part(normalized_, text, part, out);
  }
}

void AddedTokens::split_part(const Trie& trie, std::string_view whole, Part part,
                             std::vector<Part>& out) const {
  const std::string_view text = whole.substr(part.begin, part.end - part.begin);
  const auto push = [&](int32_t id, size_t begin, size_t end) {
    if (begin < end) {
      out.push_back({id, part.begin + begin, part.begin + end});
    }
  };
  size_t done = 0;
  for (size_t at = 0; at < text.size() && !trie.is_empty();) {
    if (!trie.may_begin_with(text[at])) {
      ++at;
      continue;
    }
    const int32_t index = trie.longest_at(text.substr(at));
    if (index < 0) {
      ++at;
      continue;
    }
    const AddedTokenSpec& token = tokens_[static_cast<size_t>(index)];
    size_t begin = at;
    size_t end = at + token.content.size();
    at = end;
    if (token.is_single_word &&
        (ends_with_word(text.substr(0, begin)) || begins_with_word(text.substr(end)))) {
      continue;
    }
    if (token.strips_left) {
      begin = std::max(done, begin - spaces_at_end(text.substr(0, begin)));
    }
    if (token.strips_right) {
      end += spaces_at_begin(text.substr(end));
    }
    push(-1, done, begin);
    push(token.id, std::max(begin, done), end);
    done = end;
    at = std::max(at, done);
  }
  push(-1, done, text.size());
}

}  // namespace ciuic::core
