#include "cli/node.h"

#include "cli/json_text.h"
#include "cli/table.h"

namespace millrace::cli {
namespace {

const char* target_of(NodeCommand::Action action) {
  switch (action) {
    case NodeCommand::Action::kShow:
      return "/v1/node";
    case NodeCommand::Action::kHealth:
      return "/v1/node/health";
    case NodeCommand::Action::kReady:
      return "/v1/node/ready";
    case NodeCommand::Action::kMetrics:
      break;
  }
  return "/metrics";
}

std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n' || c == '\r') c = ' ';
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

}  // namespace

Done node(const NodeCommand& command, bool json, Remote& remote, Console& console) {
  auto answer = remote.ask("GET", target_of(command.action));
  if (!answer) return tl::unexpected(std::move(answer.error()));
  bool yes = answer->status / 100 == 2;
  bool is_question = command.action == NodeCommand::Action::kHealth || command.action == NodeCommand::Action::kReady;
  if (!yes && (!is_question || answer->status != 503)) return tl::unexpected(failure_of(Problem::of(*answer), false));
  if (command.action == NodeCommand::Action::kMetrics) return console.write(answer->body);
  if (!is_json(answer->body))
    return fails(kExitUnreachable, "the server's answer is unreadable; is a Millrace node there?");
  MILLRACE_CLI_TRY(console.write(json ? one_line(answer->body) : flattened(answer->body)));
  return yes ? Done() : fails(kExitRefused);
}

}  // namespace millrace::cli
