// SPDX-License-Identifier: MIT
#include "core/train/metrics_file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "core/log/failure.h"

namespace ciuic::core {
namespace {

[[noreturn]] void fail(const std::string& path) {
  throw Failure(ExitCode::Storage, std::string("cannot write metrics: ") + std::strerror(errno), "",
                {{"file", path}, {"errno", std::to_string(errno)}});
}

struct Contents {
  uint64_t runs = 0;
  int64_t whole_bytes = 0;  // up to and with the last newline
};

Contents look(const std::string& path) {
  Contents contents;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line) && !file.eof();) {
    contents.whole_bytes += static_cast<int64_t>(line.size()) + 1;
    const auto json = nlohmann::json::parse(line, nullptr, false);
    contents.runs += json.is_object() && json.contains("type") && json["type"] == "run" ? 1 : 0;
  }
  return contents;
}

}  // namespace

MetricsFile::MetricsFile(const std::string& path) : path_(path) {
  const Contents contents = look(path);
  attempt_ = contents.runs + 1;
  fd_ = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd_ < 0 || ftruncate(fd_, contents.whole_bytes) != 0) {
    fail(path);
  }
}

MetricsFile::~MetricsFile() {
  if (fd_ >= 0) {
    close(fd_);
  }
}

void MetricsFile::correct_end(const std::string& path, int exit_code) {
  std::ifstream file(path);
  std::string last;
  for (std::string line; std::getline(file, line);) {
    last = std::move(line);
  }
  const auto json = nlohmann::json::parse(last, nullptr, false);
  if (!json.is_object() || json.value("type", nlohmann::json()) != "end" ||
      json.value("exit_code", nlohmann::json()) == exit_code) {
    return;
  }
  JsonLine line("end");
  line.add("exit_code", exit_code);
  const auto seconds = json.find("seconds");
  if (seconds != json.end() && seconds->is_number()) {
    line.add("seconds", seconds->get<double>());
  }
  MetricsFile(path).write(line);
}

void MetricsFile::write(const JsonLine& line) {
  const std::string text = line.text();
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::write(fd_, text.data() + done, text.size() - done);
    if (n < 0 && errno != EINTR) {
      fail(path_);
    }
    done += n > 0 ? static_cast<size_t>(n) : 0;
  }
}

}  // namespace ciuic::core
