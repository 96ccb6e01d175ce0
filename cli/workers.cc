#include "cli/workers.h"

#include <fmt/format.h>

#include "cli/json_text.h"
#include "cli/table.h"

namespace millrace::cli {
namespace {

std::string text_of(const JsonMembers& members, std::string_view name) {
  return json_scalar(json_member(members, name));
}

Done list(bool json, Remote& remote, Console& console) {
  auto answer = remote.get("/v1/workers");
  if (!answer) return tl::unexpected(std::move(answer.error()));
  auto members = is_json(answer->body) ? json_members(answer->body) : std::nullopt;
  if (!members) return fails(kExitUnreachable, "the server's answer is unreadable");
  if (json) return console.write(answer->body + "\n");
  using Rows = std::vector<std::vector<std::string>>;
  using Elements = std::vector<std::string_view>;
  Rows rows = {{"WORKER", "STATE", "PROCESSOR", "PARTITION", "STATE", "EPOCH", "LAG", "PARKED", "AT", "PROBLEM"}};
  for (std::string_view worker : json_elements(json_member(*members, "workers")).value_or(Elements())) {
    auto row = json_members(worker).value_or(JsonMembers());
    std::string at = text_of(row, "step");
    if (!at.empty()) at += " " + text_of(row, "stepAgeMs") + " ms";
    const auto partitions = json_elements(json_member(row, "partitions")).value_or(Elements());
    if (partitions.empty()) rows.push_back({text_of(row, "id"), text_of(row, "state"), "", "", "", "", "", "", at, ""});
    for (std::string_view partition : partitions) {
      auto of = json_members(partition).value_or(JsonMembers());
      rows.push_back({text_of(row, "id"), text_of(row, "state"), text_of(of, "processor"), text_of(of, "partition"),
                      text_of(of, "state"), text_of(of, "epoch"), text_of(of, "lag"), text_of(of, "parked"), at,
                      text_of(of, "problem")});
    }
  }
  return console.write(table(rows));
}

}  // namespace

Done workers(const WorkersCommand& command, bool json, Remote& remote, Console& console) {
  if (command.action == WorkersCommand::Action::kList) return list(json, remote, console);
  auto answer = remote.call("POST", fmt::format("/v1/workers/{}:stop", http::percent_encode(command.id)));
  if (!answer) return tl::unexpected(std::move(answer.error()));
  return json ? Done() : console.write(fmt::format("worker {} leaves\n", command.id));
}

}  // namespace millrace::cli
