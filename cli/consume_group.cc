#include "cli/consume_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cli/json_text.h"

namespace millrace::cli {
namespace {

constexpr uint64_t kRecordsPerRequest = 500;
constexpr std::string_view kWait = "10s";
/// For the farewell: nobody waits longer for it after Ctrl-C.
constexpr std::chrono::milliseconds kLeaveTimeout{2'000};

class GroupConsumer {
 public:
  GroupConsumer(const ConsumeCommand& command, Remote& remote, RecordPrinter& printer, Console& console)
      : command_(command),
        remote_(remote),
        printer_(printer),
        console_(console),
        members_("/v1/groups/" + http::percent_encode(*command.group) + "/members") {}

  Done run() {
    Done outcome;
    while (outcome && !printer_.done()) outcome = member_.empty() ? join() : poll();
    leave();
    return outcome;
  }

 private:
  std::string target(std::string_view rest) const {
    return members_ + "/" + http::percent_encode(member_) + std::string(rest);
  }

  // One request, repeated while the node is away. Answers a 2xx or a refusal that a repetition does not change.
  Outcome<Remote::Response> ask(std::string_view method, const std::string& target, std::string_view body = {}) {
    for (int repetition = 1;; ++repetition) {
      auto answer = remote_.client().request(method, target, {}, body);
      Failure why;
      auto wish = std::chrono::milliseconds(0);
      if (answer) {
        Problem problem = Problem::of(*answer);
        if (answer->status / 100 == 2 || !problem.retriable()) return std::move(*answer);
        why = failure_of(problem, method != "GET");
        wish = std::min(retry_after(*answer), command_.retry.longest_wish);
      } else {
        why = failure_of(answer.error(), remote_.server(), false);
        if (!is_passing(answer.error())) return tl::unexpected(std::move(why));
      }
      if (repetition > command_.retry.most) return tl::unexpected(std::move(why));
      if (remote_.interrupts().wait_for(std::max(command_.retry.pause(repetition), wish)))
        return fails(kExitInterrupted);
    }
  }

  Done join() {
    std::string body = "{\"topics\":[";
    for (const std::string& topic : command_.topics) {
      if (body.back() != '[') body += ',';
      append_json_string(body, topic);
    }
    const bool latest = std::holds_alternative<StartPosition::Latest>(command_.from.value);
    body += fmt::format("],\"clientId\":\"millrace\",\"autoOffsetReset\":\"{}\"", latest ? "latest" : "earliest");
    if (!command_.session_timeout.empty()) {
      body += ",\"sessionTimeout\":";
      append_json_string(body, command_.session_timeout);
    }
    if (command_.instance_id) {
      body += ",\"instanceId\":";
      append_json_string(body, *command_.instance_id);
    }
    auto answer = ask("POST", members_, body + "}");
    if (!answer) return tl::unexpected(std::move(answer.error()));
    if (answer->status / 100 != 2) return tl::unexpected(failure_of(Problem::of(*answer), true));
    auto member = is_json(answer->body) ? json_members(answer->body) : std::nullopt;
    if (!member) return unreadable();
    member_ = json_scalar(json_member(*member, "memberId"));
    if (member_.empty()) return unreadable();
    return {};
  }

  Done poll() {
    auto answer = ask(
        "GET", target(fmt::format("/records?wait={}&limit={}", kWait, std::min(kRecordsPerRequest, printer_.left()))));
    if (!answer) return tl::unexpected(std::move(answer.error()));
    if (answer->status / 100 != 2) return refused(*answer);
    auto page = is_json(answer->body) ? json_members(answer->body) : std::nullopt;
    auto records = page ? json_elements(json_member(*page, "records")) : std::nullopt;
    if (!records) return unreadable();
    for (std::string_view record : *records) {
      auto members = json_members(record).value_or(JsonMembers());
      MILLRACE_CLI_TRY(printer_.print(record, json_scalar(json_member(members, "topic"))));
      if (printer_.done()) break;
    }
    // Only what has been written out is committed.
    MILLRACE_CLI_TRY(printer_.flush());
    const std::string_view next = json_member(*page, "next");
    if (next.empty() || next == "[]") return {};
    return commit(json_member(*page, "generation"), next);
  }

  Done commit(std::string_view generation, std::string_view next) {
    auto answer =
        ask("POST", target("/offsets"), fmt::format("{{\"generation\":{},\"offsets\":{}}}", generation, next));
    if (!answer) return tl::unexpected(std::move(answer.error()));
    return answer->status / 100 == 2 ? Done() : refused(*answer);
  }

  // Of the group's ways a member needs not speak: it goes on in the next generation, or as a new member.
  Done refused(const Remote::Response& answer) {
    static const std::set<std::string, std::less<>> kGoOn = {"REBALANCE_IN_PROGRESS", "ILLEGAL_GENERATION",
                                                             "PARTITION_NOT_ASSIGNED"};
    static const std::set<std::string, std::less<>> kJoinAnew = {"UNKNOWN_MEMBER_ID", "UNKNOWN_GROUP"};
    Problem problem = Problem::of(answer);
    if (kGoOn.contains(problem.code)) return {};
    if (!kJoinAnew.contains(problem.code)) return tl::unexpected(failure_of(problem, false));
    console_.say(fmt::format("group '{}' no longer knows this member; it joins anew", *command_.group));
    member_.clear();
    return {};
  }

  // Over a connection of its own: after an interrupt the other one carries nothing more.
  void leave() {
    if (member_.empty() || command_.instance_id) return;
    http::Client::Options options;
    options.connect_timeout = options.idle_timeout = kLeaveTimeout;
    auto client = http::Client::create(remote_.server(), options);
    if (client) std::ignore = client->request("DELETE", target(""));
  }

  static tl::unexpected<Failure> unreadable() { return fails(kExitUnreachable, "the server's answer is unreadable"); }

  const ConsumeCommand& command_;
  Remote& remote_;
  RecordPrinter& printer_;
  Console& console_;
  const std::string members_;
  std::string member_;
};

}  // namespace

Done consume_group(const ConsumeCommand& command, Remote& remote, RecordPrinter& printer, Console& console) {
  return GroupConsumer(command, remote, printer, console).run();
}

}  // namespace millrace::cli
