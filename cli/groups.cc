#include "cli/groups.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/json_text.h"
#include "cli/table.h"

namespace millrace::cli {
namespace {

tl::unexpected<Failure> unreadable() {
  return fails(kExitUnreachable, "the server's answer is unreadable");
}

Outcome<JsonMembers> object_of(const Remote::Response& answer) {
  auto members = is_json(answer.body) ? json_members(answer.body) : std::nullopt;
  if (!members) return unreadable();
  return std::move(*members);
}

std::string target_of(const GroupsCommand& command) {
  return "/v1/groups/" + http::percent_encode(command.group);
}

std::string json_line(std::string_view json) {
  std::string line(json.substr(0, json.find_last_not_of(" \t\r\n") + 1));
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line + "\n";
}

/// The named members of each object of an array, as rows; what is missing is "-".
std::vector<std::vector<std::string>> rows_of(std::string_view array, const std::vector<std::string>& fields) {
  std::vector<std::vector<std::string>> rows;
  for (std::string_view element : json_elements(array).value_or(std::vector<std::string_view>())) {
    auto members = json_members(element).value_or(JsonMembers());
    auto& row = rows.emplace_back();
    for (const std::string& field : fields) {
      std::string text = json_scalar(json_member(members, field));
      row.push_back(text.empty() || text == "null" ? "-" : text);
    }
  }
  return rows;
}

std::string titled(std::vector<std::string> heading, std::vector<std::vector<std::string>> rows) {
  rows.insert(rows.begin(), std::move(heading));
  return table(rows);
}

Done list(const GroupsCommand& command, bool json, Remote& remote, Console& console) {
  std::vector<std::vector<std::string>> rows;
  std::string after;
  do {
    auto answer = remote.get("/v1/groups?limit=1000" + (after.empty() ? "" : "&after=" + http::percent_encode(after)));
    if (!answer) return tl::unexpected(std::move(answer.error()));
    auto object = object_of(*answer);
    if (!object) return tl::unexpected(std::move(object.error()));
    const std::string_view groups = json_member(*object, "groups");
    if (json)
      for (std::string_view group : json_elements(groups).value_or(std::vector<std::string_view>()))
        MILLRACE_CLI_TRY(console.write(json_line(group)));
    auto page = rows_of(groups, {"group", "state", "generation", "members"});
    rows.insert(rows.end(), page.begin(), page.end());
    std::string next = json_scalar(json_member(*object, "next"));
    if (!next.empty() && next == after) return unreadable();
    after = std::move(next);
  } while (!after.empty());
  if (command.names_only && !json) {
    for (const auto& row : rows) MILLRACE_CLI_TRY(console.write(row.front() + "\n"));
    return {};
  }
  return json ? Done() : console.write(titled({"GROUP", "STATE", "GENERATION", "MEMBERS"}, std::move(rows)));
}

Done show(const GroupsCommand& command, bool json, Remote& remote, Console& console) {
  auto answer = remote.get(target_of(command));
  if (!answer) return tl::unexpected(std::move(answer.error()));
  auto object = object_of(*answer);
  if (!object) return tl::unexpected(std::move(object.error()));
  if (json) return console.write(json_line(answer->body));
  auto text = [&](std::string_view name) { return json_scalar(json_member(*object, name)); };
  std::string out = fmt::format("group: {}\nstate: {}\ngeneration: {}\nprotocol: {}\ntotal lag: {}\n\n", text("group"),
                                text("state"), text("generation"), text("protocol"), text("totalLag"));
  out += titled({"MEMBER", "CLIENT", "INSTANCE", "HOST"},
                rows_of(json_member(*object, "members"), {"memberId", "clientId", "instanceId", "clientHost"}));
  out += "\n";
  out += titled(
      {"TOPIC", "PARTITION", "OFFSET", "END", "LAG", "MEMBER"},
      rows_of(json_member(*object, "partitions"), {"topic", "partition", "offset", "logEndOffset", "lag", "memberId"}));
  return console.write(out);
}

Done remove(const GroupsCommand& command, bool json, Remote& remote, Console& console) {
  auto answer = remote.call("DELETE", target_of(command));
  if (!answer) return tl::unexpected(std::move(answer.error()));
  return json ? Done() : console.write(command.group + " deleted\n");
}

Outcome<std::string> reset_body(const GroupsCommand& command) {
  std::string to;
  if (std::holds_alternative<StartPosition::Earliest>(command.to.value))
    to = "\"earliest\"";
  else if (std::holds_alternative<StartPosition::Latest>(command.to.value))
    to = "\"latest\"";
  else if (const auto* at = std::get_if<StartPosition::Offset>(&command.to.value))
    to = fmt::format("{{\"offset\":\"{}\"}}", at->offset);
  else if (const auto* time = std::get_if<StartPosition::Time>(&command.to.value))
    to = fmt::format("{{\"time\":{}}}", time->ms);
  else
    return fails(kExitUsage, "--to takes one position for all partitions; choose them with --partition");
  std::string topics;
  for (const std::string& topic : command.topics) {
    topics += topics.empty() ? ",\"topics\":[" : ",";
    append_json_string(topics, topic);
  }
  if (!topics.empty()) topics += "]";
  std::string partitions;
  if (!command.partitions.empty()) partitions = fmt::format(",\"partitions\":[{}]", fmt::join(command.partitions, ","));
  return fmt::format("{{\"to\":{}{}{},\"dryRun\":{}}}", to, topics, partitions, command.dry_run);
}

Done reset(const GroupsCommand& command, bool json, Remote& remote, Console& console) {
  auto body = reset_body(command);
  if (!body) return tl::unexpected(std::move(body.error()));
  auto answer = remote.call("POST", target_of(command) + ":resetOffsets", *body);
  if (!answer) return tl::unexpected(std::move(answer.error()));
  auto object = object_of(*answer);
  if (!object) return tl::unexpected(std::move(object.error()));
  if (json) return console.write(json_line(answer->body));
  return console.write(titled({"TOPIC", "PARTITION", "FROM", "TO"},
                              rows_of(json_member(*object, "partitions"), {"topic", "partition", "from", "to"})));
}

}  // namespace

Done groups(const GroupsCommand& command, bool json, Remote& remote, Console& console) {
  switch (command.action) {
    case GroupsCommand::Action::kList:
      return list(command, json, remote, console);
    case GroupsCommand::Action::kShow:
      return show(command, json, remote, console);
    case GroupsCommand::Action::kDelete:
      return remove(command, json, remote, console);
    case GroupsCommand::Action::kReset:
      break;
  }
  return reset(command, json, remote, console);
}

}  // namespace millrace::cli
