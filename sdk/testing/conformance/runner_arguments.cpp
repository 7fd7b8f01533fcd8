// SPDX-License-Identifier: MIT
#include "runner_arguments.hpp"

#include <cmath>
#include <cstdlib>
#include <cstring>

namespace ciuic::testing {
namespace {

double default_patience() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 5;
#else
  return 1;
#endif
}

/// Walks argv: options may be written `--key value` or `--key=value`.
class Words {
 public:
  Words(int argc, const char* const* argv) : words_(argv + 1, argv + argc) {}

  bool next(std::string& word) {
    if (at_ == words_.size()) {
      return false;
    }
    word = words_[at_++];
    name_ = word;
    value_.clear();
    has_value_ = false;
    const size_t equals = word.find('=');
    if (word.rfind("--", 0) == 0 && equals != std::string::npos) {
      value_ = word.substr(equals + 1);
      has_value_ = true;
      name_ = word = word.substr(0, equals);
    }
    return true;
  }
  std::string value() {
    if (has_value_) {
      has_value_ = false;
      return value_;
    }
    if (at_ == words_.size()) {
      throw UsageError(name_ + " needs a value");
    }
    return words_[at_++];
  }
  [[nodiscard]] bool value_unused() const { return has_value_; }

 private:
  std::vector<std::string> words_;
  size_t at_ = 0;
  std::string name_, value_;
  bool has_value_ = false;
};

double positive_number(const std::string& option, const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(value) || value <= 0) {
    throw UsageError(option + ": got \"" + text + "\", expected a number above 0");
  }
  return value;
}

uint64_t whole_number(const std::string& option, const std::string& text) {
  char* end = nullptr;
  const uint64_t value = std::strtoull(text.c_str(), &end, 0);
  if (text.empty() || *end != '\0' || text[0] == '-') {
    throw UsageError(option + ": got \"" + text + "\", expected a whole number");
  }
  return value;
}

int level_number(const std::string& text) {
  if (text.size() != 1 || text[0] < '0' || text[0] > '4') {
    throw UsageError("--level: got \"" + text + "\", expected 0 to 4");
  }
  return text[0] - '0';
}

std::pair<std::string, std::string> setting(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw UsageError("--set: got \"" + text + "\", expected key=value");
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

Format list_format(const std::string& text) {
  if (text == "text") {
    return Format::Text;
  }
  if (text == "md") {
    return Format::Markdown;
  }
  throw UsageError("--format: got \"" + text + "\", expected text or md");
}

bool take_flag(Arguments& out, const std::string& word) {
  if (word == "--help" || word == "-h") {
    return out.help = true;
  }
  if (word == "--list") {
    return out.list = true;
  }
  if (word == "--json") {
    return out.json = true;
  }
  return false;
}

bool take_option(Arguments& out, const std::string& word, Words& words) {
  if (word == "--plugin") {
    out.plugin = words.value();
  } else if (word == "--level") {
    out.level = level_number(words.value());
  } else if (word == "--test") {
    out.tests.push_back(words.value());
  } else if (word == "--set") {
    out.settings.push_back(setting(words.value()));
  } else if (word == "--seed") {
    out.seed = whole_number(word, words.value());
  } else if (word == "--patience") {
    out.patience = positive_number(word, words.value());
  } else if (word == "--soak-seconds") {
    out.soak_seconds = positive_number(word, words.value());
  } else if (word == "--junit") {
    out.junit = words.value();
  } else if (word == "--expect-failure") {
    out.expect_failure = words.value();
  } else if (word == "--format") {
    out.format = list_format(words.value());
  } else {
    return false;
  }
  return true;
}

}  // namespace

Arguments parse_arguments(int argc, const char* const* argv) {
  Arguments out;
  out.patience = default_patience();
  Words words(argc, argv);
  std::string word;
  while (words.next(word)) {
    if (!take_flag(out, word) && !take_option(out, word, words)) {
      if (word.rfind('-', 0) == 0) {
        throw UsageError("unknown option " + word);
      }
      if (!out.path.empty()) {
        throw UsageError("got two files, " + out.path + " and " + word + "; expected one");
      }
      out.path = word;
    }
    if (words.value_unused()) {
      throw UsageError(word + " takes no value");
    }
  }
  if (out.path.empty() && !out.list && !out.help) {
    throw UsageError("which plugin? The file is missing");
  }
  return out;
}

const char* usage() {
  return R"(usage: ciuic-check PLUGIN.so [options]

Runs the conformance tests of ciuic on a plugin library, each in a process of its own.

  --plugin NAME         one plugin of a library that holds several (default: all)
  --level N             tests up to this level (default 3)
                          0 the file   1 loading   2 the contract of every kind
                          3 the kind's own contract   4 swap and soak
  --test ID             only this test, of any level; may be given again; with * in it those of
                        the levels up to --level that match
  --set KEY=VALUE       an option of the plugin, as in a config file: 64MiB, 30s, 2B, true
  --seed N              all random numbers come from it
  --patience X          multiply time limits by X (default 1; 5 under sanitizers)
  --soak-seconds S      how long each soak test goes on (default 60)
  --junit FILE          also write a JUnit report
  --json                write one JSON object to stdout, and nothing else; with the key "error"
                        where the file cannot be loaded
  --list [--format md]  show the tests and what they prove; with a file: those for its plugins
  --expect-failure ID   run this test alone; exit 0 if the plugin fails it
  -h, --help

exit codes: 0 all passed, 1 a test failed, 2 usage, 3 the file cannot be loaded as a plugin,
            6 a report cannot be written
)";
}

}  // namespace ciuic::testing
