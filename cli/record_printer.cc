#include "cli/record_printer.h"

#include <limits>

namespace millrace::cli {

RecordPrinter::RecordPrinter(RecordFormat format, std::string topic, uint64_t limit, bool json, Console& console)
    : format_(std::move(format)), topic_(std::move(topic)), left_(limit), json_(json), console_(&console) {}

Outcome<RecordPrinter> RecordPrinter::create(const ConsumeCommand& command, bool json, Console& console) {
  auto format = RecordFormat::parse(command.format);
  if (!format) return fails(kExitUsage, format.error().message);
  uint64_t limit = command.limit.value_or(std::numeric_limits<uint64_t>::max());
  return RecordPrinter(std::move(*format), command.topic, limit, json, console);
}

Done RecordPrinter::print(std::string_view record, std::string_view topic) {
  text_.clear();
  if (json_) {
    text_.append(record);
    // JSON has line ends between its tokens only, where a space does as well.
    for (char& c : text_)
      if (c == '\n' || c == '\r') c = ' ';
    text_ += '\n';
  } else if (auto done = format_.append(text_, topic, record); !done) {
    return fails(kExitUnreachable, "the server's answer is unreadable: " + done.error().message);
  }
  --left_;
  return console_->write(text_);
}

}  // namespace millrace::cli
