#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdlib>

#include "base/version.h"
#include "cli/completion.h"
#include "http/params.h"

namespace millrace::cli {
namespace {

constexpr const char* kDefaultServer = "http://127.0.0.1:8080";
constexpr const char* kFooter =
    "\nExit codes: 0 done; 1 the server refused; 2 command line or input; 3 no server reached; 4 outcome unknown;\n"
    "5 standard input or output failed; 70 internal error; 130 interrupted.";

/// What CLI11 fills; strings are checked and converted by the options' checks, once.
struct Draft {
  CommandLine line;
  TopicsCommand topics;
  ProduceCommand produce;
  ConsumeCommand consume;
  GroupsCommand groups;
  NodeCommand node;
  BackupCommand backup;
  WorkersCommand workers;
  CompletionCommand completion;
  std::vector<std::string> configs;
  std::string timeout, batch_bytes, linger, key_separator, from, to, shell;
};

// A shell variable that is unexpectedly empty must not quietly mean the default.
std::string not_empty(const std::string& value) {
  return value.empty() ? "the value is empty" : "";
}

std::string assignment(const std::string& text) {
  size_t equals = text.find('=');
  return equals == std::string::npos || equals == 0 ? fmt::format("'{}' is not KEY=VALUE", text) : "";
}

// What an Idempotency-Key may hold, with room for the batch's number behind it.
std::string usable_as_key(const std::string& text) {
  for (char c : text)
    if (c <= ' ' || c > '~') return "an idempotency key holds printable ASCII without spaces only";
  return text.empty() || text.size() > 48 ? "an idempotency prefix has 1 to 48 characters" : "";
}

CLI::Validator checked(http::Param param) {
  return CLI::Validator(
      [param](std::string& text) {
        auto number = param.check(text);
        return number ? std::string() : number.error().message;
      },
      "");
}

CLI::Validator duration(std::string name, int64_t low, int64_t high) {
  return checked(http::Param::duration(std::move(name), "").range(low, high));
}

int64_t number_of(const http::Param& param, const std::string& text) {
  return param.check(text).value_or(0);
}

int64_t now_ms() {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

CLI::App* add(CLI::App& parent, const char* name, const char* description) {
  auto* app = parent.add_subcommand(name, description);
  app->fallthrough();
  return app;
}

CLI::Option* add_topic(CLI::App* app, std::string& topic) {
  return app->add_option("TOPIC", topic, "Name of the topic")->required()->check(not_empty, "");
}

void add_retries(CLI::App* app, RetryPolicy& retry) {
  app->add_option("--retries", retry.most, "How often a request is repeated while the node is away")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(0, 10'000));
}

void add_topics(CLI::App& root, Draft& draft) {
  using Action = TopicsCommand::Action;
  auto* topics = add(root, "topics", "Topics: list, create, show, alter, delete");
  topics->require_subcommand(1);
  TopicsCommand& command = draft.topics;
  auto action = [&command](Action value) { return [&command, value] { command.action = value; }; };

  auto* list = add(*topics, "list", "List the topics by name");
  list->add_option("--limit", command.limit, "At most so many; 0 for all")->type_name("N")->capture_default_str();
  list->add_flag("--names", command.names_only, "Print the names alone, one a line");
  list->callback(action(Action::kList));

  auto* create = add(*topics, "create", "Create a topic");
  add_topic(create, command.topic);
  create->add_option("--partitions", command.partitions, "How many; without it, what the node's configuration says")
      ->type_name("N")
      ->check(CLI::Range(1, 10'000));
  create->add_flag("--if-not-exists", command.may_exist, "A topic of that name is a success");
  create->callback(action(Action::kCreate));

  auto* show = add(*topics, "show", "Show a topic, its settings and its partitions");
  add_topic(show, command.topic);
  show->callback(action(Action::kShow));

  auto* alter = add(*topics, "alter", "Change a topic's settings");
  add_topic(alter, command.topic);
  alter->add_option("--unset", command.unset, "Return a setting to its default; may be repeated")
      ->type_name("KEY")
      ->allow_extra_args(false)
      ->check(not_empty, "");
  alter->callback([&draft] {
    draft.topics.action = Action::kAlter;
    if (draft.configs.empty() && draft.topics.unset.empty())
      throw CLI::ValidationError("topics alter", "nothing to change: give --config KEY=VALUE or --unset KEY");
  });
  for (auto* app : {create, alter})
    app->add_option("--config", draft.configs, "Set a setting, as retention.ms=86400000; may be repeated")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false)
        ->check(assignment, "");

  auto* remove = add(*topics, "delete", "Delete a topic and all its records");
  add_topic(remove, command.topic);
  remove->add_flag("--if-exists", command.may_be_gone, "No topic of that name is a success");
  remove->callback(action(Action::kDelete));
}

void add_produce(CLI::App& root, Draft& draft) {
  auto* app = add(root, "produce", "Append records from standard input, one a line");
  app->footer(
      "\nA line is a value; with --key-separator, a key and a value. With --json it is an object with key, value,\n"
      "headers, partition and timestamp, as consume --json prints it. A batch is one atomic commit. A batch whose\n"
      "answer is lost is sent again under the same idempotency key, so nothing is lost or doubled.");
  ProduceCommand& command = draft.produce;
  add_topic(app, command.topic);
  app->add_option("--key-separator", draft.key_separator,
                  "Cut lines into key and value at its first occurrence; TAB, or with \\t")
      ->type_name("TEXT")
      ->check([](const std::string& text) { return unescape(text).value_or("").empty() ? "not usable: " + text : ""; },
              "");
  app->add_option("--batch-records", command.batch_records, "Records in a batch, at most")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(1, 10'000));
  app->add_option("--batch-bytes", draft.batch_bytes, "Size of a batch, at most; a larger record goes alone [1MB]")
      ->type_name("SIZE")
      ->check(checked(http::Param::size("--batch-bytes", "").range(1, 15 << 20)));
  app->add_option("--linger", draft.linger,
                  "Send a batch that is not full after so much silence [500ms; never with --idempotency-prefix]")
      ->type_name("DURATION")
      ->check(duration("--linger", 1, 3'600'000));
  app->add_option("--idempotency-prefix", command.idempotency_prefix,
                  "Begin idempotency keys with this, so that the same input can be sent again [random]")
      ->type_name("TEXT")
      ->check(usable_as_key, "");
  app->add_flag("--repartition", command.repartition, "With --json: leave the choice of the partition to the node");
  add_retries(app, command.retry);
}

void add_consume(CLI::App& root, Draft& draft) {
  auto* app = add(root, "consume", "Print records, and with --follow those to come");
  app->footer(
      "\nWithout --follow it prints what is there, partition by partition, and ends. FORMAT: %s value, %k key,\n"
      "%t topic, %p partition, %o offset, %T time in ms, %h headers, %S and %K sizes of value and key (-1: none),\n"
      "%% itself, and \\n \\t \\r \\0 \\xHH.");
  ConsumeCommand& command = draft.consume;
  app->add_option("TOPIC", command.topics, "Name of the topic; several with --group")->required()->check(not_empty, "");
  auto* group = app->add_option("-g,--group", command.group,
                                "Read as a member of this consumer group, until interrupted: commits after printing");
  group->type_name("GROUP")->check(not_empty, "");
  app->add_option("--instance-id", command.instance_id,
                  "With --group: be this instance, which keeps its partitions over a restart")
      ->type_name("ID")
      ->needs(group)
      ->check(not_empty, "");
  app->add_option("--session-timeout", command.session_timeout,
                  "With --group: count as gone after so much silence [30s]")
      ->type_name("DURATION")
      ->needs(group)
      ->check(duration("--session-timeout", 1, 86'400'000));
  app->add_option("-p,--partition", command.partition, "Of this partition only")->type_name("N");
  app->add_option(
         "--from", draft.from,
         "earliest, latest, OFFSET, 0:12,1:9, TIME (RFC 3339) or an age (15m) [earliest; latest with --follow]")
      ->type_name("POSITION")
      ->check(
          [](const std::string& text) {
            auto position = StartPosition::parse(text, 0);
            return position ? std::string() : position.error().message;
          },
          "");
  app->add_flag("-f,--follow", command.follow, "Go on with new records until interrupted");
  app->add_option("-n,--limit", command.limit, "End after so many records")
      ->type_name("N")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 62));
  app->add_option("--format", command.format, "How to print a record")
      ->type_name("FORMAT")
      ->capture_default_str()
      ->check([](const std::string& text) { return unescape(text) ? "" : "an unknown escape in '" + text + "'"; }, "");
  add_retries(app, command.retry);
  app->callback([&command, &draft] {
    if (!command.group && command.topics.size() > 1)
      throw CLI::ValidationError("consume", "several topics are read with --group only");
    if (command.group && (command.partition || command.follow))
      throw CLI::ValidationError("consume", "--partition and --follow do not go with --group");
    if (command.group && !draft.from.empty() && draft.from != "earliest" && draft.from != "latest")
      throw CLI::ValidationError("consume", "with --group, --from is earliest or latest");
  });
}

void add_groups(CLI::App& root, Draft& draft) {
  using Action = GroupsCommand::Action;
  auto* groups = add(root, "groups", "Consumer groups: list, show, delete, reset-offsets");
  groups->require_subcommand(1);
  GroupsCommand& command = draft.groups;
  auto action = [&command](Action value) { return [&command, value] { command.action = value; }; };
  auto named = [&](const char* name, const char* description, Action value) {
    auto* app = add(*groups, name, description);
    app->add_option("GROUP", command.group, "Name of the group")->required()->check(not_empty, "");
    app->callback(action(value));
    return app;
  };
  auto* list = add(*groups, "list", "List the groups by name");
  list->add_flag("--names", command.names_only, "Print the names alone, one a line");
  list->callback(action(Action::kList));
  named("show", "Show a group: its members, offsets and lag", Action::kShow);
  named("delete", "Delete a group without members, and its offsets", Action::kDelete);
  auto* reset = named("reset-offsets", "Move the offsets of a group without members", Action::kReset);
  reset->add_option("--topic", command.topics, "Of this topic; may be repeated [all that the group has offsets for]")
      ->type_name("TOPIC")
      ->allow_extra_args(false)
      ->check(not_empty, "");
  reset->add_option("--partition", command.partitions, "Of this partition; may be repeated [all]")
      ->type_name("N")
      ->allow_extra_args(false);
  reset->add_option("--to", draft.to, "earliest, latest, OFFSET, TIME (RFC 3339) or an age (15m)")
      ->type_name("POSITION")
      ->required()
      ->check(
          [](const std::string& text) {
            auto position = StartPosition::parse(text, 0);
            return position ? std::string() : position.error().message;
          },
          "");
  reset->add_flag("--dry-run", command.dry_run, "Only show what would be moved");
}

void add_node(CLI::App& root, Draft& draft) {
  using Action = NodeCommand::Action;
  auto* node = add(root, "node", "The node: show, health, ready, metrics");
  node->require_subcommand(0, 1);
  auto leaf = [&draft, node](const char* name, const char* description, Action action) {
    add(*node, name, description)->callback([&draft, action] { draft.node.action = action; });
  };
  leaf("show", "Show the node (the default)", Action::kShow);
  leaf("health", "Whether every loop makes progress; exit code 1 when not", Action::kHealth);
  leaf("ready", "Whether it serves requests; exit code 1 when not", Action::kReady);
  leaf("metrics", "Print the metrics in Prometheus' format", Action::kMetrics);
}

void add_backup(CLI::App& root, Draft& draft) {
  using Action = BackupCommand::Action;
  auto* backup = add(root, "backup", "Backups: create, list, delete, verify, restore");
  backup->require_subcommand(1);
  BackupCommand& command = draft.backup;
  auto action = [&command](Action value) { return [&command, value] { command.action = value; }; };

  auto* create = add(*backup, "create", "Make a backup of the node's data and configuration, and wait for its end");
  create->add_option("NAME", command.name, "Its name; without one, the time")->check(not_empty, "");
  create->add_flag("--no-wait", command.no_wait, "Only begin it");
  create->callback(action(Action::kCreate));

  add(*backup, "list", "List the node's backups by name")->callback(action(Action::kList));

  auto* remove = add(*backup, "delete", "Delete a backup");
  remove->add_option("NAME", command.name, "Its name")->required()->check(not_empty, "");
  remove->callback(action(Action::kDelete));

  auto* verify = add(*backup, "verify", "Read a backup and compare its digests; no node is needed");
  auto* restore = add(*backup, "restore", "Restore a backup to a new data directory; no node is needed");
  for (auto* app : {verify, restore})
    app->add_option("DIR", command.directory, "The backup's directory")->required()->check(not_empty, "");
  restore->add_option("--to", command.to, "The data directory to make; must not exist, or be empty")
      ->type_name("DIR")
      ->required()
      ->check(not_empty, "");
  verify->callback(action(Action::kVerify));
  restore->callback(action(Action::kRestore));
}

void add_workers(CLI::App& root, Draft& draft) {
  using Action = WorkersCommand::Action;
  auto* workers = add(root, "workers", "Worker threads: list, stop");
  workers->require_subcommand(1);
  WorkersCommand& command = draft.workers;
  add(*workers, "list", "List the workers, what each owns and is at")->callback([&command] {
    command.action = Action::kList;
  });
  auto* stop = add(*workers, "stop", "Stop a worker, as a drill; others take its partitions over");
  stop->add_option("ID", command.id, "The worker's id")->required()->check(not_empty, "");
  stop->callback([&command] { command.action = Action::kStop; });
}

void add_completion(CLI::App& root, Draft& draft) {
  auto* app = add(root, "completion", "Print a completion script for a shell");
  app->add_option("SHELL", draft.shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
}

void add_globals(CLI::App& app, Draft& draft) {
  app.add_option("--server", draft.line.server,
                 fmt::format("Address of the node, or unix:/path [$MILLRACE_SERVER or {}]", kDefaultServer))
      ->type_name("URL")
      ->check(not_empty, "");
  app.add_option("--timeout", draft.timeout, "Give up when the node was silent for so long [30s]")
      ->type_name("DURATION")
      ->check(duration("--timeout", 1, 3'600'000));
  app.add_flag("--json", draft.line.json, "JSON out (and in, for produce): one value a line");
  app.set_version_flag("--version", version_text, "Print version, revision and build type, and end");
}

CommandLine finish(const CLI::App& app, Draft& draft) {
  CommandLine& line = draft.line;
  if (!draft.timeout.empty())
    line.timeout = std::chrono::milliseconds(number_of(http::Param::duration("", ""), draft.timeout));
  const std::string name = app.get_subcommands().front()->get_name();
  if (name == "topics") {
    for (const std::string& text : draft.configs)
      draft.topics.configs.emplace_back(text.substr(0, text.find('=')), text.substr(text.find('=') + 1));
    line.command = std::move(draft.topics);
  } else if (name == "produce") {
    ProduceCommand& produce = draft.produce;
    if (!draft.key_separator.empty()) produce.key_separator = unescape(draft.key_separator);
    if (draft.key_separator == "TAB") produce.key_separator = "\t";
    if (!draft.batch_bytes.empty())
      produce.batch_bytes = static_cast<size_t>(number_of(http::Param::size("", ""), draft.batch_bytes));
    if (!produce.idempotency_prefix.empty()) produce.linger.reset();
    if (!draft.linger.empty())
      produce.linger = std::chrono::milliseconds(number_of(http::Param::duration("", ""), draft.linger));
    line.command = std::move(produce);
  } else if (name == "consume") {
    ConsumeCommand& consume = draft.consume;
    if (consume.follow) consume.from.value = StartPosition::Latest();
    consume.topic = consume.topics.front();
    if (!draft.from.empty()) consume.from = *StartPosition::parse(draft.from, now_ms());
    line.command = std::move(consume);
  } else if (name == "groups") {
    if (!draft.to.empty()) draft.groups.to = *StartPosition::parse(draft.to, now_ms());
    line.command = std::move(draft.groups);
  } else if (name == "node") {
    line.command = draft.node;
  } else if (name == "workers") {
    line.command = std::move(draft.workers);
  } else if (name == "backup") {
    line.command = std::move(draft.backup);
  } else {
    line.command = CompletionCommand{completion_script(app, draft.shell)};
  }
  return std::move(line);
}

}  // namespace

tl::expected<CommandLine, int> parse_command_line(int argc, const char* const* argv) {
  CLI::App app{"The command line client of Millrace.", "millrace"};
  Draft draft;
  app.require_subcommand(1);
  app.footer(kFooter);
  app.failure_message([](const CLI::App* parsed, const CLI::Error& error) {
    // CLI11 asks for a subcommand also where a word is there that names none.
    auto unknown = parsed->remaining(true);
    bool word = error.get_name() == "RequiredError" && !unknown.empty() && !unknown[0].starts_with('-');
    return fmt::format("millrace: {}\nRun with --help for more information.\n",
                       word ? "there is no command '" + unknown[0] + "'" : error.what());
  });
  add_globals(app, draft);
  add_topics(app, draft);
  add_produce(app, draft);
  add_consume(app, draft);
  add_groups(app, draft);
  add_node(app, draft);
  add_backup(app, draft);
  add_workers(app, draft);
  add_completion(app, draft);
  try {
    app.parse(argc, argv);
    if (draft.line.server.empty()) {
      const char* server = std::getenv("MILLRACE_SERVER");
      draft.line.server = server != nullptr ? server : kDefaultServer;
      if (draft.line.server.empty()) throw CLI::ValidationError("MILLRACE_SERVER", "the variable is set but empty");
    }
  } catch (const CLI::ParseError& error) {
    return tl::unexpected<int>(app.exit(error) == 0 ? kExitOk : kExitUsage);
  }
  return finish(app, draft);
}

std::string version_text() {
  return fmt::format("millrace {} (revision {}, {})", version(), git_revision(), build_type());
}

std::optional<std::string> unescape(std::string_view text) {
  constexpr std::string_view kNames = "tnr0\\", kBytes("\t\n\r\0\\", 5);
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    if (++i == text.size()) return std::nullopt;
    if (size_t at = kNames.find(text[i]); at != std::string_view::npos) {
      out += kBytes[at];
      continue;
    }
    unsigned byte = 0;
    std::string_view digits = text.substr(i + 1, 2);
    auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (text[i] != 'x' || digits.size() != 2 || fault != std::errc() || end != digits.data() + 2) return std::nullopt;
    out += static_cast<char>(byte);
    i += 2;
  }
  return out;
}

}  // namespace millrace::cli
