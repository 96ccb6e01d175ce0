#include "api/backups.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <utility>

#include "api/json.h"
#include "backup/backup.h"
#include "base/thread.h"

namespace millrace::api {
namespace {

std::string json_of(const backup::Info& info, const std::filesystem::path& directory) {
  std::string out = R"({"name":)";
  append_string(out, info.name);
  out += R"(,"state":"COMPLETE","path":)";
  append_string(out, (directory / info.name).string());
  out += R"(,"node":)";
  append_string(out, info.node);
  out += R"(,"createdAt":)";
  append_string(out, info.created_at);
  out += R"(,"version":)";
  append_string(out, info.version);
  return out + fmt::format(R"(,"files":{},"bytes":"{}"}})", info.files, info.bytes);
}

/// "2026-01-31T12:00:00.123Z" as a name.
std::string name_of(std::string time) {
  for (char& c : time)
    if (c == ':') c = '-';
  return time;
}

tl::unexpected<Error> running(const std::string& name) {
  return fail(ErrorKind::kConflict, "BACKUP_RUNNING", fmt::format("backup '{}' is being made", name));
}

}  // namespace

BackupsApi::BackupsApi(const Clock& clock, Options options) : clock_(clock), options_(std::move(options)) {
  thread_ = std::thread([this] { run(); });
}

BackupsApi::~BackupsApi() {
  stop();
}

Result<std::string> BackupsApi::create(std::string_view body) {
  const std::string now = format_time(clock_.wall_ms()).value_or("");
  std::string name = name_of(now);
  if (!body.empty()) {
    auto json = parse_json(body);
    if (!json) return tl::unexpected(std::move(json.error()));
    auto fields = Fields::of(*json, "", {"name"});
    if (!fields) return tl::unexpected(std::move(fields.error()));
    if (fields->find("name") != nullptr) {
      auto given = fields->string("name");
      if (!given) return given;
      name = *std::move(given);
    }
  }
  MILLRACE_TRY(backup::check_name(name));
  auto known = backup::list(options_.directory);
  if (!known) return tl::unexpected(std::move(known.error()));
  for (const backup::Info& info : *known)
    if (info.name == name)
      return fail(ErrorKind::kAlreadyExists, "BACKUP_EXISTS", fmt::format("there is a backup '{}' already", name),
                  "/name");
  if (known->size() >= options_.max_backups)
    return fail(ErrorKind::kExhausted, "TOO_MANY_BACKUPS",
                fmt::format("at most {} backups are kept (storage.maxBackups); remove one", options_.max_backups));

  MutexLock lock(mutex_);
  if (stopping_) return fail(ErrorKind::kUnavailable, "STOPPING", "the node is stopping");
  if (attempt_ && attempt_->running) return running(attempt_->name);
  attempt_ = Attempt{name, now, true, 0, std::nullopt};
  asked_ = true;
  wake_.notify_all();
  return to_json(*attempt_);
}

void BackupsApi::run() {
  name_this_thread("backup");
  for (;;) {
    switch (next()) {
      case Job::kClear:
        clear();
        break;
      case Job::kMake:
        make();
        break;
      case Job::kStop:
        return;
    }
  }
}

BackupsApi::Job BackupsApi::next() {
  MutexLock lock(mutex_);
  for (;;) {
    if (std::exchange(clears_, false)) return Job::kClear;
    if (stopping_) return Job::kStop;
    if (std::exchange(asked_, false)) return Job::kMake;
    wake_.wait(mutex_);
  }
}

void BackupsApi::clear() {
  std::error_code error;
  if (!options_.staging.empty()) {
    std::filesystem::remove_all(options_.staging, error);
    std::filesystem::remove_all(options_.staging.string() + ".incomplete", error);  // Store::checkpoint()'s.
  }
  if (auto status = backup::clear(options_.directory); !status)
    spdlog::warn("removing what is left of backups: {}", to_string(status.error()));
}

void BackupsApi::make() {
  std::string name, created_at;
  {
    MutexLock lock(mutex_);
    name = attempt_->name;
    created_at = attempt_->created_at;
  }
  backup::Request request;
  request.directory = options_.directory;
  request.info.name = name;
  request.info.node = options_.node_name;
  request.info.created_at = created_at;
  request.info.version = options_.version;
  request.config = options_.config;
  request.copy_data = options_.copy_data;
  request.staging = options_.staging;
  auto made = backup::create(request, [this](uint64_t bytes) { return progress(bytes); });
  if (made)
    spdlog::info("backup '{}' is complete: {} files, {} bytes, in {}", name, made->files, made->bytes,
                 (options_.directory / name).string());
  else
    spdlog::error("backup '{}' failed: {}", name, to_string(made.error()));
  std::vector<std::function<void()>> waiting;
  {
    MutexLock lock(mutex_);
    if (made) {
      attempt_.reset();
    } else {
      attempt_->running = false;
      attempt_->error = std::move(made.error());
    }
    waiting.swap(waiting_);
  }
  for (const auto& fn : waiting) fn();
}

bool BackupsApi::progress(uint64_t bytes) {
  const auto pause =
      std::chrono::nanoseconds(options_.bytes_per_second == 0 ? 0 : bytes * 1'000'000'000 / options_.bytes_per_second);
  const auto end = std::chrono::steady_clock::now() + pause;
  MutexLock lock(mutex_);
  attempt_->bytes += bytes;
  for (;;) {
    if (stopping_) return false;
    const auto left = end - std::chrono::steady_clock::now();
    if (left.count() <= 0) return true;
    wake_.wait_for(mutex_, left);
  }
}

std::string BackupsApi::to_json(const Attempt& attempt) const {
  std::string out = R"({"name":)";
  append_string(out, attempt.name);
  out += fmt::format(R"(,"state":"{}","path":)", attempt.running ? "RUNNING" : "FAILED");
  append_string(out, (options_.directory / attempt.name).string());
  out += R"(,"createdAt":)";
  append_string(out, attempt.created_at);
  out += fmt::format(R"(,"bytes":"{}")", attempt.bytes);
  if (attempt.error) {
    out += R"(,"error":)";
    append_string(out, to_string(*attempt.error));
  }
  return out + "}";
}

Result<std::string> BackupsApi::get(const std::string& name) const {
  MILLRACE_TRY(backup::check_name(name));
  {
    MutexLock lock(mutex_);
    if (attempt_ && attempt_->name == name) return to_json(*attempt_);
  }
  auto info = backup::read_info(options_.directory / name);
  if (!info) return tl::unexpected(std::move(info.error()));
  return json_of(*info, options_.directory);
}

Result<std::string> BackupsApi::list() const {
  std::string out = R"({"backups":[)", attempted;
  {
    MutexLock lock(mutex_);
    if (attempt_) {
      attempted = attempt_->name;
      out += to_json(*attempt_);
    }
  }
  auto known = backup::list(options_.directory);
  if (!known) return tl::unexpected(std::move(known.error()));
  for (const backup::Info& info : *known) {
    if (info.name == attempted) continue;  // It has just become complete.
    if (out.back() != '[') out += ',';
    out += json_of(info, options_.directory);
  }
  return out + "]}";
}

Status BackupsApi::remove(const std::string& name) {
  MILLRACE_TRY(backup::check_name(name));
  MutexLock lock(mutex_);
  if (attempt_ && attempt_->name == name) {
    if (attempt_->running) return running(name);
    attempt_.reset();
    return {};
  }
  MILLRACE_TRY(backup::remove(options_.directory / name));
  clears_ = true;
  wake_.notify_all();
  return {};
}

void BackupsApi::when_done(const std::string& name, std::function<void()> fn) {
  {
    MutexLock lock(mutex_);
    if (attempt_ && attempt_->running && attempt_->name == name) {
      waiting_.push_back(std::move(fn));
      return;
    }
  }
  fn();
}

void BackupsApi::stop() {
  std::vector<std::function<void()>> waiting;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  {
    // One that was asked for and never begun.
    MutexLock lock(mutex_);
    waiting.swap(waiting_);
  }
  for (const auto& fn : waiting) fn();
}

}  // namespace millrace::api
