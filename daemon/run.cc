#include "daemon/run.h"

#include <cstdio>
#include <exception>
#include <string>

#include "base/standard_files.h"
#include "config/load.h"
#include "daemon/command_line.h"
#include "daemon/exit_code.h"
#include "daemon/logging.h"
#include "daemon/service.h"

namespace millrace::daemon {
namespace {

int answer(const std::string& text) {
  bool written = std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  return written ? kExitOk : kExitIo;
}

int run(int argc, const char* const* argv, Processors processors) {
  auto command = parse_command_line(argc, argv);
  if (!command) return command.error();
  auto loaded = config::load(command->sources);
  if (!loaded) {
    std::fputs(to_string(loaded.error()).c_str(), stderr);
    return kExitConfig;
  }
  switch (command->task) {
    case CommandLine::Task::kCheckConfig:
      return answer("the configuration is valid\n");
    case CommandLine::Task::kPrintConfig:
      return answer(config::print(*loaded));
    case CommandLine::Task::kRun:
      break;
  }
  set_up_logging(loaded->config.node.log_format, loaded->config.node.log_level);
  auto start = [accept_loss = command->accept_loss, &processors](const config::Config& config, Health& health,
                                                                 Node::OnFatal on_fatal) {
    return Node::start(config, health, std::move(on_fatal), {std::move(processors), accept_loss});
  };
  return Service(std::move(*loaded), std::move(command->sources), start).run();
}

}  // namespace

int run_daemon(int argc, char** argv, Processors processors) {
  fill_standard_files();
  try {
    return run(argc, argv, std::move(processors));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "millraced: internal error: %s\n", error.what());
    return kExitInternal;
  }
}

}  // namespace millrace::daemon
