#include "cli/follow.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/json_text.h"

namespace millrace::cli {
namespace {

/// A connection that held for that long was worth something, records or none.
constexpr std::chrono::seconds kGoodConnection{5};
/// The server's bound of a request's target is 4 KB.
constexpr size_t kMaxVectorBytes = 3'500;

class Follower {
 public:
  Follower(const ConsumeCommand& command, std::string from, Remote& remote, RecordPrinter& printer)
      : command_(command),
        target_("/v1/topics/" + http::percent_encode(command.topic) + "/stream?from=" + std::move(from)),
        remote_(remote),
        printer_(printer) {}

  Done run();

 private:
  Result<http::Client::Response> connect();
  bool take(const http::Client::Event& event);
  Done print(const http::Client::Event& event);

  const ConsumeCommand& command_;
  const std::string target_;
  Remote& remote_;
  RecordPrinter& printer_;
  std::string last_id_;
  bool brought_ = false;  ///< this connection brought an event
  Done outcome_;
};

Done Follower::run() {
  for (int repetition = 1; !printer_.done(); ++repetition) {
    brought_ = false;
    auto opened = std::chrono::steady_clock::now();
    auto answer = connect();
    if (!outcome_ || printer_.done()) break;
    if (brought_ || std::chrono::steady_clock::now() - opened >= kGoodConnection) repetition = 1;

    auto wish = std::chrono::milliseconds(0);
    Failure failure{kExitUnreachable, fmt::format("{} ended the stream", remote_.server()), {}};
    bool retriable = true;
    if (!answer) {
      failure = failure_of(answer.error(), remote_.server(), false);
      retriable = is_passing(answer.error());
    } else if (answer->status / 100 != 2) {
      Problem problem = Problem::of(*answer);
      failure = failure_of(problem, false);
      retriable = problem.retriable();
      wish = retry_after(*answer);
    }
    if (!retriable || repetition > command_.retry.most) return tl::unexpected(std::move(failure));
    auto pause = std::max(command_.retry.pause(repetition), std::min(wish, command_.retry.longest_wish));
    if (remote_.interrupts().wait_for(pause)) return fails(kExitInterrupted);
  }
  return outcome_;
}

Result<http::Client::Response> Follower::connect() {
  http::Client::Fields fields;
  if (!last_id_.empty()) fields.emplace_back("Last-Event-ID", last_id_);
  return remote_.client().stream_events(target_, fields,
                                        [this](const http::Client::Event& event) { return take(event); });
}

// False ends the stream.
bool Follower::take(const http::Client::Event& event) {
  brought_ = true;
  if (event.event == "record") outcome_ = print(event);
  if (!outcome_) return false;
  // Only now: a record that was not printed has to come again.
  if (!event.id.empty()) last_id_ = event.id;
  return !printer_.done();
}

Done Follower::print(const http::Client::Event& event) {
  auto members = is_json(event.data) ? json_members(event.data) : std::nullopt;
  if (!members) return fails(kExitUnreachable, "the server's answer is unreadable: an event without a record");
  // Partitions that were not asked for are streamed too.
  auto partition = parse_number(json_scalar(json_member(*members, "partition")));
  if (command_.partition && partition != *command_.partition) return {};
  MILLRACE_CLI_TRY(printer_.print(event.data));
  return printer_.flush();
}

// The words do for a topic of so many partitions that their offsets fill a request.
Outcome<std::string> from_of(const ConsumeCommand& command, const std::vector<Stretch>& start) {
  std::string vector = vector_of(start);
  if (vector.size() <= kMaxVectorBytes) return vector;
  if (std::holds_alternative<StartPosition::Earliest>(command.from.value)) return "earliest";
  if (std::holds_alternative<StartPosition::Latest>(command.from.value)) return "latest";
  return fails(kExitUsage, fmt::format("topic '{}' has too many partitions to follow from there: start from earliest "
                                       "or latest",
                                       command.topic));
}

}  // namespace

Done follow(const ConsumeCommand& command, const std::vector<Stretch>& start, Remote& remote, RecordPrinter& printer) {
  auto from = from_of(command, start);
  if (!from) return tl::unexpected(std::move(from.error()));
  return Follower(command, std::move(*from), remote, printer).run();
}

}  // namespace millrace::cli
