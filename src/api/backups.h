#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "api/topics.h"
#include "base/clock.h"
#include "base/mutex.h"

/// Backups as use cases: made beside everything else on a thread `backup`, one at a time.
namespace millrace::api {

/// Owned by main; any thread. stop() before what copy_data rests on is closed.
class BackupsApi {
 public:
  struct Options {
    std::filesystem::path directory;
    std::string node_name;
    std::string version;
    std::string config;  ///< as it goes into the backup
    size_t max_backups = 16;
    uint64_t bytes_per_second = 0;  ///< read to compute digests; 0: no bound
    /// backup::Request::copy_data, ::staging.
    std::function<Status(const std::filesystem::path& to)> copy_data;
    std::filesystem::path staging;
  };
  /// Starts the thread, which first removes what an interrupted backup left.
  BackupsApi(const Clock& clock, Options options);
  /// stop().
  ~BackupsApi();

  /// {"name"?}: begins; without a name it is the time. The answer is that of get(). Errors: kConflict BACKUP_RUNNING,
  /// kAlreadyExists BACKUP_EXISTS, kExhausted TOO_MANY_BACKUPS, kInvalidArgument INVALID_BACKUP_NAME.
  Result<std::string> create(std::string_view body) EXCLUDES(mutex_);

  /// {"name","state":"RUNNING"|"COMPLETE"|"FAILED","path",..}; a failed one is remembered until the next one begins.
  /// Errors: kNotFound UNKNOWN_BACKUP.
  Result<std::string> get(const std::string& name) const EXCLUDES(mutex_);
  /// {"backups":[..]}
  Result<std::string> list() const EXCLUDES(mutex_);
  /// Errors: kNotFound UNKNOWN_BACKUP, kConflict BACKUP_RUNNING.
  Status remove(const std::string& name) EXCLUDES(mutex_);

  /// Calls `fn` once the backup is not running (any more), perhaps at once, at the latest at stop().
  void when_done(const std::string& name, std::function<void()> fn) EXCLUDES(mutex_);

  /// Interrupts the one that is running, and waits for its end.
  void stop() EXCLUDES(mutex_);

 private:
  struct Attempt {
    std::string name;
    std::string created_at;
    bool running = true;
    uint64_t bytes = 0;  ///< digested so far
    std::optional<Error> error;
  };
  enum class Job { kClear, kMake, kStop };
  void run();
  Job next() EXCLUDES(mutex_);
  void make() EXCLUDES(mutex_);
  void clear();
  bool progress(uint64_t bytes) EXCLUDES(mutex_);
  std::string to_json(const Attempt& attempt) const;

  const Clock& clock_;
  const Options options_;
  mutable Mutex mutex_;
  CondVar wake_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  bool asked_ GUARDED_BY(mutex_) = false;              ///< to make attempt_
  bool clears_ GUARDED_BY(mutex_) = true;              ///< asked to
  std::optional<Attempt> attempt_ GUARDED_BY(mutex_);  ///< the last one, unless it is complete
  std::vector<std::function<void()>> waiting_ GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace millrace::api
