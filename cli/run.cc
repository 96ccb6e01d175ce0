#include "cli/run.h"

#include <algorithm>

#include "cli/backup.h"
#include "cli/consume.h"
#include "cli/groups.h"
#include "cli/node.h"
#include "cli/produce.h"
#include "cli/topics.h"
#include "cli/workers.h"

namespace millrace::cli {
namespace {

/// A stream is silent between its heartbeats, which come every 15 seconds.
constexpr std::chrono::milliseconds kStreamSilence{45'000};

/// A member that joins waits for the others, who may take their rebalance time-out of a minute.
constexpr std::chrono::milliseconds kRebalance{75'000};

struct Runner {
  const CommandLine& line;
  Remote& remote;
  Console& console;

  Done operator()(const TopicsCommand& command) const { return topics(command, line.json, remote, console); }
  Done operator()(const ProduceCommand& command) const { return produce(command, line.json, remote, console); }
  Done operator()(const ConsumeCommand& command) const { return consume(command, line.json, remote, console); }
  Done operator()(const GroupsCommand& command) const { return groups(command, line.json, remote, console); }
  Done operator()(const NodeCommand& command) const { return node(command, line.json, remote, console); }
  Done operator()(const WorkersCommand& command) const { return workers(command, line.json, remote, console); }
  Done operator()(const BackupCommand& command) const { return backup(command, line.json, remote, console); }
  Done operator()(const CompletionCommand& command) const { return console.write(command.script); }
};

Done carry_out(const CommandLine& line, Console& console, Interrupts& interrupts) {
  auto timeout = line.timeout;
  const auto* consuming = std::get_if<ConsumeCommand>(&line.command);
  if (consuming != nullptr && consuming->follow) timeout = std::max(timeout, kStreamSilence);
  if (consuming != nullptr && consuming->group) timeout = std::max(timeout, kRebalance);
  auto remote = Remote::create(line.server, timeout, interrupts);
  if (!remote) return tl::unexpected(std::move(remote.error()));
  return std::visit(Runner{line, **remote, console}, line.command);
}

}  // namespace

int run(const CommandLine& line, Console& console, Interrupts& interrupts) {
  Done outcome = carry_out(line, console, interrupts);
  Done written = console.flush();
  if (outcome && !written) outcome = written;
  if (outcome) return kExitOk;
  // Whoever read our output has what they wanted; the interrupt was only how we noticed.
  if (outcome.error().exit == kExitInterrupted && interrupts.reader_gone()) return kExitOk;
  if (!outcome.error().text.empty()) console.say(outcome.error().text);
  return outcome.error().exit;
}

}  // namespace millrace::cli
