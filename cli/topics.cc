#include "cli/topics.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/json_text.h"
#include "cli/table.h"

namespace millrace::cli {
namespace {

constexpr uint64_t kTopicsPerRequest = 1'000;

tl::unexpected<Failure> unreadable() {
  return fails(kExitUnreachable, "the server's answer is unreadable");
}

Outcome<JsonMembers> object_of(const Remote::Response& answer) {
  auto members = is_json(answer.body) ? json_members(answer.body) : std::nullopt;
  if (!members) return unreadable();
  return std::move(*members);
}

std::string target_of(const TopicsCommand& command) {
  return "/v1/topics/" + http::percent_encode(command.topic);
}

/// One line, whatever white space the server uses.
std::string json_line(std::string_view json) {
  std::string line(json.substr(0, json.find_last_not_of(" \t\r\n") + 1));
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line + "\n";
}

std::string configs_of(std::string_view configs) {
  std::string out;
  for (const auto& [name, value] : json_members(configs).value_or(JsonMembers()))
    out += fmt::format("{}{}={}", out.empty() ? "" : " ", name, json_scalar(value));
  return out;
}

std::string body_of(const TopicsCommand& command) {
  std::string configs;
  auto add = [&configs](const std::string& key, const std::string* value) {
    if (!configs.empty()) configs += ',';
    append_json_string(configs, key);
    configs += ':';
    if (value == nullptr) {
      configs += "null";
    } else {
      append_json_string(configs, *value);
    }
  };
  for (const auto& [key, value] : command.configs) add(key, &value);
  for (const std::string& key : command.unset) add(key, nullptr);

  std::string body = "{";
  if (command.action == TopicsCommand::Action::kCreate) {
    body += "\"name\":";
    append_json_string(body, command.topic);
    if (command.partitions) body += fmt::format(",\"partitions\":{}", *command.partitions);
    if (configs.empty()) return body + "}";
    body += ',';
  }
  return body + "\"configs\":{" + configs + "}}";
}

class TopicList {
 public:
  TopicList(const TopicsCommand& command, bool json, Remote& remote, Console& console)
      : command_(command), json_(json), remote_(remote), console_(console) {}

  Done run() {
    std::string after;
    do {
      MILLRACE_CLI_TRY(page(after));
    } while (!after.empty() && !enough());
    // The heading is there for an empty list too.
    if (!json_ && !command_.names_only) MILLRACE_CLI_TRY(console_.write(table(rows_)));
    return {};
  }

 private:
  bool enough() const { return command_.limit > 0 && listed_ >= command_.limit; }

  // Asks for what comes after `after`, and sets it to where to go on, "" at the end.
  Done page(std::string& after) {
    uint64_t limit = command_.limit == 0 ? kTopicsPerRequest : std::min(kTopicsPerRequest, command_.limit - listed_);
    std::string query = fmt::format("/v1/topics?limit={}", limit);
    if (!after.empty()) query += "&after=" + http::percent_encode(after);
    auto answer = remote_.get(query);
    if (!answer) return tl::unexpected(std::move(answer.error()));
    auto object = object_of(*answer);
    if (!object) return tl::unexpected(std::move(object.error()));
    auto topics = json_elements(json_member(*object, "topics"));
    if (!topics) return unreadable();
    for (std::string_view topic : *topics) MILLRACE_CLI_TRY(list(topic));
    std::string_view next_text = json_member(*object, "next");
    std::string next = next_text == "null" ? "" : json_scalar(next_text);
    if (!next.empty() && next == after) return unreadable();
    after = std::move(next);
    return {};
  }

  Done list(std::string_view topic) {
    if (enough()) return {};
    ++listed_;
    if (json_) return console_.write(json_line(topic));
    auto members = json_members(topic).value_or(JsonMembers());
    auto text = [&members](std::string_view name) { return json_scalar(json_member(members, name)); };
    if (command_.names_only) return console_.write(text("name") + "\n");
    rows_.push_back({text("name"), text("partitions"), text("createdAt"), configs_of(json_member(members, "configs"))});
    return {};
  }

  const TopicsCommand& command_;
  const bool json_;
  Remote& remote_;
  Console& console_;
  uint64_t listed_ = 0;
  std::vector<std::vector<std::string>> rows_ = {{"TOPIC", "PARTITIONS", "CREATED", "CONFIGS"}};
};

Done show(const TopicsCommand& command, bool json, Remote& remote, Console& console) {
  auto topic = remote.get(target_of(command));
  if (!topic) return tl::unexpected(std::move(topic.error()));
  auto partitions = remote.get(target_of(command) + "/partitions");
  if (!partitions) return tl::unexpected(std::move(partitions.error()));
  auto object = object_of(*partitions);
  if (!object || !is_json(topic->body)) return unreadable();
  std::string_view list = json_member(*object, "partitions");
  if (json) return console.write(json_line(fmt::format("{{\"topic\":{},\"partitions\":{}}}", topic->body, list)));
  std::vector<std::vector<std::string>> rows = {{"PARTITION", "START", "HIGH WATERMARK", "BYTES"}};
  for (std::string_view partition : json_elements(list).value_or(std::vector<std::string_view>())) {
    auto row = json_members(partition).value_or(JsonMembers());
    auto text = [&row](std::string_view name) { return json_scalar(json_member(row, name)); };
    rows.push_back({text("partition"), text("logStartOffset"), text("highWatermark"), text("sizeBytes")});
  }
  return console.write(flattened(topic->body) + "\n" + table(rows));
}

// Creates or alters, and prints the topic that came of it.
Done change(const TopicsCommand& command, bool json, Remote& remote, Console& console) {
  bool create = command.action == TopicsCommand::Action::kCreate;
  auto answer = remote.ask(create ? "POST" : "PATCH", create ? "/v1/topics" : target_of(command), body_of(command));
  if (!answer) return tl::unexpected(std::move(answer.error()));
  if (answer->status / 100 != 2) {
    // There is a topic of that name: whoever made it, this is what was asked for.
    if (create && command.may_exist && Problem::of(*answer).code == "TOPIC_EXISTS")
      return json ? Done() : console.write(fmt::format("{} exists\n", command.topic));
    return tl::unexpected(failure_of(Problem::of(*answer), true));
  }
  if (json) return console.write(json_line(answer->body));
  return console.write(fmt::format("{} {}\n", command.topic, create ? "created" : "altered"));
}

Done remove(const TopicsCommand& command, bool json, Remote& remote, Console& console) {
  auto answer = remote.ask("DELETE", target_of(command));
  if (!answer) return tl::unexpected(std::move(answer.error()));
  bool gone = answer->status == 404 && command.may_be_gone;
  if (answer->status / 100 != 2 && !gone) return tl::unexpected(failure_of(Problem::of(*answer), true));
  return json ? Done() : console.write(fmt::format("{} {}\n", command.topic, gone ? "does not exist" : "deleted"));
}

}  // namespace

Done topics(const TopicsCommand& command, bool json, Remote& remote, Console& console) {
  switch (command.action) {
    case TopicsCommand::Action::kList:
      return TopicList(command, json, remote, console).run();
    case TopicsCommand::Action::kShow:
      return show(command, json, remote, console);
    case TopicsCommand::Action::kCreate:
    case TopicsCommand::Action::kAlter:
      return change(command, json, remote, console);
    case TopicsCommand::Action::kDelete:
      break;
  }
  return remove(command, json, remote, console);
}

}  // namespace millrace::cli
