// SPDX-License-Identifier: MIT
#include "tools/ciuic/arguments.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <unistd.h>

#include "core/launch/environment.h"

namespace ciuic::tools {

namespace po = boost::program_options;

CommandLine::CommandLine(std::string name, std::string usage, std::string about,
                         std::string examples)
    : name_(std::move(name)),
      usage_(std::move(usage)),
      about_(std::move(about)),
      examples_(std::move(examples)),
      visible_("Options", 100, 60) {
  visible_.add_options()("help,h", "Shows this page");
}

void CommandLine::positional(const std::string& name, int count) {
  positional_.add(name.c_str(), count);
  hidden_.add_options()(name.c_str(), po::value<std::vector<std::string>>());
}

std::optional<po::variables_map> CommandLine::parse(const Arguments& arguments) {
  po::variables_map values;
  try {
    po::options_description all;
    all.add(visible_).add(hidden_);
    // No guessing: an abbreviated option would change its meaning when a new one is added.
    const auto style =
        po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
    po::store(
        po::command_line_parser(arguments).options(all).positional(positional_).style(style).run(),
        values);
    po::notify(values);
  } catch (const po::error& e) {
    throw usage_failure(e.what());
  }
  if (values.count("help") != 0) {
    std::cout << "usage: " << usage_ << "\n\n" << about_ << "\n\n" << visible_;
    if (!examples_.empty()) {
      std::cout << "\nExamples:\n" << examples_;
    }
    return std::nullopt;
  }
  return values;
}

core::Failure CommandLine::usage_failure(const std::string& what) const {
  return core::Failure(core::ExitCode::Usage, what, "see ciuic " + name_ + " --help");
}

void add_threads_option(CommandLine& line) {
  line.options().add_options()("threads", po::value<int>()->default_value(0)->value_name("N"),
                               "Compute threads; 0: one for each usable core");
}

int threads_of(const CommandLine& line, const po::variables_map& values) {
  const int threads = values["threads"].as<int>();
  if (threads < 0 || threads > 4096) {
    throw line.usage_failure("--threads: got " + std::to_string(threads) + ", expected 0 to 4096");
  }
  return threads > 0 ? threads : core::usable_cores();
}

void add_log_options(CommandLine& line) {
  line.options().add_options()("quiet,q", "Shows warnings and errors only")(
      "verbose,v", "Shows debug lines too")("log-level",
                                            po::value<std::string>()->value_name("LEVEL"),
                                            "trace, debug, info, warn, error or off");
}

core::LogLevel terminal_level(const po::variables_map& values) {
  if (values.count("log-level") != 0) {
    return core::parse_log_level(get(values, "log-level"));
  }
  if (values.count("quiet") != 0) {
    return core::LogLevel::Warn;
  }
  return values.count("verbose") != 0 ? core::LogLevel::Debug : core::LogLevel::Info;
}

bool has_color(int fd) {
  const char* no_color = std::getenv("NO_COLOR");
  return isatty(fd) != 0 && (no_color == nullptr || *no_color == '\0');
}

void add_train_options(CommandLine& line) {
  line.options().add_options()(
      "set", po::value<std::vector<std::string>>()->composing()->value_name("KEY=VALUE"),
      "Overrides one key of the file; may be given often")(
      "ranks", po::value<int>()->value_name("N"), "Processes to start (run.ranks)")(
      "resume", po::value<std::string>()->default_value("auto")->value_name("WHERE"),
      "auto: the newest checkpoint that verifies, or the start; none: afresh, an old folder is "
      "moved aside; or a "
      "checkpoint's path")("lines", "One line a step, on a terminal too")(
      "debug", po::value<std::string>()->value_name("WHAT"),
      "numbers: name the first tensor of a step that is not finite, and keep its module's operands "
      "for ciuic replay; slow");
  add_log_options(line);
  line.positional("file", 1);
}

std::string get(const po::variables_map& values, const std::string& name) {
  const auto& value = values[name];
  if (value.empty()) {
    return "";
  }
  if (const auto* many = boost::any_cast<std::vector<std::string>>(&value.value())) {
    return many->empty() ? "" : many->front();
  }
  return value.as<std::string>();
}

std::vector<std::string> get_all(const po::variables_map& values, const std::string& name) {
  const auto& value = values[name];
  return value.empty() ? std::vector<std::string>{} : value.as<std::vector<std::string>>();
}

namespace {

/// Whether all that was printed has left: a full disk is seen at the end at the latest.
bool stdout_is_written() {
  std::cout.flush();
  return std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good();
}

}  // namespace

std::vector<std::string> folders_of(const po::variables_map& values, const std::string& name) {
  std::vector<std::string> folders = get_all(values, name);
  for (const std::string& folder : folders) {
    std::error_code ec;
    std::filesystem::directory_iterator(folder, ec);
    if (ec) {
      throw core::Failure(core::ExitCode::Usage,
                          "--" + name + ": got " + folder + ", expected a folder: " + ec.message(),
                          "give a folder that can be read");
    }
  }
  return folders;
}

int run_command(const std::function<int()>& command,
                const std::function<void(const std::string&)>& show) {
  try {
    const int code = command();
    if (!stdout_is_written() && code == 0) {
      throw core::Failure(core::ExitCode::Storage, "cannot write to stdout", "is the disk full?");
    }
    return code;
  } catch (const std::exception& e) {
    const core::Failure failure = core::to_failure(e);
    if (failure.code() != core::ExitCode::Stopped) {
      show(format(failure));
    }
    return static_cast<int>(failure.code());
  }
}

}  // namespace ciuic::tools
