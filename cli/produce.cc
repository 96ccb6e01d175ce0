#include "cli/produce.h"

#include <fmt/format.h>

#include "base/uuid.h"
#include "cli/batch.h"
#include "cli/json_text.h"
#include "cli/line_reader.h"
#include "cli/record_text.h"

namespace millrace::cli {
namespace {

using std::chrono::steady_clock;

/// A transfer that is done sooner needs no progress.
constexpr std::chrono::milliseconds kProgressAfter{1'000};
constexpr std::chrono::milliseconds kProgressEvery{200};

class Producer {
 public:
  Producer(const ProduceCommand& command, bool json, Remote& remote, Console& console)
      : command_(command),
        json_(json),
        remote_(remote),
        console_(console),
        prefix_(command.idempotency_prefix.empty() ? Uuid::random().to_string() : command.idempotency_prefix),
        target_("/v1/topics/" + http::percent_encode(command.topic)),
        text_{command.key_separator, json, command.repartition},
        reader_(console.input(), kMaxRecordBytes, remote.interrupts()),
        batch_(command.batch_records, std::min(command.batch_bytes, kMaxRecordBytes)) {}

  Done run() {
    Done outcome = transfer();
    if (!outcome && outcome.error().exit == kExitInterrupted && outcome.error().text.empty() && !batch_.empty())
      outcome.error().text = fmt::format("interrupted; {} not sent", batch_.lines());
    Done written = summarize(outcome.has_value());
    return outcome ? written : outcome;
  }

 private:
  Done transfer();
  Done take_line();
  Done send();
  Failure explain(Failure failure, std::string_view key) const;
  Done summarize(bool complete);
  void show_progress();

  const ProduceCommand& command_;
  const bool json_;
  Remote& remote_;
  Console& console_;
  const std::string prefix_;
  const std::string target_;
  const RecordText text_;
  LineReader reader_;
  Batch batch_;
  uint64_t acknowledged_ = 0, batches_ = 0, retries_ = 0;
  const steady_clock::time_point started_ = steady_clock::now();
  steady_clock::time_point shown_ = started_;
};

Done Producer::transfer() {
  // A wrong name or an absent node is told before anything is typed.
  MILLRACE_CLI_TRY(remote_.get(target_));
  for (;;) {
    auto patience = batch_.empty() ? std::nullopt : command_.linger;
    auto event = reader_.next(patience);
    if (!event) {
      // What came before a line that cannot be read is sent: the message then says what was.
      if (event.error().exit == kExitUsage && !batch_.empty()) MILLRACE_CLI_TRY(send());
      return tl::unexpected(std::move(event.error()));
    }
    if (*event == LineReader::Event::kLine) {
      MILLRACE_CLI_TRY(take_line());
    } else if (!batch_.empty()) {
      MILLRACE_CLI_TRY(send());
    }
    if (*event == LineReader::Event::kEnd) return {};
  }
}

Done Producer::take_line() {
  auto record = text_.record_of(reader_.line());
  std::string fault;
  if (!record) {
    fault = record.error().message;
  } else if (*record && (*record)->size() > kMaxRecordBytes) {
    fault = fmt::format("as JSON it has more than {} bytes", kMaxRecordBytes);
  }
  if (!fault.empty()) {
    if (!batch_.empty()) MILLRACE_CLI_TRY(send());
    return fails(kExitUsage, fmt::format("line {} of the input: {}", reader_.number(), fault));
  }
  if (!*record) return {};
  if (!batch_.fits(**record)) MILLRACE_CLI_TRY(send());
  batch_.add(**record, reader_.number());
  return batch_.full() ? send() : Done();
}

Done Producer::send() {
  std::string key = fmt::format("{}-{}", prefix_, batches_);
  std::string last_reason;
  auto on_retry = [&](const Failure& why) {
    ++retries_;
    if (why.text != last_reason) console_.say(fmt::format("{}: trying again: {}", batch_.lines(), why.text));
    last_reason = why.text;
  };
  auto answer = remote_.persist("POST", target_ + "/records", {{"Idempotency-Key", key}}, batch_.body(), command_.retry,
                                on_retry);
  if (!answer) return tl::unexpected(explain(std::move(answer.error()), key));
  auto members = is_json(answer->body) ? json_members(answer->body) : std::nullopt;
  auto offsets = members ? json_elements(json_member(*members, "offsets")) : std::nullopt;
  if (!offsets || offsets->size() != batch_.records())
    return fails(kExitUnknown,
                 fmt::format("{}: the server's answer does not name {} offsets", batch_.lines(), batch_.records()));
  acknowledged_ += batch_.records();
  ++batches_;
  batch_.clear();
  show_progress();
  return {};
}

Failure Producer::explain(Failure failure, std::string_view key) const {
  if (failure.exit == kExitInterrupted) {
    failure.text =
        fmt::format("interrupted; {} may or may not be in the topic (idempotency key {})", batch_.lines(), key);
    return failure;
  }
  uint64_t line = batch_.line_at(failure.pointer);
  failure.text = fmt::format("{}: {}", line > 0 ? fmt::format("line {}", line) : batch_.lines(), failure.text);
  if (line > 0 && batch_.records() > 1) failure.text += fmt::format("; nothing of {} was appended", batch_.lines());
  if (failure.exit == kExitUnknown) failure.text += fmt::format(" (idempotency key {})", key);
  return failure;
}

Done Producer::summarize(bool complete) {
  if (json_) {
    std::string topic, prefix;
    append_json_string(topic, command_.topic);
    append_json_string(prefix, prefix_);
    MILLRACE_CLI_TRY(console_.write(
        fmt::format("{{\"topic\":{},\"acknowledged\":\"{}\",\"batches\":{},\"retries\":{},\"complete\":{},"
                    "\"idempotencyPrefix\":{}}}\n",
                    topic, acknowledged_, batches_, retries_, complete, prefix)));
    return console_.flush();
  }
  // With nothing done and a failure, the failure says it all.
  if (!complete && acknowledged_ == 0) return {};
  std::string again = retries_ > 0 ? fmt::format(", {} sent again", retries_) : "";
  console_.say(fmt::format("{} record{} acknowledged in {} batch{}{}", acknowledged_, acknowledged_ == 1 ? "" : "s",
                           batches_, batches_ == 1 ? "" : "es", again));
  return {};
}

void Producer::show_progress() {
  auto now = steady_clock::now();
  if (!console_.shows_progress() || now - started_ < kProgressAfter || now - shown_ < kProgressEvery) return;
  shown_ = now;
  auto seconds = std::chrono::duration<double>(now - started_).count();
  console_.progress(fmt::format("{} records acknowledged, {:.0f} a second", acknowledged_,
                                static_cast<double>(acknowledged_) / seconds));
}

}  // namespace

Done produce(const ProduceCommand& command, bool json, Remote& remote, Console& console) {
  return Producer(command, json, remote, console).run();
}

}  // namespace millrace::cli
