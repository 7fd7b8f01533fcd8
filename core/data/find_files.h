// SPDX-License-Identifier: MIT
//
// Which files the paths and globs of a configuration name, and of what kind each is.
#pragma once

#include <string>
#include <vector>

namespace ciuic::core {

enum class FileKind {
  Text,       // any other ending
  JsonLines,  // .jsonl
  Tokens      // .bin: Megatron's with an .idx beside it, else llm.c's
};

FileKind kind_of_file(const std::string& file);

/// The files that `patterns` (paths and globs) name, sorted by path, each once; an .idx stands for
/// its .bin. `key` ("data.train") names the setting. Throws: Failure (Usage) if a pattern matches
/// nothing, or names a folder or a kind of file that can't be read yet.
std::vector<std::string> find_files(const std::vector<std::string>& patterns,
                                    const std::string& key);

}  // namespace ciuic::core
