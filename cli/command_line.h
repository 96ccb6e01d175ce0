#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <variant>
#include <vector>

#include "cli/remote.h"
#include "cli/start_position.h"

namespace millrace::cli {

struct TopicsCommand {
  enum class Action { kList, kCreate, kShow, kAlter, kDelete };
  Action action = Action::kList;
  std::string topic;
  std::optional<uint32_t> partitions;
  std::vector<std::pair<std::string, std::string>> configs;  ///< to set
  std::vector<std::string> unset;
  bool may_exist = false;    ///< create: --if-not-exists
  bool may_be_gone = false;  ///< delete: --if-exists
  bool names_only = false;
  uint64_t limit = 0;  ///< list: 0 for all
};

struct ProduceCommand {
  std::string topic;
  std::optional<std::string> key_separator;
  size_t batch_records = 1'000;
  size_t batch_bytes = 1 << 20;
  std::string idempotency_prefix;  ///< empty: a fresh UUID
  /// A batch that is not full goes when the input was silent for that long; nullopt: it waits.
  std::optional<std::chrono::milliseconds> linger = std::chrono::milliseconds(500);
  bool repartition = false;
  RetryPolicy retry;
};

struct ConsumeCommand {
  std::string topic;                 ///< the first of topics
  std::vector<std::string> topics;   ///< several with a group only
  std::optional<std::string> group;  ///< as a member of this group
  std::optional<std::string> instance_id;
  std::string session_timeout;  ///< as given; empty: the node's choice
  std::optional<uint32_t> partition;
  StartPosition from;
  bool follow = false;
  std::optional<uint64_t> limit;
  std::string format = "%s\\n";
  RetryPolicy retry;
};

struct GroupsCommand {
  enum class Action { kList, kShow, kDelete, kReset };
  Action action = Action::kList;
  std::string group;
  std::vector<std::string> topics;   ///< reset: none for all that have offsets
  std::vector<uint32_t> partitions;  ///< reset: none for all
  StartPosition to;
  bool dry_run = false;
  bool names_only = false;
};

struct NodeCommand {
  enum class Action { kShow, kHealth, kReady, kMetrics };
  Action action = Action::kShow;
};

struct WorkersCommand {
  enum class Action { kList, kStop };
  Action action = Action::kList;
  std::string id;
};

struct BackupCommand {
  enum class Action { kCreate, kList, kDelete, kVerify, kRestore };
  Action action = Action::kList;
  std::string name;
  std::string directory;  ///< of the backup: verify, restore
  std::string to;         ///< the data directory to be
  bool no_wait = false;
};

struct CompletionCommand {
  std::string script;
};

/// What is to be done.
struct CommandLine {
  std::string server;
  std::chrono::milliseconds timeout{30'000};  ///< without a byte from the server
  bool json = false;
  std::variant<TopicsCommand, ProduceCommand, ConsumeCommand, GroupsCommand, NodeCommand, WorkersCommand, BackupCommand,
               CompletionCommand>
      command;
};

/// Or the exit code when nothing is left to do, after printing: --help and --version to standard output, what is wrong
/// to standard error. Reads MILLRACE_SERVER.
tl::expected<CommandLine, int> parse_command_line(int argc, const char* const* argv);

/// "millrace 0.1.0 (revision 1a2b3c, Debug)"
std::string version_text();

/// Replaces \t \n \r \0 \\ and \xHH. nullopt for another escape.
std::optional<std::string> unescape(std::string_view text);

}  // namespace millrace::cli
