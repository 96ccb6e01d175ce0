#include "backup/backup.h"

#include <fmt/format.h>

#include "cli/backup.h"
#include "cli/json_text.h"
#include "cli/table.h"

namespace millrace::cli {
namespace {

constexpr std::string_view kBackups = "/v1/node/backups";
/// How long the node is asked to wait in one request.
constexpr std::string_view kWait = "20s";

std::string target_of(const std::string& name) {
  return fmt::format("{}/{}", kBackups, http::percent_encode(name));
}

std::string text_of(const JsonMembers& members, std::string_view name) {
  return json_scalar(json_member(members, name));
}

Outcome<JsonMembers> members_of(const Remote::Response& answer) {
  auto members = is_json(answer.body) ? json_members(answer.body) : std::nullopt;
  if (!members) return fails(kExitUnreachable, "the server's answer is unreadable");
  return std::move(*members);
}

std::string json_line(std::string_view json) {
  return std::string(json.substr(0, json.find_last_not_of(" \r\n\t") + 1)) + "\n";
}

Done create(const BackupCommand& command, bool json, Remote& remote, Console& console) {
  std::string body = "{";
  if (!command.name.empty()) {
    body += "\"name\":";
    append_json_string(body, command.name);
  }
  auto answer = remote.call("POST", kBackups, body + "}");
  for (;;) {
    if (!answer) return tl::unexpected(std::move(answer.error()));
    auto members = members_of(*answer);
    if (!members) return tl::unexpected(std::move(members.error()));
    const std::string state = text_of(*members, "state"), name = text_of(*members, "name");
    if (state == "FAILED") return fails(kExitRefused, "the backup failed: " + text_of(*members, "error"));
    if (state != "RUNNING" || command.no_wait) {
      if (json) return console.write(json_line(answer->body));
      return console.write(
          fmt::format("{} {}\n", text_of(*members, "path"), state == "RUNNING" ? "begun" : "complete"));
    }
    console.progress(fmt::format("{} bytes", text_of(*members, "bytes")));
    answer = remote.get(fmt::format("{}?wait={}", target_of(name), kWait));
  }
}

Done list(bool json, Remote& remote, Console& console) {
  auto answer = remote.get(kBackups);
  if (!answer) return tl::unexpected(std::move(answer.error()));
  auto members = members_of(*answer);
  if (!members) return tl::unexpected(std::move(members.error()));
  std::vector<std::vector<std::string>> rows = {{"BACKUP", "STATE", "CREATED", "FILES", "BYTES"}};
  for (std::string_view one :
       json_elements(json_member(*members, "backups")).value_or(std::vector<std::string_view>())) {
    if (json) {
      MILLRACE_CLI_TRY(console.write(json_line(one)));
      continue;
    }
    auto row = json_members(one).value_or(JsonMembers());
    rows.push_back({text_of(row, "name"), text_of(row, "state"), text_of(row, "createdAt"), text_of(row, "files"),
                    text_of(row, "bytes")});
  }
  return json ? Done() : console.write(table(rows));
}

Failure failure_of_backup(const Error& error) {
  if (error.code == "STOPPING") return {kExitInterrupted, error.message};
  return {error.kind == ErrorKind::kIo ? kExitLocalIo : kExitRefused, to_string(error)};
}

Done say(const Result<millrace::backup::Info>& info, std::string_view what, bool json, Console& console) {
  if (!info) return tl::unexpected(failure_of_backup(info.error()));
  if (!json)
    return console.write(fmt::format("{}: backup '{}' of node '{}' from {}, {} files, {} bytes\n", what, info->name,
                                     info->node, info->created_at, info->files, info->bytes));
  std::string out = "{\"name\":";
  append_json_string(out, info->name);
  out += ",\"node\":";
  append_json_string(out, info->node);
  out += ",\"createdAt\":";
  append_json_string(out, info->created_at);
  return console.write(out + fmt::format(",\"files\":{},\"bytes\":\"{}\"}}\n", info->files, info->bytes));
}

}  // namespace

Done backup(const BackupCommand& command, bool json, Remote& remote, Console& console) {
  uint64_t done = 0;
  auto progress = [&](uint64_t bytes) {
    done += bytes;
    console.progress(fmt::format("{} bytes", done));
    return !remote.interrupts().raised();
  };
  switch (command.action) {
    case BackupCommand::Action::kCreate:
      return create(command, json, remote, console);
    case BackupCommand::Action::kList:
      return list(json, remote, console);
    case BackupCommand::Action::kVerify:
      return say(millrace::backup::verify(command.directory, progress), "sound", json, console);
    case BackupCommand::Action::kRestore:
      return say(millrace::backup::restore(command.directory, command.to, progress),
                 fmt::format("restored to {}", command.to), json, console);
    case BackupCommand::Action::kDelete:
      break;
  }
  auto answer = remote.call("DELETE", target_of(command.name));
  if (!answer) return tl::unexpected(std::move(answer.error()));
  return json ? Done() : console.write(fmt::format("{} deleted\n", command.name));
}

}  // namespace millrace::cli
